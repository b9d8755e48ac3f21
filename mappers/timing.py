"""How long a mapping takes, the compiler apart.

What a budget of time is for is compiled before, on a small case of the same kind. What that case
does not meet, such as kernels for many ranks only, is taken off the clock.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace
from functools import cache
from itertools import permutations
from typing import Any, TypeAlias

import numpy as np

from hopmap.compilation import compiling
from hopmap.topologies import (
    Mapping,
    Router,
    Topology,
    dragonfly,
    dragonfly_plus,
    fat_tree,
    from_networkx,
    from_routes,
    haec,
    mesh,
    renumbered,
    tree,
)
from hopmap.topologies.detour_kernels import DetourRouter
from hopmap.topologies.failures import rerouted
from hopmap.topologies.graph_kernels import GraphRouter
from hopmap.topologies.table_kernels import RouteRouter
from hopmap.traces import Traffic

from .budget import Progress, Stopped
from .objectives import Function
from .pipeline import map_ranks, prepared

Objective: TypeAlias = str | Function | None
Kind: TypeAlias = tuple[type, Any]
"""Type of a router, and the family of its box, or the kind of router that it has detours of."""


def timed_mapping(
    traffic: Traffic,
    topology: Topology,
    pipeline: str,
    *,
    seed: int,
    seconds: float | None = None,
    initial: Mapping | None = None,
    objective: Objective = None,
    progress: Progress | None = None,
    stopped: Stopped | None = None,
) -> tuple[Mapping, float]:
    """Place the ranks as `map_ranks` does; return the mapping and the seconds it took.

    What is refused is refused before anything is compiled.
    """
    prepared(
        traffic, topology, pipeline, seed=seed, seconds=seconds, initial=initial,
        objective=objective,
    )  # fmt: skip
    if progress is not None:
        progress(0, None, "compiling")
    compile_for(topology, pipeline, _flat if callable(objective) else objective)
    with compiling() as spent:
        begin = time.perf_counter()
        node_of = map_ranks(
            traffic,
            topology,
            pipeline,
            seed=seed,
            seconds=seconds,
            initial=initial,
            objective=objective,
            progress=progress,
            keep_interrupted=False,
            stopped=stopped,
        )
        took = time.perf_counter() - begin
    return node_of, took - sum(spent)


def _flat(_: Mapping) -> float:
    """Stand for an objective that takes long."""
    return 0.0


def compile_for(topology: Topology, pipeline: str, objective: Objective = None) -> None:
    """Compile what a pipeline runs on a network of this kind.

    Kernels are compiled once for each type of router; besides, mappers choose among them by the
    family of a box, and by whether nodes have one slot, several, or unlike numbers of them.
    """
    router, slots = topology.router, topology.slots
    each = (1 if np.ptp(slots) else min(int(slots[0]), 2), min(int(slots.max()), 2))
    _compile(_kind(router), each, pipeline, objective)


def _kind(router: Router) -> Kind:
    if isinstance(router, DetourRouter):
        return type(router), _kind(router.base)
    return type(router), getattr(router, "family", None)


@cache
def _compile(kind: Kind, slots: tuple[int, int], pipeline: str, objective: Objective) -> None:
    """Map something small for a moment, so that all that needs compiling is compiled."""
    small = replace(_small(kind), slots=np.repeat(slots, 4).astype(np.int64))
    places = np.repeat(np.arange(8), small.slots)
    ranks = np.arange(len(places))
    start = np.random.default_rng(0).permutation(places)  # one that can be improved
    grid = np.reshape(ranks, (-1, 4))  # of two axes, which mappers of grids recognise
    source = np.concatenate((grid[:, :-1].ravel(), grid[:-1].ravel()))
    target = np.concatenate((grid[:, 1:].ravel(), grid[1:].ravel()))
    traffic = Traffic.from_pairs(len(ranks), source, target, source + 8, source + 8)
    with suppress(Exception):  # it may not be made for this case, above all one of the user's own
        for _ in range(3):  # what compiling took from one budget, the next one has
            map_ranks(
                traffic, small, pipeline, initial=start, seconds=0.02, objective=objective,
                keep_interrupted=False,
            )  # fmt: skip


def _small(kind: Kind) -> Topology:
    """Return a network of eight nodes of a kind."""
    cube = mesh((2, 2, 2))
    if isinstance(kind[1], tuple):
        whole = _small(kind[1])
        return rerouted(whole, np.zeros(whole.links, dtype=np.bool_), whole.spec)
    if kind[0] is GraphRouter:
        from networkx import cycle_graph

        return from_networkx(cycle_graph(8))
    if kind[0] is RouteRouter:
        routes = {pair: cube.routes(*pair)[1].tolist() for pair in permutations(range(8), 2)}
        return from_routes([1] * 8, [(1.0, 0.0)] * cube.links, routes, "routes")
    known = (
        *(cube, renumbered(cube, np.arange(8)), haec((2, 1, 4)), tree((2, 4))),
        *(fat_tree((2, 4)), dragonfly(2, 2, 1, 2), dragonfly_plus(2, 2, 1, 2)),
    )
    return next(n for n in known if _kind(n.router) == kind)

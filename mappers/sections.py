"""Sections of a hierarchy by annealing: who goes to which subsystem, from the largest level down.

On every level the subsystems are nodes with many slots, and two ranks are as far apart as their
subsystems are on average, or as two nodes of the subsystem that they share. The temperature of a
level follows how much farther apart its subsystems are than what is within them, so that every
level is settled before the next smaller one. The idea is multisection along the hierarchy (Schulz
and Traeff 2017, section 3.2) with exchanges in place of a partitioner.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..topologies import Topology, hierarchy
from . import kernels, multilevel_kernels, pairwise_kernels
from .cooling import Cooling, Search
from .seating import seated_in_groups, table_router

SAMPLES = 8


def spans_of(topology: Topology) -> list[int]:
    """Nodes of a subsystem, level by level from the second largest down to more than one."""
    sizes = hierarchy(topology) or ()
    spans = np.cumprod(sizes)[:-1]
    return [int(span) for span in spans[::-1] if 1 < span < topology.nodes]


def settle(
    search: Search,
    rng: np.random.Generator,
    hot: float,
    cold: float,
    *,
    moves: int | None,
    seconds: float | None,
) -> float:
    """Seat everybody level by level, but for the single nodes; return their temperature scale.

    Moves and seconds are shared equally by the levels.
    """
    topology, watch = search.topology, search.watch
    spans = [span for span in spans_of(topology) if topology.nodes // span <= 2048]
    nodes = np.arange(topology.nodes, dtype=np.int64)
    end = None if seconds is None else watch.now() + seconds
    for done, span in enumerate(spans):
        starts = np.append(nodes[::span], topology.nodes)
        table = multilevel_kernels.group_hops(search.model.router, nodes, starts, SAMPLES, 1.0)
        model = search.model._replace(router=table_router(table), kind=kernels.HOPS)
        slots = np.add.reduceat(topology.slots, starts[:-1])
        seating = seated_in_groups(model, slots, search.seating.places // span, rng)
        cooling = Cooling(model, seating, watch)
        scale = cooling.scale()
        left = None if end is None else max(end - watch.now(), 0.0) / (len(spans) - done)
        budget = None if moves is None else moves // len(spans)
        cooling.cool(hot * scale, cold * scale, moves=budget, seconds=left)
        search.moves += cooling.moves
        search.sit(_in_order(cooling.best, search.seating.seat_of, topology))
    return search.scale()


def _in_order(
    group: NDArray[np.int64], seat_of: NDArray[np.int64], topology: Topology
) -> NDArray[np.int64]:
    """Node of everybody: within their group in the order in which they sit now."""
    seats = np.repeat(np.arange(topology.nodes, dtype=np.int64), topology.slots)
    places = np.empty_like(seats)
    places[np.lexsort((seat_of, group))] = seats
    return places


def pair_up(search: Search, rng: np.random.Generator, sweeps: int, tries: int) -> None:
    """Bisect the ranks of two subsystems anew, for all pairs that talk, the largest level first."""
    topology, model = search.topology, search.model
    draws = rng.integers(1, 2**63, size=1, dtype=np.uint64)
    above = topology.nodes
    for span in spans_of(topology):
        block = search.seating.places // span
        parent = np.arange(topology.nodes // span) // (above // span)
        above = span
        for _ in range(sweeps):
            saved = pairwise_kernels.refine_pairs(
                model.indptr, model.peer, model.weight, block, parent, tries, draws
            )
            if saved == 0 or search.done():
                break
        search.sit(_in_order(block, search.seating.seat_of, topology))

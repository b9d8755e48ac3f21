"""Robust tabu search: the best exchange of all that are allowed, up or down.

Source: Taillard, Robust taboo search for the quadratic assignment problem, Parallel Computing 17
(1991). A rank must not return to a node that it has left for a random number of steps, drawn anew
each time; an exchange is tabu if that forbids it to both ranks. Exchanges that lead to a new best
are allowed all the same, and those that have not been made for long are forced. As there, tabu
lasts 0.9 to 1.1 n steps, and exchanges are forced after `aspiration` n^2.

A baseline: all gains are kept in a table of slots x slots, so there are at most `MOST` slots. A
step takes O(slots^2), and its update O(slots * peers^2).
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from hopmap.mappers import cost_kernels
from hopmap.mappers.budget import Interrupted, Progress, Watch
from hopmap.mappers.mapper import CountOrZero, Seconds, mapper
from hopmap.mappers.objectives import (
    ObjectiveName,
    cost_bound,
    cost_model,
    objective_named,
    with_free_slots,
)
from hopmap.mappers.options import AtLeast
from hopmap.mappers.orders.random_mapping import random_mapping
from hopmap.topologies import Mapping, MappingError, Topology
from hopmap.traces import Traffic

from . import tabu_kernels
from .assignment import with_table

MOST = 2048
WORK = 3_000_000  # exchanges looked at between two looks at the clock


def small(name: str, _: Traffic, topology: Topology) -> None:
    """Raise `MappingError` where the network has too many slots."""
    slots = int(topology.slots.sum())
    if slots > MOST:
        raise MappingError(
            f"mapper {name}: {topology.spec} has {slots} slots: expected {MOST} at most"
        )


@mapper("tabu", source="Taillard 1991", needs=small)
def tabu(
    traffic: Traffic,
    topology: Topology,
    *,
    rng: np.random.Generator,
    initial: Mapping | None = None,
    objective: ObjectiveName = "hop_bytes",
    steps: CountOrZero = 1000,
    aspiration: Annotated[float, AtLeast(0)] = 2.0,
    seconds: Seconds = None,
    progress: Progress | None = None,
) -> Mapping:
    """Robust tabu search over all exchanges, from random by default.

    Parameters
    ----------
    traffic, topology, rng
        See `map_ranks`.
    initial : ndarray, optional
        Mapping to start from.
    objective : str
        What is minimised or maximised.
    steps : int
        Exchanges made.
    aspiration : float
        Times slots^2: steps after which an exchange is forced.
    seconds, progress
        Time budget, and whom to tell.

    Raises
    ------
    MappingError
        More than 2,048 slots.
    """
    small("tabu", traffic, topology)
    slots = int(topology.slots.sum())
    if initial is None:
        initial = random_mapping(traffic, topology, rng=rng)
    watch = Watch(seconds, progress)
    model = with_table(cost_model(traffic, topology, objective), topology)
    named = objective_named(objective)
    bound = cost_bound(model, topology)
    places = with_free_slots(initial, topology)
    best, cost = places.copy(), int(cost_kernels.total_cost(model, places))
    best_cost = cost
    gains = np.zeros((slots, slots), dtype=np.int64)
    until = np.zeros((slots, topology.nodes), dtype=np.int64)
    random = rng.integers(1, 2**63, size=1, dtype=np.uint64)
    shortest, longest = int(0.9 * slots), int(1.1 * slots) + 1
    some = max(1, WORK // (slots * slots))
    done = 0
    try:
        if steps and not watch.over():
            tabu_kernels.all_gains(model, places, gains)
        while done < steps and best_cost > bound and not watch.over():
            watch.report(done, steps, f"{named.name} {named.value(best_cost)}")
            last = min(done + some, steps)
            cost, best_cost = tabu_kernels.tabu_steps(
                model, places, gains, until, shortest, longest, int(aspiration * slots**2),
                cost, best, best_cost, done + 1, last + 1, random,
            )  # fmt: skip
            done = last
    except KeyboardInterrupt:
        raise Interrupted(best[: traffic.ranks]) from None
    return best[: traffic.ranks]

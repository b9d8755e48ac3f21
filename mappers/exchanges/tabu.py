"""Robust tabu search: the best exchange of all that are allowed, up or down.

Source: Taillard, Robust taboo search for the quadratic assignment problem, Parallel Computing 17
(1991). A rank must not return to a node that it has left for a random number of steps, drawn again
each time; an exchange is tabu if that forbids it to both ranks. Exchanges that lead to a new best
are allowed all the same, and those that have not been made for long are forced. As there, tabu
lasts 0.9 to 1.1 n steps, and exchanges are forced after `aspiration` n^2.

All gains are kept in tables of slots x slots, so there are at most `MOST` slots. A step renews and
looks at every gain, O(slots^2).

`iterated_tabu` is what `auto` runs on few slots: tabu searches of `LENGTH` n steps, each from the
best that a chain of them has met with some of the ranks shuffled; after `PATIENCE` that did not
find better a chain is begun anywhere. Source: Misevicius, An implementation of the iterated tabu
search algorithm for the quadratic assignment problem, OR Spectrum 34 (2012), whose lengths and
shuffles follow other rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hopmap.arrays import Ints
from hopmap.mappers.cost_model import CostModel
from hopmap.mappers.mapper import mapper
from hopmap.mappers.objectives import (
    ObjectiveName,
    cost_bound,
    cost_model,
    get_objective,
    with_free_slots,
)
from hopmap.mappers.options import CountOrZero, NonNegative
from hopmap.mappers.orders.node_orders import random_mapping
from hopmap.mappers.stop import Stop, keep
from hopmap.topologies import Mapping, MappingError, Topology
from hopmap.traces import Traffic

from .annealing import AnnealingSearch

if TYPE_CHECKING:
    from .tabu_kernels import TabuSearch

MOST = 2048
WORK = 1_000_000  # exchanges looked at between two looks at the clock
LENGTH = 30  # times slots: steps of a search between two shuffles
SHUFFLED = 0.2, 0.7  # least and largest part of the ranks
BRIEF = 0.2, 0.5  # times slots: fewest and most steps for which a place is tabu then
PATIENCE = 20  # searches


def require_small(name: str, _: Traffic, topology: Topology) -> None:
    """Raise `MappingError` unless the network has few slots."""
    slots = int(topology.slots.sum())
    if slots > MOST:
        raise MappingError(
            f"mapper {name}: {topology.spec} has {slots} slots: expected {MOST} at most"
        )


@mapper("tabu", source="Taillard 1991", needs=require_small)
def tabu(
    traffic: Traffic,
    topology: Topology,
    *,
    rng: np.random.Generator,
    initial: Mapping | None = None,
    objective: ObjectiveName = "hop_bytes",
    steps: CountOrZero = 1000,
    aspiration: NonNegative = 2.0,
    stop: Stop,
) -> Mapping:
    """Robust tabu search over all exchanges, from random by default.

    - `aspiration`: times slots^2: steps after which an exchange is forced.
    """
    from . import tabu_kernels

    require_small("tabu", traffic, topology)
    slots = int(topology.slots.sum())
    if initial is None:
        initial = random_mapping(traffic, topology, rng=rng)
    watch = stop.watch()
    model = cost_model(traffic, topology, objective)
    named = get_objective(objective)
    bound = cost_bound(model, topology)
    search = start_search(model, with_free_slots(initial, topology), rng)
    shortest, longest = int(0.9 * slots), int(1.1 * slots) + 1  # steps that a place is tabu for
    some = max(1, WORK // slots**2)
    with keep(lambda: best_places(search)[: traffic.ranks]):
        while search.steps[0] < steps and search.costs[1] > bound and not watch.over():
            done = int(search.steps[0])
            watch.report(done, steps, f"{named.name} {named.value(int(search.costs[1]))}")
            tabu_kernels.tabu_steps(
                search, shortest, longest, int(aspiration * slots**2), min(some, steps - done)
            )
    return best_places(search)[: traffic.ranks]


def start_search(model: CostModel, places: Ints, rng: np.random.Generator) -> TabuSearch:
    """State of a search that has made no step yet."""
    from . import tabu_kernels
    from .tabu_kernels import NEVER, TabuSearch

    slots = len(places)
    used, spots = np.unique(places, return_inverse=True)
    weight = np.zeros((slots, slots), dtype=np.int64)
    weight[np.repeat(np.arange(slots), np.diff(model.indptr)), model.peer] = model.weight
    price = tabu_kernels.prices(model, used)
    # No gain is beyond four times what somebody costs at most, twice for what it is made of.
    short = 8 * int(weight.sum(axis=1).max()) * int(abs(price).max()) < 2**31
    number = np.int32 if short else np.int64
    pairs = slots // 2 + 1, slots
    search = TabuSearch(
        weight=weight.astype(number),
        price=price.astype(number),
        silent=np.diff(model.indptr) == 0,
        nodes=used,
        spots=spots,
        best=spots.copy(),
        at=np.zeros((slots, slots), dtype=number),
        gains=np.zeros(pairs, dtype=number),
        until=np.zeros((slots, len(used)), dtype=np.int32),
        tabu=np.zeros(pairs, dtype=np.int32),
        costs=np.array([0, NEVER], dtype=np.int64),
        steps=np.zeros(2, dtype=np.int64),
        random=rng.integers(1, 2**63, size=1, dtype=np.uint64),
    )
    tabu_kernels.begin(search)
    return search


def best_places(search: TabuSearch) -> Ints:
    """Node of every rank and dummy where the cost was least."""
    return search.nodes[search.best]


def iterated_tabu(
    search: AnnealingSearch,
    rng: np.random.Generator,
    *,
    moves: int | None = None,
    seconds: float | None = None,
) -> None:
    """Search from the best places of another search, then from there shuffled, again and again.

    `moves` are steps times slots, which is about what a step costs in proposals. Moves, seconds or
    a budget of the search end it.
    """
    from . import tabu_kernels
    from .tabu_kernels import NEVER

    slots = len(search.best)
    if not len(search.assignment.active):
        return
    now, begin = search.watch.now, search.watch.now()
    state = start_search(search.model, search.best, rng)
    shortest, longest = (int(part * slots) + 1 for part in BRIEF)
    some, length = max(1, WORK // slots**2), LENGTH * slots
    left = None if moves is None else moves // slots
    kept, least, failed = state.spots.copy(), NEVER, 0
    while not search.done() and left != 0 and (seconds is None or now() - begin < seconds):
        done = int(state.steps[0])
        if done >= length:
            failed += 1
            if state.costs[1] < least:
                kept, least, failed = state.best.copy(), int(state.costs[1]), 0
            elif failed > PATIENCE:
                kept, least, failed = rng.permutation(kept), NEVER, 0
            state.spots[:] = shuffle(kept, rng)
            state.costs[1] = NEVER
            tabu_kernels.begin(state)
            continue
        some_now = min(some, length - done, length if left is None else left)
        tabu_kernels.tabu_steps(state, shortest, longest, NEVER, some_now)
        left = None if left is None else left - some_now
        search.moves += some_now * slots
        if state.costs[1] < search.best_cost:
            search.assign(best_places(state))
        search.report()


def shuffle(places: Ints, rng: np.random.Generator) -> Ints:
    """Places with some of the ranks, drawn at random, in another order among themselves."""
    some = rng.permutation(len(places))[: int(rng.uniform(*SHUFFLED) * len(places)) + 1]
    new = places.copy()
    new[some] = places[rng.permutation(some)]
    return new

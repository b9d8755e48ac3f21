"""The portfolio of `auto` for sums over pairs: members with a share of the budget each.

1. Orders that cost nothing: the initial mapping, nodes in order; for grids the orders of the grid
   mappers and the best fold; on boxes the curves.
2. Starts: recursive bisections with several seeds, on hierarchies with many tries that are
   combined. The first one ends after `BISECTION` of a time budget, with what it has split by then;
   what it has not is put in an order of clusters, which alone takes a few per cent of the time.
3. Rounds of annealing from a start, from the best so far, and from random places. Each kind has a
   round; then the next one goes to whichever gained most in its last. A new best is worth a round
   from the best again. That is begun warm, and twice as hot after one in vain.
4. After each round whole blocks of nodes exchange their ranks (see `exchange_blocks`).
5. On hierarchies the ranks of some subsystems are split again instead, level by level (see
   `ruin_and_recreate`), and then annealed cold. Where a few ranks have most of the traffic, their
   costs hide all others' from that: the rounds are as elsewhere, and bisections, which separate
   little there, have `SHARE` of the time.
6. On at most `FEW` slots, of dense traffic `FEW_IF_DENSE`, most of each round is for iterated tabu
   search from the best, which looks at every exchange in every step (see `tabu`).

A budget that is short for the ranks is a round from a start and one from the best, or one alone.
Temperatures come from two measurements (White, Concepts of scale in simulated annealing, ICCD
1984): the first from what proposals cost at random places, the last from what a usual pair weighs.
With few proposals a rank the first is lower, as what melts then cannot freeze again in time. From a
good mapping both are measured at it, unless traffic is skewed: there hubs dominate the costs.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from math import inf
from typing import NamedTuple

import numpy as np

from hopmap.arrays import Ints
from hopmap.mappers.bisections.recursive_bisection import (
    bisect_nodes,
    exchange_blocks,
    ruin_and_recreate,
    spans_of,
)
from hopmap.mappers.cartesian.fold import best_fold
from hopmap.mappers.cartesian.grid import Grid, find_structures
from hopmap.mappers.cartesian.grid_portfolio import cartesian_orders
from hopmap.mappers.cartesian.structure import Cells
from hopmap.mappers.exchanges.annealing import AnnealingSearch
from hopmap.mappers.exchanges.tabu import iterated_tabu
from hopmap.mappers.orders.node_orders import gray, hilbert, peano, scan
from hopmap.topologies import Mapping, Topology
from hopmap.traces import Traffic

from .mapper import MapperFunction
from .objectives import ObjectiveName, lower_bound, with_free_slots
from .stop import Moves, Reason, Watch, keep

log = logging.getLogger("hopmap.mappers.auto")

CURVES: tuple[MapperFunction, ...] = (scan, gray, peano, hilbert)
STALE = 0.001  # part of the cost that a round without any budget gains at least, or is the last
FOLDS = 400
ORDERS = 0.5  # of a time budget until which curves are tried
PER_RANK = 20_000  # proposals of a round without any budget
ROUND, LONG_ROUND = 5_000, 60_000  # proposals a rank of a round; on hierarchies or with tabu
ROUNDS = 12
ANNEALING = 0.97  # part of a round; the rest is for a descent
BLOCKS = 20  # proposals a rank of that, and of blocks after it
HOT = 0.5  # first temperature, in mean costs of a proposal at random places
SLOW = 1_000  # proposals a rank for which that is not too hot
CALM = 0.2  # first temperature from a good mapping, in mean costs of a proposal there
STEEP = 0.2  # last temperature there, as a part of the first, at least
COLD = 0.5  # last temperature, in median weights of a pair
WARM = 0.25  # of the first temperature, from the best
SKEWED = 1.5  # mean traffic of a rank over the median, from which few ranks have most of it
STARTS = 3
MOST_STARTS = 12  # of a time budget elsewhere than on hierarchies, if its share lasts
BISECTION = 0.85  # of a time budget until the first bisection ends
SHARE = 0.1  # of a time budget for more starts, for all of skewed traffic, and for structure
TRIES, MOST_TRIES = 8, 50  # bisections at every step of a start there: without a time budget, most
RUIN = 0.7  # first temperature of splitting again, in mean weights of a pair
LEVELS = 0.9  # part of a round on a hierarchy that is for its levels
FEW, FEW_IF_DENSE = 64, 128  # slots for which a step that looks at every exchange pays
DENSE = 0.25  # mean peers of a rank, as a part of the slots
TABU, TABU_IF_DENSE = 0.7, 0.9  # part of a round that is for such steps
PER_TRIAL = 1000  # proposals that stand for a trial with a few subsystems, without a time budget


class Heat(NamedTuple):
    """Temperatures of a round."""

    first: float
    last: float
    melting: float  # the first one at random places
    ruin: float  # the first one of splitting again, in mean weights of a pair

    def part(self, part: float) -> Heat:
        """Begin less hot."""
        return self._replace(first=part * self.first, ruin=part * self.ruin)


class Step(NamedTuple):
    """What a member of the portfolio reached."""

    member: str
    value: float  # of the objective, after this step
    best: float  # best value so far
    moves: int  # proposals made so far; where mappings are evaluated one by one, evaluations
    seconds: float  # since the beginning


class Portfolio(NamedTuple):
    """The best mapping, and what led to it."""

    mapping: Mapping  # shape (ranks,)
    steps: list[Step]
    met: list[Mapping]  # the mapping after each step
    # why it stopped: a lower bound is reached, a round gained next to nothing, or all that was to
    # be spent is
    stop_reason: Reason = "budget"


def search_sums(
    traffic: Traffic,
    topology: Topology,
    order: Mapping,
    start: Mapping,
    objective: ObjectiveName,
    stop: Moves,
    rng: np.random.Generator,
) -> Portfolio:
    """Run the members on one search after `start` and `order`, two mappings to have first."""
    watch, moves = stop.watch(), stop.moves
    watch.total = moves
    search = AnnealingSearch(traffic, topology, start, objective, rng, watch)
    spends = watch if moves is None else Watch()
    grid, structures = find_structures(traffic, lambda: _part(spends) > SHARE)
    search.bound = lower_bound(search.model, topology, grid and grid.coords)
    steps: list[Step] = []
    met: list[Mapping] = []
    with keep(lambda: search.mapping):
        for member in _members(search, traffic, order, (grid, structures), moves, rng):
            value, best = (search.named.value(c) for c in (search.cost, search.best_cost))
            steps.append(Step(member, value, best, search.moves, watch.now() - watch.begin))
            met.append(search.assignment.places[: traffic.ranks].copy())
            log.info("%s: %d, best %d, %d moves, %.2f s", *steps[-1])
            search.report()
            if search.done():
                break
    reason: Reason = "stagnated" if moves is None and stop.seconds is None else "budget"
    return Portfolio(search.mapping, steps, met, "optimal" if search.optimal() else reason)


def _members(
    search: AnnealingSearch,
    traffic: Traffic,
    order: Mapping,
    structure: tuple[Grid | None, Iterator[Cells]],
    moves: int | None,
    rng: np.random.Generator,
) -> Iterator[str]:
    """Run one member after another on the search, and name it when it is done.

    Members have shares of the time or of the moves; with both, time only ends the search, so that
    moves give the same mapping wherever it suffices.
    """
    topology = search.topology
    watch = search.watch if moves is None else Watch()
    starts: list[Ints] = []
    yield from _orders(search, traffic, order, structure, starts, watch)
    folded = bool(starts)
    skewed = _is_skewed(search)
    levels = bool(spans_of(topology)) and not skewed
    for start in _bisections(search, watch, levels, skewed, rng):
        starts.append(start)
        search.assign(start)
        yield "recursive_bisection"
    if levels:
        starts.append(search.best.copy())
    starts = sorted(starts, key=search.assign)[:ROUNDS]
    search.assign(search.best)
    active = max(len(search.assignment.active), 1)
    begin, before = watch.now(), search.moves
    search.cool(0.0, 0.0, moves=10 * active)
    yield "descent"
    endless = moves is None and watch.end is None
    tabu = _tabu_share(search)
    total = PER_RANK * active if endless else moves
    if total is None:
        rate = (search.moves - before) / max(watch.now() - begin, 1e-6)
        total = int(rate * (watch.remaining() or 0.0))
    shortest = (LONG_ROUND if levels or tabu else ROUND) * active
    few = 2 if total >= SLOW * active and not (levels or tabu) else 1
    rounds = 1 if endless else min(max(total // shortest, few), ROUNDS)
    each = None if watch.end is not None else max(total // rounds, 1)
    heat = _heat(search, total / rounds / active, skewed, rng)
    beginnings = ["a start", "the best"] if not folded else ["the best", "a start"]
    if not levels:
        beginnings.append("random places")
    gain = dict.fromkeys(beginnings, inf)
    warm, turn = WARM, 0
    for k in range(ROUNDS if endless else rounds):
        left, least = watch.remaining(), search.best_cost
        share = Moves(None if left is None else left / (rounds - k), moves=each)
        member = max(gain, key=lambda name: gain[name])
        if member == "a start":
            search.assign(starts[turn % len(starts)])
            turn += 1
        else:
            search.assign(search.best if member == "the best" else rng.permutation(search.best))
        part = warm if member == "the best" else 1.0
        this = heat._replace(first=heat.melting) if member == "random places" else heat.part(part)
        _anneal(search, this, share.part(1 - tabu), levels, rng)
        yield f"annealing from {member}"
        if tabu:
            some = share.part(tabu)
            iterated_tabu(search, rng, moves=some.moves, seconds=some.seconds)
            yield "tabu from the best"
        gain[member] = least - search.cost
        if search.best_cost < least:
            if member != "the best":  # a new best is worth a try
                gain["the best"], warm = inf, WARM
        elif member == "the best":
            warm = min(2 * warm, 1.0)
        little = least - search.best_cost < STALE * abs(least)
        if endless and k >= len(gain) - 1 and little:
            break


def _anneal(
    search: AnnealingSearch, heat: Heat, share: Moves, levels: bool, rng: np.random.Generator
) -> None:
    """Anneal from the present places, on hierarchies level by level and then cold."""
    active = max(len(search.assignment.active), 1)
    if not levels:
        most = share.part(ANNEALING)
        search.cool(heat.first, heat.last, moves=most.moves, seconds=most.seconds)
        search.cool(0.0, 0.0, moves=BLOCKS * active)
        exchange_blocks(search, BLOCKS * active)
        return
    most, rest = share.part(LEVELS), share.part(1 - LEVELS)
    trials = None if share.moves is None else max(share.moves // (PER_TRIAL * active), 1)
    ruin_and_recreate(search, rng, hot=heat.ruin, trials=trials, seconds=most.seconds)
    search.cool(heat.last, heat.last, moves=share.moves, seconds=rest.seconds)


def _is_skewed(search: AnnealingSearch) -> bool:
    """Whether few ranks have most of the traffic."""
    indptr, weight = search.model.indptr, search.model.weight
    total = np.diff(np.concatenate(([0], np.cumsum(weight)))[indptr])
    total = total[total > 0]
    return len(total) > 0 and float(total.mean()) > SKEWED * float(np.median(total))


def _heat(search: AnnealingSearch, per_rank: float, skewed: bool, rng: np.random.Generator) -> Heat:
    """Temperatures of a round with so many proposals a rank, at places that are good already."""
    places, calm = search.assignment.places.copy(), CALM * search.scale()
    search.assign(rng.permutation(places))
    melting = HOT * min(per_rank / SLOW, 1.0) * search.scale()
    search.assign(places)
    weight = search.model.weight
    last = COLD * float(np.median(weight)) if len(weight) else 0.0
    if skewed:
        return Heat(melting, last, melting, RUIN)
    first = min(melting, calm)
    return Heat(first, min(max(last, STEEP * first), first / 2), melting, RUIN)


def _orders(
    search: AnnealingSearch,
    traffic: Traffic,
    order: Mapping,
    structure: tuple[Grid | None, Iterator[Cells]],
    starts: list[Ints],
    watch: Watch,
) -> Iterator[str]:
    """Run what costs next to nothing; folds become starts."""
    topology = search.topology
    yield "initial order"
    search.assign(with_free_slots(order, topology))
    yield "sweep"
    grid, structures = structure
    if grid is not None:
        for name, node_of in cartesian_orders(grid, topology):
            search.assign(with_free_slots(node_of, topology))
            yield name
    for cells in structures:
        folded = best_fold(cells, topology, search.model, FOLDS, search.watch.over)
        if folded is None:
            break
        starts.append(with_free_slots(folded, topology))
        search.assign(starts[-1])
        yield "fold"
        if _part(watch) > SHARE:
            break
    for curve in CURVES if topology.dims else ():
        if _part(watch) > ORDERS:
            break
        search.assign(with_free_slots(curve(traffic, topology), topology))
        yield curve.__name__


def _bisections(
    search: AnnealingSearch, watch: Watch, levels: bool, skewed: bool, rng: np.random.Generator
) -> Iterator[Ints]:
    """Make mappings to start annealing from, with a share of the time of a watch."""
    tries = 1
    share = _part(watch) + SHARE
    first = share if skewed else BISECTION

    def over() -> bool:
        return _part(watch) > first or search.watch.over()

    for done in range(STARTS if levels or watch.end is None else MOST_STARTS):
        begin = watch.now()
        yield bisect_nodes(search.model, search.topology, rng, tries, over)
        spent, left = max(watch.now() - begin, 1e-3), watch.remaining()
        if levels and done == 0:
            tries = TRIES if left is None else min(int(SHARE * left / spent), MOST_TRIES)
        if tries == 0 or (_part(watch) > min(share, first) and (done > 0 or not levels)):
            break


def _tabu_share(search: AnnealingSearch) -> float:
    """Part of a round that is for looking at all exchanges; 0 where there are too many."""
    slots = len(search.best)
    if slots <= FEW_IF_DENSE and len(search.model.peer) >= DENSE * slots * slots:
        return TABU_IF_DENSE
    return TABU if slots <= FEW else 0.0


def _part(watch: Watch) -> float:
    """Part of the time budget that is spent; 0 without one."""
    if watch.end is None:
        return 0.0
    return (watch.now() - watch.begin) / max(watch.end - watch.begin, 1e-9)

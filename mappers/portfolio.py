"""The portfolio of `auto` for sums over pairs: members with a share of the budget each.

1. Orders: the initial mapping, nodes in order, in boxes along curves; for grids the orders of the
   grid mappers and the best fold; in boxes an embedding (see `embedding`) where there is no grid.
2. Starts: recursive bisections with several seeds, one without pairs that may be shortcuts; on
   hierarchies with many tries that are combined. The first one ends after `PLACED` of a time
   budget, with what it has split by then; what it has not is put in an order of clusters, which
   alone takes a few per cent of the time.
3. One long round from the best start: annealing, hot. On trees and fat trees the ranks of some
   subsystems are split again instead, level by level (see `ruin_and_recreate`). Where a few ranks
   have most of the traffic, bisections of many ranks separate little: there two subsystems are
   split at once. Except on hierarchies `greedy_all_c` is a start, too.
4. Where an order is better than all starts after descents from both, as folds and embeddings may
   be, a hot round would lose it: it has one from the temperature that the order has (see
   `AnnealingSearch.temperature`). So have both folds of a grid that does not fold exactly. Pilots,
   `PILOT` of the budget each, say which to go on with. The best of the orders then has another,
   `WARMER` times as warm. A start that is cold, as one of a sparse tree is, has such a pilot, too.
5. On at most `FEW` slots a part of that is for iterated tabu search from the best, which looks at
   every exchange in every step (see `tabu`): most of it where there are even fewer. Without any
   budget there are rounds from the best until one gains little.

One long round is better than several short ones: on nine graphs of 128 to 4,096 ranks, two rounds
of half the time had 0.97 to 1.02 of its cost, four 1.00 to 1.05, eight 1.00 to 1.11. The last
temperature follows what a pair costs one hop apart, the first the geometric mean of that and of
what it costs at random places. With few proposals a rank the first is lower, as what melts then
cannot freeze again in time; with more than `PER_RANK` the last is lower, as there is time for it,
unless tabu search has the rest.

With a budget of elapsed seconds alone, every core runs a pilot or a round of its own (see `lanes`).
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from hopmap.arrays import Ints
from hopmap.mappers.bisections.recursive_bisection import (
    MOST,
    bisect_nodes,
    exchange_blocks,
    ruin_and_recreate,
    spans_of,
)
from hopmap.mappers.cartesian.cells import Cells, without_shortcuts
from hopmap.mappers.cartesian.embedding import boxed, embed
from hopmap.mappers.cartesian.fold import best_fold, fold_exactly, fold_partly, fold_points
from hopmap.mappers.cartesian.grid import Grid, find_structures
from hopmap.mappers.cartesian.grid_portfolio import cartesian_orders
from hopmap.mappers.cost_model import NEAR
from hopmap.mappers.exchanges.annealing import AnnealingSearch
from hopmap.mappers.exchanges.tabu import iterated_tabu
from hopmap.mappers.greedy.constructions import greedy_all_c
from hopmap.mappers.orders.node_orders import gray, hilbert, peano, scan
from hopmap.topologies import Mapping, Topology
from hopmap.traces import Traffic

from .lanes import Lanes, Round, Turn, lanes_of, race
from .mapper import MapperFunction
from .objectives import ObjectiveName, lower_bound, with_free_slots
from .stop import Moves, Reason, Watch, keep

log = logging.getLogger("hopmap.mappers.auto")

CURVES: tuple[MapperFunction, ...] = (scan, gray, peano, hilbert)
STALE = 0.001  # part of the cost that a round without any budget gains at least, or is the last
FOLDS, FEW_FOLDS = 400, 50  # of a structure; of an embedding
EMBEDDINGS = 6
PER_RANK = 20_000  # proposals of a round without any budget
SHORT = 2_000  # proposals a rank of a budget that is too short for pilots
ROUND = 0.97  # part of a round that is hot; the rest is for a descent
BLOCKS = 20  # proposals a rank of that, and of blocks after it
# First temperature, in geometric means of the two costs of a pair; last temperature, in costs of a
# pair one hop apart; part of both for cardinality, where most exchanges cost nothing.
HOT, COLD, FLAT = 2.5, 0.3, 0.2
LEAST, WARMER = 0.15, 2.0  # warm rounds: part of the hot one at least; times as warm as an order
# Starts below that part of the hot temperature are cold; what their warm pilots have to be better
# by, as hot ones gain more later.
CHILLY, CLEARLY = 0.1, 1.015
SLOW = 1_000  # proposals a rank for which HOT is not too hot
SKEWED = 1.5  # mean traffic of a rank over the median, from which few ranks have most of it
# Ranks for a construction in O(ranks^2) without a time budget; seconds for a pair with one.
GREEDY_RANKS, PER_PAIR = 16_384, 1e-8
STARTS = 3
FOLDED, PLACED = 0.4, 0.85  # of a time budget until folds end; until the first bisection ends
SHARE = 0.1  # of a time budget for structure, embeddings, and more starts
PILOT = 0.07  # of a budget
TRIES = 20  # bisections at every step of a further start on a hierarchy, if its share lasts
PER_TRIAL = 1000  # proposals that stand for a trial with a few subsystems, without a time budget
# Slots up to which a step that looks at every exchange pays; its part of what pilots leave is
# the square of TABU over the slots, at most MOST_TABU.
FEW, TABU, MOST_TABU = 256, 70, 0.9


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
    per_rank: float = 0.0  # proposals of each of the rounds at the same time


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
        lanes = lanes_of(search, stop, rng)
        for member in _members(search, lanes, traffic, order, (grid, structures), moves):
            value, best = (search.named.value(c) for c in (search.cost, search.best_cost))
            steps.append(Step(member, value, best, search.moves, watch.now() - watch.begin))
            met.append(search.assignment.places[: traffic.ranks].copy())
            log.info("%s: %d, best %d, %d moves, %.2f s", *steps[-1])
            search.report()
            if search.done():
                break
    reason: Reason = "stagnated" if moves is None and stop.seconds is None else "budget"
    per_rank = search.moves / len(lanes) / max(len(search.assignment.active), 1)
    stopped: Reason = "optimal" if search.optimal() else reason
    return Portfolio(search.mapping, steps, met, stopped, per_rank)


def _members(
    search: AnnealingSearch,
    lanes: Lanes,
    traffic: Traffic,
    order: Mapping,
    structure: tuple[Grid | None, Iterator[Cells]],
    moves: int | None,
) -> Iterator[str]:
    """Run one member after another on the first search, and name it when it is done.

    Members have shares of the time or of the moves; with both, time only ends the search, so that
    moves give the same mapping wherever it suffices.
    """
    rng = lanes[0][1]
    watch = search.watch if moves is None else Watch()
    made = _orders(search, traffic, order, structure, watch, rng)
    orders, inexact = yield from _kept(search, made)
    start = yield from _start(search, traffic, watch, rng)
    hot, cold = _temperatures(search, rng)
    active = max(len(search.assignment.active), 1)
    begin, before = watch.now(), search.moves
    descended = []
    for places in (*orders, start):
        search.assign(places)
        search.cool(0.0, 0.0, moves=10 * active)
        descended.append(search.cost)
    yield "descent"
    endless = moves is None and watch.end is None
    if moves is None:
        rate = (search.moves - before) / max(watch.now() - begin, 1e-6)
        moves = PER_RANK * active if endless else int(rate * (watch.remaining() or 0.0))
    finish, per_rank = _tabu_share(search), max(moves / active, 1.0)
    last = cold if finish else cold * min(PER_RANK / per_rank, 1.0)
    first, nested = hot * min(per_rank / SLOW, 1.0), _is_nested(search.topology)
    run: Round = partial(_anneal, first=first, last=last)
    if nested:
        run = partial(_split_again, most=2 if _is_skewed(search) else MOST, last=cold)
    name = "splitting again" if nested else "annealing"

    def warm(places: Ints, times: float = 1.0) -> Round:
        """Return a round that begins at the temperature of the places, or so many times it."""
        if nested:
            return run
        search.assign(places)
        heat = times * max(search.temperature(first), LEAST * first)
        return partial(_anneal, first=min(heat, first), last=last)

    turns, reached = [Turn(f"{name} from a start", start, run)], descended[-1:]
    for places, cost in zip(orders, descended[:-1], strict=True):
        if inexact or cost < descended[-1]:
            turns.append(Turn(f"{name} from an order", places, warm(places)))
            reached.append(cost)
    hot_or_orders = len(turns)
    search.assign(start)
    if not nested and search.temperature(first) < CHILLY * first:
        mild_round = partial(_anneal, first=WARMER * CHILLY * first, last=last)
        turns.append(Turn(f"{name} from a start", start, mild_round))

    def share(part: float) -> Moves:
        left = None if watch.end is not None else moves if endless else moves - search.moves
        return Moves(watch.remaining(), moves=left).part(part)

    def pilots(of: list[Turn]) -> Iterator[str]:
        for turn in race(search, lanes, of, share(PILOT)):
            reached.append(search.cost)
            yield turn.name

    if len(turns) > 1 and moves > SHORT * active:
        reached = []
        yield from pilots(turns)
        mild = [int(cost * CLEARLY) for cost in reached[hot_or_orders:]]
        reached[hot_or_orders:] = mild
        if hot_or_orders > 1 and not nested:
            best = turns[1 + int(np.argmin(reached[1:hot_or_orders]))]
            turns.append(best._replace(run=warm(best.places, WARMER)))
            yield from pilots(turns[-1:])
    main = turns[int(np.argmin(reached))]
    yield from (turn.name for turn in race(search, lanes, [main] * len(lanes), share(1 - finish)))
    while finish or endless:
        least, places = search.best_cost, search.best.copy()
        rest = Turn(f"{name} from the best", places, warm(places))
        if finish:
            rest = Turn("tabu from the best", places, _tabu)
        yield from (turn.name for turn in race(search, lanes, [rest] * len(lanes), share(1.0)))
        if not endless or least - search.best_cost < STALE * abs(least):
            break


def _kept(
    search: AnnealingSearch, orders: Iterator[str]
) -> Generator[str, None, tuple[list[Ints], bool]]:
    """Run orders; return the best, and the folds where a grid does not fold exactly, and if so."""
    folds: dict[str, Ints] = {}
    for name in orders:
        yield name
        if name.endswith("fold"):
            found = search.assignment.places.copy()
            folds[name] = min(folds.get(name, found), found, key=search.assign)
    inexact, best = len(folds) > 1, search.best.copy()
    rest = [each for each in folds.values() if inexact and not np.array_equal(each, best)]
    return [best, *rest], inexact


def _start(
    search: AnnealingSearch, traffic: Traffic, watch: Watch, rng: np.random.Generator
) -> Generator[str, None, Ints]:
    """Run what makes mappings to start annealing from; return the best."""
    levels = bool(spans_of(search.topology))
    starts: list[Ints] = []
    for start in _bisections(search, watch, levels, rng):
        starts.append(start)
        search.assign(start)
        yield "recursive_bisection"
    if _is_skewed(search) and not levels and _has_time_to_be_greedy(traffic.ranks, watch):
        greedy = with_free_slots(greedy_all_c(traffic, search.topology), search.topology)
        if search.assign(greedy) == search.best_cost:
            starts.append(greedy)
        yield "greedy_all_c"
    return min(starts, key=search.assign)


def _anneal(
    search: AnnealingSearch, share: Moves, _: np.random.Generator, *, first: float, last: float
) -> None:
    """Anneal from the present places; blocks exchange their ranks where that gains."""
    active = max(len(search.assignment.active), 1)
    most = share.part(ROUND)
    search.cool(first, last, moves=most.moves, seconds=most.seconds)
    search.cool(0.0, 0.0, moves=BLOCKS * active)
    exchange_blocks(search, BLOCKS * active)


def _split_again(
    search: AnnealingSearch, share: Moves, rng: np.random.Generator, *, most: int, last: float
) -> None:
    """Split the ranks of subsystems again level by level, then anneal cold."""
    active = max(len(search.assignment.active), 1)
    levels, rest = share.part(ROUND), share.part(1 - ROUND)
    trials = None if share.moves is None else max(share.moves // (PER_TRIAL * active), 1)
    ruin_and_recreate(search, rng, most=most, trials=trials, seconds=levels.seconds)
    search.cool(last, last, moves=share.moves, seconds=rest.seconds)


def _tabu(search: AnnealingSearch, share: Moves, rng: np.random.Generator) -> None:
    iterated_tabu(search, rng, moves=share.moves, seconds=share.seconds)


def _temperatures(search: AnnealingSearch, rng: np.random.Generator) -> tuple[float, float]:
    """First and last one, from the mean costs of a pair one hop apart and at random places."""
    weight = search.model.weight
    near = float(weight.mean()) if len(weight) else 0.0
    far = 2 * search.assign(rng.permutation(search.best)) / max(len(weight), 1)
    if search.model.kind == NEAR:
        near = far = FLAT * near
    return HOT * (near * far) ** 0.5, COLD * near


def _is_nested(topology: Topology) -> bool:
    """Whether all that is outside a subsystem is equally far from it."""
    from hopmap.topologies.switch_kernels import FatTreeRouter
    from hopmap.topologies.tree_kernels import TreeRouter

    return isinstance(topology.router, TreeRouter | FatTreeRouter)


def _is_skewed(search: AnnealingSearch) -> bool:
    """Whether few ranks have most of the traffic."""
    indptr, weight = search.model.indptr, search.model.weight
    total = np.diff(np.concatenate(([0], np.cumsum(weight)))[indptr])
    total = total[total > 0]
    return len(total) > 0 and float(total.mean()) > SKEWED * float(np.median(total))


def _has_time_to_be_greedy(ranks: int, watch: Watch) -> bool:
    """Whether a construction in O(ranks^2) takes a fair part of the time that is left."""
    left = watch.remaining()
    most = GREEDY_RANKS if left is None else (2 * SHARE * left / PER_PAIR) ** 0.5
    return ranks <= most


def _orders(
    search: AnnealingSearch,
    traffic: Traffic,
    order: Mapping,
    structure: tuple[Grid | None, Iterator[Cells]],
    watch: Watch,
    rng: np.random.Generator,
) -> Iterator[str]:
    """Run what costs next to nothing, and folds for a part of the time."""
    topology, over = search.topology, partial(_is_placed, search, watch, FOLDED)
    yield "initial order"
    search.assign(with_free_slots(order, topology))
    yield "sweep"
    for curve in CURVES if topology.dims else ():
        if _part(watch) > SHARE:
            break
        search.assign(with_free_slots(curve(traffic, topology), topology))
        yield curve.__name__
    grid, structures = structure
    if grid is not None:
        for name, node_of in cartesian_orders(grid, topology):
            search.assign(with_free_slots(node_of, topology))
            yield name
    tries = EMBEDDINGS if topology.dims else 0
    for cells in structures:
        folded = best_fold(cells, topology, search.model, FOLDS, over)
        if folded is None:
            break
        tries = 0
        search.assign(with_free_slots(folded, topology))
        yield "fold"
        share_over = partial(_is_placed, search, watch, _part(watch) + SHARE)
        folded = fold_partly(cells, topology, search.model, share_over)
        if folded is not None:
            search.assign(with_free_slots(folded, topology))
            yield "partial fold"
        if _part(watch) > SHARE:
            break
    begun = _part(watch)
    for points in embed(search.model, traffic.ranks, tries, rng):
        found = [fold_points(points, topology, search.model, FEW_FOLDS, over)]
        if traffic.ranks < len(search.best):
            cells = boxed(points, traffic.ranks)
            found.append(fold_exactly(cells, topology, search.model, FEW_FOLDS, over))
        for places in found:
            if places is not None:
                search.assign(with_free_slots(places, topology))
                yield "embedding"
        if _part(watch) > begun + SHARE:
            break


def _bisections(
    search: AnnealingSearch, watch: Watch, levels: bool, rng: np.random.Generator
) -> Iterator[Ints]:
    """Make mappings to start annealing from, with a share of the time of a watch."""
    tries, share = 1, _part(watch) + SHARE
    over = partial(_is_placed, search, watch)
    for done in range(STARTS):
        begin = watch.now()
        model = without_shortcuts(search.model) if done == 1 else search.model
        yield bisect_nodes(model, search.topology, rng, tries, over)
        spent, left = max(watch.now() - begin, 1e-3), watch.remaining()
        if levels and done == 0:
            tries = TRIES if left is None else min(int(SHARE * left / spent), TRIES)
        if tries == 0 or (_part(watch) > min(share, PLACED) and (done > 0 or not levels)):
            break


def _tabu_share(search: AnnealingSearch) -> float:
    """Part of the rounds that is for looking at all exchanges; 0 where there are too many."""
    slots = len(search.best)
    return min((TABU / slots) ** 2, MOST_TABU) if slots <= FEW else 0.0


def _is_placed(search: AnnealingSearch, watch: Watch, part: float = PLACED) -> bool:
    """Whether so much of the time is spent that what is left is for other members."""
    return _part(watch) > part or search.watch.over()


def _part(watch: Watch) -> float:
    """Part of the time budget that is spent; 0 without one."""
    if watch.end is None:
        return 0.0
    return (watch.now() - watch.begin) / max(watch.end - watch.begin, 1e-9)

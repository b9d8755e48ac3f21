"""Auto: a portfolio that spends a budget on what is known to work, and keeps the best.

1. Orders that cost nothing: the initial mapping, nodes in order; for grids the orders of the grid
   mappers and the best fold; on boxes the curves.
2. Starts: recursive bisections with several seeds, on hierarchies with many tries that are
   combined. The first one ends after `BISECTION` of a time budget, with what it has split by then;
   what it has not is put in an order of clusters, which alone takes a few per cent of the time.
3. Rounds of annealing: from a start, hot; then from the best so far, warm; and so on. How many
   rounds and how hot follows from how many proposals a rank the budget allows: with few a single
   cool one, for a hot round that is cut short is worse than its start. On hierarchies the ranks
   of some subsystems are split again, level by level (see `ruin_and_recreate`), and then annealed
   cold.
4. After each round whole blocks of nodes exchange their ranks (see `exchange_blocks`).
5. On at most `FEW` slots, of dense traffic `FEW_IF_DENSE`, most of each round is for iterated tabu
   search from the best, which looks at every exchange in every step (see `tabu`).

Where the objective is no sum over pairs, all this for hop-bytes is the first part of another
portfolio. `max_link_load`: the mappings that the portfolio for hop-bytes meets, and rounds of
`congestion` from those with the least load. Any function of the mapping: that portfolio spends part
of the budget on candidates, the function is asked about some of them, and the best is where
`descend` begins. Where a function has an `estimate`, a cheaper function that sorts mappings much as
it does, another part is for descending by that, and it says which candidates the function is asked
about.

It stops where the cost reaches a lower bound, at the end of its budget, and without any budget
after a round that gains less than `STALE`. `Portfolio.stop_reason` says which.

Nothing is ever lost: the best mapping met is what is returned, also at the end of the time or on
Ctrl-C. `portfolio` says what every step reached; `auto` logs the same lines (logger
``hopmap.mappers.auto``, level INFO). A budget of `moves` is a number of proposals and gives the
same mapping for the same seed everywhere, also with a time budget that suffices. A time budget
alone gives results that depend on the machine.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
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
from hopmap.mappers.cartesian.grid import Grid, find_grid
from hopmap.mappers.cartesian.grid_portfolio import cartesian_orders
from hopmap.mappers.cartesian.structure import Cells
from hopmap.mappers.exchanges.annealing import AnnealingSearch
from hopmap.mappers.exchanges.hill_climbing import EVALUATIONS, Valued, best_of, climb, function_of
from hopmap.mappers.exchanges.tabu import iterated_tabu
from hopmap.mappers.loads.congestion import congestion, load_bound
from hopmap.mappers.orders.node_orders import gray, hilbert, peano, scan, sweep
from hopmap.topologies import Mapping, Topology
from hopmap.traces import Traffic

from .mapper import MapperFunction, mapper
from .objectives import LOAD, Function, LoadName, ObjectiveName, lower_bound, with_free_slots
from .stop import Budget, Interrupted, Reason, Watch, keep

log = logging.getLogger(__name__)

CURVES: tuple[MapperFunction, ...] = (scan, gray, peano, hilbert)
PER_RANK = 20_000  # proposals of a round without any budget
STALE = 0.001  # part of the cost that such a round gains at least, or is the last
FOLDS = 400
ORDERS = 0.5  # of a time budget until which curves are tried
ROUND, NESTED_ROUND = 60_000, 100_000  # proposals a rank that make a round; on hierarchies
ROUNDS = 12
BLOCKS = 20  # proposals of blocks a rank after each round
COLD = 0.02
SKEWED, USUAL = 2.0, 1.5  # of the median cost of a rank: a mean that is far above; a scale then
STARTS = 3
MOST_STARTS = 12  # of a time budget elsewhere than on hierarchies, if its share lasts
BISECTION = 0.85  # of a time budget until the first bisection ends
SHARE = 0.1  # of a time budget for more starts
TRIES, MOST_TRIES = 8, 50  # bisections at every step of a start there: without a time budget, most
LEVELS = 0.9  # part of a round on a hierarchy that is for its levels
HOT, WARM = 0.7, 0.35  # first temperatures there, in mean weights of a pair
FEW, FEW_IF_DENSE = 64, 128  # slots for which a step that looks at every exchange pays
DENSE = 0.25  # mean peers of a rank, as a part of the slots
TABU, TABU_IF_DENSE = 0.7, 0.9  # part of a round that is for such steps
PER_TRIAL = 1000  # proposals that stand for a trial with a few subsystems, without a time budget

PER_RANK_OF_LOADS = 4_000  # proposals for link loads without any budget
SUMS = 0.25  # part of the budget for hop-bytes
ROUNDS_OF_LOADS = 2  # of `congestion`: the least load met, then the best of all
CANDIDATES = 0.3  # part of the time before a function is asked
MOST_SIMULATED = 12  # candidates
ESTIMATED = 0.2  # part of the time, or evaluations as often, that is for an estimate
PER_EVALUATION = 4


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


@mapper("auto", source="this project")
def auto(
    traffic: Traffic,
    topology: Topology,
    *,
    rng: np.random.Generator,
    initial: Mapping | None = None,
    objective: ObjectiveName | LoadName | Callable[[Mapping], float] = "hop_bytes",
    stop: Budget,
) -> Mapping:
    """Best of a portfolio: initial order, curves, folds, recursive bisections, annealing rounds.

    - `objective`: what is minimised or maximised; a function of ``node_of`` is minimised.
    - `moves`: proposals of all rounds; if there is no time budget either 20,000 a rank and round,
      until one gains little. Of an objective that is no sum over pairs 4,000 a rank, those for a
      function's candidates.
    - `evaluations`: calls of a function; as many as the time budget allows, or 1,000 without one.
    """
    run = portfolio(traffic, topology, rng=rng, initial=initial, objective=objective, stop=stop)
    stop.finish(run.stop_reason)
    return run.mapping


def portfolio(
    traffic: Traffic,
    topology: Topology,
    *,
    rng: np.random.Generator,
    initial: Mapping | None = None,
    objective: ObjectiveName | LoadName | Callable[[Mapping], float] = "hop_bytes",
    stop: Budget,
) -> Portfolio:
    """See `auto`; with the steps."""
    order = sweep(traffic, topology)
    start = order if initial is None else initial
    if callable(objective):
        return _portfolio_of_function(objective, traffic, topology, start, stop, rng)
    if objective == LOAD:
        return _portfolio_of_loads(traffic, topology, start, stop, rng)
    watch, moves = stop.watch(), stop.moves
    watch.total = moves
    search = AnnealingSearch(traffic, topology, start, objective, rng, watch)
    grid = find_grid(traffic)
    search.bound = lower_bound(search.model, topology, grid and grid.coords)
    steps: list[Step] = []
    met: list[Mapping] = []
    with keep(lambda: search.mapping):
        for member in _members(search, traffic, order, grid, moves, rng):
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
    grid: Grid | None,
    moves: int | None,
    rng: np.random.Generator,
) -> Iterator[str]:
    """Run one member after another on the search, and name it when it is done.

    Members have shares of the time or of the moves; with both, time only ends the search, so that
    moves give the same mapping wherever it suffices.
    """
    topology = search.topology
    watch = search.watch if moves is None else Watch()
    yield "initial order"
    search.assign(with_free_slots(order, topology))
    yield "sweep"
    starts = []
    if grid is not None:
        for name, node_of in cartesian_orders(grid, topology):
            search.assign(with_free_slots(node_of, topology))
            yield name
        cells = Cells(grid.dims, grid.coords)
        folded = best_fold(cells, topology, search.model, FOLDS, search.watch.over)
        if folded is not None:
            starts.append(with_free_slots(folded, topology))
            search.assign(starts[0])
            yield "fold"
    for curve in CURVES if topology.dims else ():
        if _part(watch) > ORDERS:
            break
        search.assign(with_free_slots(curve(traffic, topology), topology))
        yield curve.__name__
    levels = bool(spans_of(topology))
    for start in _bisections(search, watch, levels, rng):
        starts.append(start)
        search.assign(start)
        yield "recursive_bisection"
    if levels:
        starts.append(search.best.copy())
    starts = sorted(starts, key=search.assign)[:ROUNDS]
    search.assign(search.best)
    scale, active = _scale(search), max(len(search.assignment.active), 1)
    begin, before = watch.now(), search.moves
    search.cool(0.0, 0.0, moves=10 * active)
    yield "descent"
    endless = moves is None and watch.end is None
    total = PER_RANK * traffic.ranks if endless else moves
    if total is None:
        rate = (search.moves - before) / max(watch.now() - begin, 1e-6)
        total = int(rate * (watch.remaining() or 0.0))
    rounds = min(max(total // ((NESTED_ROUND if levels else ROUND) * active), 1), ROUNDS)
    each = None if watch.end is not None else max(total // rounds, 1)
    tabu = _tabu_share(search)
    tabu_moves = None
    if each is not None:
        tabu_moves = int(tabu * each)
        each -= tabu_moves
    for k in range(ROUNDS if endless else rounds):
        left = watch.remaining()
        whole = None if left is None else left / (rounds - k)
        share = None if whole is None else (1 - tabu) * whole
        fresh = k % 2 == 0
        best = search.best_cost
        search.assign(starts[k // 2 % len(starts)] if fresh else search.best)
        if levels:
            trials = None if each is None else max(each // (PER_TRIAL * active), 1)
            most = None if share is None else LEVELS * share
            ruin_and_recreate(search, rng, hot=HOT if fresh else WARM, trials=trials, seconds=most)
            rest = None if share is None else (1 - LEVELS) * share
            search.cool(0.02 * scale, 0.0005 * scale, moves=each, seconds=rest)
        else:
            hot = _hot(total / rounds / active, fresh)
            search.cool(hot * scale, COLD * scale, moves=each, seconds=share)
            exchange_blocks(search, BLOCKS * active)
        yield f"annealing from {'a start' if fresh else 'the best'}"
        if tabu:
            rest = None if whole is None else tabu * whole
            iterated_tabu(search, rng, moves=tabu_moves, seconds=rest)
            yield "tabu from the best"
        if endless and k > 0 and best - search.best_cost < STALE * abs(best):
            break


def _bisections(
    search: AnnealingSearch, watch: Watch, levels: bool, rng: np.random.Generator
) -> Iterator[Ints]:
    """Make mappings to start annealing from, with a share of the time of a watch."""
    tries = 1

    def over() -> bool:
        return _part(watch) > BISECTION or search.watch.over()

    for done in range(STARTS if levels or watch.end is None else MOST_STARTS):
        begin = watch.now()
        yield bisect_nodes(search.model, search.topology, rng, tries, over)
        spent, left = max(watch.now() - begin, 1e-3), watch.remaining()
        if levels and done == 0:
            tries = TRIES if left is None else min(int(SHARE * left / spent), MOST_TRIES)
        if tries == 0 or (_part(watch) > SHARE and (done > 0 or not levels)):
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


def _scale(search: AnnealingSearch) -> float:
    """Return the mean cost of a proposal, the unit of temperatures.

    Where a few ranks have most of the traffic, what their moves cost says nothing about the others,
    whose own cost then is the scale.
    """
    own = search.assignment.own[search.assignment.active]
    usual = float(np.median(own)) if len(own) else 0.0
    skewed = usual > 0 and own.mean() > SKEWED * usual
    return min(search.scale(), USUAL * usual) if skewed else search.scale()


def _hot(per_rank: float, fresh: bool) -> float:
    """First temperature of a round with so many proposals a rank, in units of the scale."""
    if per_rank < ROUND / 2:
        return 0.1
    if per_rank < ROUND or not fresh:
        return 0.2
    return 0.35


def _portfolio_of_loads(
    traffic: Traffic, topology: Topology, start: Mapping, stop: Budget, rng: np.random.Generator
) -> Portfolio:
    """Lower the load of the busiest link."""
    watch, value = stop.watch(), function_of(LOAD, traffic, topology)
    valued = Valued(value, None, Watch())
    stop = replace(stop, moves=stop.or_usual(stop.moves, PER_RANK_OF_LOADS * traffic.ranks))
    steps: list[Step] = []
    met: list[Mapping] = []

    def note(member: str, node_of: Mapping) -> None:
        met.append(node_of)
        _note(steps, member, valued(node_of), valued, watch)

    try:
        note("initial order", start)
        sums = portfolio(traffic, topology, rng=rng, initial=start, stop=stop.part(SUMS))
        for step, node_of in zip(sums.steps[1:], sums.met[1:], strict=True):
            note(step.member, node_of)
        note("best hop-bytes", sums.mapping)
        starts = sorted(met, key=valued.function)[: ROUNDS_OF_LOADS - 1]
        bound = load_bound(traffic, topology)
        for k in range(ROUNDS_OF_LOADS if valued.best_value > bound else 0):
            left = watch.remaining()
            round_ = stop.part((1 - SUMS) / ROUNDS_OF_LOADS)
            if left is not None:
                round_ = replace(round_, seconds=left / (ROUNDS_OF_LOADS - k))
            first = starts[k] if k < len(starts) else best_of(valued, start)
            made = congestion(traffic, topology, rng=rng, initial=first, stop=round_)
            note("congestion", made)
    except KeyboardInterrupt as end:
        if isinstance(end, Interrupted):
            valued(end.mapping)
        raise Interrupted(best_of(valued, start)) from None
    reason: Reason = "optimal" if valued.best_value <= bound else "budget"
    return Portfolio(best_of(valued, start), steps, met, reason)


def _portfolio_of_function(
    function: Function,
    traffic: Traffic,
    topology: Topology,
    start: Mapping,
    stop: Budget,
    rng: np.random.Generator,
) -> Portfolio:
    """Lower any function of the mapping, in so many evaluations."""
    watch, evaluations = stop.watch(), stop.or_usual(stop.evaluations, EVALUATIONS)
    valued = Valued(function, evaluations, watch)
    steps: list[Step] = []
    met: list[Mapping] = []
    with keep(lambda: best_of(valued, start)):
        if valued.over():
            return Portfolio(start, steps, met)
        _note(steps, "initial order", valued(start), valued, watch)
        met.append(start)
        found = _portfolio_of_loads(traffic, topology, start, stop.part(CANDIDATES), rng)
        candidates = list(zip([step.member for step in found.steps], found.met, strict=True))
        # The last are the most refined: of link loads, then of hop-bytes, then the orders.
        if hasattr(function, "estimate"):
            calls = None if evaluations is None else PER_EVALUATION * evaluations
            cheap = Valued(function.estimate, calls, stop.part(ESTIMATED).watch())
            of = {id(node_of): cheap(node_of) for _, node_of in candidates}
            climb(cheap, traffic, topology, best_of(cheap, start), cheap.best_value, rng)
            candidates[1:] = sorted(candidates[1:], key=lambda each: -of[id(each[1])])
            candidates.append(("descend by estimate", best_of(cheap, start)))
        for member, node_of in candidates[:0:-1][:MOST_SIMULATED]:
            if valued.over():
                break
            met.append(node_of)
            _note(steps, member, valued(node_of), valued, watch)
        climb(valued, traffic, topology, best_of(valued, start), valued.best_value, rng)
        met.append(best_of(valued, start))
        _note(steps, "descend", valued.best_value, valued, watch)
    return Portfolio(best_of(valued, start), steps, met)


def _note(steps: list[Step], member: str, value: float, valued: Valued, watch: Watch) -> None:
    steps.append(Step(member, value, valued.best_value, valued.calls, watch.now() - watch.begin))
    log.info("%s: %.6g, best %.6g, %d evaluations, %.2f s", *steps[-1])

"""The portfolio of `auto` for sums over pairs: members with a share of the budget each.

1. Orders: the initial mapping, nodes in order, in boxes along curves; for grids the orders of the
   grid mappers and the best fold; in boxes an embedding (see `embedding`) where there is no grid.
2. Starts: a recursive bisection; on hierarchies, fat trees and dragonflies several, one without
   pairs that may be shortcuts, most with many tries. Elsewhere `greedy_all_c` may be one, too.
   The first one ends after `PLACED` of a time budget, with what it has split by then; what it has
   not is put in an order of clusters, which alone takes a few per cent of the time.
3. A long round from the best start: annealing, hot. On trees and fat trees the ranks of some
   subsystems are split again instead, level by level (see `ruin_and_recreate`). Where a few ranks
   have most of the traffic, bisections of many ranks separate little: there two are split at once.
4. Where an order is better than all starts after descents from both, as folds and embeddings may
   be, a hot round would lose it: it has one from the temperature that the order has (see
   `AnnealingSearch.temperature`). So have both folds of a grid that does not fold exactly. A start
   that is far colder than a hot round, as one of a sparse tree is, has a mild round, too, and there
   is one of `multilevel`. Pilots, `PILOT` of the budget each, say which of all to go on with.
5. On few slots a part of that is for iterated tabu search from the best, which looks at every
   exchange in every step (see `tabu`): most of it where there are even fewer. Without any budget
   there are rounds from the best until one gains little.

Orders and starts are in `portfolio_starts`, rounds in `portfolio_rounds`. With a budget of elapsed
seconds alone, every core runs a pilot or a round of its own (see `lanes`).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from hopmap.arrays import Ints
from hopmap.mappers.cartesian.grid import find_structures
from hopmap.mappers.exchanges.annealing import AnnealingSearch
from hopmap.topologies import Mapping, Topology
from hopmap.traces import Traffic

from .lanes import Lanes, Turn, lanes_of, race
from .objectives import ObjectiveName, lower_bound
from .portfolio_rounds import DESCENT, PER_RANK, SLOW, by_levels, rounds_of, tabu
from .portfolio_starts import SHARE, Structure, spent, try_orders, try_starts
from .stop import Moves, Reason, Watch, keep

log = logging.getLogger("hopmap.mappers.auto")

PILOT = 0.07  # of a budget
CLEARLY = 1.03  # what a warm pilot has to be better by, as hot rounds gain more later
STALE = 0.001  # part of the cost that a round without any budget gains at least, or is the last


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
    grid, structures = find_structures(traffic, lambda: spent(spends) > SHARE)
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
    structure: Structure,
    moves: int | None,
) -> Iterator[str]:
    """Run one member after another on the first search, and name it when it is done.

    Members have shares of the time or of the moves; with both, time only ends the search, so that
    moves give the same mapping wherever it suffices.
    """
    rng, active = lanes[0][1], max(len(search.assignment.active), 1)
    watch = search.watch if moves is None else Watch()
    orders, inexact = yield from try_orders(search, traffic, order, structure, watch, rng)
    start = yield from try_starts(search, traffic, watch, rng)
    begin, before = watch.now(), search.moves
    cost, *order_costs = [_descend(search, places, DESCENT * active) for places in (start, *orders)]
    yield "descent"
    endless = moves is None and watch.end is None
    if moves is None:
        rate = (search.moves - before) / max(watch.now() - begin, 1e-6)
        moves = PER_RANK * active if endless else int(rate * (watch.remaining() or 0.0))
    rounds = rounds_of(search, start, max(moves / active, 1.0), rng)

    def share(part: float) -> Moves:
        left = None if watch.end is not None else moves if endless else moves - search.moves
        return Moves(watch.remaining(), moves=left).part(part)

    turns, reached = [Turn(f"{rounds.name} from a start", start, rounds.hot())], [cost]
    for places, order_cost in zip(orders, order_costs, strict=True):
        if inexact or order_cost < cost:
            run = rounds.warm(search, places)
            turns.append(Turn(f"{rounds.name} from an order", places, run, CLEARLY))
            reached.append(order_cost)
    if moves > SLOW * active:
        if rounds.cool:
            mild = Turn(turns[0].name, start, rounds.mild(), CLEARLY)
            turns += [mild, Turn("multilevel", start, by_levels)]
        if len(turns) > 1:
            reached = []
            for turn in race(search, lanes, turns, share(PILOT)):
                reached.append(int(turn.handicap * search.cost))
                yield turn.name
    main = turns[int(np.argmin(reached))]
    yield from (
        turn.name for turn in race(search, lanes, [main] * len(lanes), share(1 - rounds.tabu))
    )
    while rounds.tabu or endless:
        least, places = search.best_cost, search.best.copy()
        rest = Turn("tabu from the best", places, tabu)
        if not rounds.tabu:
            rest = Turn(f"{rounds.name} from the best", places, rounds.warm(search, places))
        yield from (turn.name for turn in race(search, lanes, [rest] * len(lanes), share(1.0)))
        if not endless or least - search.best_cost < STALE * abs(least):
            break


def _descend(search: AnnealingSearch, places: Ints, proposals: int) -> int:
    """Make exchanges that gain, from these places; return the cost."""
    search.assign(places)
    search.cool(0.0, 0.0, moves=proposals)
    return search.cost

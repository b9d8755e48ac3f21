"""Auto: a portfolio that spends a budget on what is known to work, and keeps the best.

For sums over pairs, like hop-bytes, see `portfolio`. Where the objective is none, that is the first
part of another portfolio.

- `max_link_load`: the mappings that the portfolio for hop-bytes meets in a part of the budget, then
  `congestion` from the one with the least load. Where hop-bytes say nothing about the runtime (see
  `default_objective`) they have a small part, and it begins at random places.
- Any function of the mapping: that portfolio spends part of the budget on candidates, the function
  is asked about some of them, and the best is where `descend` begins. Where a function has an
  `estimate`, a cheaper function that sorts mappings much as it does, another part is for descending
  by that, and it says which candidates the function is asked about.

It stops where the cost reaches a lower bound, at the end of its budget, and without any budget
after a round that gains next to nothing. `Portfolio.stop_reason` says which.

Nothing is ever lost: the best mapping met is what is returned, also at the end of the time or on
Ctrl-C. `portfolio` says what every step reached; `auto` logs the same lines (logger
``hopmap.mappers.auto``, level INFO). A budget of `moves` is a number of proposals and gives the
same mapping for the same seed everywhere, also with a time budget that suffices. A time budget
alone gives results that depend on the machine.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from hopmap.mappers.bisections.recursive_bisection import spans_of
from hopmap.mappers.exchanges.hill_climbing import EVALUATIONS, Valued, best_of, climb, function_of
from hopmap.mappers.loads.congestion import congestion, load_bound
from hopmap.mappers.orders.node_orders import random_mapping, sweep
from hopmap.topologies import Mapping, Topology
from hopmap.traces import Traffic

from .mapper import mapper
from .more_time import gain_by_more_time
from .objectives import LOAD, Function, LoadName, ObjectiveName, default_objective
from .portfolio import Portfolio, Step, search_sums
from .stop import Budget, Interrupted, Reason, Watch, keep

log = logging.getLogger(__name__)

PER_RANK_OF_LOADS = 4_000  # proposals for link loads without any budget
SUMS, LITTLE_SUMS = 0.25, 0.05  # part of the budget for hop-bytes; where they say nothing
CANDIDATES = 0.3  # part of the time before a function is asked
MOST_SIMULATED = 12  # candidates
ESTIMATED = 0.2  # part of the time, or evaluations as often, that is for an estimate
PER_EVALUATION = 4


@mapper("auto", source="this project")
def auto(
    traffic: Traffic,
    topology: Topology,
    *,
    rng: np.random.Generator,
    initial: Mapping | None = None,
    objective: ObjectiveName | LoadName | Callable[[Mapping], float] | None = None,
    stop: Budget,
) -> Mapping:
    """Best of a portfolio: orders, folds, embeddings, bisections, then one long annealing.

    - `objective`: what is minimised or maximised; a function of ``node_of`` is minimised. By
      default hop_bytes, on dragonflies max_link_load; see `default_objective`.
    - `moves`: proposals of all rounds; if there is no time budget either 20,000 a rank and round,
      until one gains little. Of an objective that is no sum over pairs 4,000 a rank, those for a
      function's candidates.
    - `seconds`: by the wall clock they use every core, four at most; with ``clock=cpu``, or moves
      as well, one.
    - `evaluations`: calls of a function; as many as the time budget allows, or 1,000 without one.
    """
    run = portfolio(traffic, topology, rng=rng, initial=initial, objective=objective, stop=stop)
    gain = None
    by_hop_bytes = (objective or default_objective(topology)) == "hop_bytes"  # what was measured
    if by_hop_bytes and run.stop_reason == "budget" and stop.moves is None:
        gain = gain_by_more_time(run.per_rank, bool(spans_of(topology)))
    stop.finish(run.stop_reason, gain)
    return run.mapping


def portfolio(
    traffic: Traffic,
    topology: Topology,
    *,
    rng: np.random.Generator,
    initial: Mapping | None = None,
    objective: ObjectiveName | LoadName | Callable[[Mapping], float] | None = None,
    stop: Budget,
) -> Portfolio:
    """See `auto`; with the steps."""
    order = sweep(traffic, topology)
    start = order if initial is None else initial
    if objective is None:
        objective = default_objective(topology)
    if callable(objective):
        return _portfolio_of_function(objective, traffic, topology, start, stop, rng)
    if objective == LOAD:
        return _portfolio_of_loads(traffic, topology, start, stop, rng)
    return search_sums(traffic, topology, order, start, objective, stop, rng)


def _portfolio_of_loads(
    traffic: Traffic, topology: Topology, start: Mapping, stop: Budget, rng: np.random.Generator
) -> Portfolio:
    """Lower the load of the busiest link; of equal loads the fewest hop-bytes count."""
    watch, value = stop.watch(), function_of(LOAD, traffic, topology)
    valued = Valued(value, None, Watch())
    stop = replace(stop, moves=stop.or_usual(stop.moves, PER_RANK_OF_LOADS * traffic.ranks))
    steps: list[Step] = []
    met: list[Mapping] = []

    def note(member: str, node_of: Mapping) -> None:
        met.append(node_of)
        _note(steps, member, valued(node_of), valued, watch)

    order, bound = sweep(traffic, topology), load_bound(traffic, topology)
    blind = default_objective(topology) == LOAD and np.array_equal(start, order)
    part = LITTLE_SUMS if blind else SUMS
    try:
        note("initial order", start)
        sums = search_sums(traffic, topology, order, start, "hop_bytes", stop.part(part), rng)
        for step, node_of in zip(sums.steps[1:], sums.met[1:], strict=True):
            note(step.member, node_of)
        note("best hop-bytes", sums.mapping)
        if valued.best_value > bound:
            first = random_mapping(traffic, topology, rng=rng) if blind else best_of(valued, start)
            rest = stop.part(1 - part)
            if (left := watch.remaining()) is not None:
                rest = replace(rest, seconds=left)
            note("congestion", congestion(traffic, topology, rng=rng, initial=first, stop=rest))
    except KeyboardInterrupt as end:
        if isinstance(end, Interrupted):
            valued(end.mapping)
        raise Interrupted(best_of(valued, start)) from None
    reason: Reason = "optimal" if valued.best_value <= bound else "budget"
    least = [m for step, m in zip(steps, met, strict=True) if step.value == valued.best_value]
    best = min(least, key=function_of("hop_bytes", traffic, topology))
    return Portfolio(best, steps, met, reason)


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

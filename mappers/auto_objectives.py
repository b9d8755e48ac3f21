"""Portfolios for objectives that are no sum over pairs; see `auto`.

`max_link_load`: the mappings that the portfolio for hop-bytes meets, and rounds of `congestion`
from those with the least load. Any function of the mapping: that portfolio spends part of the
budget on candidates, the function is asked about some of them, and the best is where `descend`
begins. Where a function has an `estimate`, a cheaper function that sorts mappings much as it does,
another part is for descending by that, and it says which candidates the function is asked about.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from hopmap.mappers.exchanges.hill_climbing import EVALUATIONS, Valued, best_of, climb, function_of
from hopmap.mappers.loads.congestion import congestion
from hopmap.mappers.loads.link_loads import load_bound
from hopmap.topologies import Mapping, Topology
from hopmap.traces import Traffic

from .objectives import LOAD, Function
from .stop import Budget, Interrupted, Reason, Watch, keeping

log = logging.getLogger("hopmap.mappers.auto")

PER_RANK = 4_000  # proposals without any budget
SUMS = 0.25  # part of the budget for hop-bytes
ROUNDS = 2  # of `congestion`: the least load met, then the best of all
CANDIDATES = 0.3  # part of the time before a function is asked
ASKED = 12  # candidates
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
    stopped: Reason = "budget"


HopBytes = Callable[[Mapping, Budget], Portfolio]


def portfolio_of_loads(
    traffic: Traffic,
    topology: Topology,
    start: Mapping,
    hop_bytes: HopBytes,
    stop: Budget,
    rng: np.random.Generator,
) -> Portfolio:
    """Lower the load of the busiest link; ``hop_bytes`` runs the portfolio for hop-bytes."""
    watch, value = stop.watch(), function_of(LOAD, traffic, topology)
    valued = Valued(value, None, Watch())
    stop = replace(stop, moves=stop.moves_or(PER_RANK * traffic.ranks))
    steps: list[Step] = []
    met: list[Mapping] = []

    def note(member: str, node_of: Mapping) -> None:
        met.append(node_of)
        _note(steps, member, valued(node_of), valued, watch)

    try:
        note("given order", start)
        sums = hop_bytes(start, stop.part(SUMS))
        for step, node_of in zip(sums.steps[1:], sums.met[1:], strict=True):
            note(step.member, node_of)
        note("best hop-bytes", sums.mapping)
        starts = sorted(met, key=valued.function)[: ROUNDS - 1]
        bound = load_bound(traffic, topology)
        for k in range(ROUNDS if valued.best_value > bound else 0):
            left = watch.left()
            round_ = stop.part((1 - SUMS) / ROUNDS)
            if left is not None:
                round_ = replace(round_, seconds=left / (ROUNDS - k))
            first = starts[k] if k < len(starts) else best_of(valued, start)
            made = congestion(traffic, topology, rng=rng, initial=first, stop=round_)
            note("congestion", made)
    except KeyboardInterrupt as end:
        if isinstance(end, Interrupted):
            valued(end.mapping)
        raise Interrupted(best_of(valued, start)) from None
    reason: Reason = "optimal" if valued.best_value <= bound else "budget"
    return Portfolio(best_of(valued, start), steps, met, reason)


def portfolio_of_function(
    function: Function,
    traffic: Traffic,
    topology: Topology,
    start: Mapping,
    hop_bytes: HopBytes,
    stop: Budget,
    rng: np.random.Generator,
) -> Portfolio:
    """Lower any function of the mapping, in so many evaluations."""
    watch, evaluations = stop.watch(), stop.evaluations_or(EVALUATIONS)
    valued = Valued(function, evaluations, watch)
    steps: list[Step] = []
    met: list[Mapping] = []
    with keeping(lambda: best_of(valued, start)):
        if valued.over():
            return Portfolio(start, steps, met)
        _note(steps, "given order", valued(start), valued, watch)
        met.append(start)
        found = portfolio_of_loads(traffic, topology, start, hop_bytes, stop.part(CANDIDATES), rng)
        candidates = list(zip([step.member for step in found.steps], found.met, strict=True))
        # The last are the most refined: of link loads, then of hop-bytes, then the orders.
        if hasattr(function, "estimate"):
            calls = None if evaluations is None else PER_EVALUATION * evaluations
            cheap = Valued(function.estimate, calls, stop.part(ESTIMATED).watch())
            of = {id(node_of): cheap(node_of) for _, node_of in candidates}
            climb(cheap, traffic, topology, best_of(cheap, start), cheap.best_value, rng)
            candidates[1:] = sorted(candidates[1:], key=lambda each: -of[id(each[1])])
            candidates.append(("descend by estimate", best_of(cheap, start)))
        for member, node_of in candidates[:0:-1][:ASKED]:
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

"""Descend: exchanges that lower any function of the mapping, a simulated time for one.

For functions that are expensive, milliseconds to seconds, and known only by calling them: hundreds
or thousands of evaluations, not millions. An exchange is drawn as in `annealing`, so that it brings
a rank next to one that it talks to; of `DRAWN` such the one that gains the most hop-bytes, or costs
the least, is evaluated. It stays if the function does not rise: plain hill climbing, which crosses
plateaus.

A function may have an attribute `estimate`, a cheaper function that is much the same, or a lower
bound. Then only exchanges are evaluated whose estimate is below the middle between the values of
the function and of the estimate so far, or, of `TRIES` that are all above, the lowest: the closer
an estimate is to the function, the more it decides.

O(degree) a step plus the function itself; memory is linear, except for the table of distances that
all annealing has on up to a few thousand nodes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from hopmap.arrays import Ints
from hopmap.mappers.cost_model import CostModel
from hopmap.mappers.mapper import mapper
from hopmap.mappers.objectives import (
    OBJECTIVES,
    Function,
    LoadName,
    ObjectiveName,
    cost_model,
    objective_value,
    with_free_slots,
)
from hopmap.mappers.orders.node_orders import sweep
from hopmap.mappers.stop import Evaluations, Watch, keep
from hopmap.topologies import Mapping, MappingError, Topology
from hopmap.traces import Traffic

from .assignment import assignment_of

if TYPE_CHECKING:
    from .annealing_kernels import Assignment

EVALUATIONS = 1_000
DRAWN = 4
TRIES = 16


class Valued:
    """A function of mappings that counts how often it is called and keeps the best mapping.

    The function may keep the array that it gets, shape (ranks,); lower is better.

    - `best`, `best_value`: best mapping met and its value; the first mapping always counts.
    - `calls`: evaluations so far.
    """

    def __init__(self, function: Function, evaluations: int | None, watch: Watch) -> None:
        self.function, self.evaluations, self.watch = function, evaluations, watch
        self.best: Mapping | None = None
        self.best_value = math.inf
        self.calls = 0

    def over(self) -> bool:
        """Whether evaluations or time are used up."""
        return self.watch.over() or (
            self.evaluations is not None and self.calls >= self.evaluations
        )

    def __call__(self, node_of: Mapping) -> float:
        """Evaluate a mapping."""
        value = self.function(node_of.copy())
        self.calls += 1
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = math.nan
        if math.isnan(number):
            raise MappingError(f"objective: the function returned {value!r}: expected a number")
        if self.best is None or number < self.best_value:
            self.best, self.best_value = node_of.copy(), number
        self.watch.report(self.calls, self.evaluations, f"objective {self.best_value:.6g}")
        return number


def best_of(valued: Valued, start: Mapping) -> Mapping:
    """Best mapping met, or the start if none was."""
    return start if valued.best is None else valued.best


def function_of(
    objective: ObjectiveName | LoadName | Function, traffic: Traffic, topology: Topology
) -> Function:
    """Return the objective as a function of the mapping that is minimised."""
    if callable(objective):
        return objective
    named = objective
    sign = -1 if named in OBJECTIVES and OBJECTIVES[named].maximised else 1
    return lambda node_of: sign * objective_value(traffic, topology, node_of, named)


@mapper("descend", source="this project")
def descend(
    traffic: Traffic,
    topology: Topology,
    *,
    rng: np.random.Generator,
    initial: Mapping | None = None,
    objective: ObjectiveName | LoadName | Callable[[Mapping], float] = "hop_bytes",
    stop: Evaluations,
) -> Mapping:
    """Exchanges near a peer that lower any function of the mapping, in few evaluations.

    - `initial`: mapping to start from, never worsened; nodes in order by default.
    - `objective`: what is minimised or maximised; a function of ``node_of`` is minimised.
    - `evaluations`: calls of the function, that of the start included; by default as many as the
      time budget allows, or 1,000 without one.
    """
    start = sweep(traffic, topology) if initial is None else initial
    function = function_of(objective, traffic, topology)
    valued = Valued(function, stop.or_usual(stop.evaluations, EVALUATIONS), stop.watch())
    with keep(lambda: best_of(valued, start)):
        if not valued.over():
            climb(valued, traffic, topology, start, valued(start), rng)
    return best_of(valued, start)


def climb(
    valued: Valued,
    traffic: Traffic,
    topology: Topology,
    start: Mapping,
    value: float,
    rng: np.random.Generator,
) -> None:
    """Exchange ranks, beginning with a mapping of that value, until the budget is used up."""
    model = cost_model(traffic, topology, "hop_bytes")
    assignment = assignment_of(model, topology, with_free_slots(start, topology), rng)
    places, slot_of, item_at = assignment.places, assignment.slot_of, assignment.item_at
    if not len(assignment.active) or (places == places[0]).all():
        return
    estimate: Function = getattr(valued.function, "estimate", lambda _: 0.0)
    level = estimate(places[: traffic.ranks].copy())
    while not valued.over():
        a, b, least = -1, -1, math.inf
        for _ in range(TRIES):
            pair = _near_exchange(model, assignment, rng)
            if pair is None:
                break
            _swap(places, pair)
            estimated = estimate(places[: traffic.ranks].copy())
            _swap(places, pair)
            if estimated < least:
                (a, b), least = pair, estimated
            if least <= max(level, (level + value) / 2) or valued.over():
                break
        if a < 0:
            continue
        _swap(places, (a, b))
        then = valued(places[: traffic.ranks])
        if then <= value:
            value, level = then, least
            item_at[[slot_of[a], slot_of[b]]] = b, a
            slot_of[[a, b]] = slot_of[[b, a]]
        else:
            _swap(places, (a, b))


def _swap(places: Ints, pair: tuple[int, int]) -> None:
    a, b = pair
    places[[a, b]] = places[[b, a]]


def _near_exchange(
    model: CostModel, assignment: Assignment, rng: np.random.Generator
) -> tuple[int, int] | None:
    """Draw exchanges that bring a rank next to one it talks to; return the best for hop-bytes."""
    from hopmap.mappers import cost_kernels

    places = assignment.places
    u = rng.choice(assignment.active, DRAWN)
    first, last = model.indptr[u], model.indptr[u + 1]
    x = places[model.peer[rng.integers(first, last)]]
    slot = assignment.near[rng.integers(assignment.near_indptr[x], assignment.near_indptr[x + 1])]
    v = assignment.item_at[slot]
    apart = places[u] != places[v]
    if not apart.any():  # near slots may all be on the nodes where the ranks are already
        v = rng.integers(len(places), size=DRAWN)
        apart = places[u] != places[v]
        if not apart.any():
            return None
    u, v = u[apart], v[apart]
    k = int(cost_kernels.swap_gains(model, places, u, v).argmax())
    return int(u[k]), int(v[k])

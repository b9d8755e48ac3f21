"""Simulated annealing with exchanges near a peer.

Sources: Kirkpatrick, Gelatt and Vecchi, Optimization by simulated annealing, Science 220 (1983);
the exchanges follow the sparse quadratic assignment problem (Schulz and Traeff 2017, see
`annealing_kernels`). The temperature falls geometrically, and its scale is the mean cost of the
proposals that cost something where the search starts: from `hot` to `cold` times that mean.

Every mapper that anneals uses `Cooling`: the present assignment, the best so far, and cooling runs
between them. `auto` runs all of its members on one.

O(degree) a proposal; memory is linear, except for a table of distances up to a few thousand nodes.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Self

import numpy as np

from hopmap.arrays import Floats, Ints
from hopmap.mappers.cost_model import CostModel
from hopmap.mappers.mapper import mapper
from hopmap.mappers.objectives import (
    ObjectiveName,
    cost_bound,
    cost_model,
    get_objective,
    with_free_slots,
)
from hopmap.mappers.options import NonNegative
from hopmap.mappers.orders.node_orders import random_mapping
from hopmap.mappers.stop import Moves, Watch, keep, part_spent
from hopmap.topologies import Mapping, Topology
from hopmap.traces import Traffic

from .assignment import assign, assignment_of, cost_of

if TYPE_CHECKING:
    from .annealing_kernels import Assignment

PER_RANK = 20_000
FROM_RANDOM, FROM_MAPPING = 0.5, 0.1  # first temperature, in mean costs of the first proposals


@mapper("annealing", source="Kirkpatrick, Gelatt, Vecchi 1983")
def annealing(
    traffic: Traffic,
    topology: Topology,
    *,
    rng: np.random.Generator,
    initial: Mapping | None = None,
    objective: ObjectiveName = "hop_bytes",
    hot: NonNegative | None = None,
    cold: NonNegative = 0.01,
    stop: Moves,
) -> Mapping:
    """Anneal by exchanges that bring a rank next to a peer, from random by default.

    - `initial`: mapping to start from, never worsened; random by default.
    - `moves`: proposals; by default as many as the time budget allows, or 20,000 a rank without
      one. With moves and without a budget, the same seed gives the same mapping.
    - `hot`, `cold`: first and last temperature, in units of the mean cost of the initial proposals
      that cost something; hot is 0.5 by default, 0.1 from an initial mapping.
    """
    watch, moves = stop.watch(), stop.or_usual(stop.moves, PER_RANK * traffic.ranks)
    if hot is None:
        hot = FROM_RANDOM if initial is None else FROM_MAPPING
    if initial is None:
        initial = random_mapping(traffic, topology, rng=rng)
    search = AnnealingSearch(traffic, topology, initial, objective, rng, watch)
    with keep(lambda: search.mapping):
        scale = search.scale()
        search.cool(hot * scale, cold * scale, moves=moves, seconds=watch.remaining())
    return search.mapping


SLICE = 1 << 16  # proposals between two looks at the clock
LOOKS = 0.02  # part of a time budget between two looks at the clock, if that is less
SAMPLE = 10_000  # proposals that a temperature is taken from
HALVINGS = 20  # of the interval that it is in


class Cooling:
    """Exchanges that keep the best places met.

    The assignment is changed in place; a cost of `bound` ends the search.

    - `cost`, `best_cost`: of the present and of the best places.
    - `best`: best places, shape (slots,).
    - `moves`: proposals made.
    """

    def __init__(
        self, model: CostModel, assignment: Assignment, watch: Watch, bound: int | None = None
    ) -> None:
        self.model, self.assignment, self.watch = model, assignment, watch
        self.bound = bound
        self.cost = cost_of(assignment)
        self.best, self.best_cost = assignment.places.copy(), self.cost
        self.moves = 0

    def done(self) -> bool:
        """Whether nothing can be gained any more, or the time is over."""
        return self.optimal() or self.watch.over()

    def optimal(self) -> bool:
        """Whether nothing can be gained any more."""
        return self.bound is not None and self.best_cost <= self.bound

    def assign(self, places: Ints) -> int:
        """Assign all ranks again and return the cost; the best is kept if that is not better."""
        assign(self.model, self.assignment, places)
        self.note_gain(self.cost - cost_of(self.assignment))
        return self.cost

    def restart(self, places: Ints) -> None:
        """Begin again from these places, and forget better ones."""
        assign(self.model, self.assignment, places)
        self.cost = self.best_cost = cost_of(self.assignment)
        self.best = places.copy()

    def note_gain(self, saved: int) -> None:
        """Note that the present cost has fallen so much, or risen."""
        self.cost -= saved
        if self.cost < self.best_cost:
            self.best, self.best_cost = self.assignment.places.copy(), self.cost

    def scale(self) -> float:
        """Mean cost of those proposals that cost something."""
        worse = self._sample_changes()
        worse = worse[worse > 0]
        return float(worse.mean()) if len(worse) else 0.0

    def temperature(self, most: float) -> float:
        """Temperature at which the present places are in equilibrium, or `most` if that is higher.

        There proposals cost as much as they gain in the mean: Rose, Klebsch and Wolf, Temperature
        measurement and equilibrium dynamics of simulated annealing placements, IEEE Transactions on
        Computer-Aided Design 9 (1990). O(degree) for each of `SAMPLE` proposals.
        """
        changes = self._sample_changes()
        worse, gain = changes[changes > 0], -changes[changes < 0].sum()
        low, high = 0.0, most
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            if (worse * np.exp(-worse / middle)).sum() < gain:
                low = middle
            else:
                high = middle
        return high

    def _sample_changes(self) -> Floats:
        from . import annealing_kernels

        if not len(self.assignment.active):
            return np.zeros(0)
        found = annealing_kernels.sample_changes(self.model, self.assignment, SAMPLE)
        return found.astype(np.float64)

    def cool(
        self, hot: float, cold: float, *, moves: int | None, seconds: float | None = None
    ) -> None:
        """Anneal from one temperature down to the other until moves or seconds are used up.

        The temperature follows whichever is nearer to its end; the watch ends everything.
        """
        from . import annealing_kernels

        if not len(self.assignment.active) or len(self.assignment.places) < 2:
            return
        now, begin = self.watch.now, self.watch.now()
        made, part, step = 0, 0.0, SLICE >> 4
        while part < 1 and not self.done() and (moves is None or made < moves):
            proposals = step if moves is None else min(step, moves - made)
            ahead = part_spent(made + proposals, moves, now() - begin, seconds)
            ahead = min(max(ahead, part), 1.0)
            saved = annealing_kernels.anneal(
                self.model, self.assignment, heat_at(hot, cold, part), heat_at(hot, cold, ahead),
                proposals,
            )  # fmt: skip
            part, made, step = ahead, made + proposals, SLICE
            if seconds is not None:
                rate = made / max(now() - begin, 1e-6)
                step = min(max(int(rate * seconds * LOOKS), SLICE >> 6), SLICE)
            self.moves += proposals
            self.note_gain(saved)
            self.report()

    def report(self) -> None:
        """Report the progress; nothing by default."""


class AnnealingSearch(Cooling):
    """Exchanges of ranks, and of ranks with free slots, that keep the best mapping met."""

    def __init__(
        self,
        traffic: Traffic,
        topology: Topology,
        initial: Mapping,
        objective: str,
        rng: np.random.Generator,
        watch: Watch,
    ) -> None:
        model = cost_model(traffic, topology, objective)
        assignment = assignment_of(model, topology, with_free_slots(initial, topology), rng)
        super().__init__(model, assignment, watch, cost_bound(model, topology))
        self.topology = topology
        self.ranks = traffic.ranks
        self.named = get_objective(objective)

    def copy(self, rng: np.random.Generator) -> Self:
        """Return another search at the same places, with random numbers of its own."""
        other, same = copy(self), self.assignment
        other.assignment = same._replace(
            places=same.places.copy(),
            slot_of=same.slot_of.copy(),
            item_at=same.item_at.copy(),
            own=same.own.copy(),
            random=rng.integers(1, 2**63, size=1, dtype=np.uint64),
        )
        return other

    @property
    def mapping(self) -> Mapping:
        """Best mapping so far."""
        return self.best[: self.ranks]

    def report(self) -> None:
        """Report the value of the best mapping."""
        value = self.named.value(self.best_cost)
        self.watch.report(self.moves, None, f"{self.named.name} {value}")


def heat_at(hot: float, cold: float, part: float) -> float:
    """Temperature after that part of a cooling run."""
    if hot <= 0 or cold <= 0:
        return hot * (1 - part)
    return float(hot * (cold / hot) ** part)

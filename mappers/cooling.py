"""One search by exchanges: who sits where now, the best so far, and cooling runs between the two.

Every mapper that anneals uses it, and `auto` runs all of its members on one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..topologies import Mapping, Topology
from ..traces import Traffic
from . import annealing_kernels, kernels
from .objectives import cost_bound, cost_model, objective_named, with_free_slots
from .search import Watch
from .seating import cost_of, seated, sit, with_table

SLICE = 1 << 16  # proposals between two looks at the clock
SAMPLE = 10_000  # proposals that a temperature scale is taken from


class Cooling:
    """Exchanges of ranks, and of ranks with free slots, that keep the best mapping met.

    Parameters
    ----------
    traffic, topology
        See `map_ranks`.
    initial : ndarray
        Where to start.
    objective : str
        What is minimised or maximised.
    rng : Generator
        Seeds the proposals.
    watch : Watch
        Time budget and progress.
    """

    def __init__(
        self,
        traffic: Traffic,
        topology: Topology,
        initial: Mapping,
        objective: str,
        rng: np.random.Generator,
        watch: Watch,
    ) -> None:
        self.model = with_table(cost_model(traffic, topology, objective), topology)
        self.topology = topology
        self.watch = watch
        self.ranks = traffic.ranks
        self._named = objective_named(objective)
        self.seating = seated(self.model, topology, with_free_slots(initial, topology), rng)
        self.cost = cost_of(self.seating)
        self.best, self.best_cost = self.seating.places.copy(), self.cost
        self._bound = cost_bound(self.model, topology)
        self.moves = 0

    @property
    def mapping(self) -> Mapping:
        """Best mapping so far."""
        return self.best[: self.ranks]

    def done(self) -> bool:
        """Whether nothing can be gained any more, or the time is over."""
        return self.best_cost <= self._bound or self.watch.over()

    def value(self, cost: int) -> int:
        """Value that the objective gives to a mapping of this cost."""
        return self._named.value(cost)

    def start(self, mapping: Mapping) -> int:
        """Seat the ranks anew and return the cost; the best is kept if that is not better."""
        return self.sit(with_free_slots(mapping, self.topology))

    def sit(self, places: NDArray[np.int64]) -> int:
        """Seat ranks and dummies anew; see `start`."""
        sit(self.model, self.seating, places)
        self.cost = cost_of(self.seating)
        self._keep()
        return self.cost

    def scale(self) -> float:
        """Mean cost of those proposals that cost something."""
        if not len(self.seating.talkers):
            return 0.0
        return annealing_kernels.uphill(self.model, self.seating, SAMPLE)

    def cool(
        self, hot: float, cold: float, *, moves: int | None, seconds: float | None = None
    ) -> None:
        """Anneal from one temperature down to the other until moves or seconds are used up.

        The temperature follows whichever is nearer to its end; the watch ends everything.
        """
        if not len(self.seating.talkers) or len(self.seating.places) < 2:
            return
        now, begin, made = self.watch.now, self.watch.now(), 0
        part = 0.0
        step = min(SLICE, 1 << 12)
        while part < 1 and not self.done() and (moves is None or made < moves):
            proposals = step if moves is None else min(step, moves - made)
            before = now()
            ahead = 0.0 if moves is None else (made + proposals) / moves
            if seconds is not None:
                ahead = max(ahead, min((before - begin) / seconds, 1.0) if seconds > 0 else 1.0)
            ahead = min(max(ahead, part), 1.0)
            saved, _ = annealing_kernels.anneal(
                self.model, self.seating, _between(hot, cold, part), _between(hot, cold, ahead),
                proposals,
            )  # fmt: skip
            part, made, step = ahead, made + proposals, SLICE
            self.cost -= saved
            self._keep()
            self.watch.report(
                self.moves + made, None, f"{self._named.name} {self.value(self.best_cost)}"
            )
        self.moves += made

    def _keep(self) -> None:
        if self.cost < self.best_cost:
            self.best, self.best_cost = self.seating.places.copy(), self.cost


def _between(hot: float, cold: float, part: float) -> float:
    """Temperature after that part of a cooling run."""
    if hot <= 0 or cold <= 0:
        return hot * (1 - part)
    return float(hot * (cold / hot) ** part)

"""When a long search ends, how it says how far it is, and why it ended.

A mapper that asks for ``stop``, a `Stop`, has its fields as parameters: ``annealing(moves=1000)``.
Compiled code cannot be interrupted, so searches call it in slices and ask a `Watch` in between.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, Self

from hopmap.progress import Progress as Progress
from hopmap.topologies import Mapping

from .options import CountOrZero, Seconds

Clock = Literal["wall", "cpu"]
Reason = Literal["optimal", "stagnated", "budget"]


class Ending(NamedTuple):
    """Why a search ended, and what more time would gain."""

    reason: Reason
    gain: float | None = None  # part of the cost, where benchmarks say it (`more_time`)


Stopped = Callable[[Ending], None]


@dataclass(frozen=True)
class Stop:
    """Budget of a search, and callbacks for its progress and for why it ended.

    - `seconds`: time budget; none by default.
    - `clock`: whether elapsed or processor seconds count.
    - `progress`: called at most ten times a second.
    - `stopped`: called with why a search ended, where it knows: a lower bound is reached or the
      result proved ("optimal"), a gain is negligible ("stagnated"), or all is spent ("budget").
    """

    seconds: Seconds = None
    clock: Clock = "wall"
    progress: Progress | None = None
    stopped: Stopped | None = None

    def watch(self) -> Watch:
        """Begin to spend it."""
        return Watch(self.seconds, self.progress, self.clock)

    def finish(self, reason: Reason, gain: float | None = None) -> None:
        """Tell why the search ended."""
        if self.stopped is not None:
            self.stopped(Ending(reason, gain))

    def part(self, share: float) -> Self:
        """Return a part of it."""
        return replace(self, seconds=None if self.seconds is None else self.seconds * share)

    def or_usual(self, steps: int | None, usual: int) -> int | None:
        """Return a limit, or the usual one where neither it nor a time is set."""
        return usual if steps is None and self.seconds is None else steps


@dataclass(frozen=True)
class Moves(Stop):
    """The same, or after so many proposals: then a seed gives the same mapping on any machine."""

    moves: CountOrZero | None = None

    def part(self, share: float) -> Self:
        """Return a part of it."""
        moves = None if self.moves is None else int(self.moves * share)
        return replace(super().part(share), moves=moves)


@dataclass(frozen=True)
class Evaluations(Stop):
    """The same, or after so many calls of a function of the mapping."""

    evaluations: CountOrZero | None = None


@dataclass(frozen=True)
class Budget(Moves, Evaluations):
    """Proposals of all searches for sums over pairs, calls of another function."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a search; `mapping` is the best one so far."""

    def __init__(self, mapping: Mapping) -> None:
        super().__init__("interrupted")
        self.mapping = mapping


def part_spent(moves_done: float, most: float | None, spent: float, seconds: float | None) -> float:
    """Part of a budget that is used up, by whichever of moves and seconds is nearer to its end."""
    part = 0.0 if most is None else moves_done / most if most > 0 else 1.0
    if seconds is not None:
        part = max(part, spent / seconds if seconds > 0 else 1.0)
    return part


@contextmanager
def keep(best: Callable[[], Mapping]) -> Iterator[None]:
    """Have Ctrl-C raise `Interrupted` with the best mapping so far."""
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(best()) from None


class Watch:
    """Time budget and progress of a `Stop`; what is compiled meanwhile costs nothing of it.

    - `total`: of what is reported as done, where the whole search knows it and its parts do not.
    """

    def __init__(
        self, seconds: float | None = None, progress: Progress | None = None, clock: Clock = "wall"
    ) -> None:
        from hopmap.compilation import cpu, wall

        self.now = {"wall": wall, "cpu": cpu}[clock]
        self.begin = self.now()
        self.end = None if seconds is None else self.begin + seconds
        self.total: int | None = None
        self._progress = progress
        self._next_report = 0.0

    def over(self) -> bool:
        """Whether the budget is spent."""
        return self.end is not None and self.now() >= self.end

    def remaining(self) -> float | None:
        """Seconds that are left; None without a budget."""
        return None if self.end is None else max(self.end - self.now(), 0.0)

    def report(self, done: int, total: int | None, text: str) -> None:
        """Pass progress on, unless the last report was a moment ago; of a budget, milliseconds."""
        if self._progress is not None and time.perf_counter() >= self._next_report:
            total = self.total if total is None else total
            if total is None and self.end is not None:
                done, total = (round(1000 * (t - self.begin)) for t in (self.now(), self.end))
            self._progress(done if total is None else min(done, total), total, text)
            self._next_report = time.perf_counter() + 0.1

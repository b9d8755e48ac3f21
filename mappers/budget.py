"""How a long search stops early and says how far it is.

Compiled code cannot be interrupted, so searches call it in slices and ask a `Watch` in between.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal

from hopmap.progress import Progress as Progress
from hopmap.topologies import Mapping

Clock = Literal["wall", "cpu"]
Stop = Literal["optimal", "stagnated", "budget"]
Stopped = Callable[[Stop], None]


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a search; `mapping` is the best one so far."""

    def __init__(self, mapping: Mapping) -> None:
        super().__init__("interrupted")
        self.mapping = mapping


class Watch:
    """Time budget and progress of one search; what is compiled meanwhile costs nothing of it.

    Parameters
    ----------
    seconds : float, optional
        Budget; none by default.
    progress : Progress, optional
        Called at most ten times a second.
    clock : {"wall", "cpu"}
        Whether elapsed or processor seconds count.

    Attributes
    ----------
    total : int, optional
        Of what is reported as done, where the whole search knows it and its parts do not.
    """

    def __init__(
        self,
        seconds: float | None = None,
        progress: Progress | None = None,
        clock: Clock = "wall",
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

    def left(self) -> float | None:
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

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
CLOCKS: dict[Clock, Callable[[], float]] = {"wall": time.perf_counter, "cpu": time.process_time}


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a search; `mapping` is the best one so far."""

    def __init__(self, mapping: Mapping) -> None:
        super().__init__("interrupted")
        self.mapping = mapping


class Watch:
    """Time budget and progress of one search.

    Parameters
    ----------
    seconds : float, optional
        Budget; none by default.
    progress : Progress, optional
        Called at most ten times a second.
    clock : {"wall", "cpu"}
        Whether elapsed or processor seconds count.
    """

    def __init__(
        self,
        seconds: float | None = None,
        progress: Progress | None = None,
        clock: Clock = "wall",
    ) -> None:
        self.now = CLOCKS[clock]
        self.begin = self.now()
        self.end = None if seconds is None else self.begin + seconds
        self._progress = progress
        self._next_report = 0.0

    def over(self) -> bool:
        """Whether the budget is spent."""
        return self.end is not None and self.now() >= self.end

    def left(self) -> float | None:
        """Seconds that are left; None without a budget."""
        return None if self.end is None else max(self.end - self.now(), 0.0)

    def report(self, done: int, total: int | None, text: str) -> None:
        """Pass progress on, unless the last report was a moment ago."""
        if self._progress is not None and time.perf_counter() >= self._next_report:
            self._progress(done, total, text)
            self._next_report = time.perf_counter() + 0.1

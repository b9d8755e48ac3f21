"""Tell the user, once, that the wait is for the compiler.

numba compiles a kernel at its first call and keeps the result beside its file, so that only the
first runs after installation wait, some of them for many seconds.
"""

from __future__ import annotations

import multiprocessing
import sys
import time
from functools import cache

PATIENCE = 0.5
"""Seconds of compiling that need no word."""


@cache
def announce_compilation() -> None:
    """Say so on stderr when this process, or the first of its workers, compiles for long."""
    worker = multiprocessing.parent_process() is not None
    if worker and not multiprocessing.current_process().name.endswith("-1"):
        return
    from numba.core import event

    class Announcer(event.Listener):
        """Told of the start and end of every pass of the compiler; passes nest."""

        depth, begin, spent = 0, 0.0, 0.0

        def on_start(self, _: object) -> None:
            now = time.monotonic()
            if self.depth == 0:
                self.begin = now
            self.depth += 1
            if self.spent + now - self.begin > PATIENCE:
                self.spent = float("-inf")
                clear = "\r\033[K" if sys.stderr.isatty() else ""
                print(f"{clear}hopmap: compiling for this machine, once", file=sys.stderr)  # noqa: T201

        def on_end(self, _: object) -> None:
            self.depth -= 1
            if self.depth == 0:
                self.spent += time.monotonic() - self.begin

    event.register("numba:run_pass", Announcer())  # type: ignore[no-untyped-call]

"""Tell the user that the wait is for the compiler.

numba compiles a kernel at its first call and keeps the result, so that only the first runs after an
installation wait, some of them for many seconds.
"""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

PATIENCE = 0.5
"""Seconds of compiling that need no word."""


@contextmanager
def watch_compiler(show: Callable[[str, int], object]) -> Iterator[None]:
    """Tell the name of what is being compiled, and how many functions are; an empty name: none."""
    from numba.core import event

    class Watcher(event.Listener):
        """Hears of the start and end of each function; callees nest in their callers."""

        depth, done = 0, 0

        def on_start(self, heard: event.Event) -> None:
            self.depth += 1
            show(heard.data["dispatcher"].py_func.__name__, self.done)

        def on_end(self, _: object) -> None:
            self.depth -= 1
            self.done += 1
            if self.depth == 0:
                show("", self.done)

    with event.install_listener("numba:compile", Watcher()):
        yield


@cache
def announce_compilation() -> None:
    """Say so on stderr when this process, or the first of its workers, compiles for long."""
    worker = multiprocessing.parent_process() is not None
    if worker and not multiprocessing.current_process().name.endswith("-1"):
        return
    from numba.core import event

    class Announcer(event.Listener):
        """Hears of the start and end of every pass of the compiler; passes nest."""

        depth, begin, spent = 0, 0.0, 0.0

        def on_start(self, _: Any) -> None:
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

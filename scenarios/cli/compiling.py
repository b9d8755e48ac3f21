"""Tell the user, once, that the wait is for the compiler, and on a terminal how much is left.

numba compiles a kernel at its first call and keeps the result beside its file, so that only the
first runs after installation wait, some of them for many seconds.
"""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Protocol

PATIENCE = 0.5
"""Seconds of compiling that need no word."""


class Shown(Protocol):
    """Told how many of the kernels that are known to be needed are there; None: nobody waits."""

    def __call__(self, done: int | None, known: int) -> object:
        """Show it."""


@contextmanager
def counting_kernels(show: Shown) -> Iterator[None]:
    """Say while numba compiles how far it is.

    Known to be needed is what the kernels that have been called so far are made of, so that the
    number grows with every one that is.
    """
    from numba.core import event

    class Counter(event.Listener):
        """Told of every kernel, those that are compiled for another one within it."""

        def __init__(self) -> None:
            self.depth = 0
            self.known: dict[Any, None] = {}
            self.done: set[Any] = set()

        def on_start(self, found: event.Event) -> None:
            self.depth += 1
            self.known |= dict.fromkeys(made_of(found.data["dispatcher"]))
            self.tell()

        def on_end(self, found: event.Event) -> None:
            self.depth -= 1
            self.done.add(found.data["dispatcher"])
            self.tell()

        def tell(self) -> None:
            before = {kernel for kernel in self.known if kernel.overloads}
            show(len(self.done | before) if self.depth else None, len(self.known))

    with event.install_listener("numba:compile", Counter()):
        yield


def made_of(kernel: Any) -> list[Any]:
    """Return a kernel and those that are compiled into it."""
    found = [kernel]
    for each in found:
        function = each.py_func
        cells = (cell.cell_contents for cell in function.__closure__ or ())
        named = (function.__globals__.get(name) for name in function.__code__.co_names)
        found += [
            other for other in dict.fromkeys(filter(_is_kernel, (*cells, *named)))
            if other not in found
        ]  # fmt: skip
    return found


def _is_kernel(value: object) -> bool:
    return hasattr(value, "overloads") and hasattr(value, "py_func")


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

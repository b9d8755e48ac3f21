"""Runs in this process or shared by several, stopped cleanly by Ctrl-C."""

from __future__ import annotations

import multiprocessing
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, TypeVar

from .compiling import announce_compilation

T = TypeVar("T")


def share(
    do: Callable[[T, Path], str | None], items: Sequence[T], results: Path, workers: int
) -> Iterator[tuple[T, str | None]]:
    """Yield every item with what ``do(item, results)`` returned, in order of completion.

    On any exception, Ctrl-C included, the work in progress is given up and its files removed.
    """
    workers = min(workers, len(items))
    if workers <= 1:
        for item in items:
            yield item, do(item, results)
        return
    # New interpreters: forking a process whose libraries run threads is not safe.
    pool = ProcessPoolExecutor(
        workers, mp_context=multiprocessing.get_context("spawn"), initializer=_leave_when_told
    )
    # Ctrl-C goes to every process of a terminal. The workers start deaf to it; this process tells
    # them to stop instead, by SIGTERM.
    heard = _ignore_interrupts()
    try:
        futures = {pool.submit(do, item, results): item for item in items}
    finally:
        if heard is not None:
            signal.signal(signal.SIGINT, heard)
    try:
        for future in as_completed(futures):
            yield futures[future], future.result()
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for child in multiprocessing.active_children():
            child.terminate()
        raise
    finally:
        pool.shutdown()


def _ignore_interrupts() -> Any:
    """Ignore Ctrl-C and return the former handler; None outside the main thread."""
    try:
        return signal.signal(signal.SIGINT, signal.SIG_IGN)
    except ValueError:
        return None


def _leave_when_told() -> None:
    """Turn SIGTERM into an exit that runs `finally` blocks; announce what this process compiles."""
    announce_compilation()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))

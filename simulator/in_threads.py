"""Replays of one program on several cores: threads, as the compiled loop releases Python's lock.

Every replay has tables of its own, so that results are the same on any number of cores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import TypeVar

from hopmap.cores import cores
from hopmap.progress import Progress

Item = TypeVar("Item")
Answer = TypeVar("Answer")


def in_threads(work: Callable[[Item, Progress], Answer], items: Iterable[Item]) -> Iterator[Answer]:
    """Yield ``work(item, check)`` of all items, in their order, a thread for each core.

    `work` has to call `check` now and then, as `simulate` calls its progress: where another item
    failed, or Ctrl-C was pressed, it ends the replay.
    """
    ended = Event()

    def check(_done: int, _total: int | None, _text: str = "", /) -> None:
        if ended.is_set():
            raise KeyboardInterrupt

    if cores() == 1:
        yield from (work(item, check) for item in items)
        return
    with ThreadPoolExecutor(cores()) as pool:
        try:
            yield from pool.map(lambda item: work(item, check), items)
        except BaseException:
            ended.set()
            raise

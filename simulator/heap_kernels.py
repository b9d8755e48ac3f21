"""Event queues of the compiled engines: heaps ordered by (time, key), lowest first.

Keys in a queue are all different, so that every correct heap gives the same order. A parent has
four children, which lie side by side: half as many levels as with two. There are two heaps:

- a plain heap, for items that are due once and then gone. Handling an event most often schedules
  one other. Taking the lowest therefore leaves a hole at the top, which the next `push` fills: an
  event that nothing comes before stays there, and chains of such events cost a few comparisons.
- an indexed heap, in which every item stands at most once and may be moved or taken out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from hopmap.compilation import subroutine
from hopmap.simulator.row_pointers import nth

ENTRY = np.dtype([("time", np.float64), ("key", np.int64), ("item", np.int64)])
# One row: entries, and whether the first of them is void.
COUNT = np.dtype([("size", np.int64), ("hole", np.int64)])
PLACE = np.dtype([("entry", np.int64)])  # of an item in the heap, plus 1; 0 if it is not due


class Heap(NamedTuple):
    """A plain heap: tables, or in compiled code the first record of each."""

    entries: Any
    count: Any


class IndexedHeap(NamedTuple):
    """When items 0..n-1 are due: tables, or in compiled code the first record of each."""

    entries: Any
    count: Any
    places: Any


def empty_heap(items: int) -> IndexedHeap:
    """Return an indexed heap for so many items, none of them due."""
    size = max(items, 1)
    return IndexedHeap(np.zeros(size, ENTRY), np.zeros(1, COUNT), np.zeros(size, PLACE))


def _sifting(write: Callable[..., None]) -> tuple[Callable[..., int], Callable[..., None]]:
    """Compile how entries move in a heap whose entries are written by `write`."""

    @subroutine
    def rise(heap: Any, at: int, time: float, key: int) -> int:
        """Move entries down from the free place `at` until an entry may stand there."""
        while at > 0:
            parent = (at - 1) >> 2
            above = nth(heap.entries, parent)
            if _precedes(above["time"], above["key"], time, key):
                break
            write(heap, at, above["item"], above["time"], above["key"])
            at = parent
        return at

    @subroutine
    def sink(heap: Any, at: int, item: int, time: float, key: int) -> None:
        """Put an entry at the free place `at` or below it."""
        size = heap.count["size"]
        child = 4 * at + 1
        while child < size:
            if child + 3 < size:
                low = _lower(heap, child, child + 1)
                low = _lower(heap, low, _lower(heap, child + 2, child + 3))
            else:
                low = child
                for other in range(child + 1, size):
                    low = _lower(heap, low, other)
            best = nth(heap.entries, low)
            if _precedes(time, key, best["time"], best["key"]):
                break
            write(heap, at, best["item"], best["time"], best["key"])
            at, child = low, 4 * low + 1
        write(heap, at, item, time, key)

    return rise, sink


@subroutine
def _lower(heap: Any, at: int, other: int) -> int:
    """Place of the lower of two entries."""
    one, two = nth(heap.entries, at), nth(heap.entries, other)
    return other if _precedes(two["time"], two["key"], one["time"], one["key"]) else at


@subroutine
def _precedes(time: float, key: int, other_time: float, other_key: int) -> bool:
    return (time < other_time) | ((time <= other_time) & (key < other_key))


@subroutine
def _write(heap: Heap, at: int, item: int, time: float, key: int) -> None:
    entry = nth(heap.entries, at)
    entry["time"] = time
    entry["key"] = key
    entry["item"] = item


@subroutine
def _write_indexed(heap: IndexedHeap, at: int, item: int, time: float, key: int) -> None:
    entry = nth(heap.entries, at)
    entry["time"] = time
    entry["key"] = key
    entry["item"] = item
    nth(heap.places, item)["entry"] = at + 1


_rise, _sink = _sifting(_write)
_rise_indexed, _sink_indexed = _sifting(_write_indexed)


@subroutine
def push(heap: Heap, item: int, time: float, key: int) -> None:
    """Make an item due."""
    count = heap.count
    if count["hole"]:
        count["hole"] = 0
        _sink(heap, 0, item, time, key)
        return
    at = count["size"]
    count["size"] = at + 1
    _write(heap, _rise(heap, at, time, key), item, time, key)


@subroutine
def close(heap: Heap) -> None:
    """Fill the hole at the top, if it is still there, with the last entry."""
    count = heap.count
    if count["hole"]:
        count["hole"] = 0
        last = count["size"] - 1
        count["size"] = last
        if last > 0:
            entry = nth(heap.entries, last)
            _sink(heap, 0, entry["item"], entry["time"], entry["key"])


@subroutine
def put(heap: IndexedHeap, item: int, time: float, key: int) -> None:
    """Make an item due, or move it."""
    at = nth(heap.places, item)["entry"] - 1
    if at < 0:
        at = heap.count["size"]
        heap.count["size"] = at + 1
    _sink_indexed(heap, _rise_indexed(heap, at, time, key), item, time, key)


@subroutine
def take(heap: IndexedHeap, item: int) -> None:
    """Take an item out."""
    place = nth(heap.places, item)
    at = place["entry"] - 1
    place["entry"] = 0
    last = heap.count["size"] - 1
    heap.count["size"] = last
    if at != last:
        entry = nth(heap.entries, last)
        moved, time, key = entry["item"], entry["time"], entry["key"]
        _sink_indexed(heap, _rise_indexed(heap, at, time, key), moved, time, key)

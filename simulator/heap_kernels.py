"""A queue in which every item stands at most once and may be moved: an indexed binary heap.

Lowest (time, key) first. Keys of items are all different, so that the order is total.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hopmap.compilation import njit
from hopmap.simulator.row_pointers import nth

ENTRY = np.dtype([("time", np.float64), ("key", np.int64), ("item", np.int64)])
PLACE = np.dtype([("entry", np.int64)])  # of an item in the heap, plus 1; 0 if it is not due
COUNT = np.dtype([("size", np.int64)])  # of the heap; one row


class IndexedHeap(NamedTuple):
    """When items 0..n-1 are due: tables, or in compiled code the first record of each."""

    entries: Any
    places: Any
    count: Any


def empty_heap(items: int) -> IndexedHeap:
    """Return a heap for so many items, none of them due."""
    size = max(items, 1)
    return IndexedHeap(np.zeros(size, ENTRY), np.zeros(size, PLACE), np.zeros(1, COUNT))


@njit
def put(heap: IndexedHeap, item: int, time: float, key: int) -> None:
    """Make an item due, or move it."""
    at = nth(heap.places, item)["entry"] - 1
    if at < 0:
        at = heap.count["size"]
        heap.count["size"] = at + 1
    _settle(heap, at, item, time, key)


@njit
def take(heap: IndexedHeap, item: int) -> None:
    """Take an item out."""
    place = nth(heap.places, item)
    at = place["entry"] - 1
    place["entry"] = 0
    last = heap.count["size"] - 1
    heap.count["size"] = last
    if at != last:
        moved = nth(heap.entries, last)
        _settle(heap, at, moved["item"], moved["time"], moved["key"])


@njit
def _settle(heap: IndexedHeap, at: int, item: int, time: float, key: int) -> None:
    """Write an entry where it belongs, above or below the free place `at`."""
    while at > 0:
        parent = (at - 1) >> 1
        above = nth(heap.entries, parent)
        if above["time"] < time or (above["time"] == time and above["key"] < key):
            break
        _write(heap, at, above["item"], above["time"], above["key"])
        at = parent
    size = heap.count["size"]
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        below = nth(heap.entries, child)
        if child + 1 < size:
            other = nth(heap.entries, child + 1)
            if other["time"] < below["time"] or (
                other["time"] == below["time"] and other["key"] < below["key"]
            ):
                below = other
                child += 1
        if time < below["time"] or (time == below["time"] and key < below["key"]):
            break
        _write(heap, at, below["item"], below["time"], below["key"])
        at = child
    _write(heap, at, item, time, key)


@njit
def _write(heap: IndexedHeap, at: int, item: int, time: float, key: int) -> None:
    entry = nth(heap.entries, at)
    entry["time"] = time
    entry["key"] = key
    entry["item"] = item
    nth(heap.places, item)["entry"] = at + 1

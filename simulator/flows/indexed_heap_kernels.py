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


class Schedule(NamedTuple):
    """When items 0..n-1 are due: tables, or in compiled code the first record of each."""

    entries: Any
    places: Any
    count: Any


def empty_schedule(items: int) -> Schedule:
    """Return a schedule for so many items, none of them due."""
    size = max(items, 1)
    return Schedule(np.zeros(size, ENTRY), np.zeros(size, PLACE), np.zeros(1, COUNT))


@njit
def put(schedule: Schedule, item: int, time: float, key: int) -> None:
    """Make an item due, or move it."""
    at = nth(schedule.places, item)["entry"] - 1
    if at < 0:
        at = schedule.count["size"]
        schedule.count["size"] = at + 1
    _settle(schedule, at, item, time, key)


@njit
def take(schedule: Schedule, item: int) -> None:
    """Take an item out."""
    place = nth(schedule.places, item)
    at = place["entry"] - 1
    place["entry"] = 0
    last = schedule.count["size"] - 1
    schedule.count["size"] = last
    if at != last:
        moved = nth(schedule.entries, last)
        _settle(schedule, at, moved["item"], moved["time"], moved["key"])


@njit
def _settle(schedule: Schedule, at: int, item: int, time: float, key: int) -> None:
    """Write an entry where it belongs, above or below the free place `at`."""
    while at > 0:
        parent = (at - 1) >> 1
        above = nth(schedule.entries, parent)
        if above["time"] < time or (above["time"] == time and above["key"] < key):
            break
        _write(schedule, at, above["item"], above["time"], above["key"])
        at = parent
    size = schedule.count["size"]
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        below = nth(schedule.entries, child)
        if child + 1 < size:
            other = nth(schedule.entries, child + 1)
            if other["time"] < below["time"] or (
                other["time"] == below["time"] and other["key"] < below["key"]
            ):
                below = other
                child += 1
        if time < below["time"] or (time == below["time"] and key < below["key"]):
            break
        _write(schedule, at, below["item"], below["time"], below["key"])
        at = child
    _write(schedule, at, item, time, key)


@njit
def _write(schedule: Schedule, at: int, item: int, time: float, key: int) -> None:
    entry = nth(schedule.entries, at)
    entry["time"] = time
    entry["key"] = key
    entry["item"] = item
    nth(schedule.places, item)["entry"] = at + 1

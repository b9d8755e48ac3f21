"""A queue in which every item stands at most once and may be moved: an indexed binary heap.

Lowest (time, key) first. Keys of items are all different, so that the order is total.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray


class Schedule(NamedTuple):
    """Items 0..n-1 and when they are due.

    Attributes
    ----------
    time : ndarray(float64, shape=(n,))
    key, item : ndarray(int64, shape=(n,))
        The heap: entries 0..size-1.
    place : ndarray(int64, shape=(n,))
        Entry of each item, plus 1; 0 for an item that is not due.
    size : ndarray(int64, shape=(1,))
    """

    time: NDArray[np.float64]
    key: NDArray[np.int64]
    item: NDArray[np.int64]
    place: NDArray[np.int64]
    size: NDArray[np.int64]


def empty_schedule(items: int) -> Schedule:
    """Return a schedule for so many items, none of them due."""
    time = np.empty(items, dtype=np.float64)
    key, item = (np.empty(items, dtype=np.int64) for _ in range(2))
    return Schedule(time, key, item, np.zeros(items, np.int64), np.zeros(1, np.int64))


@njit(cache=True)
def put(schedule: Schedule, item: int, time: float, key: int) -> None:
    """Make an item due, or move it."""
    at = schedule.place[item] - 1
    if at < 0:
        at = schedule.size[0]
        schedule.size[0] = at + 1
    _settle(schedule, at, item, time, key)


@njit(cache=True)
def take(schedule: Schedule, item: int) -> None:
    """Take an item out."""
    at = schedule.place[item] - 1
    schedule.place[item] = 0
    last = schedule.size[0] - 1
    schedule.size[0] = last
    if at != last:
        _settle(schedule, at, schedule.item[last], schedule.time[last], schedule.key[last])


@njit(cache=True)
def _settle(schedule: Schedule, at: int, item: int, time: float, key: int) -> None:
    """Write an entry where it belongs, above or below the free place `at`."""
    times, keys = schedule.time, schedule.key
    while at > 0:
        above = (at - 1) // 2
        if times[above] < time or (times[above] == time and keys[above] < key):
            break
        _move(schedule, above, at)
        at = above
    size = schedule.size[0]
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        right = below + 1
        if right < size and (
            times[right] < times[below]
            or (times[right] == times[below] and keys[right] < keys[below])
        ):
            below = right
        if time < times[below] or (time == times[below] and key < keys[below]):
            break
        _move(schedule, below, at)
        at = below
    times[at], keys[at], schedule.item[at] = time, key, item
    schedule.place[item] = at + 1


@njit(cache=True)
def _move(schedule: Schedule, source: int, target: int) -> None:
    item = schedule.item[source]
    schedule.time[target] = schedule.time[source]
    schedule.key[target] = schedule.key[source]
    schedule.item[target] = item
    schedule.place[item] = target + 1

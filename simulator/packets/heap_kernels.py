"""The event queue of the compiled engine: a heap ordered by (time, key), lowest first.

Handling an event most often schedules one other. Taking the lowest therefore leaves a hole at the
top, which the next `push` fills: an event that nothing comes before stays there, and chains of such
events cost a few comparisons. Keys in the queue are all different, so that every correct heap
gives the same order.
"""

from __future__ import annotations

from typing import Any

from hopmap.compilation import njit
from hopmap.simulator.row_pointers import nth

WAYS = 2  # children of an entry: a flat heap, whose children share a cache line or two


@njit(cache=False)
def push(heap: Any, loop: Any, time: float, key: int, slot: int) -> None:
    """Schedule an event."""
    if loop["hole"]:
        loop["hole"] = 0
        _sink(heap, loop["queued"], time, key, slot)
        return
    place = loop["queued"]
    loop["queued"] = place + 1
    while place > 0:
        parent = (place - 1) >> 1
        above = nth(heap, parent)
        if _precedes(above["time"], above["key"], time, key):
            break
        _put(nth(heap, place), above["time"], above["key"], above["slot"])
        place = parent
    _put(nth(heap, place), time, key, slot)


@njit(cache=False)
def close(heap: Any, loop: Any) -> None:
    """Fill the hole at the top, if it is still there, with the last entry."""
    if loop["hole"]:
        loop["hole"] = 0
        last = loop["queued"] - 1
        loop["queued"] = last
        if last > 0:
            entry = nth(heap, last)
            _sink(heap, last, entry["time"], entry["key"], entry["slot"])


@njit(cache=False)
def _sink(heap: Any, size: int, time: float, key: int, slot: int) -> None:
    """Put an entry at the top and move it down to its place."""
    place, child = 0, 1
    while child < size:
        best = nth(heap, child)
        if child + 1 < size:
            other = nth(heap, child + 1)
            child += _precedes(other["time"], other["key"], best["time"], best["key"])
            best = nth(heap, child)
        if time < best["time"] or (time == best["time"] and key < best["key"]):
            break
        _put(nth(heap, place), best["time"], best["key"], best["slot"])
        place, child = child, 2 * child + 1
    _put(nth(heap, place), time, key, slot)


@njit(cache=False)
def _precedes(time: float, key: int, other_time: float, other_key: int) -> bool:
    return (time < other_time) | ((time == other_time) & (key < other_key))


@njit(cache=False)
def _put(entry: Any, time: float, key: int, slot: int) -> None:
    entry["time"] = time
    entry["key"] = key
    entry["slot"] = slot

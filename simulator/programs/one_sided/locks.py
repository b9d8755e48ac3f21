"""Locks: from where one is asked for to where it is released."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.traces import Kind, Trace
from hopmap.traces.trace import Lock

from .records import OneSidedRecords, key_of

Ints = NDArray[np.int64]


class Locks(NamedTuple):
    """Locks of single ranks' memory.

    Attributes
    ----------
    asked, granted, released : ndarray(int64)
        Events where the origin asks, waits and releases; the trace's number of events where it
        never does.
    origin, target, window : ndarray(int64)
    exclusive : ndarray(bool)
    """

    asked: Ints
    granted: Ints
    released: Ints
    origin: Ints
    target: Ints
    window: Ints
    exclusive: NDArray[np.bool_]

    def at(self, which: NDArray[np.bool_] | Ints) -> Locks:
        """Keep some, in this order."""
        columns: Iterator[Any] = (column[which] for column in self)
        return Locks(*columns)

    def contested(self) -> NDArray[np.bool_]:
        """Which are of memory that somebody locks exclusively."""
        memory = key_of(self.window, self.target)
        return np.isin(memory, memory[self.exclusive])

    def turns(self, trace: Trace) -> tuple[Locks, Ints]:
        """Sort by memory and release; return also the turn of each, which shared ones share."""
        released = np.append(trace.time, np.inf)[self.released]
        memory = key_of(self.window, self.target)
        order = np.lexsort((self.released, released, memory))
        sorted_, memory = self.at(order), memory[order]
        new = np.ones(len(order), dtype=np.bool_)
        alone = sorted_.exclusive
        new[1:] = (memory[1:] != memory[:-1]) | alone[1:] | alone[:-1]
        return sorted_, np.cumsum(new) - 1


def locks_of(trace: Trace, found: OneSidedRecords) -> Locks:
    """Pair the requests for locks with their releases.

    A lock that was never released is kept until the end.
    """
    kinds = (Kind.RMA_REQUEST_LOCK, Kind.RMA_ACQUIRE_LOCK, Kind.RMA_RELEASE_LOCK)
    told = found.of(*kinds)
    told = told.at(told.peer >= 0)
    key = key_of(told.rank, told.window, told.peer, told.number)
    order = np.lexsort((told.event, key))
    told, key = told.at(order), key[order]
    frees = told.kind == Kind.RMA_RELEASE_LOCK
    begins = ~frees
    begins[1:] &= frees[:-1] | (key[1:] != key[:-1])
    first = np.flatnonzero(begins)
    # What follows a begin, up to the release, is of the same lock.
    behind = np.append(first[1:], len(told.event))
    frees_at = np.append(np.flatnonzero(frees), len(told.event))
    free = frees_at[np.searchsorted(frees_at, first)]
    ends = (free < behind) & (np.append(key, -1)[free] == key[first])
    last = np.where(ends, free, behind) - 1
    return Locks(
        asked=told.event[first],
        granted=told.event[last],
        released=np.where(ends, np.append(told.event, 0)[free], trace.events),
        origin=told.rank[first],
        target=told.peer[first],
        window=told.window[first],
        exclusive=told.operation[first] == Lock.EXCLUSIVE,
    )

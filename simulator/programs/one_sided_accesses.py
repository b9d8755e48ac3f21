"""One-sided records of a trace: what origins ask of memory, where it is complete, and locks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.arrays import Bools, Ints
from hopmap.traces import Kind, Trace, TraceError, mpi_name
from hopmap.traces.trace import Lock

from .mpi_calls import Calls
from .program import numbered

_FIRST = Kind.RMA_WIN_CREATE


class OneSidedRecords(NamedTuple):
    """One-sided records in the order of the trace, one entry each; columns as `Records` has them.

    `call` is the name of the call that a record stands in, "win_fence"; empty outside of any.
    """

    event: Ints
    kind: Ints
    rank: Ints
    window: Ints
    peer: Ints
    size: Ints
    received: Ints
    number: Ints
    operation: Ints
    call: NDArray[np.str_]

    def at(self, which: Bools | Ints) -> OneSidedRecords:
        """Keep some, in this order."""
        columns: Iterator[Any] = (column[which] for column in self)
        return OneSidedRecords(*columns)

    def of(self, *kinds: Kind) -> OneSidedRecords:
        """Keep those of some kinds."""
        return self.at(np.isin(self.kind, kinds))


def has_one_sided(trace: Trace) -> bool:
    """Whether there is a one-sided record."""
    return bool((trace.kind >= _FIRST).any())


def one_sided_records(trace: Trace, calls: Calls) -> OneSidedRecords:
    """List the one-sided records of a trace."""
    event = np.flatnonzero(trace.kind >= _FIRST)
    row, records = trace.ref[event], trace.records
    first = calls.first[calls.of_event[event]]
    names = np.array([*map(mpi_name, trace.regions), ""])
    region = np.where(trace.kind[first] == Kind.ENTER, trace.ref[first], -1)
    found = OneSidedRecords(
        event=event,
        kind=trace.kind[event].astype(np.int64),
        rank=np.searchsorted(trace.offsets, event, side="right") - 1,
        window=records.tag[row].astype(np.int64),
        peer=records.peer[row].astype(np.int64),
        size=records.size[row],
        received=records.received[row],
        number=records.request[row],
        operation=records.operation[row].astype(np.int64),
        call=names[region],
    )
    moves = (found.kind >= Kind.RMA_PUT) & (found.kind <= Kind.RMA_ATOMIC)
    bad = np.flatnonzero(moves & ((found.peer < 0) | (found.peer >= trace.ranks)))
    if bad.size:
        at, rank = event[bad[0]], found.rank[bad[0]]
        raise TraceError(
            f"{trace.name}: rank {rank}, event {at - trace.offsets[rank]}: target "
            f"{found.peer[bad[0]]}: expected a rank below {trace.ranks}"
        )
    return found


def key_of(*columns: Ints) -> Ints:
    """Return numbers from 0 for what has the same entries in all columns."""
    key = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        label = numbered(column)[1]
        key = numbered(key * (int(label.max(initial=0)) + 1) + label)[1]
    return key


def next_event(of: tuple[Ints, ...], among: tuple[Ints, ...], none: int) -> Ints:
    """Event that follows each event, of those with the same keys; `none` where there is none.

    Parameters
    ----------
    of, among : tuple of ndarray(int64)
        Columns of keys, and last the events, which are below `none`.
    """
    count = len(of[0])
    key = key_of(*(np.concatenate(both) for both in zip(of[:-1], among[:-1], strict=True)))
    sought = key[:count] * (none + 1) + of[-1]
    given = np.append(np.sort(key[count:] * (none + 1) + among[-1]), np.iinfo(np.int64).max)
    at = given[np.searchsorted(given, sought, side="right")]
    return np.where(at // (none + 1) == key[:count], at % (none + 1), none)


class Accesses(NamedTuple):
    """Operations of origins, in the order of the trace; its number of events means "nowhere"."""

    event: Ints
    origin: Ints
    target: Ints
    window: Ints
    size: Ints  # bytes to the target
    back: Ints  # bytes from it; -1 where no message comes back
    # here, there: events where the operation is complete at the origin, and at the target
    here: Ints
    there: Ints

    def acknowledged(self, events: int) -> Bools:
        """Which are the last of those without an answer that are awaited at a target at once."""
        waits = np.flatnonzero((self.back < 0) & (self.there < events))
        group = key_of(self.there[waits], self.target[waits])
        last = np.zeros(len(self.event), dtype=np.bool_)
        latest = np.full(int(group.max(initial=-1)) + 1, -1)
        np.maximum.at(latest, group, waits)
        last[latest] = True
        return last


def accesses_of(trace: Trace, found: OneSidedRecords) -> Accesses:
    """List puts, gets and atomic operations, with where they are complete."""
    moves = found.of(Kind.RMA_PUT, Kind.RMA_GET, Kind.RMA_ATOMIC)
    gets, atomic = moves.kind == Kind.RMA_GET, moves.kind == Kind.RMA_ATOMIC
    back = np.where(gets, moves.size, np.where(atomic & (moves.received > 0), moves.received, -1))
    here = _completed(
        trace, moves, found, Kind.RMA_OP_COMPLETE_BLOCKING, Kind.RMA_OP_COMPLETE_NON_BLOCKING
    )
    there = np.minimum(
        _completed(trace, moves, found, Kind.RMA_OP_COMPLETE_REMOTE),
        _synchronised(trace, moves, found),
    )
    return Accesses(
        event=moves.event,
        origin=moves.rank,
        target=moves.peer,
        window=moves.window,
        size=np.where(gets, 0, moves.size),
        back=back,
        here=np.minimum(here, there),
        there=there,
    )


def _completed(trace: Trace, moves: OneSidedRecords, found: OneSidedRecords, *kinds: Kind) -> Ints:
    """Next record of these kinds with the number of an operation."""
    ends = found.of(*kinds)
    of = (moves.rank, moves.window, moves.number, moves.event)
    return next_event(of, (ends.rank, ends.window, ends.number, ends.event), trace.events)


def _synchronised(trace: Trace, moves: OneSidedRecords, found: OneSidedRecords) -> Ints:
    """Next call that completes all operations of a rank on a window, or all on a target."""
    whole = found.at(
        (found.kind == Kind.RMA_COLLECTIVE_END)
        | ((found.kind == Kind.RMA_GROUP_SYNC) & (found.call == "win_complete"))
        | ((found.kind == Kind.RMA_RELEASE_LOCK) & (found.peer < 0))
    )
    frees = found.of(Kind.RMA_RELEASE_LOCK)
    every, each = (moves.rank, moves.window), (moves.peer, moves.event)
    return np.minimum(
        next_event((*every, moves.event), (whole.rank, whole.window, whole.event), trace.events),
        next_event(
            (*every, *each), (frees.rank, frees.window, frees.peer, frees.event), trace.events
        ),
    )


class Locks(NamedTuple):
    """Locks of single ranks' memory."""

    # asked, granted, released: events where the origin asks, waits and releases; the trace's number
    # of events where it never does
    asked: Ints
    granted: Ints
    released: Ints
    origin: Ints
    target: Ints
    window: Ints
    exclusive: Bools

    def at(self, which: Bools | Ints) -> Locks:
        """Keep some, in this order."""
        columns: Iterator[Any] = (column[which] for column in self)
        return Locks(*columns)

    def contested(self) -> Bools:
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

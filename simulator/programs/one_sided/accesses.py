"""What origins ask of memory, and where that is complete."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.traces import Kind, Trace

from .records import OneSidedRecords, key_of, next_event

Ints = NDArray[np.int64]


class Accesses(NamedTuple):
    """Operations of origins, in the order of the trace; its number of events stands for "nowhere".

    Attributes
    ----------
    event, origin, target, window : ndarray(int64)
    size : ndarray(int64)
        Bytes to the target.
    back : ndarray(int64)
        Bytes from it; -1 where no message comes back.
    here, there : ndarray(int64)
        Events where the operation is complete at the origin, and at the target.
    """

    event: Ints
    origin: Ints
    target: Ints
    window: Ints
    size: Ints
    back: Ints
    here: Ints
    there: Ints

    def acknowledged(self, events: int) -> NDArray[np.bool_]:
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

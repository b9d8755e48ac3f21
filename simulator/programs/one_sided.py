"""One-sided operations of a trace: where they are complete, locks, and all as rows of a program."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.arrays import Bools, Ints
from hopmap.traces import Kind, Trace, TraceError, mpi_name
from hopmap.traces.summary import Omission
from hopmap.traces.trace import Lock, Sync

from .mpi_calls import Calls, SendMode, expect_ranks
from .operation_rows import POST_RECEIVES, POST_SENDS, REST, Rows, rows_of
from .program import Op, number_keys

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
        """Keep records of some kinds."""
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
    expect_ranks(trace, event[moves], found.peer[moves], "target")
    return found


def key_of(*columns: Ints) -> Ints:
    """Return numbers from 0 for what has the same entries in all columns."""
    key = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        label = number_keys(column)[1]
        key = number_keys(key * (int(label.max(initial=0)) + 1) + label)[1]
    return key


def next_event(of: tuple[Ints, ...], among: tuple[Ints, ...], none: int) -> Ints:
    """Event that follows each event, of those with the same keys; `none` where there is none.

    Both tuples are columns of keys, and last the events, which are below `none`.
    """
    count = len(of[0])
    key = key_of(*(np.concatenate(both) for both in zip(of[:-1], among[:-1], strict=True)))
    sought = key[:count] * (none + 1) + of[-1]
    present = np.append(np.sort(key[count:] * (none + 1) + among[-1]), np.iinfo(np.int64).max)
    at = present[np.searchsorted(present, sought, side="right")]
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

    def need_answer(self, events: int) -> Bools:
        """Which are the last of those without an answer that are awaited at a target at once."""
        waits = np.flatnonzero((self.back < 0) & (self.there < events))
        group = key_of(self.there[waits], self.target[waits])
        last = np.zeros(len(self.event), dtype=np.bool_)
        latest = np.full(int(group.max(initial=-1)) + 1, -1)
        np.maximum.at(latest, group, waits)
        last[latest] = True
        return last


def accesses_of(trace: Trace, records: OneSidedRecords) -> Accesses:
    """List puts, gets and atomic operations, with where they are complete."""
    moves = records.of(Kind.RMA_PUT, Kind.RMA_GET, Kind.RMA_ATOMIC)
    gets, atomic = moves.kind == Kind.RMA_GET, moves.kind == Kind.RMA_ATOMIC
    back = np.where(gets, moves.size, np.where(atomic & (moves.received > 0), moves.received, -1))
    here = _completion(
        trace, moves, records, Kind.RMA_OP_COMPLETE_BLOCKING, Kind.RMA_OP_COMPLETE_NON_BLOCKING
    )
    there = np.minimum(
        _completion(trace, moves, records, Kind.RMA_OP_COMPLETE_REMOTE),
        _sync_call(trace, moves, records),
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


def _completion(trace: Trace, moves: OneSidedRecords, every: OneSidedRecords, *kinds: Kind) -> Ints:
    """Next record of these kinds with the number of an operation."""
    ends = every.of(*kinds)
    of = (moves.rank, moves.window, moves.number, moves.event)
    return next_event(of, (ends.rank, ends.window, ends.number, ends.event), trace.events)


def _sync_call(trace: Trace, moves: OneSidedRecords, records: OneSidedRecords) -> Ints:
    """Next call that completes all operations of a rank on a window, or all on a target."""
    whole = records.at(
        (records.kind == Kind.RMA_COLLECTIVE_END)
        | ((records.kind == Kind.RMA_GROUP_SYNC) & (records.call == "win_complete"))
        | ((records.kind == Kind.RMA_RELEASE_LOCK) & (records.peer < 0))
    )
    frees = records.of(Kind.RMA_RELEASE_LOCK)
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
    requested: Ints
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

    def are_contested(self) -> Bools:
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


def locks_of(trace: Trace, synced: OneSidedRecords) -> Locks:
    """Pair the requests for locks with their releases.

    A lock that was never released is kept until the end.
    """
    kinds = (Kind.RMA_REQUEST_LOCK, Kind.RMA_ACQUIRE_LOCK, Kind.RMA_RELEASE_LOCK)
    records = synced.of(*kinds)
    records = records.at(records.peer >= 0)
    key = key_of(records.rank, records.window, records.peer, records.number)
    order = np.lexsort((records.event, key))
    records, key = records.at(order), key[order]
    frees = records.kind == Kind.RMA_RELEASE_LOCK
    begins = ~frees
    begins[1:] &= frees[:-1] | (key[1:] != key[:-1])
    first = np.flatnonzero(begins)
    # What follows a begin, up to the release, is of the same lock.
    behind = np.append(first[1:], len(records.event))
    frees_at = np.append(np.flatnonzero(frees), len(records.event))
    free = frees_at[np.searchsorted(frees_at, first)]
    ends = (free < behind) & (np.append(key, -1)[free] == key[first])
    last = np.where(ends, free, behind) - 1
    return Locks(
        requested=records.event[first],
        granted=records.event[last],
        released=np.where(ends, np.append(records.event, 0)[free], trace.events),
        origin=records.rank[first],
        target=records.peer[first],
        window=records.window[first],
        exclusive=records.operation[first] == Lock.EXCLUSIVE,
    )


# Tags of the messages of a window.
TO_MEMORY, FROM_MEMORY, ASKS, GRANTS, RELEASES, EXPOSES, CLOSES = range(7)


class OneSided(NamedTuple):
    """What one-sided operations become."""

    rows: Rows  # the task of a row is -1, or an entry of `served`
    served: Ints  # rank whose memory each further task serves
    omitted: tuple[Omission, ...]


def one_sided_rows(trace: Trace, calls: Calls) -> OneSided:
    """Lower the one-sided records of a trace."""
    listed = _Listed()
    if not has_one_sided(trace):
        return OneSided(listed.rows(), np.zeros(0, dtype=np.int64), ())
    found = one_sided_records(trace, calls)
    locks = locks_of(trace, found)
    contested = locks.are_contested()
    accesses = _with_locks(accesses_of(trace, found), locks.at(~contested), trace.events)
    served = _serve(listed, trace, accesses)
    served = np.concatenate((served, _serve_locks(listed, trace, locks.at(contested), len(served))))
    strange = _synchronise(listed, trace, found)
    first = np.append(0, calls.finish + 1)[served]
    silent = served[first == calls.finish[served]]
    if silent.size:
        raise TraceError(f"{trace.name}: rank {silent[0]} has no calls: expected calls of a window")
    begin = calls.first[first]
    listed.add(begin, POST_RECEIVES, Op.START, target=np.arange(len(served)))
    rows = listed.rows()
    inside = rows.task >= 0
    rows.event[inside] = begin[rows.task[inside]]
    counted = {
        "one-sided operations that nothing completes: not waited for": int(
            (accesses.here == trace.events).sum()
        ),
        "locks that are never released": int((locks.released == trace.events).sum()),
        "locks that are tried, and waits for a change of memory: left out": int(
            np.isin(found.kind, (Kind.RMA_TRY_LOCK, Kind.RMA_WAIT_CHANGE)).sum()
        ),
        "groups synchronised outside of MPI_Win_start, post, complete and wait": strange,
    }
    omitted = (Omission(what, count) for what, count in counted.items() if count)
    return OneSided(rows, served, tuple(omitted))


class _Listed:
    """Rows under construction; the target of a WAIT is its row's place here."""

    def __init__(self) -> None:
        self.parts: list[Rows] = []
        self.count = 0
        self.add(np.zeros(0, dtype=np.int64), REST, Op.WAIT)

    def add(self, event: Ints, phase: Any, kind: Any, **columns: Any) -> Ints:
        """List rows; return their places."""
        self.parts.append(rows_of(event, phase, kind, **columns))
        self.count += len(event)
        return self.count - len(event) + np.arange(len(event))

    def rows(self) -> Rows:
        return Rows(*map(np.concatenate, zip(*self.parts, strict=True)))


def _with_locks(accesses: Accesses, shared: Locks, nowhere: int) -> Accesses:
    """Add locks without contention: they are like gets of nothing."""
    none = np.zeros_like(shared.requested)
    more = Accesses(
        event=shared.requested,
        origin=shared.origin,
        target=shared.target,
        window=shared.window,
        size=none,
        back=none,
        here=shared.granted,
        there=none + nowhere,
    )
    both = Accesses(*map(np.concatenate, zip(accesses, more, strict=True)))
    order = np.argsort(both.event, kind="stable")
    return Accesses(*(column[order] for column in both))


def _serve(listed: _Listed, trace: Trace, of: Accesses) -> Ints:
    """List what origins do, and what serves them; return the ranks that are served."""
    acknowledged = of.need_answer(trace.events)
    answers = (of.back >= 0) | acknowledged
    size = np.maximum(of.back, 0)
    context = of.window + 2 * len(trace.communicators)
    out = {"peer": of.target, "context": context}
    of_answer = {key: column[answers] for key, column in out.items()}
    # No rank handles an acknowledgement; data that come back are a message's.
    mode = np.where(of.back >= 0, SendMode.STANDARD, SendMode.HARDWARE)[answers]
    posted = np.full(len(of.event), -1)
    posted[answers] = listed.add(
        *(of.event[answers], POST_RECEIVES, Op.IRECV),
        **of_answer,
        tag=FROM_MEMORY,
        size=size[answers],
        mode=mode,
    )
    sent = listed.add(
        *(of.event, POST_SENDS, Op.ISEND), **out, tag=TO_MEMORY, size=of.size, mode=SendMode.PUT
    )
    ends = of.here < trace.events
    listed.add(of.here[ends], REST, Op.WAIT, target=np.where(of.back < 0, sent, posted)[ends])
    listed.add(of.there[acknowledged], REST, Op.WAIT, target=posted[acknowledged])

    pair, task = np.unique(of.target * trace.ranks + of.origin, return_inverse=True)
    # The origin's order, and of each operation the message before the answer.
    turn = np.repeat([0, 1], [len(of.event), int(answers.sum())])
    which = np.concatenate((np.arange(len(of.event)), np.flatnonzero(answers)))
    order = np.lexsort((turn, which, task[which]))
    turn, which = turn[order], which[order]
    takes = turn == 0
    listed.add(
        *(of.event[which], REST, np.where(takes, Op.RECV, Op.ISEND)),
        task=task[which],
        peer=of.origin[which],
        context=context[which],
        tag=np.where(takes, TO_MEMORY, FROM_MEMORY),
        size=np.where(takes, of.size[which], size[which]),
        mode=SendMode.HARDWARE,
    )
    served: Ints = pair // trace.ranks
    return served


def _serve_locks(listed: _Listed, trace: Trace, locks: Locks, tasks: int) -> Ints:
    """List the same of memory that is locked exclusively; its tasks come behind so many."""
    locks, turn = locks.turns(trace)
    context = locks.window + 2 * len(trace.communicators)
    out = {"peer": locks.target, "context": context}
    granted = listed.add(locks.requested, POST_RECEIVES, Op.IRECV, **out, tag=GRANTS)
    listed.add(locks.requested, POST_SENDS, Op.ISEND, **out, tag=ASKS, mode=SendMode.PUT)
    listed.add(locks.granted, REST, Op.WAIT, target=granted)
    free = locks.released < trace.events
    of_free = {key: column[free] for key, column in out.items()}
    listed.add(locks.released[free], REST, Op.ISEND, **of_free, tag=RELEASES, mode=SendMode.PUT)
    memory, task = np.unique(locks.target + trace.ranks * locks.window, return_inverse=True)
    # All of a turn are asked for, then granted, then released.
    step = np.repeat(np.arange(4), len(locks.requested))
    which = np.tile(np.arange(len(locks.requested)), 4)
    keep = (step < 3) | free[which]
    step, which = step[keep], which[keep]
    order = np.lexsort((step, which, np.array([0, 1, 1, 2])[step], turn[which]))
    step, which = step[order], which[order]
    kind = np.array([Op.IRECV, Op.WAIT, Op.ISEND, Op.RECV])[step]
    places = np.empty(len(locks.requested), dtype=np.int64)
    places[which[step == 0]] = listed.count + np.flatnonzero(step == 0)
    waits = step == 1
    listed.add(
        *(locks.requested[which], REST, kind),
        task=tasks + task[which],
        peer=np.where(waits, -1, locks.origin[which]),
        tag=np.array([ASKS, -1, GRANTS, RELEASES])[step],
        context=np.where(waits, -1, context[which]),
        target=np.where(waits, places[which], -1),
        mode=np.where(waits, SendMode.STANDARD, SendMode.HARDWARE),
    )
    served: Ints = memory % trace.ranks
    return served


def _synchronise(listed: _Listed, trace: Trace, records: OneSidedRecords) -> int:
    """List the notices of groups; return how many records are of none of the calls."""
    records = records.of(Kind.RMA_GROUP_SYNC)
    records = records.at(records.operation != Sync.NONE)
    sizes = np.array([len(members) for members in trace.groups], dtype=np.int64)
    strange = 0
    for call in np.unique(records.call):
        these = records.at(records.call == call)
        each = np.repeat(np.arange(len(these.event)), sizes[these.size])
        members = [trace.groups[group] for group in these.size]
        peer = np.concatenate([np.zeros(0, dtype=np.int64), *members])
        tag = EXPOSES if call in ("win_start", "win_post") else CLOSES
        context = these.window[each] + 2 * len(trace.communicators)
        about = {"peer": peer, "context": context, "tag": tag, "mode": SendMode.PUT}
        event = these.event[each]
        if call in ("win_post", "win_complete"):
            listed.add(event, REST, Op.ISEND, **about)
        elif call in ("win_start", "win_wait", "win_test"):
            posted = listed.add(event, POST_RECEIVES, Op.IRECV, **about)
            listed.add(event, REST, Op.WAIT, target=posted)
        else:
            strange += len(these.event)
    return strange

"""One-sided operations as rows of a program."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hopmap.arrays import Ints
from hopmap.traces import Kind, Trace, TraceError
from hopmap.traces.omissions import LeftOut
from hopmap.traces.trace import Sync

from .mpi_calls import Calls, SendMode
from .one_sided_accesses import (
    Accesses,
    Locks,
    OneSidedRecords,
    accesses_of,
    has_one_sided,
    locks_of,
    one_sided_records,
)
from .operation_rows import POST_RECEIVES, POST_SENDS, REST, Rows
from .program import Op

# Tags of the messages of a window.
TO_MEMORY, FROM_MEMORY, ASKS, GRANTS, RELEASES, EXPOSES, CLOSES = range(7)


class OneSided(NamedTuple):
    """What one-sided operations become."""

    rows: Rows  # the task of a row is -1, or an entry of `served`
    served: Ints  # rank whose memory each further task serves
    left_out: tuple[LeftOut, ...]


def one_sided_rows(trace: Trace, calls: Calls) -> OneSided:
    """Lower the one-sided records of a trace."""
    listed = _Listed()
    if not has_one_sided(trace):
        return OneSided(listed.rows(), np.zeros(0, dtype=np.int64), ())
    found = one_sided_records(trace, calls)
    locks = locks_of(trace, found)
    contested = locks.contested()
    accesses = _with_locks(accesses_of(trace, found), locks.at(~contested), trace.events)
    served = _serve(listed, trace, accesses)
    served = np.concatenate((served, _serve_locks(listed, trace, locks.at(contested), len(served))))
    strange = _synchronise(listed, trace, found)
    first = np.append(0, calls.finish + 1)[served]
    silent = served[first == calls.finish[served]]
    if silent.size:
        raise TraceError(f"{trace.name}: rank {silent[0]} has no calls: expected those of a window")
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
    left_out = (LeftOut(what, count) for what, count in counted.items() if count)
    return OneSided(rows, served, tuple(left_out))


class _Listed:
    """Rows under construction; the target of a WAIT is its row's place here."""

    def __init__(self) -> None:
        self.parts: list[Rows] = []
        self.count = 0
        self.add(np.zeros(0, dtype=np.int64), REST, Op.WAIT)

    def add(self, event: Ints, phase: Any, kind: Any, **columns: Any) -> Ints:
        """List rows; return their places."""
        given: dict[str, Any] = dict.fromkeys(Rows._fields, -1)
        given |= {"size": 0, "mode": SendMode.STANDARD, "event": event, "phase": phase}
        given |= {"kind": kind} | columns
        wide = {
            key: np.broadcast_to(np.asarray(values, dtype=np.int64), len(event)).copy()
            for key, values in given.items()
        }
        self.parts.append(Rows(**wide | {"mode": wide["mode"].astype(np.uint8)}))  # type: ignore[arg-type]
        self.count += len(event)
        return self.count - len(event) + np.arange(len(event))

    def rows(self) -> Rows:
        return Rows(*map(np.concatenate, zip(*self.parts, strict=True)))


def _with_locks(accesses: Accesses, shared: Locks, nowhere: int) -> Accesses:
    """Add locks that nobody excludes: they are like gets of nothing."""
    none = np.zeros_like(shared.asked)
    more = Accesses(
        event=shared.asked,
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
    acknowledged = of.acknowledged(trace.events)
    answers = (of.back >= 0) | acknowledged
    size = np.maximum(of.back, 0)
    context = of.window + 2 * len(trace.communicators)
    out = {"peer": of.target, "context": context}
    of_answer = {key: column[answers] for key, column in out.items()}
    # Nobody handles an acknowledgement; data that come back are a message's.
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
    granted = listed.add(locks.asked, POST_RECEIVES, Op.IRECV, **out, tag=GRANTS)
    listed.add(locks.asked, POST_SENDS, Op.ISEND, **out, tag=ASKS, mode=SendMode.PUT)
    listed.add(locks.granted, REST, Op.WAIT, target=granted)
    free = locks.released < trace.events
    of_free = {key: column[free] for key, column in out.items()}
    listed.add(locks.released[free], REST, Op.ISEND, **of_free, tag=RELEASES, mode=SendMode.PUT)
    memory, task = np.unique(locks.target + trace.ranks * locks.window, return_inverse=True)
    # All of a turn are asked for, then granted, then released.
    step = np.repeat(np.arange(4), len(locks.asked))
    which = np.tile(np.arange(len(locks.asked)), 4)
    keep = (step < 3) | free[which]
    step, which = step[keep], which[keep]
    order = np.lexsort((step, which, np.array([0, 1, 1, 2])[step], turn[which]))
    step, which = step[order], which[order]
    kind = np.array([Op.IRECV, Op.WAIT, Op.ISEND, Op.RECV])[step]
    places = np.empty(len(locks.asked), dtype=np.int64)
    places[which[step == 0]] = listed.count + np.flatnonzero(step == 0)
    waits = step == 1
    listed.add(
        *(locks.asked[which], REST, kind),
        task=tasks + task[which],
        peer=np.where(waits, -1, locks.origin[which]),
        tag=np.array([ASKS, -1, GRANTS, RELEASES])[step],
        context=np.where(waits, -1, context[which]),
        target=np.where(waits, places[which], -1),
        mode=np.where(waits, SendMode.STANDARD, SendMode.HARDWARE),
    )
    served: Ints = memory % trace.ranks
    return served


def _synchronise(listed: _Listed, trace: Trace, found: OneSidedRecords) -> int:
    """List the notices of groups; return how many records are of none of the calls."""
    found = found.of(Kind.RMA_GROUP_SYNC)
    found = found.at(found.operation != Sync.NONE)
    sizes = np.array([len(members) for members in trace.groups], dtype=np.int64)
    strange = 0
    for call in np.unique(found.call):
        these = found.at(found.call == call)
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

"""Operations of a trace, of messages and loops, and the order of all operations.

Task by task, each with the computation before it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.arrays import Bools, Floats, Ints
from hopmap.traces import Folded, Kind, Trace

from .mpi_calls import Calls, SendMode, expect_ranks, modes_of
from .program import LocalWork, Op, Program
from .requests import ROLE

POST_RECEIVES, POST_SENDS, REST, AGAIN = 0, 1, 2, 3  # order within a call

# The non-blocking operation that a record posts; its blocking one is the number below.
_POST = np.zeros(256, dtype=np.int64)
_POST[[Kind.SEND, Kind.ISEND]] = Op.ISEND
_POST[[Kind.RECV, Kind.IRECV_REQUEST]] = Op.IRECV
_ACTS = np.zeros(256, dtype=np.bool_)
_ACTS[Kind.SEND : Kind.RMA_WIN_CREATE] = True
_ACTS[[Kind.REQUEST_TEST, Kind.REQUEST_CANCELLED, Kind.COLLECTIVE_BEGIN]] = False


class Rows(NamedTuple):
    """Operations before they are sorted into place.

    `event` says where an operation stands, `phase` its turn within the call; of equals, the first
    in the list comes first. `task` is -1 for the rank's own. The `target` of a WAIT counts rows
    as listed here. `mode` is the `SendMode` of what sends.
    """

    event: Ints
    phase: Ints
    task: Ints
    kind: Ints
    peer: Ints
    tag: Ints
    context: Ints
    size: Ints
    target: Ints
    mode: NDArray[np.uint8]


def rows_of(event: Ints, phase: Any, kind: Any, **columns: Any) -> Rows:
    """Make rows from columns, or one value for all rows; -1, or 0 bytes, of what is left out."""
    values: dict[str, Any] = dict.fromkeys(Rows._fields, -1)
    values |= {"size": 0, "mode": SendMode.STANDARD, "event": event, "phase": phase}
    values |= {"kind": kind} | columns
    wide = {
        key: np.broadcast_to(np.asarray(values, dtype=np.int64), len(event)).copy()
        for key, values in values.items()
    }
    return Rows(**wide | {"mode": wide["mode"].astype(np.uint8)})  # type: ignore[arg-type]


class Worked(NamedTuple):
    """What is copied, reduced, prepared and allocated before rows, which may occur again.

    What has nothing to come stands behind the last row of its member.
    """

    row: Ints
    behind: Bools
    copied: Ints
    reduced: Ints
    blocks: Ints
    prepared: Ints
    allocated: Ints
    buffers: Ints


class Carried(NamedTuple):
    """How collectives were carried out, in fields of `Program`."""

    collectives: dict[int, NDArray[np.uint8]]  # by context, the `Collective` under each tag
    chosen: dict[str, dict[str, int]]  # algorithms that each operation took, and in how many calls
    notes: dict[str, int]  # see `Program.notes`

    def note(self, key: str, count: int) -> None:
        """Count something up."""
        if count:
            self.notes[key] = self.notes.get(key, 0) + count


def message_rows(
    trace: Trace, calls: Calls, events: Ints, kind: NDArray[np.uint8], partner: Ints, gone: Bools
) -> Rows:
    """Operations of the point-to-point calls.

    Columns have shape (records,): `events` that are not brackets, and the `Kind` of each; `partner`
    and `gone` come from `pair_requests`.
    """
    call = calls.of_event[events]
    acts = _ACTS[kind] & ~((ROLE[kind] > 0) & (partner < 0) & (kind != Kind.ISEND)) & ~gone
    alone = np.bincount(call[acts], minlength=len(calls.gap))[call] == 1
    blocking = (kind == Kind.SEND) | (kind == Kind.RECV)

    posts = np.flatnonzero(acts & (_POST[kind] > 0))
    post = kind[posts]
    solo = blocking[posts] & alone[posts]
    # A non-blocking receive is described by its completion.
    described = np.where(post == Kind.IRECV_REQUEST, partner[posts], posts)
    record = trace.ref[events[described]]
    receives = (post == Kind.RECV) | (post == Kind.IRECV_REQUEST)
    peer = trace.records.peer[record].astype(np.int64)
    expect_ranks(trace, events[posts], peer, "partner")
    index = np.full(len(events), -1, dtype=np.int64)
    index[posts] = np.arange(len(posts))

    waits = np.flatnonzero(
        acts & ((blocking & ~alone) | (kind == Kind.ISEND_COMPLETE) | (kind == Kind.IRECV))
    )
    mode = np.zeros(len(posts), dtype=np.uint8)
    sends = np.flatnonzero(~receives)
    mode[sends] = modes_of(trace, calls, events[posts[sends]])
    posted = rows_of(
        events[posts],
        np.where(solo, REST, np.where(receives, POST_RECEIVES, POST_SENDS)),
        _POST[post] - solo,
        peer=peer,
        tag=trace.records.tag[record],
        context=trace.records.comm[record],
        size=trace.records.size[record],
        mode=mode,
    )
    target = index[np.where(blocking[waits], waits, partner[waits])]
    parts = [posted, rows_of(events[waits], REST, Op.WAIT, target=target)]
    return Rows(*map(np.concatenate, zip(*parts, strict=True)))


def loop_rows(folded: Folded) -> Rows:
    """REPEATs; where their bodies begin is known when all rows are in place."""
    return rows_of(folded.end - 1, AGAIN, Op.REPEAT, size=folded.times)


class Background(NamedTuple):
    """Rank and computation of each task that is not a rank's own."""

    rank: Ints
    compute: Floats


def assemble(
    trace: Trace,
    calls: Calls,
    rows: Rows,
    worked: Worked,
    background: Background,
    bodies: Ints,
    beginning: tuple[Ints, Floats],
) -> Program:
    """Sort the operations into tasks and give each the computation before it.

    The first rows are REPEATs, of the bodies that begin at these events. `beginning` are rows of
    threads' tasks, and the seconds of computation before each.
    """
    others = np.bincount(background.rank, minlength=trace.ranks)
    main = np.arange(trace.ranks) + np.cumsum(others) - others
    tasks = trace.ranks + len(background.rank)
    rank_of = np.repeat(np.arange(trace.ranks, dtype=np.int32), others + 1)
    owner = np.searchsorted(trace.offsets, rows.event, side="right") - 1
    task = np.where(rows.task < 0, main[owner], rows.task)

    # Every task ends with FINISH: behind the rank's last call, behind a task's own rows.
    call = np.concatenate((calls.of_event[rows.event], np.full(tasks, len(calls.gap))))
    call[len(rows.event) + main] = calls.finish
    event = np.concatenate((rows.event, np.zeros(tasks, dtype=np.int64)))
    task = np.concatenate((task, np.arange(tasks)))
    phase = np.concatenate((rows.phase, np.full(tasks, REST)))
    order = np.lexsort((event, call * np.int64(4) + phase, task))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))

    def column(values: NDArray[Any], filler: int) -> NDArray[Any]:
        return np.concatenate((values, np.full(tasks, filler, dtype=values.dtype)))[order]

    kind = column(rows.kind, Op.FINISH)
    target = column(rows.target, -1)
    waits = kind == Op.WAIT
    target[waits] = place[target[waits]]

    # A body begins with the first row of its first call, or of a later one.
    task, call = task[order], call[order]
    repeats = place[: len(bodies)]
    calls_in_all = len(calls.gap) + 1
    target[repeats] = np.searchsorted(
        task * calls_in_all + call, task[repeats] * calls_in_all + _next_call(calls, bodies)
    )

    # Gaps before calls without operations add up until the next call that has some.
    in_main = np.zeros(tasks, dtype=np.bool_)
    in_main[main] = True
    mine = np.flatnonzero(in_main[task])
    leading = mine[np.flatnonzero(np.diff(call[mine], prepend=-1))]
    compute = np.zeros(len(order))
    compute[leading] = np.add.reduceat(calls.gap, np.append(0, call[leading][:-1] + 1))
    compute[place[len(rows.event) + np.flatnonzero(~in_main)]] = background.compute
    compute[place[beginning[0]]] = beginning[1]
    return Program(
        name=trace.name,
        offsets=np.searchsorted(task, np.arange(tasks + 1)).astype(np.int64),
        rank_of=rank_of,
        kind=kind.astype(np.uint8),
        compute=compute,
        peer=column(rows.peer, -1).astype(np.int32),
        tag=column(rows.tag, -1).astype(np.int32),
        context=column(rows.context, -1).astype(np.int32),
        size=column(rows.size, 0),
        target=target,
        mode=column(rows.mode, SendMode.STANDARD),
        work=local_work(worked, place),
        event=column(rows.event, -1),
        communicators=len(trace.communicators),
    )


def _next_call(calls: Calls, events: Ints) -> Ints:
    """Call that each of these events belongs to, or that comes next."""
    found = calls.of_event[events].astype(np.int64)
    between = np.flatnonzero(found < 0)
    if between.size:
        inside = np.flatnonzero(calls.of_event >= 0)
        behind = np.searchsorted(inside, events[between])
        found[between] = calls.of_event[inside[behind]]
    return found


def local_work(worked: Worked, place: Ints) -> LocalWork:
    """Add up what is done before each row, when all that `worked` counts are in their places."""
    before, of = np.unique(place[worked.row] + worked.behind, return_inverse=True)
    sums = (np.bincount(of, each, len(before)).astype(np.int64) for each in worked[2:])
    return LocalWork(before, *sums)

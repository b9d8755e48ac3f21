"""Lowering: from the trace of a run to the program that a replay executes.

A call is an outermost region of MPI, or a record outside any. What it did stands in its records;
how long it took is left to the simulation. Time between calls is computation, but for what
`computation.py` says.

* A call with one SEND or RECV is blocking. A call with more (Sendrecv, Waitall, Startall) first
  posts its receives, then its sends, then waits in recorded order, so that it cannot deadlock.
* A non-blocking receive is taken at its request, with the partner, tag and size known at its
  completion. Requests that were cancelled are dropped, and so are receives that were never
  completed and of which `freed_receives.py` cannot tell what they took; both are counted.
* What a matched probe found is received there (`matched_probes.py`).
* A send whose request was never completed (freed) is sent and not waited for.
* Collectives become rounds of messages (`algorithms.py`): the k-th on a communicator at each
  member is one operation. Those that make, free or allocate handles (MPI_Init, MPI_Comm_split,
  MPI_Finalize, ...) synchronise like a barrier, of some members where only some call
  (`agreement.py`). Communicators of one member move nothing.
* A non-blocking collective is a strand that starts at its request, goes on in the background, and
  is joined at its completion.
* A call during which another thread of its rank computes lasts as long as that at least: the
  computation is a strand beside it. All calls of a rank are made in the order of the recording.
* A loop of a folded trace becomes a REPEAT behind the last call of its body.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.traces import Folded, Kind, Trace, TraceError, require_memory
from hopmap.traces.left_out import LeftOut

from .agreement import Found
from .computation import computation, computed_beside
from .freed_receives import with_freed_receives
from .from_collectives import (
    Carried,
    CollectiveRows,
    Worked,
    collective_rows,
    find_collectives,
)
from .left_out import left_out_of
from .matched_probes import with_matched_probes
from .mpi_calls import Calls, calls_of
from .program import LocalWork, Op, Program
from .send_modes import SendMode, modes_of

Ints = NDArray[np.int64]

BYTES_PER_EVENT = 130  # that lowering takes at its peak, measured on LU; the program takes 15

POST_RECEIVES, POST_SENDS, REST, AGAIN = 0, 1, 2, 3  # order within a call


class Rows(NamedTuple):
    """Operations before they are sorted into place.

    `event` says where an operation stands, `phase` its turn within the call; of equals, the first
    in the list comes first. `strand` is -1 for the rank's own. The `target` of a WAIT counts rows
    as listed here.
    """

    event: Ints
    phase: Ints
    strand: Ints
    kind: Ints
    peer: Ints
    tag: Ints
    context: Ints
    size: Ints
    target: Ints


class Background(NamedTuple):
    """Rank and computation of each strand that is not a rank's own, and what collectives became."""

    rank: Ints
    compute: NDArray[np.float64]
    carried: Carried


def lower(trace: Trace | Folded, algorithms: Mapping[str, str] | None = None) -> Program:
    """Turn a trace into a program, and a folded trace into a program with loops.

    Parameters
    ----------
    algorithms : mapping of str to str, optional
        Algorithms of collectives, see `Parameters.algorithms`.

    Raises
    ------
    TraceError
        A LEAVE without its ENTER, a completion without its request, collectives that do not agree
        between the members of a communicator.
    OutOfMemoryError
        Lowering takes more than there is.
    """
    algorithms = dict(algorithms or {})
    if isinstance(trace, Folded):
        folded, trace = trace, trace.trace
    else:
        none = np.zeros(0, dtype=np.int64)
        folded = Folded(trace, none, none, none)
    require_memory(
        BYTES_PER_EVENT * trace.events,
        f"{trace.name}: lowering {trace.events:,} events",
        "take fewer steps or ranks",
    )
    calls = calls_of(trace)
    gap, timed = computation(trace, calls)
    calls = calls._replace(gap=gap)
    recorded, trace = trace, with_matched_probes(trace)
    folded = folded._replace(trace=trace)
    events = np.flatnonzero(trace.kind > Kind.LEAVE)
    kind, rank = trace.kind[events], _rank_of(trace, events)
    partner, gone = _requests(trace, events, kind)
    freed = np.flatnonzero((kind == Kind.IRECV_REQUEST) & (partner < 0) & ~gone)
    trace, told = with_freed_receives(trace, events, rank, freed, gone)
    partner[told] = told
    dropped = _dropped(kind, partner, gone)
    left_out = left_out_of(recorded, timed, dropped)
    messages = _message_rows(trace, calls, events, kind, partner, gone)
    found = find_collectives(folded, rank, events, kind, partner)
    made, worked, putting, carried = collective_rows(trace, found, algorithms)
    beside, made, background = _beside_rows(trace, calls, made, found, carried)
    shift = np.where((made.target >= 0) & (made.kind == Op.WAIT), len(messages.event), 0)
    collectives = Rows(
        phase=np.full(len(made.event), REST),
        **made._replace(target=made.target + shift)._asdict(),
    )
    acting = np.concatenate((messages.event, collectives.event))
    late = worked.row[worked.behind]
    working = collectives.event[late[collectives.strand[late] < 0]]
    folded = _after_pauses(folded, calls, acting, working)
    loops = _loop_rows(folded)
    beside.target[beside.kind == Op.WAIT] += len(messages.event) + len(collectives.event)
    rows = Rows(*map(np.concatenate, zip(loops, messages, collectives, beside, strict=True)))
    waits = rows.kind == Op.WAIT
    rows.target[waits] += len(loops.event)
    before = len(loops.event) + len(messages.event)
    worked, putting = worked._replace(row=worked.row + before), putting + before
    return _assemble(
        trace, calls, rows, worked, putting, background, folded.begin, algorithms, dropped, left_out
    )


def _after_pauses(folded: Folded, calls: Calls, acting: Ints, working: Ints) -> Folded:
    """Enclose calls without operations that stand before a loop in loops of one trip.

    Else the computation before such a call would be added to what stands first in the loop. So
    would the work that a call does behind its last operation.
    """
    acts = np.zeros(len(calls.gap), dtype=np.bool_)
    acts[calls.of_event[acting]] = True
    acts[calls.of_event[working]] = False
    acts[calls.of_event[folded.end - 1]] = True
    first = np.isin(folded.begin, folded.trace.offsets)
    begin = np.unique(folded.begin[~first])
    idle = begin[~acts[calls.of_event[begin - 1]]]
    return folded._replace(
        begin=np.concatenate((idle - 1, folded.begin)),
        end=np.concatenate((idle, folded.end)),
        times=np.concatenate((np.ones_like(idle), folded.times)),
    )


def _loop_rows(folded: Folded) -> Rows:
    """REPEATs; where their bodies begin is known when all rows are in place."""
    count = len(folded.end)
    blank = np.full(count, -1, dtype=np.int64)
    return Rows(
        event=folded.end - 1,
        phase=np.full(count, AGAIN),
        strand=blank,
        kind=np.full(count, int(Op.REPEAT)),
        peer=blank,
        tag=blank,
        context=blank,
        size=folded.times,
        target=blank,
    )


def _beside_rows(
    trace: Trace, calls: Calls, made: CollectiveRows, found: Found, carried: Carried
) -> tuple[Rows, CollectiveRows, Background]:
    """Begin what other threads compute beside calls with these, and wait for it at their ends.

    Their strands come behind a rank's others; the second result is `made`, numbered accordingly.
    """
    seconds = computed_beside(trace, calls)
    which = np.flatnonzero(seconds)
    rank = np.searchsorted(calls.finish, which)
    others = found.rank[found.strand >= 0]
    strand = np.arange(len(which)) + rank + 1 + np.searchsorted(others, rank, side="right")
    owner = np.concatenate((others, rank))
    order = np.argsort(owner, kind="stable")
    compute = np.concatenate((np.zeros(len(others)), seconds[which]))[order]
    background = Background(owner[order], compute, carried)

    before = np.searchsorted(rank, np.arange(trace.ranks))  # such strands of lower ranks
    new = np.repeat(before, np.bincount(others, minlength=trace.ranks) + 1)
    new += np.arange(len(new))
    starts = made.kind == Op.START
    made = made._replace(
        strand=np.where(made.strand < 0, -1, new[made.strand]),
        target=np.where(starts, new[np.where(starts, made.target, 0)], made.target),
    )
    blank = np.full(2 * len(which), -1, dtype=np.int64)
    rows = Rows(
        event=np.concatenate((calls.first[which], calls.last[which])),
        phase=np.repeat([POST_RECEIVES, REST], len(which)),
        strand=blank,
        kind=np.repeat([int(Op.START), int(Op.WAIT)], len(which)),
        peer=blank,
        tag=blank,
        context=blank,
        size=np.zeros_like(blank),
        target=np.concatenate((strand, np.arange(len(which)))),
    )
    return rows, made, background


def _requests(
    trace: Trace, events: Ints, kind: NDArray[np.uint8]
) -> tuple[Ints, NDArray[np.bool_]]:
    """Pair the start of each request with its end.

    Returns
    -------
    partner : ndarray(int64, shape=(records,))
        Of a start, the place in `events` of its completion; of a completion, of its start.
    gone : ndarray(bool, shape=(records,))
        Starts of requests that were cancelled.
    """
    partner = np.full(len(events), -1, dtype=np.int64)
    role = _ROLE[kind]
    where = np.flatnonzero(role)
    request = trace.records.request[trace.ref[events[where]]]
    rank = _rank_of(trace, events)[where]
    order = np.lexsort((request, rank))
    where, request, rank = where[order], request[order], rank[order]
    begins = role[where] > 0
    follows = np.zeros(len(where), dtype=np.bool_)
    follows[1:] = begins[:-1] & (request[1:] == request[:-1]) & (rank[1:] == rank[:-1])
    ends = np.flatnonzero(~begins)
    stray = ends[~follows[ends]]
    if not stray.size:
        kinds = kind[where]
        stray = ends[(_STARTS_OF[kinds[ends]] >> kinds[ends - 1]) & 1 == 0]
    if stray.size:
        at = stray[np.argmin(where[stray])]
        event = events[where[at]] - trace.offsets[rank[at]]
        raise TraceError(
            f"{trace.name}: rank {rank[at]}, event {event}: {Kind(kind[where[at]]).name} of "
            f"request {request[at]}, which was not started"
        )
    partner[where[ends]] = where[ends - 1]
    partner[where[ends - 1]] = where[ends]

    gone = np.zeros(len(events), dtype=np.bool_)
    gone[partner[kind == Kind.REQUEST_CANCELLED]] = True
    partner[gone] = -1
    return partner, gone


def _dropped(kind: NDArray[np.uint8], partner: Ints, gone: NDArray[np.bool_]) -> dict[str, int]:
    """Count the requests that are left out, by reason."""
    started = (partner < 0) & ~gone
    dropped = {
        "cancelled requests": int(gone.sum()),
        "receives never completed": int((started & (kind == Kind.IRECV_REQUEST)).sum()),
        "collectives never completed": int((started & (kind == Kind.COLLECTIVE_REQUEST)).sum()),
    }
    return {reason: count for reason, count in dropped.items() if count}


# 1 for what starts a request, -1 for what ends one; and which starts each end may have, as bits.
_ROLE = np.zeros(256, dtype=np.int8)
_ROLE[[Kind.ISEND, Kind.IRECV_REQUEST, Kind.COLLECTIVE_REQUEST]] = 1
_STARTS_OF = np.zeros(256, dtype=np.int64)
for _end, _starts in {
    Kind.ISEND_COMPLETE: (Kind.ISEND,),
    Kind.IRECV: (Kind.IRECV_REQUEST,),
    Kind.REQUEST_CANCELLED: (Kind.ISEND, Kind.IRECV_REQUEST),
    Kind.COLLECTIVE_COMPLETE: (Kind.COLLECTIVE_REQUEST,),
}.items():
    _ROLE[_end] = -1
    _STARTS_OF[_end] = sum(1 << start for start in _starts)


def _rank_of(trace: Trace, events: Ints) -> Ints:
    return np.repeat(np.arange(trace.ranks), np.diff(np.searchsorted(events, trace.offsets)))


def _message_rows(
    trace: Trace,
    calls: Calls,
    events: Ints,
    kind: NDArray[np.uint8],
    partner: Ints,
    gone: NDArray[np.bool_],
) -> Rows:
    """Operations of the point-to-point calls."""
    call = calls.of_event[events]
    acts = _ACTS[kind] & ~((_ROLE[kind] > 0) & (partner < 0) & (kind != Kind.ISEND)) & ~gone
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
    bad = np.flatnonzero((peer < 0) | (peer >= trace.ranks))
    if bad.size:
        event = events[posts[bad[0]]]
        rank = int(np.searchsorted(trace.offsets, event, side="right")) - 1
        raise TraceError(
            f"{trace.name}: rank {rank}, event {event - trace.offsets[rank]}: partner "
            f"{peer[bad[0]]}: expected a rank below {trace.ranks}"
        )
    index = np.full(len(events), -1, dtype=np.int64)
    index[posts] = np.arange(len(posts))

    waits = np.flatnonzero(
        acts & ((blocking & ~alone) | (kind == Kind.ISEND_COMPLETE) | (kind == Kind.IRECV))
    )
    target = index[np.where(blocking[waits], waits, partner[waits])]
    blank = np.full(len(waits), -1, dtype=np.int64)
    return Rows(
        event=np.concatenate((events[posts], events[waits])),
        phase=np.concatenate(
            (
                np.where(solo, REST, np.where(receives, POST_RECEIVES, POST_SENDS)),
                np.full(len(waits), REST),
            )
        ),
        strand=np.full(len(posts) + len(waits), -1, dtype=np.int64),
        kind=np.concatenate((_POST[post] - np.where(solo, 1, 0), np.full(len(waits), Op.WAIT))),
        peer=np.concatenate((peer, blank)),
        tag=np.concatenate((trace.records.tag[record], blank)),
        context=np.concatenate((trace.records.comm[record], blank)),
        size=np.concatenate((trace.records.size[record], np.zeros_like(blank))),
        target=np.concatenate((np.full(len(posts), -1, dtype=np.int64), target)),
    )


# The non-blocking operation that a record posts; its blocking one is the number below.
_POST = np.zeros(256, dtype=np.int64)
_POST[[Kind.SEND, Kind.ISEND]] = Op.ISEND
_POST[[Kind.RECV, Kind.IRECV_REQUEST]] = Op.IRECV
_ACTS = np.zeros(256, dtype=np.bool_)
_ACTS[[kind for kind in Kind if kind > Kind.LEAVE]] = True
_ACTS[[Kind.REQUEST_TEST, Kind.REQUEST_CANCELLED, Kind.COLLECTIVE_BEGIN]] = False


def _assemble(
    trace: Trace,
    calls: Calls,
    rows: Rows,
    worked: Worked,
    putting: Ints,
    background: Background,
    bodies: Ints,
    algorithms: dict[str, str],
    dropped: dict[str, int],
    left_out: tuple[LeftOut, ...],
) -> Program:
    """Sort the operations into strands and give each the computation before it.

    The first rows are REPEATs, of the bodies that begin at these events.
    """
    others = np.bincount(background.rank, minlength=trace.ranks)
    main = np.arange(trace.ranks) + np.cumsum(others) - others
    strands = trace.ranks + len(background.rank)
    rank_of = np.repeat(np.arange(trace.ranks, dtype=np.int32), others + 1)
    owner = np.searchsorted(trace.offsets, rows.event, side="right") - 1
    strand = np.where(rows.strand < 0, main[owner], rows.strand)

    # Every strand ends with FINISH: behind the rank's last call, behind a strand's own rows.
    call = np.concatenate((calls.of_event[rows.event], np.full(strands, len(calls.gap))))
    call[len(rows.event) + main] = calls.finish
    event = np.concatenate((rows.event, np.zeros(strands, dtype=np.int64)))
    strand = np.concatenate((strand, np.arange(strands)))
    phase = np.concatenate((rows.phase, np.full(strands, REST)))
    order = np.lexsort((event, call * np.int64(4) + phase, strand))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))

    def column(values: Ints, filler: int) -> Ints:
        return np.concatenate((values, np.full(strands, filler)))[order]

    kind = column(rows.kind, Op.FINISH)
    target = column(rows.target, -1)
    waits = kind == Op.WAIT
    target[waits] = place[target[waits]]

    # A body begins with the first row of its first call, or of a later one.
    strand, call = strand[order], call[order]
    repeats = place[: len(bodies)]
    calls_in_all = len(calls.gap) + 1
    target[repeats] = np.searchsorted(
        strand * calls_in_all + call, strand[repeats] * calls_in_all + calls.of_event[bodies]
    )

    # Gaps before calls without operations add up until the next call that has some.
    in_main = np.zeros(strands, dtype=np.bool_)
    in_main[main] = True
    mine = np.flatnonzero(in_main[strand])
    leading = mine[np.flatnonzero(np.diff(call[mine], prepend=-1))]
    compute = np.zeros(len(order))
    compute[leading] = np.add.reduceat(calls.gap, np.append(0, call[leading][:-1] + 1))
    compute[place[len(rows.event) + np.flatnonzero(~in_main)]] = background.compute
    before, of = np.unique(place[worked.row] + worked.behind, return_inverse=True)
    work = LocalWork(
        before,
        *(np.bincount(of, each, len(before)).astype(np.int64) for each in worked[2:]),
    )
    sends = (kind == Op.SEND) | (kind == Op.ISEND)
    recorded = column(rows.event, -1)
    mode = np.zeros(len(kind), dtype=np.uint8)
    mode[sends] = modes_of(trace, recorded[sends])
    mode[place[putting]] = SendMode.READY
    return Program(
        name=trace.name,
        offsets=np.searchsorted(strand, np.arange(strands + 1)).astype(np.int64),
        rank_of=rank_of,
        kind=kind.astype(np.uint8),
        compute=compute,
        peer=column(rows.peer, -1).astype(np.int32),
        tag=column(rows.tag, -1).astype(np.int32),
        context=column(rows.context, -1).astype(np.int32),
        size=column(rows.size, 0),
        target=target,
        mode=mode,
        work=work,
        event=recorded,
        communicators=len(trace.communicators),
        collectives=background.carried.operations,
        algorithms=algorithms,
        chosen=background.carried.chosen,
        dropped=dropped,
        left_out=left_out,
        notes=background.carried.notes,
    )

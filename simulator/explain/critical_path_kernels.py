"""Compiled walks of the critical path: back through operations and messages, and through hops.

Both write segments, latest first, each of which begins where the next one ends.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.arrays import Bools, Floats, Ints
from hopmap.compilation import njit, subroutine
from hopmap.simulator.model import ACKNOWLEDGEMENT, DATA, GRANT, REQUEST
from hopmap.simulator.programs.program import Op

SEND, ISEND, START = int(Op.SEND), int(Op.ISEND), int(Op.START)
RECV, IRECV = int(Op.RECV), int(Op.IRECV)

# What a segment is. A TRANSIT is a message or control message on its way, a DISPATCH the part of
# it up to the first server's end; the walk through hops divides both into the four kinds below.
COMPUTE, SEND_OVERHEAD, RECV_OVERHEAD, END_POINT, TRANSIT, DISPATCH = range(6)
SERIALIZATION, LATENCY, QUEUE, ROOM = range(6, 10)
JOB_START = 10

# Where the walk stands: an operation is over, or has begun what it does; data have left.
ENDED, POSTED, DEPARTED = 0, 1, 2
# The same of a packet at a server: it has been served, is about to be, arrives.
SERVED, SERVICE, ARRIVAL = 0, 1, 2


class Replayed(NamedTuple):
    """Columns of `Operations`, of `MessageTimes`, and what belongs to what."""

    kind: NDArray[np.uint8]  # shape (entries,): `Op` of each entry
    begin: Floats
    ready: Floats
    woken: Floats
    end: Floats
    # task, ready, woken, begin, end, awaited, message: of `Operations`
    task: Ints
    awaited: Ints
    message: Ints
    joins: Ints  # shape (entries,): task that a START begins
    # sent, requested, granted, departed, delivered: shape (messages,): of `MessageTimes`
    sent: Floats
    requested: Floats
    granted: Floats
    departed: Floats
    delivered: Floats
    # shape (messages,): whether an acknowledgement completes the send
    acknowledged: Bools
    # send, receive: shape (messages,): entries that send and receive each message, -1 if none
    send: Ints
    receive: Ints
    # begun_by, last: shape (tasks,): START of each task, -1 of a rank's own; and its last entry
    begun_by: Ints
    last: Ints


@njit
def walk_operations(run: Replayed, at: int, segments: Any) -> int:
    """Walk back from the end of entry `at` to the beginning of the run; count the segments.

    Segments (SEGMENT) are filled as far as the table is long; given none, the call counts.
    """
    count = 0
    stage, message = ENDED, -1
    while True:
        if stage == ENDED:
            woken = run.woken[at]
            awaits = not np.isnan(woken)
            begin, end = run.ready[at], run.end[at]
            own = run.message[at]
            if awaits:
                begin = woken
            elif run.kind[at] in (SEND, ISEND):
                begin = run.sent[own]
            task = run.task[at]
            count = _segment(segments, count, RECV_OVERHEAD, begin, end, task, -1, DATA)
            if not awaits:
                stage = POSTED
                continue
            cause = run.awaited[at]
            if run.kind[cause] == START:
                at = run.last[run.joins[cause]]
                continue
            message = run.message[cause]
            takes = run.kind[cause] in (RECV, IRECV)
            kind = TRANSIT if takes else DISPATCH
            begin = run.departed[message]
            if not takes and run.acknowledged[message]:
                # The later of message and receive is what the acknowledgement followed.
                receive, delivered = run.receive[message], run.delivered[message]
                posted = run.ready[receive]
                answered = max(delivered, posted)
                count = _segment(
                    segments, count, TRANSIT, answered, woken, -1, message, ACKNOWLEDGEMENT
                )
                if posted > delivered:
                    at, stage = receive, POSTED
                    continue
                kind, woken = TRANSIT, delivered
            count = _segment(segments, count, kind, begin, woken, -1, message, DATA)
            stage = DEPARTED
        elif stage == DEPARTED:
            at = run.send[message]
            stage = POSTED
            begin, end = run.sent[message], run.departed[message]
            eager = np.isnan(run.granted[message])
            if not eager:
                begin = run.granted[message]
            task = run.task[at]
            count = _segment(segments, count, END_POINT, begin, end, task, message, DATA)
            if eager:
                continue
            # The later of request and receive is what the grant followed.
            receive, requested = run.receive[message], run.requested[message]
            posted = run.ready[receive]
            answered = max(requested, posted)
            count = _segment(segments, count, TRANSIT, answered, begin, -1, message, GRANT)
            if posted > requested:
                at = receive
                continue
            count = _segment(
                segments, count, TRANSIT, run.sent[message], requested, -1, message, REQUEST
            )
        else:
            begin, end = run.begin[at], run.ready[at]
            task = run.task[at]
            if run.kind[at] in (SEND, ISEND):
                sent = run.sent[run.message[at]]
                count = _segment(segments, count, SEND_OVERHEAD, end, sent, task, -1, DATA)
            count = _segment(segments, count, COMPUTE, begin, end, task, -1, DATA)
            stage = ENDED
            if at > 0 and run.task[at - 1] == task:
                at -= 1
            elif run.begun_by[task] >= 0:
                at = run.begun_by[task]
            else:
                return _segment(segments, count, JOB_START, 0.0, begin, -1, -1, DATA)


@subroutine
def _segment(
    segments: Any,
    count: int,
    kind: int,
    begin: float,
    end: float,
    task: int,
    message: int,
    cargo: int,
) -> int:
    """Note a segment, if it takes any time; return how many there are."""
    if end <= begin:
        return count
    if count < len(segments):
        segment = segments[count]
        segment["kind"] = kind
        segment["begin"] = begin
        segment["end"] = end
        segment["task"] = task
        segment["message"] = message
        segment["cargo"] = cargo
        segment["server"] = -1
        segment["behind"] = -1
    return count + 1


@njit
def walk_hops(
    coarse: Any,
    hops: Any,
    late: Bools,
    first: Ints,
    length: Ints,
    packets: Ints,
    cut_through: bool,
    limited: bool,
    segments: Any,
) -> int:
    """Divide every TRANSIT and DISPATCH of `walk_operations`; copy the other segments; count.

    `hops` (HOP) come by message, cargo, packet and hop; `late`, shape (hops,), says whether the end
    of one is that of the packet's tail, behind a slower server. `first`, `length` and `packets`,
    shape (coarse,), are of each segment that is divided: where its hops begin, servers on its path,
    its packets. If buffers are limited a server may be idle for want of room behind it, and packets
    of a message may pass one another.
    """
    count = 0
    for k in range(len(coarse)):
        whole = coarse[k]
        if whole["kind"] not in (TRANSIT, DISPATCH):
            if count < len(segments):
                segments[count] = whole
            count += 1
            continue
        hop = length[k] - 1 if whole["kind"] == TRANSIT else 0
        at = first[k] + (packets[k] - 1) * length[k] + hop
        if limited and whole["kind"] == TRANSIT:
            for other in range(first[k] + hop, at, length[k]):
                if hops[other]["end"] > hops[at]["end"]:
                    at = other
        stage = SERVED
        if whole["kind"] == TRANSIT:
            count = _part(segments, count, whole, LATENCY, hops[at], hops[at]["end"], whole["end"])
        while True:
            here = hops[at]
            before = hops[at - 1]  # at the server before; not looked at if there is none
            begin, end = here["start"], here["end"]
            if stage == SERVED and hop > 0 and late[at]:
                count = _part(segments, count, whole, LATENCY, before, before["end"], end)
                at, hop = at - 1, hop - 1
            elif stage == SERVED:
                count = _part(segments, count, whole, SERIALIZATION, here, begin, end)
                stage = SERVICE
            elif stage == SERVICE:
                stage, begin = ARRIVAL, here["arrival"]
                # The message's packet before this one is no queue, if it was served before it.
                own = at - length[k]
                if own >= first[k] and begin < hops[own]["end"] <= here["start"]:
                    stage, begin = SERVED, hops[own]["end"]
                idle = max(begin, here["idle"]) if limited else here["start"]
                count = _part(segments, count, whole, ROOM, here, idle, here["start"])
                count = _part(segments, count, whole, QUEUE, here, begin, min(idle, here["start"]))
                if stage == SERVED:
                    at = own
            elif hop == 0:
                break
            else:
                begin = before["start"] if cut_through else before["end"]
                count = _part(segments, count, whole, LATENCY, before, begin, here["arrival"])
                stage = SERVICE if cut_through else SERVED
                at, hop = at - 1, hop - 1
    return count


@subroutine
def _part(
    segments: Any, count: int, whole: Any, kind: int, hop: Any, begin: float, end: float
) -> int:
    """Note a part of a segment, at the server of a hop."""
    total = _segment(segments, count, kind, begin, end, -1, whole["message"], whole["cargo"])
    if count < min(total, len(segments)):
        segments[count]["server"] = hop["server"]
        if kind == QUEUE:
            segments[count]["behind"] = hop["behind"]
    return total

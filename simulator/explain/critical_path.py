"""The critical path: from the end of the last rank back to the beginning, without a hole.

A rank that waited goes on when a message arrives, or has left; the path goes on from there, over
the servers that the message crossed, to the rank that sent it. So nothing on the path waits for
another rank: where a rank waits, the path is elsewhere. What is left of waiting are queues, at
servers and at LogGP's end points, and, where buffers are finite, waiting for room behind a link.
Segments follow one another to the last bit, and add up to the makespan.

One replay says when operations ran and messages arrived, a second one, of which the hops of the
messages on the path are kept, where those spent their time. Runs are deterministic. Compiled walks
go back through operations and messages, and through hops; both write segments, latest first, each
of which begins where the next one ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.arrays import Bools, Floats, Ints, Ints8, Ints32, Table
from hopmap.compilation import njit, subroutine
from hopmap.simulator.model import ACKNOWLEDGEMENT, DATA, GRANT, REQUEST
from hopmap.simulator.noise import expect_no_noise
from hopmap.simulator.packets.compiled_engine import watch
from hopmap.simulator.parameters.keys import ParameterError, expect_fixed_routes
from hopmap.simulator.programs.mpi_calls import SendMode
from hopmap.simulator.programs.program import Op
from hopmap.simulator.result import Result
from hopmap.simulator.run_plan import RunPlan

SEND, ISEND, START = int(Op.SEND), int(Op.ISEND), int(Op.START)
RECV, IRECV = int(Op.RECV), int(Op.IRECV)


class Segment(IntEnum):
    """What a stretch of the critical path is."""

    COMPUTE = 0
    SEND_OVERHEAD = 1
    RECV_OVERHEAD = 2
    END_POINT = 3  # LogGP's: own bytes, and messages of the rank before
    SERIALIZATION = 6  # a server takes bytes / bandwidth
    LATENCY = 7
    QUEUE = 8  # packets of other messages are served first
    ROOM = 9  # the link is idle, but there is no room behind it, or others are in front
    JOB_START = 10  # the rank's job has not begun


COMPUTE, SEND_OVERHEAD, RECV_OVERHEAD, END_POINT = map(int, list(Segment)[:4])
SERIALIZATION, LATENCY, QUEUE, ROOM, JOB_START = map(int, list(Segment)[4:])
# A TRANSIT is a message or control message on its way, a DISPATCH the part of it up to the first
# server's end; the walk through hops divides both into serialization, latency, queue and room.
TRANSIT, DISPATCH = 4, 5

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
    # acknowledged, late: shape (messages,): whether an acknowledgement completes the send, and
    # seconds from when its data have left until it is complete
    acknowledged: Bools
    late: Floats
    # send, receive: shape (messages,): entries that send and receive each message, -1 if none
    send: Ints
    receive: Ints
    # begun_by, last: shape (tasks,): START of each task, -1 of a rank's own; and its last entry
    begun_by: Ints
    last: Ints


@njit
def walk_operations(run: Replayed, at: int, segments: Any) -> int:
    """Walk back from the end of entry `at` to the beginning of the run; count the segments.

    Segments (SEGMENT) are filled as far as the table is long; an empty table only counts.
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
            if not takes and run.late[message] > 0:  # behind the interface, by the library
                left = woken - run.late[message]
                count = _segment(segments, count, SEND_OVERHEAD, left, woken, task, -1, DATA)
                woken = left
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
    segments: Any, count: int, segment: Any, kind: int, hop: Any, begin: float, end: float
) -> int:
    """Note a part of a segment, at the server of a hop."""
    total = _segment(segments, count, kind, begin, end, -1, segment["message"], segment["cargo"])
    if count < min(total, len(segments)):
        segments[count]["server"] = hop["server"]
        if kind == QUEUE:
            segments[count]["behind"] = hop["behind"]
    return total


ENGINES_OF_PACKETS = ("simpy", "compiled")


SEGMENT = np.dtype(
    [
        ("begin", np.float64),
        ("end", np.float64),
        ("task", np.int64),
        ("message", np.int64),
        ("server", np.int64),
        ("behind", np.int64),
        ("kind", np.uint8),
        ("cargo", np.int8),
    ],
    align=True,
)


@dataclass(frozen=True, eq=False)
class CriticalPath:
    """Segments in order of time, of which each begins where the one before ends; shape (segments,).

    The rank is that of computation, overheads and end points; the message, as in `MessageTimes`,
    that of all else and of end points; the server, see `server_name`, where it is served, travels
    or queues; `behind`, of a QUEUE, the message whose packet was served last before. -1 is none.
    """

    kind: NDArray[np.uint8]  # `Segment`
    begin: Floats
    end: Floats
    rank: Ints32
    message: Ints
    cargo: Ints8  # 0: a message's data, 1: its request, 2: its grant, 3: its acknowledgement
    server: Ints
    behind: Ints

    @property
    def seconds(self) -> Floats:
        """Length of each segment."""
        return self.end - self.begin


def critical_path(ready: RunPlan, result: Result) -> CriticalPath:
    """Follow a replay of a plan back from its end, by an engine of packets, operations recorded."""
    expect_no_noise(ready.parameters, "the critical path is of a run")
    expect_fixed_routes(ready.parameters.network_routing, "the critical path is of a run")
    if result.operations is None or result.engine not in ENGINES_OF_PACKETS:
        raise ParameterError(
            f"critical path of a replay by {result.engine}: expected one by "
            f"{' or '.join(ENGINES_OF_PACKETS)}, with Record(operations=True)"
        )
    if ready.parameters.progress == "in_mpi_calls":
        raise ParameterError(
            "the critical path requires progress = asynchronous, where no message waits for a rank "
            "that computes"
        )
    replayed = _replay(ready, result)
    last = replayed.last[ready.program.main()[result.finish.argmax()]] if result.ranks else -1
    coarse = np.empty(0, dtype=SEGMENT)
    if last >= 0:
        coarse = np.empty(walk_operations(replayed, last, coarse), dtype=SEGMENT)
        walk_operations(replayed, last, coarse)
    fine = _divide(ready, coarse)[::-1]
    rank = np.where(fine["task"] < 0, -1, ready.program.rank_of[fine["task"]])
    names = ("kind", "begin", "end", "message", "cargo", "server", "behind")
    return CriticalPath(rank=rank.astype(np.int32), **{name: fine[name].copy() for name in names})


def _replay(ready: RunPlan, result: Result) -> Replayed:
    program, operations, times = ready.program, result.operations, result.message_times
    assert operations is not None
    assert times is not None
    kind = program.kind[operations.row]
    entries = np.arange(len(kind))
    sends = (kind == Op.SEND) | (kind == Op.ISEND)
    takes = ((kind == Op.RECV) | (kind == Op.IRECV)) & (operations.message >= 0)
    send, receive = np.full((2, len(times.sent)), -1, dtype=np.int64)
    send[operations.message[sends]] = entries[sends]
    receive[operations.message[takes]] = entries[takes]
    joins = np.where(kind == Op.START, program.target[operations.row], -1)
    begun_by = np.full(program.tasks, -1, dtype=np.int64)
    begun_by[joins[kind == Op.START]] = entries[kind == Op.START]
    mode, small = program.mode[operations.row[sends]], times.size < ready.parameters.eager_limit
    eager = small & ((mode == SendMode.STANDARD) | (mode == SendMode.READY))
    of_operations = ("begin", "ready", "woken", "end", "task", "awaited", "message")
    of_messages = ("sent", "requested", "granted", "departed", "delivered")
    return Replayed(
        kind=kind,
        **{name: getattr(operations, name) for name in of_operations},
        joins=joins,
        **{name: getattr(times, name) for name in of_messages},
        acknowledged=small & (mode == SendMode.SYNCHRONOUS),
        send=send,
        receive=receive,
        begun_by=begun_by,
        last=np.flatnonzero(np.diff(operations.task, append=program.tasks)),
        late=np.where(eager, ready.parameters.eager_completion, 0.0),
    )


def _divide(ready: RunPlan, coarse: Table) -> Table:
    """Divide the journeys of messages by what happened to their packets at each server."""
    journeys = (coarse["kind"] == TRANSIT) | (coarse["kind"] == DISPATCH)
    hops = watch(ready, np.unique(coarse["message"][journeys]))
    label = hops["message"] * 4 + hops["cargo"]
    # Hops of one packet stand in order already.
    hops = hops[np.lexsort((hops["packet"], label))]
    label.sort()
    wanted = coarse["message"] * 4 + coarse["cargo"]
    first = np.searchsorted(label, wanted)
    packets = np.zeros(len(coarse), dtype=np.int64)
    ends = np.searchsorted(label, wanted, side="right")
    packets[journeys] = hops["packet"][ends[journeys] - 1] + 1
    length = (ends - first) // np.maximum(packets, 1)
    late = hops["end"] > hops["start"] + hops["size"] / ready.bandwidth[hops["server"]]
    arguments = coarse, hops, late, first, length, packets
    rules = ready.parameters.switching == "cut_through", ready.parameters.network_buffer > 0
    fine = np.empty(0, dtype=SEGMENT)
    fine = np.empty(walk_hops(*arguments, *rules, fine), dtype=SEGMENT)
    walk_hops(*arguments, *rules, fine)
    return fine

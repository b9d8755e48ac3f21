"""A simulated run as a trace.

`retime` gives every event of the trace that a program was lowered from a new time:

* A call begins when its first operation has computed what stands before it, and ends with its last
  operation. A message is sent when it is posted and received when its operation ends; what else is
  recorded within a call stands where the record before it does.
* Between calls, time passes as it did in the recording, stretched to the simulated computation;
  calls in which nothing is sent or awaited take no time.
* The last event of each rank is its end, so that the last of all is the makespan.

Nothing else changes: messages, collectives, communicators and regions stay as recorded.
Its `spans` are left out: what they are about is not in the new times.

`trace_of_program` is for programs that were lowered from no trace: every operation becomes the MPI
call that it is: ENTER, what it does, LEAVE.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hopmap.arrays import Floats, Ints
from hopmap.simulator.programs.mpi_calls import calls_of
from hopmap.simulator.programs.program import Op, Program
from hopmap.simulator.result import Result, require_recorded
from hopmap.traces import Kind, Records, Trace, TraceError
from hopmap.traces.trace import NO_OPERATION, NO_SPANS

RESOLUTION = 1e12  # ticks per second of the traces made here: picoseconds

CALLS = ("Send", "Isend", "Recv", "Irecv", "Wait")  # of `Op.SEND` and those behind it
REGIONS = tuple(f"MPI_{call}" for call in CALLS)
_RECORDS = (Kind.SEND, Kind.ISEND, Kind.RECV, Kind.IRECV_REQUEST)


def retime(trace: Trace, program: Program, result: Result) -> Trace:
    """Return the trace with the times of a simulated run.

    The program is `lower` of the trace; the result is `simulate` of it, its operations recorded.
    """
    expect_one_thread(trace)
    ops = require_recorded(program, result)
    if (
        program.ranks != trace.ranks
        or program.event.max(initial=-1) >= trace.events
        or (program.kind == Op.REPEAT).any()
        or not len(program.event)
    ):
        raise TraceError(f"{program.name}: expected the program that {trace.name} is lowered to")
    event = program.event[ops.row]
    main = np.isin(ops.task, program.main())
    entry = np.flatnonzero(main & (event >= 0))
    finish = ops.end[main & (event < 0)]
    event = event[entry]

    calls = calls_of(trace)
    call, first = np.unique(calls.of_event[event], return_index=True)
    last = np.append(first[1:], len(entry)) - 1
    begin, end = ops.ready[entry[first]], ops.end[entry[last]]

    time = np.full(trace.events, np.nan)
    # Where several operations stand for one record, the last of them ends it.
    time[event] = ops.end[entry]
    kind = trace.kind[event]
    sent = np.flatnonzero(((kind == Kind.SEND) | (kind == Kind.ISEND)) & (ops.message[entry] >= 0))
    assert result.message_times is not None
    time[event[sent]] = result.message_times.sent[ops.message[entry[sent]]]

    of_event = calls.of_event.astype(np.int64)
    place = np.searchsorted(call, of_event)
    place[place == len(call)] = -1
    inside = (of_event >= 0) & (call[place] == of_event) if len(call) else of_event < -1
    closing = np.zeros(trace.events, dtype=np.bool_)
    closing[:-1] = of_event[1:] != of_event[:-1]
    closing[trace.offsets[1:][np.diff(trace.offsets) > 0] - 1] = True
    missing = inside & np.isnan(time)
    time[missing] = begin[place[missing]]
    leaves = inside & closing & (trace.kind == Kind.LEAVE)
    time[leaves] = end[place[leaves]]
    passed = _computation_before(trace, calls.start, of_event)
    bounds = zip(trace.offsets[:-1].tolist(), trace.offsets[1:].tolist(), strict=True)
    for rank, (low, high) in enumerate(bounds):
        if low == high:
            continue
        # Events outside the calls that have operations.
        clock = np.cumsum(passed[low:high])
        known = np.flatnonzero(inside[low:high])
        which = place[low + known]
        opens = known[np.flatnonzero(np.diff(which, prepend=-1))]
        which = place[low + opens]
        # At a call the clock stands still, while time goes on from its begin to its end.
        clocks = np.concatenate(([0.0], clock[opens], clock[-1:]))
        leave = np.concatenate(([0.0], end[which]))
        arrive = np.append(begin[which], finish[rank])
        free = np.flatnonzero(~inside[low:high])
        gap = np.searchsorted(opens, free)
        length = clocks[gap + 1] - clocks[gap]
        share = (clock[free] - clocks[gap]) / np.where(length > 0, length, 1.0)
        time[low + free] = np.minimum(leave[gap] + share * (arrive[gap] - leave[gap]), arrive[gap])
        time[high - 1] = finish[rank]
        np.maximum.accumulate(time[low:high], out=time[low:high])
    return replace(trace, time=time, resolution=RESOLUTION, ignored={}, spans=NO_SPANS)


def expect_one_thread(trace: Trace) -> None:
    """Raise `TraceError` for calls of several threads, of which there are no new times."""
    if trace.thread is not None:
        raise TraceError(
            f"{trace.name}: several threads of a rank call MPI, whose simulated times no archive "
            "gets: expected a timeline (--perfetto), or a trace of one thread"
        )


def _computation_before(trace: Trace, start: Floats, of_event: Ints) -> Floats:
    """Seconds of computation before each event: what passes within a call is none."""
    passed = np.diff(trace.time, prepend=0.0)
    some = np.diff(trace.offsets) > 0
    low = trace.offsets[:-1][some]
    passed[low] = trace.time[low] - start[some]
    within = np.zeros(trace.events, dtype=np.bool_)
    within[1:] = (of_event[1:] == of_event[:-1]) & (of_event[1:] >= 0)
    within[low] = False
    passed[within] = 0.0
    return passed


def trace_of_program(program: Program, result: Result) -> Trace:
    """Return the trace of a simulated run of a program without collectives.

    All ranks are in every communicator; an empty MPI_Finalize marks each rank's end.
    """
    ops = require_recorded(program, result)
    if (program.kind == Op.START).any() or (program.context >= program.communicators).any():
        raise TraceError(f"{program.name}: collectives: expected the trace that they come from")
    entry = np.flatnonzero(program.kind[ops.row] != Op.REPEAT)
    kind = program.kind[ops.row[entry]].astype(np.int64)
    # What a WAIT completes is described by the operation that it waits for.
    about = np.where(kind == Op.WAIT, ops.awaited[entry], entry)
    row, message = ops.row[about], ops.message[about]
    begun = program.kind[row]
    acts = kind != Op.FINISH

    record = np.full(len(entry), -1)
    plain = acts & (kind != Op.WAIT)
    record[plain] = np.array(_RECORDS)[kind[plain] - Op.SEND]
    waits = kind == Op.WAIT
    record[waits] = np.where(begun[waits] == Op.ISEND, Kind.ISEND_COMPLETE, Kind.IRECV)

    # ENTER, record, LEAVE of each operation; the end has no record.
    grid = np.empty((len(entry), 3), dtype=np.int64)
    grid[:, 0], grid[:, 1], grid[:, 2] = Kind.ENTER, record, Kind.LEAVE
    time = np.empty((len(entry), 3))
    time[:, 0], time[:, 2] = ops.ready[entry], ops.end[entry]
    assert result.message_times is not None
    sends = (kind == Op.SEND) | (kind == Op.ISEND)
    time[:, 1] = time[:, 2]
    time[sends, 1] = result.message_times.sent[message[sends]]
    ref = np.empty((len(entry), 3), dtype=np.int64)
    ref[:, 0] = ref[:, 2] = np.where(acts, kind - Op.SEND, len(REGIONS))
    ref[:, 1] = np.cumsum(acts) - 1
    present = grid >= 0

    row, kind, begun = row[acts], kind[acts], begun[acts]
    taken = (begun == Op.RECV) | (begun == Op.IRECV)
    # A receive gets what was sent, which may be less than it asked for.
    size = program.size[row]
    matched = taken & (message[acts] >= 0)
    size[matched] = result.message_times.size[message[acts][matched]]
    unknown = record[acts] == Kind.IRECV_REQUEST
    unknown |= record[acts] == Kind.ISEND_COMPLETE
    blocking = (kind == Op.SEND) | (kind == Op.RECV)

    def column(values: Ints) -> Ints:
        return np.where(unknown, -1, values)

    records = Records(
        peer=column(program.peer[row]).astype(np.int32),
        comm=column(program.context[row]).astype(np.int32),
        tag=column(program.tag[row]).astype(np.int32),
        operation=np.full(len(row), NO_OPERATION, dtype=np.uint8),
        size=column(size),
        received=np.full(len(row), -1),
        request=np.where(blocking, -1, about[acts]),
    )
    everybody = np.arange(program.ranks, dtype=np.int32)
    events = np.bincount(ops.task[entry], present.sum(axis=1), minlength=program.ranks)
    return Trace(
        name=program.name,
        offsets=np.concatenate(([0], np.cumsum(events))).astype(np.int64),
        kind=grid[present].astype(np.uint8),
        time=time[present],
        ref=ref[present].astype(np.int32),
        records=records,
        regions=(*REGIONS, "MPI_Finalize"),
        communicators=(everybody,) * program.communicators,
        resolution=RESOLUTION,
    )

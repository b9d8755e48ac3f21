"""A simulated run of a program as a trace, for programs that were lowered from none.

Every operation becomes the MPI call that it is: ENTER, what it does, LEAVE.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hopmap.simulator.programs.program import Op, Program
from hopmap.simulator.result import Result
from hopmap.traces import Kind, Records, Trace, TraceError
from hopmap.traces.trace import NO_OPERATION

from .retimed_trace import RESOLUTION, recorded

Ints = NDArray[np.int64]

CALLS = ("Send", "Isend", "Recv", "Irecv", "Wait")  # of `Op.SEND` and those behind it
REGIONS = tuple(f"MPI_{call}" for call in CALLS)
_RECORDS = (Kind.SEND, Kind.ISEND, Kind.RECV, Kind.IRECV_REQUEST)


def trace_of_program(program: Program, result: Result) -> Trace:
    """Return the trace of a simulated run of a program without collectives.

    All ranks are in every communicator; an empty MPI_Finalize marks each rank's end.

    Raises
    ------
    TraceError
        Collectives, whose calls a program does not tell; operations that were not recorded.
    """
    ops = recorded(program, result)
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
    events = np.bincount(ops.strand[entry], present.sum(axis=1), minlength=program.ranks)
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

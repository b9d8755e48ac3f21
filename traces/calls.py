"""From a list of MPI calls per rank to a `Trace`: what the generators write their programs in.

A call table has one row per call, `CALL`; it becomes events as Score-P would record that call:
ENTER, what the call does, LEAVE. Only MPI_Waitall takes several rows, one for each request between
WAITALL and WAITALL_END. Calls take no time themselves, a replay decides what they cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from hopmap.arrays import Ints32, Table

from .trace import NO_OPERATION, Collective, Kind, Records, Trace, TraceError


class Call(IntEnum):
    """MPI calls that generators use, and the parts of those that take several rows."""

    COMM_RANK = 0
    COMM_SIZE = 1
    SEND = 2
    RECV = 3
    IRECV = 4
    WAIT = 5  # of an IRECV: carries the message that arrived
    INIT = 6
    FINALIZE = 7
    BARRIER = 8
    BCAST = 9
    REDUCE = 10
    ALLREDUCE = 11
    ALLTOALL = 12
    ISEND = 13
    COMM_SPLIT = 14
    COMM_DUP = 15
    WAIT_SENT = 16  # MPI_Wait of an ISEND
    WAITALL = 17
    RECEIVED = 18  # in an MPI_Waitall: an IRECV's message has arrived
    SENT = 19  # in an MPI_Waitall: an ISEND is done
    WAITALL_END = 20
    ALLTOALLV = 21


# The MPI call that a row belongs to where it is not one by itself.
_PART_OF = {
    Call.WAIT_SENT: Call.WAIT,
    Call.RECEIVED: Call.WAITALL,
    Call.SENT: Call.WAITALL,
    Call.WAITALL_END: Call.WAITALL,
}
_WHOLE = [call for call in Call if call not in _PART_OF]
REGIONS = tuple(f"MPI_{call.name.capitalize()}" for call in _WHOLE)
_REGION = np.array([_WHOLE.index(_PART_OF.get(call, call)) for call in Call], dtype=np.int32)

CALL = np.dtype(
    [
        ("call", np.uint8),
        ("before", np.float64),  # seconds of computation since the previous call
        ("peer", np.int32),  # world rank of the partner or the root, or -1
        ("comm", np.int32),  # place among the trace's communicators
        ("tag", np.int32),
        ("request", np.int64),  # see `with_requests`
        ("size", np.int64),  # bytes, as in `Records.size`
        ("received", np.int64),
    ]
)

_COLLECTIVE = (Kind.ENTER, Kind.COLLECTIVE_BEGIN, Kind.COLLECTIVE_END, Kind.LEAVE)
# Events of each call, and the operation of collectives; those that are not named are collectives.
_EVENTS = dict.fromkeys(Call, _COLLECTIVE) | {
    Call.COMM_RANK: (Kind.ENTER, Kind.LEAVE),
    Call.COMM_SIZE: (Kind.ENTER, Kind.LEAVE),
    Call.SEND: (Kind.ENTER, Kind.SEND, Kind.LEAVE),
    Call.RECV: (Kind.ENTER, Kind.RECV, Kind.LEAVE),
    Call.ISEND: (Kind.ENTER, Kind.ISEND, Kind.LEAVE),
    Call.IRECV: (Kind.ENTER, Kind.IRECV_REQUEST, Kind.LEAVE),
    Call.WAIT: (Kind.ENTER, Kind.IRECV, Kind.LEAVE),
    Call.WAIT_SENT: (Kind.ENTER, Kind.ISEND_COMPLETE, Kind.LEAVE),
    Call.WAITALL: (Kind.ENTER,),
    Call.RECEIVED: (Kind.IRECV,),
    Call.SENT: (Kind.ISEND_COMPLETE,),
    Call.WAITALL_END: (Kind.LEAVE,),
}
_GRID = np.full((len(Call), 4), 255, dtype=np.uint8)
for _call, _kinds in _EVENTS.items():
    _GRID[_call, : len(_kinds)] = _kinds
_BEGINS = _GRID[:, 0] == Kind.ENTER
_OPERATION = np.full(len(Call), NO_OPERATION, dtype=np.uint8)
_OPERATION[[Call.INIT, Call.COMM_SPLIT, Call.COMM_DUP]] = Collective.CREATE_HANDLE
_OPERATION[Call.FINALIZE] = Collective.DESTROY_HANDLE
for _name in ("BARRIER", "BCAST", "REDUCE", "ALLREDUCE", "ALLTOALL", "ALLTOALLV"):
    _OPERATION[Call[_name]] = Collective[_name]


def calls(call: Call | NDArray[np.uint8], count: int = 1, **columns: object) -> Table:
    """Make `count` rows of a call table; columns that are not named say "does not apply".

    The communicator is MPI_COMM_WORLD unless named, the request of a wait the latest.
    """
    rows = np.zeros(count, dtype=CALL)
    rows["call"] = call
    for name in ("peer", "tag", "request", "size", "received"):
        rows[name] = -1
    for name, value in columns.items():
        rows[name] = value
    return rows


def with_requests(table: Table) -> Table:
    """Give requests their numbers, from 1 in order of posting.

    What waits for one says which: -1 for the latest that was posted, -2 for the one before, ...
    """
    call, request = table["call"], table["request"]
    posted = (call == Call.IRECV) | (call == Call.ISEND)
    number = np.cumsum(posted)
    ends = np.isin(call, (Call.WAIT, Call.WAIT_SENT, Call.RECEIVED, Call.SENT))
    request[ends] += 1 + number[ends]
    request[posted] = number[posted]
    return table


def count_calls(table: Table) -> int:
    """MPI calls in a table: rows that begin one."""
    return int(np.count_nonzero(_BEGINS[table["call"]]))


def trace_of_calls(
    name: str,
    ranks: int,
    tables: Iterable[Table],
    communicators: Sequence[Ints32] = (),
) -> Trace:
    """Build the trace of a program from one call table per rank.

    `tables` are in order of the ranks, and consumed one at a time. `communicators` are the world
    ranks of the members of communicators 1, 2, ...; 0 is MPI_COMM_WORLD. More than 2^31 - 1 records
    are refused.
    """
    parts: dict[str, list[NDArray[np.generic]]] = {}
    counts = []
    records = 0
    for table in tables:
        columns = _events_of_calls(table, records)
        records += len(columns["peer"])
        if records >= 2**31:
            raise TraceError(f"{name}: too many records for one trace: take fewer steps")
        counts.append(len(columns["kind"]))
        for key, column in columns.items():
            parts.setdefault(key, []).append(column)
    # One column after the other, so that no more than one is held twice.
    whole = {key: np.concatenate(parts.pop(key)) for key in tuple(parts)}
    return Trace(
        name=name,
        offsets=np.concatenate(([0], np.cumsum(counts))).astype(np.int64),
        kind=whole["kind"],
        time=whole["time"],
        ref=whole["ref"],
        records=Records(**{field: whole[field] for field in Records._fields}),
        regions=REGIONS,
        communicators=(np.arange(ranks, dtype=np.int32), *communicators),
    )


def _events_of_calls(table: Table, first_record: int) -> dict[str, NDArray[np.generic]]:
    """Expand one rank's calls into event and record columns."""
    call = table["call"]
    # Each call becomes a row of events with holes, read off in order without them.
    grid = _GRID[call]
    present = grid != 255
    row = np.nonzero(present)[0]
    kind = grid[present]
    recorded = kind > np.uint8(Kind.LEAVE)
    ref = _REGION[call[row]]
    ref[recorded] = first_record + np.arange(np.count_nonzero(recorded))
    source = table[row[recorded]]
    begin = kind[recorded] == Kind.COLLECTIVE_BEGIN
    posted = kind[recorded] == Kind.IRECV_REQUEST
    sent = kind[recorded] == Kind.ISEND_COMPLETE
    blank = begin | posted | sent  # nothing is known yet, or any more
    operation = _OPERATION[source["call"]]
    # Whole nanoseconds, as a clock would give them, so that writing and reading changes nothing.
    time = np.rint(np.cumsum(table["before"]) * 1e9) / 1e9
    return {
        "kind": kind,
        "time": time[row],
        "ref": ref,
        "peer": np.where(blank, -1, source["peer"]).astype(np.int32),
        "comm": np.where(blank, -1, source["comm"]).astype(np.int32),
        "tag": np.where(blank, -1, source["tag"]).astype(np.int32),
        "operation": np.where(begin, NO_OPERATION, operation).astype(np.uint8),
        "size": np.where(blank, -1, source["size"]),
        "received": np.where(blank, -1, source["received"]),
        "request": source["request"],
    }

"""From a list of MPI calls per rank to a `Trace`: what the generators write their programs in.

A call table has one row per call, `CALL`; it becomes events as Score-P would record that call:
ENTER, what the call does, LEAVE. Calls take no time themselves, a replay decides what they cost.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from .trace import NO_OPERATION, Collective, Kind, Records, Trace, TraceError


class Call(IntEnum):
    """MPI calls that generators use."""

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
    ALLTOALLV = 13


REGIONS = tuple(f"MPI_{call.name.capitalize()}" for call in Call)

CALL = np.dtype(
    [
        ("call", np.uint8),
        ("before", np.float64),  # seconds of computation since the previous call
        ("peer", np.int32),  # world rank of the partner or the root, or -1
        ("tag", np.int32),
        ("request", np.int64),
        ("size", np.int64),  # bytes, as in `Records.size`
        ("received", np.int64),
    ]
)

_BEGIN, _END = Kind.COLLECTIVE_BEGIN, Kind.COLLECTIVE_END
# What stands between ENTER and LEAVE of each call, and the operation of collectives.
_INNER: tuple[tuple[Kind, ...], ...] = (
    (),
    (),
    (Kind.SEND,),
    (Kind.RECV,),
    (Kind.IRECV_REQUEST,),
    (Kind.IRECV,),
    *[(_BEGIN, _END)] * 8,
)
_OPERATION = np.full(len(Call), NO_OPERATION, dtype=np.uint8)
_OPERATION[Call.INIT] = Collective.CREATE_HANDLE
_OPERATION[Call.FINALIZE] = Collective.DESTROY_HANDLE
for _name in ("BARRIER", "BCAST", "REDUCE", "ALLREDUCE", "ALLTOALL", "ALLTOALLV"):
    _OPERATION[Call[_name]] = Collective[_name]


def calls(call: Call | NDArray[np.uint8], count: int = 1, **columns: object) -> NDArray[np.void]:
    """Make `count` rows of a call table; columns that are not named say "does not apply"."""
    rows = np.zeros(count, dtype=CALL)
    rows["call"] = call
    for name in ("peer", "tag", "request", "size", "received"):
        rows[name] = -1
    for name, value in columns.items():
        rows[name] = value
    return rows


def trace_of_calls(name: str, ranks: int, tables: Iterable[NDArray[np.void]]) -> Trace:
    """Build the trace of a program given as one call table per rank, all on MPI_COMM_WORLD.

    Parameters
    ----------
    tables : iterable of ndarray(CALL)
        One per rank, in order; consumed one at a time.

    Raises
    ------
    TraceError
        More than 2^31 - 1 records.
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
        communicators=(np.arange(ranks, dtype=np.int32),),
    )


def _events_of_calls(table: NDArray[np.void], first_record: int) -> dict[str, NDArray[np.generic]]:
    """Expand one rank's calls into event and record columns."""
    call = table["call"]
    width = max(len(inner) for inner in _INNER)
    inner = np.full((len(Call), width), 255, dtype=np.uint8)
    for number, kinds in enumerate(_INNER):
        inner[number, : len(kinds)] = kinds
    # Each call becomes a row ENTER, inner..., LEAVE with holes, read off in order without them.
    grid = np.empty((len(call), width + 2), dtype=np.uint8)
    grid[:, 0] = Kind.ENTER
    grid[:, 1:-1] = inner[call]
    grid[:, -1] = Kind.LEAVE
    present = grid != 255
    row = np.nonzero(present)[0]
    kind = grid[present]
    recorded = kind > np.uint8(Kind.LEAVE)
    ref = np.where(recorded, 0, call[row]).astype(np.int32)
    ref[recorded] = first_record + np.arange(np.count_nonzero(recorded))
    source = table[row[recorded]]
    begin = kind[recorded] == Kind.COLLECTIVE_BEGIN
    posted = kind[recorded] == Kind.IRECV_REQUEST
    blank = begin | posted  # nothing is known yet
    operation = _OPERATION[source["call"]]
    # Whole nanoseconds, as a clock would give them, so that writing and reading changes nothing.
    time = np.rint(np.cumsum(table["before"]) * 1e9) / 1e9
    return {
        "kind": kind,
        "time": time[row],
        "ref": ref,
        "peer": np.where(blank, -1, source["peer"]).astype(np.int32),
        "comm": np.where(blank, -1, 0).astype(np.int32),
        "tag": np.where(blank, -1, source["tag"]).astype(np.int32),
        "operation": np.where(begin, NO_OPERATION, operation).astype(np.uint8),
        "size": np.where(blank, -1, source["size"]),
        "received": np.where(blank, -1, source["received"]),
        "request": source["request"],
    }

"""Matched probes (MPI_Mprobe, MPI_Mrecv) as the receives that they are.

A probe that matches takes its message out of what other receives can have: that is where the
message is received. MPI_Mrecv only fetches it, so that a rank waits for the message at its probe;
what MPI_Imrecv fetches is posted there, and awaited where its request is completed.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hopmap.traces import Kind, Trace, TraceError

Ints = NDArray[np.int64]


def with_matched_probes(trace: Trace) -> Trace:
    """Return the trace with RECV, IRECV_REQUEST and IRECV in place of what matched probes left.

    Events without a meaning of their own any more become tests of requests.

    Raises
    ------
    TraceError
        A receive of a message that was not probed for, or the end of one that was not begun.
    """
    probing = (trace.kind >= Kind.PROBE) & (trace.kind <= Kind.IMRECV)
    if not probing.any():
        return trace
    kind, records = (
        trace.kind.copy(),
        trace.records._replace(
            **{
                name: getattr(trace.records, name).copy()
                for name in ("peer", "comm", "tag", "request")
            }
        ),
    )
    events = np.flatnonzero(probing)
    what, row = kind[events], trace.ref[events]
    kind[events] = Kind.REQUEST_TEST
    rank = np.searchsorted(trace.offsets, events, side="right") - 1
    request = trace.records.request[row]

    fetches = (what == Kind.MRECV) | (what == Kind.IMRECV_REQUEST)
    matched = (what == Kind.PROBE) & (request >= 0)
    message = np.where(what == Kind.IMRECV_REQUEST, trace.records.received[row], request)
    some = np.flatnonzero(matched | fetches)
    probe = np.full(len(events), -1, dtype=np.int64)
    probe[some] = _latest(trace, events, rank, message, some, fetches, "message")

    posted = what == Kind.IMRECV_REQUEST
    some = np.flatnonzero(posted | (what == Kind.IMRECV))
    begun = np.full(len(events), -1, dtype=np.int64)
    begun[some] = _latest(trace, events, rank, request, some, ~posted, "request")

    received = probe[what == Kind.MRECV]
    kind[events[received]] = Kind.RECV
    starts = probe[posted]
    kind[events[starts]] = Kind.IRECV_REQUEST
    # Numbers that no other request has: another may have had this one until after the probe.
    records.request[row[starts]] = -2 - starts
    ends = np.flatnonzero(what == Kind.IMRECV)
    starts = probe[begun[ends]]
    kind[events[ends]] = Kind.IRECV
    for column in (records.peer, records.comm, records.tag, records.request):
        column[row[ends]] = column[row[starts]]
    return replace(trace, kind=kind, records=records)


def _latest(
    trace: Trace,
    events: Ints,
    rank: Ints,
    number: Ints,
    some: Ints,
    ends: NDArray[np.bool_],
    name: str,
) -> Ints:
    """Of each end, the place of the start before it with the same rank and number; else -1."""
    order = some[np.lexsort((some, number[some], rank[some]))]
    before = np.roll(order, 1)
    same = (number[before] == number[order]) & (rank[before] == rank[order]) & ~ends[before]
    same[:1] = False
    stray = order[ends[order] & ~same]
    if stray.size:
        at = int(stray.min())
        event = events[at] - trace.offsets[rank[at]]
        begun = "probed for" if name == "message" else "begun"
        raise TraceError(
            f"{trace.name}: rank {rank[at]}, event {event}: {Kind(trace.kind[events[at]]).name} "
            f"of {name} {number[at]}, which was not {begun}"
        )
    found = np.full(len(events), -1, dtype=np.int64)
    found[order[same]] = before[same]
    return np.where(ends, found, -1)[some]

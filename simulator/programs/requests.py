"""Requests of non-blocking calls: which record completes which, and what is dropped."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hopmap.traces import Kind, Trace, TraceError

Ints = NDArray[np.int64]

# 1 for what starts a request, -1 for what ends one; and which starts each end may have, as bits.
ROLE = np.zeros(256, dtype=np.int8)
ROLE[[Kind.ISEND, Kind.IRECV_REQUEST, Kind.COLLECTIVE_REQUEST]] = 1
_STARTS_OF = np.zeros(256, dtype=np.int64)
for _end, _starts in {
    Kind.ISEND_COMPLETE: (Kind.ISEND,),
    Kind.IRECV: (Kind.IRECV_REQUEST,),
    Kind.REQUEST_CANCELLED: (Kind.ISEND, Kind.IRECV_REQUEST),
    Kind.COLLECTIVE_COMPLETE: (Kind.COLLECTIVE_REQUEST,),
}.items():
    ROLE[_end] = -1
    _STARTS_OF[_end] = sum(1 << start for start in _starts)


def ranks_of(trace: Trace, events: Ints) -> Ints:
    """Rank of each event."""
    return np.repeat(np.arange(trace.ranks), np.diff(np.searchsorted(events, trace.offsets)))


def pair_requests(
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
    role = ROLE[kind]
    where = np.flatnonzero(role)
    request = trace.records.request[trace.ref[events[where]]]
    rank = ranks_of(trace, events)[where]
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


def dropped_requests(
    kind: NDArray[np.uint8], partner: Ints, gone: NDArray[np.bool_]
) -> dict[str, int]:
    """Count the requests that are left out, by reason."""
    started = (partner < 0) & ~gone
    dropped = {
        "cancelled requests": int(gone.sum()),
        "receives never completed": int((started & (kind == Kind.IRECV_REQUEST)).sum()),
        "collectives never completed": int((started & (kind == Kind.COLLECTIVE_REQUEST)).sum()),
    }
    return {reason: count for reason, count in dropped.items() if count}

"""Requests of non-blocking calls and matched probes: which record completes which.

Freed receives get the messages that no other receive can have taken. Matched probes (MPI_Mprobe,
MPI_Mrecv) become the receives that they are: a probe that matches takes its message out of what
other receives can have, so that the message is received there. MPI_Mrecv only fetches it, so that a
rank waits for the message at its probe; what MPI_Imrecv fetches is posted there, and awaited where
its request is completed.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hopmap.arrays import Bools, Ints
from hopmap.traces import Kind, Trace, TraceError

from .mpi_calls import event_name

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


def pair_requests(trace: Trace, events: Ints, kind: NDArray[np.uint8]) -> tuple[Ints, Bools]:
    """Pair the start of each request with its end.

    Returns `partner`, of a start the place in `events` of its completion, and of a completion of
    its start; and `gone`, starts of requests that were cancelled. Both have shape (records,).
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
        raise TraceError(
            f"{event_name(trace, events[where[at]])}: {Kind(kind[where[at]]).name} of request "
            f"{request[at]}, which was not started"
        )
    partner[where[ends]] = where[ends - 1]
    partner[where[ends - 1]] = where[ends]

    gone = np.zeros(len(events), dtype=np.bool_)
    gone[partner[kind == Kind.REQUEST_CANCELLED]] = True
    partner[gone] = -1
    return partner, gone


def count_dropped(kind: NDArray[np.uint8], partner: Ints, gone: Bools) -> dict[str, int]:
    """Count the requests that are left out, by reason."""
    started = (partner < 0) & ~gone
    dropped = {
        "cancelled requests": int(gone.sum()),
        "receives never completed": int((started & (kind == Kind.IRECV_REQUEST)).sum()),
        "collectives never completed": int((started & (kind == Kind.COLLECTIVE_REQUEST)).sum()),
    }
    return {reason: count for reason, count in dropped.items() if count}


def with_freed_receives(
    trace: Trace, events: Ints, rank: Ints, freed: Ints, partner: Ints, gone: Bools
) -> tuple[Trace, Ints]:
    """Find the messages of receives that were never completed, where there is only one answer.

    A channel (source, target, tag, communicator) to which more was sent than its target's other
    receives took must have sent the rest to these. If a rank has one such channel, and at least
    as much is left there as it has freed receives, each of them belongs to it, in the place in
    which it was posted: else the receives behind it would take the messages before theirs. If a
    rank has more such channels, on which as much is left as it has freed receives, and none of
    their other receives is posted between these, it does not matter which one took which message.
    What a matched probe found is known (`with_matched_probes`).

    `events` are those that are not brackets, `rank` is theirs, and `freed` are the places there of
    the receives that were never completed; for `partner` and `gone` see `pair_requests`. Returns
    the trace with what was found in the records of these receives, and which of `freed` they are.
    """
    if not freed.size:
        return trace, freed
    row, kind = trace.ref[events], trace.kind[events]
    wanted = np.isin(trace.records.peer[row], rank[freed]) | np.isin(rank, rank[freed])
    sends = np.flatnonzero(wanted & ~gone & ((kind == Kind.SEND) | (kind == Kind.ISEND)))
    takes = np.flatnonzero(wanted & ((kind == Kind.RECV) | (kind == Kind.IRECV)))
    known = trace.records.peer[row[freed]] >= 0
    takes = np.concatenate((takes, freed[known]))
    both = np.concatenate((sends, takes))
    peer, own = trace.records.peer[row[both]].astype(np.int64), rank[both]
    sent = np.arange(len(both)) < len(sends)
    tag = trace.records.tag[row[both]].astype(np.int64)
    source, target = np.where(sent, own, peer), np.where(sent, peer, own)
    columns = np.stack((source, target, tag, trace.records.comm[row[both]]))
    _, first, channel = np.unique(columns, axis=1, return_index=True, return_inverse=True)
    left = np.bincount(channel.ravel(), np.where(sent, 1, -1)).astype(np.int64)
    rich = np.flatnonzero(left > 0)

    records = trace.records._replace(
        **{name: getattr(trace.records, name).copy() for name in ("peer", "tag", "comm", "size")}
    )
    found = [freed[known]]
    posted = np.where(kind[takes] == Kind.IRECV, partner[takes], takes)
    of_takes = channel.ravel()[len(sends) :]
    freed = freed[~known]
    for r in np.unique(rank[freed]):
        mine, candidates = freed[rank[freed] == r], rich[target[first[rich]] == r]
        between = posted[np.isin(of_takes, candidates)]
        between = between[(between > mine[0]) & (between < mine[-1])]
        if len(candidates) == 1 and left[candidates[0]] >= len(mine):
            example = np.repeat(first[candidates], len(mine))
        elif left[candidates].sum() == len(mine) and not between.size:
            example = np.repeat(first[candidates], left[candidates])
        else:
            continue
        records.peer[row[mine]] = source[example]
        for name in ("tag", "comm", "size"):
            getattr(records, name)[row[mine]] = getattr(records, name)[row[both[example]]]
        found.append(mine)
    return replace(trace, records=records), np.concatenate(found)


def with_matched_probes(trace: Trace) -> Trace:
    """Return the trace with RECV, IRECV_REQUEST and IRECV in place of what matched probes left.

    Events without a meaning of their own any more become tests of requests.
    """
    probing = (trace.kind >= Kind.PROBE) & (trace.kind <= Kind.IMRECV)
    if not probing.any():
        return trace
    names, kind = ("peer", "comm", "tag", "request"), trace.kind.copy()
    records = trace.records._replace(
        **{name: getattr(trace.records, name).copy() for name in names}
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
    trace: Trace, events: Ints, rank: Ints, number: Ints, some: Ints, ends: Bools, name: str
) -> Ints:
    """Of each end, the place of the start before it with the same rank and number; else -1."""
    order = some[np.lexsort((some, number[some], rank[some]))]
    before = np.roll(order, 1)
    same = (number[before] == number[order]) & (rank[before] == rank[order]) & ~ends[before]
    same[:1] = False
    stray = order[ends[order] & ~same]
    if stray.size:
        at = int(stray.min())
        begun = "probed for" if name == "message" else "begun"
        raise TraceError(
            f"{event_name(trace, events[at])}: {Kind(trace.kind[events[at]]).name} of {name} "
            f"{number[at]}, which was not {begun}"
        )
    found = np.full(len(events), -1, dtype=np.int64)
    found[order[same]] = before[same]
    return np.where(ends, found, -1)[some]

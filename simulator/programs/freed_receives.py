"""Receives that were freed, so that the trace does not tell what they took."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hopmap.traces import Kind, Trace

Ints = NDArray[np.int64]


def with_freed_receives(
    trace: Trace, events: Ints, rank: Ints, freed: Ints, partner: Ints, gone: NDArray[np.bool_]
) -> tuple[Trace, Ints]:
    """Find the messages of receives that were never completed, where there is only one answer.

    A channel (source, target, tag, communicator) to which more was sent than its target's other
    receives took must have given the rest to these. If a rank has one such channel, and at least
    as much is left there as it has freed receives, each of them belongs to it, in the place in
    which it was posted: else the receives behind it would take the messages before theirs. If a
    rank has more such channels, on which as much is left as it has freed receives, and none of
    their other receives is posted between these, it does not matter which one took which message.
    What a matched probe found is known (`matched_probes.py`).

    Parameters
    ----------
    events, rank : ndarray(int64, shape=(records,))
        Events that are not brackets, and their ranks.
    freed : ndarray(int64)
        Places in `events` of the receives that were never completed.
    partner : ndarray(int64, shape=(records,))
        As `pair_requests` has it.
    gone : ndarray(bool, shape=(records,))
        Starts of requests that were cancelled.

    Returns
    -------
    trace : Trace
        With partner, tag, communicator and size in the records of the receives that were found.
    found : ndarray(int64)
        Which of `freed` these are.
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

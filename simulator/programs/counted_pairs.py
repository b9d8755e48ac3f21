"""Who sends how much to whom in alltoallv and alltoallw: from counts beside a trace, or made up."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hopmap.arrays import Ints
from hopmap.traces import Collective, Trace, TraceError

from .agreement import Found

OF_PAIRS = (Collective.ALLTOALLV, Collective.ALLTOALLW)


class CountedPairs(NamedTuple):
    """Counts by entry of `Found`."""

    name: str  # the file that they are from
    # begin, end: rows of each entry in `peer` and `size`
    begin: Ints
    end: Ints
    # peer, size: receivers, as ranks in the communicator, and bytes
    peer: Ints
    size: Ints

    def key(self, entries: Ints) -> bytes:
        """Return what is equal if all counts of these entries are."""
        rows = [slice(self.begin[entry], self.end[entry]) for entry in entries]
        lengths = self.end[entries] - self.begin[entries]
        return b"".join(
            [lengths.tobytes(), *(c[row].tobytes() for c in (self.peer, self.size) for row in rows)]
        )

    def matrix(self, entries: Ints) -> Ints:
        """Bytes from each member to each; `entries` are the members' of one call."""
        pairs = np.zeros((len(entries), len(entries)), dtype=np.int64)
        for member, entry in enumerate(entries):
            rows = slice(self.begin[entry], self.end[entry])
            pairs[member, self.peer[rows]] = self.size[rows]
        return pairs


def counted_pairs(trace: Trace, found: Found) -> CountedPairs | None:
    """Find the counts of every call.

    Raises
    ------
    TraceError
        Counts of a rank, call or peer that there is not, or that do not add up to what the trace
        says was sent.
    """
    counts = trace.counts
    if counts is None:
        return None
    calls = np.flatnonzero(np.isin(found.operation, OF_PAIRS))
    rank = found.rank[calls]  # not decreasing: entries come in the order of events
    first = np.searchsorted(rank, np.arange(trace.ranks + 1))
    made = np.diff(first)
    for row in np.flatnonzero(counts.rank >= trace.ranks)[:1]:
        raise TraceError(
            f"{counts.name}: rank {counts.rank[row]}: expected a rank below {trace.ranks}"
        )
    for row in np.flatnonzero(counts.call >= made[counts.rank])[:1]:
        at = counts.rank[row]
        raise TraceError(
            f"{counts.name}: rank {at}, call {counts.call[row]}: {trace.name} has {made[at]} calls "
            "of alltoallv and alltoallw there"
        )
    place = first[counts.rank] + counts.call
    order = np.argsort(place, kind="stable")
    bounds = np.searchsorted(place[order], np.arange(len(calls) + 1))
    peer, size = counts.peer[order], counts.size[order]
    members = np.array([len(c) for c in trace.communicators])[found.communicator[calls]]
    for row in np.flatnonzero(peer >= members[place[order]])[:1]:
        k = int(place[order][row])
        raise TraceError(
            f"{_call(counts.name, found, calls, first, k)}: peer {peer[row]}: expected one below "
            f"{members[k]}"
        )
    sums = np.diff(np.append(0, np.cumsum(size))[bounds])
    for k in np.flatnonzero(sums != found.sent[calls])[:1]:
        raise TraceError(
            f"{_call(counts.name, found, calls, first, int(k))}: {sums[k]} bytes in all: expected "
            f"{found.sent[calls[k]]}, as {trace.name} has it; is it cut, or of another run?"
        )
    begin, end = np.zeros((2, len(found.rank)), dtype=np.int64)
    begin[calls], end[calls] = bounds[:-1], bounds[1:]
    return CountedPairs(counts.name, begin, end, peer, size)


def _call(name: str, found: Found, calls: Ints, first: Ints, k: int) -> str:
    rank = found.rank[calls[k]]
    return f"{name}: rank {rank}, call {k - first[rank]}"


def are_made_up(sent: Ints, received: Ints) -> bool:
    """Whether more than one matrix of bytes has these sums."""
    return bool((sent > 0).sum() > 1 and (received > 0).sum() > 1)


def check_received(pairs: Ints, received: Ints, name: str, where: str) -> None:
    """Raise `TraceError` if a member's counts are not what the trace says it received."""
    sums = pairs.sum(axis=0)
    for member in np.flatnonzero(sums != received)[:1]:
        raise TraceError(
            f"{name}: {where}: {sums[member]} bytes to member {member}: expected "
            f"{received[member]}, as the trace has it"
        )

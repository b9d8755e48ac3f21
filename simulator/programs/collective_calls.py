"""Which calls of the members of a communicator are one collective, and how much each pair moves.

The k-th call of every member is the k-th collective; that members agree on operation and root is
checked. Calls that make or free handles need not be of all: Score-P before 8.4 recorded
MPI_Comm_create_group and MPI_Intercomm_create, which only members of the new communicator call, on
the old one (src/adapters/mpi/SCOREP_Mpi_Cg.c of 8.0; its ChangeLog under 8.4). Between two of the
other collectives, calls of one operation and MPI function belong together as follows:

* Every member or some, each equally often: in order.
* Otherwise, and always for functions of a group: if every rank that calls is in just one smaller
  communicator whose members all call, with these, in order.
* Otherwise by time. A call belongs to all calls that had begun when it ended: then nothing
  waits that did not wait in the recorded run.

Who sends how much to whom in alltoallv and alltoallw comes from a .counts file, or is assumed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from hopmap.arrays import Floats, Ints
from hopmap.traces import Collective, Kind, Trace, TraceError, mpi_name

# Collective over the group of the new communicator, not over the old one's.
_OF_A_GROUP = frozenset(
    {
        "comm_create_group",
        "comm_create_from_group",
        "comm_join",
        "intercomm_create",
        "intercomm_create_from_groups",
    }
)


class Found(NamedTuple):
    """Collective calls of all ranks, one entry per rank and call, in the order of `start`."""

    rank: Ints
    start: Ints  # event where the member enters
    done: Ints  # event of the record that tells what it was
    task: Ints  # of a non-blocking one, else -1
    communicator: Ints
    operation: Ints
    root: Ints
    sent: Ints
    received: Ints
    iterations: Ints  # how often the call is made: more than once in loops


class Agreed(NamedTuple):
    """Calls that the same members made together."""

    members: Ints  # world ranks, in the communicator's order
    grid: Ints  # shape (members, calls): entries of `Found`


def group_functions(trace: Trace) -> frozenset[int]:
    """Regions of functions that only members of the new communicator call."""
    names = enumerate(trace.regions)
    return frozenset(k for k, name in names if mpi_name(name) in _OF_A_GROUP)


def match_calls(
    trace: Trace, calls: Found, communicator: int, of_a_group: frozenset[int]
) -> list[Agreed]:
    """Put the calls on a communicator together: calls of all members first, then calls of some.

    `of_a_group` are the `group_functions` of the trace.
    """
    members = trace.communicators[communicator].astype(np.int64)
    position = np.full(trace.ranks, -1, dtype=np.int64)
    position[members] = np.arange(len(members))
    entries = np.flatnonzero(calls.communicator == communicator)
    at = position[calls.rank[entries]]
    name = f"{trace.name}: communicator {communicator}"
    if (at < 0).any():
        raise TraceError(f"{name}: rank {calls.rank[entries][at < 0][0]} is not a member")
    order = np.argsort(at, kind="stable")
    entries, at = entries[order], at[order]
    handles = calls.operation[entries] >= Collective.CREATE_HANDLE
    open_ = _open(trace, calls, entries[handles])
    if not handles.any() or (
        of_a_group.isdisjoint(open_.region.tolist())
        and _all_equal(calls, entries, at, len(members))
    ):
        return [Agreed(members, _grid(name, calls, members, position, entries, at))]
    grid = _grid(name, calls, members, position, entries[~handles], at[~handles])
    # Calls that are not about handles before each entry, of the same member.
    before = np.cumsum(~handles) - at * grid.shape[1]
    of = entries[handles]
    keys = np.stack((before[handles], calls.operation[of], open_.region))
    together = [Agreed(members, grid)] if grid.shape[1] else []
    for key in np.unique(keys, axis=1).T:
        these = np.flatnonzero((keys == key[:, None]).all(axis=0))
        whole = int(key[2]) not in of_a_group
        groups = _groups(trace, position, len(members), at[handles], open_, these, whole)
        together += [Agreed(members[calling], of[calls]) for calling, calls in groups]
    return together


def _all_equal(calls: Found, entries: Ints, at: Ints, members: int) -> bool:
    """Whether all members call the same in the same order."""
    counts = np.bincount(at, minlength=members)
    if (counts != counts[0]).any():
        return False
    operations = calls.operation[entries].reshape(members, -1)
    return bool((operations == operations[0]).all())


def _grid(name: str, calls: Found, members: Ints, position: Ints, entries: Ints, at: Ints) -> Ints:
    """Entries by member and call, shape (members, calls), checked."""
    counts = np.bincount(at, minlength=len(members))
    if counts.min() != counts.max():
        few, many = int(counts.argmin()), int(counts.argmax())
        raise TraceError(
            f"{name}: rank {members[few]} takes part in {counts[few]} collectives and rank "
            f"{members[many]} in {counts[many]}: expected the same number"
        )
    grid = entries.reshape(len(members), -1)
    # On an inter-communicator the members on the root's own side name none.
    rootless = calls.root[grid] < 0
    roots = calls.root[grid].max(axis=0)
    for what, values in (
        ("operation", calls.operation[grid]),
        ("root", np.where(rootless, roots, calls.root[grid])),
    ):
        differ = np.argwhere(values[0][:, None] != values.T)
        if len(differ):
            k, member = differ[0]
            here, there = values[0, k], values[member, k]
            if what == "operation":
                here, there = (Collective(int(op)).name for op in (here, there))
            raise TraceError(
                f"{name}, collective {k}: rank {members[0]} has {what} {here} and rank "
                f"{members[member]} {what} {there}: expected the same"
            )
    if (position[roots[roots >= 0]] < 0).any():
        raise TraceError(f"{name}: a collective's root is not a member")
    return grid


class _Open(NamedTuple):
    """Regions in which calls were made, and when; region -1 and no time outside of any."""

    region: Ints
    begin: Floats
    end: Floats


def _open(trace: Trace, calls: Found, entries: Ints) -> _Open:
    """Find the brackets next to the records of calls."""
    rank = calls.rank[entries]
    before, behind = calls.start[entries].copy(), calls.done[entries].copy()
    first, last = trace.offsets[rank], trace.offsets[rank + 1] - 1
    for at, step, bound in ((before, -1, first), (behind, 1, last)):
        while (moves := (trace.kind[at] > Kind.LEAVE) & (at != bound)).any():
            at[moves] += step
    entered = trace.kind[before] == Kind.ENTER
    left = trace.kind[behind] == Kind.LEAVE
    return _Open(
        region=np.where(entered, trace.ref[before], -1).astype(np.int64),
        begin=trace.time[np.where(entered, before, calls.start[entries])],
        end=trace.time[np.where(left, behind, calls.done[entries])],
    )


def _groups(
    trace: Trace, position: Ints, members: int, at: Ints, open_: _Open, these: Ints, full: bool
) -> Iterator[tuple[Ints, Ints]]:
    """Split calls of one kind into positions of members and their calls, shape (members, calls)."""
    calling, counts = np.unique(at[these], return_counts=True)
    if full and (counts == counts[0]).all():
        yield calling, these.reshape(len(calling), -1)
        return
    smaller = {
        tuple(np.sort(position[inside]).tolist())
        for inside in trace.communicators
        if 0 < len(inside) < members and np.isin(position[inside], calling).all()
    }
    sides = [[side for side in smaller if member in side] for member in calling.tolist()]
    if all(len(of) == 1 for of in sides):
        for side in sorted(smaller):
            mine = these[np.isin(at[these], side)]
            if len(mine) % len(side) == 0 and len(set(np.bincount(at[mine])[list(side)])) == 1:
                yield np.array(side), mine.reshape(len(side), -1)
            else:
                yield from _by_time(at, open_, mine)
        return
    yield from _by_time(at, open_, these)


def _by_time(at: Ints, open_: _Open, these: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Take the call that ends first among the members' next ones, with all that had begun."""
    queues = [these[at[these] == member].tolist() for member in np.unique(at[these])]
    while queues:
        heads = np.array([queue[0] for queue in queues])
        joint = heads[open_.begin[heads] <= open_.end[heads].min()]
        yield at[joint], joint[:, None]
        queues = [queue[1:] if queue[0] in joint else queue for queue in queues]
        queues = [queue for queue in queues if queue]


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


def count_pairs(trace: Trace, record: Found) -> CountedPairs | None:
    """Find the counts of every call, which add up to what the trace says was sent."""
    counts = trace.counts
    if counts is None:
        return None
    calls = np.flatnonzero(np.isin(record.operation, OF_PAIRS))
    rank = record.rank[calls]  # not decreasing: entries come in the order of events
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
    members = np.array([len(c) for c in trace.communicators])[record.communicator[calls]]
    for row in np.flatnonzero(peer >= members[place[order]])[:1]:
        k = int(place[order][row])
        raise TraceError(
            f"{_call(counts.name, record, calls, first, k)}: peer {peer[row]}: expected one below "
            f"{members[k]}"
        )
    sums = np.diff(np.append(0, np.cumsum(size))[bounds])
    for k in np.flatnonzero(sums != record.sent[calls])[:1]:
        raise TraceError(
            f"{_call(counts.name, record, calls, first, int(k))}: {sums[k]} bytes in all: expected "
            f"{record.sent[calls[k]]}, as {trace.name} has it; is it cut, or of another run?"
        )
    begin, end = np.zeros((2, len(record.rank)), dtype=np.int64)
    begin[calls], end[calls] = bounds[:-1], bounds[1:]
    return CountedPairs(counts.name, begin, end, peer, size)


def _call(name: str, record: Found, calls: Ints, first: Ints, k: int) -> str:
    rank = record.rank[calls[k]]
    return f"{name}: rank {rank}, call {k - first[rank]}"


def are_ambiguous(sent: Ints, received: Ints) -> bool:
    """Whether more than one matrix of bytes has these sums."""
    return bool((sent > 0).sum() > 1 and (received > 0).sum() > 1)


def check_received(pairs: Ints, received: Ints, name: str, location: str) -> None:
    """Raise `TraceError` if a member's counts are not what the trace says it received."""
    sums = pairs.sum(axis=0)
    for member in np.flatnonzero(sums != received)[:1]:
        raise TraceError(
            f"{name}: {location}: {sums[member]} bytes to member {member}: expected "
            f"{received[member]}, as the trace has it"
        )

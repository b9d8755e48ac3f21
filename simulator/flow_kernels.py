"""Max-min fair rates of flows over servers, kept up to date as flows open and close.

Progressive filling (Bertsekas and Gallager, Data Networks, 2nd ed., section 6.5.2): all rates rise
together until a server is full; the flows over it keep their rate, the others go on rising. Only
the flows that are joined with an opened or closed one by a chain of shared servers are looked at.
A change costs O(h log s) for s servers and h flow-hops in that chain.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from .schedule_kernels import Schedule, empty_schedule, put, take

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FREE, SPARE, STAMP, DIRTY = 0, 1, 2, 3  # places in `Flows.counts`


class Flows(NamedTuple):
    """Open flows in slots, and for each server the list of those that cross it.

    Attributes
    ----------
    capacity : ndarray(float64, shape=(servers,))
    indptr, servers : ndarray(int64)
        Path p is ``servers[indptr[p]:indptr[p + 1]]``.
    head : ndarray(int64, shape=(servers,))
        First entry of a server's list, -1 where it is empty.
    next, prev : ndarray(int64, shape=(slots, longest path))
        Of each slot and stop the entries around it in that server's list, as flat places.
    path, item : ndarray(int64, shape=(slots,))
        Path of a flow, and the caller's name for it.
    remaining, rate, since : ndarray(float64, shape=(slots,))
        Bytes that were left at `since`, and bytes/s from then on.
    fair : ndarray(float64, shape=(slots,))
        Rate under construction.
    seen, free : ndarray(int64, shape=(slots,))
        Stamp of the last visit; next free slot.
    found : ndarray(int64, shape=(slots,))
        Slots whose rate changed.
    left, users, mark, touched, dirty : ndarray(shape=(servers,))
        Capacity not given away yet, flows without a rate, stamp of the last visit; servers visited,
        and servers where a flow opened or closed.
    shares : Schedule
        Servers by the rate that their remaining flows would get.
    counts : ndarray(int64, shape=(4,))
        First free slot, free slots, stamp, dirty servers.
    """

    capacity: Floats
    indptr: Ints
    servers: Ints
    head: Ints
    next: Ints
    prev: Ints
    path: Ints
    item: Ints
    remaining: Floats
    rate: Floats
    since: Floats
    fair: Floats
    seen: Ints
    free: Ints
    found: Ints
    left: Floats
    users: Ints
    mark: Ints
    touched: Ints
    dirty: Ints
    shares: Schedule
    counts: Ints


PER_SLOT = ("next", "prev", "path", "item", "remaining", "rate", "since", "fair", "seen", "found")


def empty_flows(capacity: Floats, indptr: Ints, servers: Ints, slots: int) -> Flows:
    """Return no flows, with room for some."""
    n = len(capacity)
    longest = int(np.diff(indptr).max(initial=1))
    columns: dict[str, Any] = {name: np.zeros(0, dtype=np.int64) for name in PER_SLOT}
    for name in ("remaining", "rate", "since", "fair"):
        columns[name] = np.zeros(0, dtype=np.float64)
    for name in ("next", "prev"):
        columns[name] = np.zeros((0, longest), dtype=np.int64)
    flows = Flows(
        capacity=capacity,
        indptr=indptr,
        servers=servers,
        head=np.full(n, -1, dtype=np.int64),
        free=np.zeros(0, dtype=np.int64),
        left=np.zeros(n),
        users=np.zeros(n, dtype=np.int64),
        mark=np.zeros(n, dtype=np.int64),
        touched=np.zeros(n, dtype=np.int64),
        dirty=np.zeros(n, dtype=np.int64),
        shares=empty_schedule(n),
        counts=np.array([-1, 0, 0, 0]),
        **columns,
    )
    return enlarged(flows, slots)


def enlarged(flows: Flows, more: int) -> Flows:
    """Return the same flows with room for `more` others."""
    old = len(flows.path)
    columns: dict[str, Any] = {}
    for name in (*PER_SLOT, "free"):
        column = getattr(flows, name)
        columns[name] = np.concatenate((column, np.zeros((more, *column.shape[1:]), column.dtype)))
    columns["free"][old:] = np.arange(old + 1, old + more + 1)
    columns["free"][-1] = flows.counts[FREE]
    flows.counts[FREE] = old
    flows.counts[SPARE] += more
    return flows._replace(**columns)


@njit(cache=True)
def open_flow(flows: Flows, path: int, item: int, size: float, now: float) -> int:
    """Start a flow of `size` bytes; it has no rate before the next `share`."""
    slot = flows.counts[FREE]
    flows.counts[FREE] = flows.free[slot]
    flows.counts[SPARE] -= 1
    flows.path[slot], flows.item[slot] = path, item
    flows.remaining[slot], flows.rate[slot], flows.since[slot] = size, 0.0, now
    width = flows.next.shape[1]
    after, before = flows.next.ravel(), flows.prev.ravel()
    begin = flows.indptr[path]
    for stop in range(flows.indptr[path + 1] - begin):
        server = flows.servers[begin + stop]
        entry, first = slot * width + stop, flows.head[server]
        after[entry], before[entry] = first, -1
        if first >= 0:
            before[first] = entry
        flows.head[server] = entry
        _soil(flows, server)
    return int(slot)


@njit(cache=True)
def close_flow(flows: Flows, slot: int) -> None:
    """End a flow."""
    width = flows.next.shape[1]
    after, before = flows.next.ravel(), flows.prev.ravel()
    path = flows.path[slot]
    begin = flows.indptr[path]
    for stop in range(flows.indptr[path + 1] - begin):
        server, entry = flows.servers[begin + stop], slot * width + stop
        if before[entry] >= 0:
            after[before[entry]] = after[entry]
        else:
            flows.head[server] = after[entry]
        if after[entry] >= 0:
            before[after[entry]] = before[entry]
        _soil(flows, server)
    flows.free[slot] = flows.counts[FREE]
    flows.counts[FREE] = slot
    flows.counts[SPARE] += 1


@njit(cache=True)
def _soil(flows: Flows, server: int) -> None:
    """Note that the flows over a server have changed."""
    if flows.mark[server] >= 0:
        flows.mark[server] = -1 - flows.mark[server]
        flows.dirty[flows.counts[DIRTY]] = server
        flows.counts[DIRTY] += 1


@njit(cache=True)
def share(flows: Flows, now: float) -> int:
    """Give all flows their fair rates; return how many changed, which `found` lists."""
    visited, reached = _reach(flows)
    _fill(flows, visited)
    changed = 0
    for k in range(reached):
        slot = flows.found[k]
        if flows.fair[slot] != flows.rate[slot]:
            sent = flows.rate[slot] * (now - flows.since[slot])
            flows.remaining[slot] = max(0.0, flows.remaining[slot] - sent)
            flows.since[slot], flows.rate[slot] = now, flows.fair[slot]
            flows.found[changed] = slot
            changed += 1
    return changed


@njit(cache=True)
def _reach(flows: Flows) -> tuple[int, int]:
    """Find the servers and flows that a change may affect; return their numbers."""
    width = flows.next.shape[1]
    after = flows.next.ravel()
    flows.counts[STAMP] += 1
    stamp = flows.counts[STAMP]
    visited, reached = flows.counts[DIRTY], 0
    flows.counts[DIRTY] = 0
    for k in range(visited):
        server = flows.dirty[k]
        flows.touched[k] = server
        flows.mark[server], flows.users[server] = stamp, 0
    done = 0
    while done < visited:
        entry = flows.head[flows.touched[done]]
        done += 1
        while entry >= 0:
            slot = entry // width
            entry = after[entry]
            if flows.seen[slot] == stamp:
                continue
            flows.seen[slot] = stamp
            flows.fair[slot] = -1.0
            flows.found[reached] = slot
            reached += 1
            path = flows.path[slot]
            for stop in range(flows.indptr[path], flows.indptr[path + 1]):
                server = flows.servers[stop]
                if flows.mark[server] != stamp:
                    flows.mark[server], flows.users[server] = stamp, 0
                    flows.touched[visited] = server
                    visited += 1
                flows.users[server] += 1
    return visited, reached


@njit(cache=True)
def _fill(flows: Flows, visited: int) -> None:
    """Progressive filling over the servers that were reached."""
    width = flows.next.shape[1]
    after = flows.next.ravel()
    left, users, shares = flows.left, flows.users, flows.shares
    for k in range(visited):
        server = flows.touched[k]
        left[server] = flows.capacity[server]
        if users[server] > 0:
            put(shares, server, left[server] / users[server], server)
    level = 0.0
    while shares.size[0] > 0:
        full = shares.item[0]
        level = max(level, shares.time[0])  # it never falls, but by rounding
        take(shares, full)
        entry = flows.head[full]
        while entry >= 0:
            slot = entry // width
            entry = after[entry]
            if flows.fair[slot] >= 0:
                continue
            flows.fair[slot] = level
            path = flows.path[slot]
            for stop in range(flows.indptr[path], flows.indptr[path + 1]):
                server = flows.servers[stop]
                if server != full:
                    users[server] -= 1
                    left[server] -= level
                    if users[server] == 0:
                        take(shares, server)
                    else:
                        put(shares, server, left[server] / users[server], server)

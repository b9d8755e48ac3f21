"""Compiled maximum flows, and cuts of few capacities that leave both sides their room.

Sources: Ahuja and Orlin, Naval Research Logistics 1991 (shortest augmenting paths; gap heuristic);
Hamann and Strasser, Graph bisection with Pareto optimization, ACM JEA 2018 (FlowCutter): while a
cut is not balanced, what is on its lighter side becomes source or sink, with a vertex more beyond
the cut, one that adds no flow if there is one. Of the cuts of one flow the most even is taken, as
far as growing one side finds it.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any, NamedTuple

import numpy as np

from hopmap.arrays import Bools, Floats, Ints, Ints32
from hopmap.compilation import subroutine

TINY = 1e-7  # a capacity that is none
AGAIN = 0.5  # relabelings for each vertex after which distances are found again
AUGMENTED = 60  # times that a cut is moved on by more flow


class Network(NamedTuple):
    """Flow network: arcs by vertex, each with its way back, and a way from and to the terminals."""

    indptr: Ints32
    head: Ints32
    back: Ints32
    free: Floats
    source: Floats
    sink: Floats


@subroutine
def max_flow(net: Network) -> float:
    """Send as much as there is room for, in place; return how much."""
    indptr, head, back, free, source, sink = net
    n = len(source)
    level, many = _distances(net)
    arc, path = indptr[:n].copy(), np.empty(n, dtype=np.int32)
    origins = np.flatnonzero(source > 0.0)
    total, dead = 0.0, n + 1  # no vertex of a level from `dead` on reaches a sink
    now, work = 1, 0
    while now < dead:
        if work > n * AGAIN:
            level, many = _distances(net)
            arc[:] = indptr[:n]
            dead, now, work = n + 1, 1, 0
        later = dead
        for s in origins:
            depth, u = 0, s
            while source[s] > 0.0 and level[s] <= now:
                if sink[u] > 0.0:
                    sent = min(source[s], sink[u])
                    for k in range(depth):
                        sent = min(sent, free[path[k]])
                    total += sent
                    source[s] = _subtract(source[s], sent)
                    sink[u] = _subtract(sink[u], sent)
                    for k in range(depth - 1, -1, -1):
                        e = path[k]
                        free[e] = _subtract(free[e], sent)
                        free[back[e]] += sent
                        if free[e] == 0.0:
                            depth, u = k, head[back[e]]
                    continue
                forward = False
                while arc[u] < indptr[u + 1]:
                    e = arc[u]
                    if free[e] > 0.0 and level[head[e]] + 1 == level[u]:
                        path[depth] = e
                        depth += 1
                        u = head[e]
                        forward = True
                        break
                    arc[u] += 1
                if forward:
                    continue
                arc[u] = indptr[u]
                work += 1
                lowest = n
                for e in range(indptr[u], indptr[u + 1]):
                    if free[e] > 0.0:
                        lowest = min(lowest, level[head[e]])
                many[level[u]] -= 1
                if many[level[u]] == 0:
                    dead = min(dead, level[u])
                level[u] = lowest + 1
                many[level[u]] += 1
                if depth > 0:
                    depth -= 1
                    u = head[back[path[depth]]]
            if source[s] > 0.0:
                later = min(later, level[s])
        now = later
    return total


@subroutine
def _distances(net: Network) -> tuple[Ints32, Ints32]:
    """Arcs with room from every vertex out of a sink, and how many have which number."""
    indptr, head, back, free, _, sink = net
    n = len(sink)
    level, queue = np.full(n, n + 1, dtype=np.int32), np.empty(n, dtype=np.int32)
    many = np.zeros(n + 2, dtype=np.int32)
    count = 0
    for v in range(n):
        if sink[v] > 0.0:
            level[v] = 1
            queue[count] = v
            count += 1
    i = 0
    while i < count:
        u = queue[i]
        i += 1
        many[level[u]] += 1
        for e in range(indptr[u], indptr[u + 1]):
            v = head[e]
            if level[v] > n and free[back[e]] > 0.0:
                level[v] = level[u] + 1
                queue[count] = v
                count += 1
    many[n + 1] = n - count
    return level, many


@subroutine
def _subtract(capacity: float, sent: float) -> float:
    """Return what is left, nothing if it is tiny."""
    left = capacity - sent
    return left if left > TINY else 0.0


@subroutine
def _reach(
    net: Network, begin: Ints32, count: int, forward: bool, within: Bools, seen: Ints32
) -> int:
    """Add to `within`, and list in `seen`, what has a way from (or to) `begin[:count]`."""
    indptr, head, back, free, _, _ = net
    found = 0
    for i in range(count):
        if not within[begin[i]]:
            within[begin[i]] = True
            seen[found] = begin[i]
            found += 1
    i = 0
    while i < found:
        u = seen[i]
        i += 1
        for e in range(indptr[u], indptr[u + 1]):
            v = head[e]
            if not within[v] and (free[e] if forward else free[back[e]]) > 0.0:
                within[v] = True
                seen[found] = v
                found += 1
    return found


@subroutine
def balanced_cut(
    net: Network,
    size: Ints,
    depth: Ints32,
    load: tuple[int, int],
    room: tuple[int, int],
    most: float,
) -> tuple[float, Bools]:
    """Cut that gives both sides no more than their room, and what it cuts; nothing from `most` on.

    `size` is what a vertex takes, and `depth` how far it is from the cut that there is, positive on
    the side of the source. `load` is what source and sink have for themselves, `room` what their
    sides take at most. Returned are the capacity of the cut, infinite if there is none of less than
    `most`, and who is on the side of the source.
    """
    source, sink = net.source, net.sink
    n = len(size)
    everything = load[0] + load[1] + size.sum()
    value = 0.0
    seen, begin = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int32)
    side = np.zeros((2, n), dtype=np.bool_)
    refused = np.zeros(n, dtype=np.bool_)
    for _ in range(AUGMENTED):
        value += max_flow(net)
        if value >= most:
            break
        heavy = np.array([load[0], load[1]])
        edge, wall = [_heap(), _heap()], [_heap(), _heap()]
        for s in range(2):
            side[s] = False
            count = 0
            for v in range(n):
                if (source[v] if s == 0 else sink[v]) > 0.0:
                    begin[count] = v
                    count += 1
            found = _reach(net, begin, count, s == 0, side[s], seen)
            heavy[s] += _take(net, size, depth, s, side[s], seen, found, edge[s])
        refused[:] = False
        settled = -1
        while True:
            s = 0 if heavy[0] * room[1] <= heavy[1] * room[0] else 1
            for t in range(2):
                if settled < 0 and heavy[t] <= room[t] and everything - heavy[t] <= room[1 - t]:
                    settled = t
            if settled >= 0:
                s = settled
            if len(edge[s]) == 0:
                break
            key, v = heappop(edge[s])
            if side[s, v] or refused[v]:
                continue
            if side[1 - s, v]:
                heappush(wall[s], (key, v))
                continue
            begin[0] = v
            found = _reach(net, begin, 1, s == 0, side[s], seen)
            more = 0
            for i in range(found):
                more += size[seen[i]]
            even = everything * room[s] / (room[0] + room[1])
            if heavy[s] + more > (room[s] if settled < 0 else even):
                side[s, seen[:found]] = False
                refused[v] = True
            else:
                heavy[s] += _take(net, size, depth, s, side[s], seen, found, edge[s])
        if settled >= 0:
            return value, side[0] if settled == 0 else ~side[1]
        ends, other = (source, sink) if s == 0 else (sink, source)
        chosen = -1
        while chosen < 0 and len(wall[s]) > 0:
            key, v = heappop(wall[s])
            if not side[s, v] and heavy[s] + size[v] <= room[s] and other[v] < np.inf:
                chosen = v
        if chosen < 0:
            break
        ends[side[s]] = np.inf
        ends[chosen] = np.inf
    return np.inf, side[0]


@subroutine
def _heap() -> list[tuple[int, Any]]:
    """Return an empty heap."""
    heap = [(0, np.int32(0))]
    heap.clear()
    return heap


@subroutine
def _take(
    net: Network,
    size: Ints,
    depth: Ints32,
    s: int,
    side: Bools,
    seen: Ints32,
    count: int,
    edge: list[tuple[int, Any]],
) -> int:
    """Size of who is new on a side; whom they touch is at its edge."""
    total = 0
    for i in range(count):
        u = seen[i]
        total += size[u]
        for e in range(net.indptr[u], net.indptr[u + 1]):
            v = net.head[e]
            if not side[v]:
                heappush(edge, (-depth[v] if s == 0 else depth[v], v))
    return total

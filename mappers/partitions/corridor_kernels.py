"""Compiled refinement of blocks two at a time, by the best cut of a corridor along their border.

Source: Sanders and Schulz, Engineering multilevel graph partitioning algorithms, ESA 2011: max-flow
min-cut improvement, pairs of blocks as long as one of them changes. Here the cut is that of what
the mapping costs: a vertex is also pulled by its neighbours in other blocks, by how much nearer to
them one of the two is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hopmap.arrays import Bools, Floats, Ints, Ints32
from hopmap.compilation import njit, subroutine
from hopmap.mappers.basic_kernels import sort_by

from .blocks_kernels import loads
from .flow_kernels import Network, balanced_cut

if TYPE_CHECKING:
    from .vcycles import Vertices


@njit
def recut(
    graph: Vertices, block: Ints32, room: Ints, far: Floats, part: float, deep: int, turns: int
) -> float:
    """Cut pairs of blocks again, in place; return what is saved.

    A corridor has at most such a part of each block, the vertices that are less than `deep` from
    the border. In later turns come the pairs of which one has changed. Blocks within their room
    stay there.
    """
    n, blocks = len(block), len(room)
    load = loads(block, graph.size, blocks)
    local = np.full(n, -1, dtype=np.int32)
    active = np.ones(blocks, dtype=np.bool_)
    total = 0.0
    for _ in range(turns):
        keys, ends = _borders(graph.indptr, graph.peer, block, active)
        order = np.arange(len(keys))
        sort_by(keys, order, np.empty_like(order))
        changed = np.zeros(blocks, dtype=np.bool_)
        first = 0
        while first < len(order):
            last = first
            key = keys[order[first]]
            while last < len(order) and keys[order[last]] == key:
                last += 1
            a, b = key // blocks, key % blocks
            most = int(part * load[a]), int(part * load[b])
            gain = _recut_pair(
                graph, block, load, room, far, (a, b), ends[order[first:last]], local, deep, most
            )
            if gain > 0:
                total += gain
                changed[a] = changed[b] = True
            first = last
        active = changed
        if not active.any():
            break
    return total


@subroutine
def _borders(indptr: Ints, peer: Ints, block: Ints32, active: Bools) -> tuple[Ints, Ints32]:
    """Every vertex at a border, with the number of the pair of blocks, one of which is active."""
    blocks = len(active)
    keys, ends = [np.int64(0)], [np.int32(0)]
    keys.clear()
    ends.clear()
    for v in range(len(block)):
        own, before = block[v], -1
        for i in range(indptr[v], indptr[v + 1]):
            other = block[peer[i]]
            if other != own and other != before and (active[own] or active[other]):
                keys.append(min(own, other) * blocks + max(own, other))
                ends.append(np.int32(v))
                before = other
    return np.array(keys), np.array(ends)


@subroutine
def _recut_pair(
    graph: Vertices,
    block: Ints32,
    load: Ints,
    room: Ints,
    far: Floats,
    pair: tuple[int, int],
    ends: Ints32,
    local: Ints32,
    deep: int,
    most: tuple[int, int],
) -> float:
    """Cut two blocks again, in place; return what is saved."""
    indptr, peer, weight, size = graph
    a, b = pair
    apart = far[a, b] - (far[a, a] + far[b, b]) / 2
    if apart <= 0:
        return 0.0
    here, depth, taken = _corridor(graph, block, pair, ends, local, deep, most)
    n = len(here)
    arcs = 0
    start = np.zeros(n + 1, dtype=np.int32)
    for i in range(n):
        for k in range(indptr[here[i]], indptr[here[i] + 1]):
            if local[peer[k]] >= 0:
                arcs += 1
        start[i + 1] = arcs
    head, back = np.empty(arcs, dtype=np.int32), np.empty(arcs, dtype=np.int32)
    free = np.empty(arcs)
    source, sink = np.zeros(n), np.zeros(n)
    fill = start[:-1].copy()
    now = 0.0
    mine = np.empty(n, dtype=np.int64)
    for i in range(n):
        u = here[i]
        mine[i] = size[u]
        in_a, in_b = 0.0, 0.0  # what it costs to be in a, in b
        for k in range(indptr[u], indptr[u + 1]):
            v = peer[k]
            j = local[v]
            if j < 0:
                in_a += weight[k] * far[a, block[v]]
                in_b += weight[k] * far[b, block[v]]
                continue
            in_a += weight[k] * far[a, a] / 2
            in_b += weight[k] * far[b, b] / 2
            if j > i:
                head[fill[i]], head[fill[j]] = j, i
                back[fill[i]], back[fill[j]] = fill[j], fill[i]
                free[fill[i]] = free[fill[j]] = weight[k] * apart
                fill[i] += 1
                fill[j] += 1
                if block[v] != block[u]:
                    now += weight[k] * apart
        source[i], sink[i] = max(in_b - in_a, 0.0), max(in_a - in_b, 0.0)
        now += source[i] if block[u] == b else sink[i]
    net = Network(start, head, back, free, source, sink)
    value, near = balanced_cut(
        net, mine, depth, (load[a] - taken[0], load[b] - taken[1]), (room[a], room[b]),
        now * (1 - 1e-9),
    )  # fmt: skip
    if value < now:
        for i in range(n):
            to = a if near[i] else b
            if block[here[i]] != to:
                load[block[here[i]]] -= mine[i]
                load[to] += mine[i]
                block[here[i]] = to
    local[here] = -1
    return max(now - value, 0.0)


@subroutine
def _corridor(
    graph: Vertices,
    block: Ints32,
    pair: tuple[int, int],
    ends: Ints32,
    local: Ints32,
    deep: int,
    most: tuple[int, int],
) -> tuple[Ints32, Ints32, tuple[int, int]]:
    """Vertices of two blocks nearest to their border, their depth there, and their sizes.

    `local` gets their numbers.
    """
    indptr, peer, size = graph.indptr, graph.peer, graph.size
    a, b = pair
    here, depth = [np.int32(0)], [np.int32(0)]
    here.clear()
    depth.clear()
    sizes = np.zeros(2, dtype=np.int64)
    for v in ends:
        s = 0 if block[v] == a else 1
        if local[v] < 0 and (s == 0 or block[v] == b) and sizes[s] + size[v] <= most[s]:
            local[v] = len(here)
            here.append(v)
            depth.append(np.int32(1 - 2 * s))
            sizes[s] += size[v]
    i = 0
    while i < len(here):
        u = here[i]
        s = 0 if block[u] == a else 1
        if abs(depth[i]) >= deep:
            break
        for k in range(indptr[u], indptr[u + 1]):
            v = peer[k]
            if local[v] < 0 and block[v] == block[u] and sizes[s] + size[v] <= most[s]:
                local[v] = len(here)
                here.append(np.int32(v))
                depth.append(np.int32(depth[i] + 1 - 2 * s))
                sizes[s] += size[v]
        i += 1
    return np.array(here), np.array(depth), (sizes[0], sizes[1])

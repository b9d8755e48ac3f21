"""Compiled pieces of graph partitioning: cut, exact block sizes, and the groupings of TreeMatch.

The cost of a group is what leaves it.
"""

from __future__ import annotations

import numpy as np

from hopmap.arrays import Bools, Floats, Ints
from hopmap.compilation import njit, subroutine
from hopmap.mappers.basic_kernels import Graph, sort_by
from hopmap.mappers.greedy.greedy_kernels import volumes


@njit
def cut_of(graph: Graph, block: Ints) -> int:
    """Weight of the edges between blocks, each once."""
    indptr, peer, weight = graph.indptr, graph.peer, graph.weight
    cut = 0
    for v in range(len(block)):
        for i in range(indptr[v], indptr[v + 1]):
            if peer[i] < v and block[peer[i]] != block[v]:
                cut += weight[i]
    return cut


@njit
def fit(graph: Graph, block: Ints, capacity: Ints) -> None:
    """Move vertices out of blocks that are too large, the cheapest first; O(edges) a pass.

    A pass values the best move of every vertex of these blocks and makes those that are still
    needed and possible; there is at least one, so that it ends.
    """
    indptr, peer, weight = graph.indptr, graph.peer, graph.weight
    size = np.zeros(len(capacity), dtype=np.int64)
    for b in block:
        size[b] += 1
    near = np.zeros(len(capacity), dtype=np.int64)
    targets = np.empty(len(block), dtype=np.int64)
    losses = np.empty(len(block), dtype=np.int64)
    movable = np.empty(len(block), dtype=np.int64)
    order, other = np.empty(len(block), dtype=np.int64), np.empty(len(block), dtype=np.int64)
    while True:
        # Vertices without a neighbour in a block with room go to the emptiest.
        spare, over = 0, False
        for b in range(len(size)):
            over = over or size[b] > capacity[b]
            if capacity[b] - size[b] > capacity[spare] - size[spare]:
                spare = b
        if not over:
            break
        count = 0
        for v in range(len(block)):
            own = block[v]
            if size[own] <= capacity[own]:
                continue
            for i in range(indptr[v], indptr[v + 1]):
                near[block[peer[i]]] += weight[i]
            target = spare
            for i in range(indptr[v], indptr[v + 1]):
                b = block[peer[i]]
                if size[b] < capacity[b] and near[b] > near[target]:
                    target = b
            movable[count] = v
            targets[count] = target
            losses[count] = near[own] - near[target]
            order[count] = count
            count += 1
            for i in range(indptr[v], indptr[v + 1]):
                near[block[peer[i]]] = 0
        sort_by(losses, order[:count], other)
        for k in order[:count]:
            v, target = movable[k], targets[k]
            own = block[v]
            if size[own] > capacity[own] and size[target] < capacity[target]:
                size[own] -= 1
                size[target] += 1
                block[v] = target


@njit
def pair_up(pairs: Ints, vertices: int) -> Ints:
    """Pairs as they come, where both ends are left; then silent ones, the last two first."""
    groups = np.empty((vertices // 2, 2), dtype=np.int64)
    taken = np.zeros(vertices, dtype=np.bool_)
    count = 0
    for u, v in pairs:
        if not taken[u] and not taken[v]:
            groups[count] = u, v
            taken[u] = taken[v] = True
            count += 1
    later = -1
    for v in range(vertices - 1, -1, -1):
        if taken[v]:
            continue
        if later < 0:
            later = v
        else:
            groups[count] = v, later
            count += 1
            later = -1
    return groups


@subroutine
def cost_of(graph: Graph, volume: Ints, group: Ints, inside: Bools) -> int:
    """Weight of all edges that leave a group; `inside` is scratch, False everywhere."""
    indptr, peer, weight = graph.indptr, graph.peer, graph.weight
    cost = 0
    for v in group:
        inside[v] = True
    for v in group:
        cost += volume[v]
        for i in range(indptr[v], indptr[v + 1]):
            if inside[peer[i]]:
                cost -= weight[i]
    for v in group:
        inside[v] = False
    return cost


@subroutine
def next_set(at: Ints, total: int) -> bool:
    """Step to the next set of indices below the total, in lexicographic order; False at the end."""
    k = len(at)
    j = k - 1
    while j >= 0 and at[j] == total - k + j:
        j -= 1
    if j < 0:
        return False
    at[j] += 1
    for i in range(j + 1, k):
        at[i] = at[i - 1] + 1
    return True


@njit
def fast(graph: Graph, arity: int, limit: int) -> Ints:
    """Group after group, the cheapest of the first limit + 1 sets of the vertices left."""
    vertices = len(graph.indptr) - 1
    groups = np.empty((vertices // arity, arity), dtype=np.int64)
    volume = volumes(graph.indptr, graph.weight, len(graph.indptr) - 1)
    inside = np.zeros(vertices, dtype=np.bool_)
    taken = np.zeros(vertices, dtype=np.bool_)
    left = np.empty(arity + limit, dtype=np.int64)  # no set among the first has any beyond
    begin = 0
    for g in range(len(groups)):
        while taken[begin]:
            begin += 1
        count = 0
        for v in range(begin, vertices):
            if not taken[v] and count < len(left):
                left[count] = v
                count += 1
            elif count == len(left):
                break
        at = np.arange(arity)
        least = -1
        for _ in range(limit + 1):
            cost = cost_of(graph, volume, left[at], inside)
            if least < 0 or cost < least:
                least = cost
                groups[g] = left[at]
            if not next_set(at, count):
                break
        for v in groups[g]:
            taken[v] = True
    return groups


@njit
def grow(graph: Graph, arity: int, first: Ints) -> Ints:
    """Block of each vertex: the partition of least cut of those grown from the rows of `first`.

    In the order of their numbers vertices join the block of the one that they talk to most and
    that has room; those that talk to none the first block that has.
    """
    indptr, peer, weight = graph.indptr, graph.peer, graph.weight
    vertices = len(indptr) - 1
    best = np.empty(vertices, dtype=np.int64)
    least = -1
    for seeds in first:
        block = np.full(vertices, -1)
        size = np.ones(len(seeds), dtype=np.int64)
        for b in range(len(seeds)):
            block[seeds[b]] = b
        room = 0  # all before it are in full blocks
        for v in range(vertices):
            if block[v] >= 0:
                continue
            join = -1
            most = 0
            for i in range(indptr[v], indptr[v + 1]):
                u = peer[i]
                if block[u] < 0 or size[block[u]] == arity or weight[i] < most or weight[i] == 0:
                    continue
                if weight[i] > most or u < join:
                    join = u
                    most = weight[i]
            if join < 0:
                while room < v and size[block[room]] == arity:
                    room += 1
                join = room
                while block[join] < 0 or size[block[join]] == arity:
                    join += 1
            block[v] = block[join]
            size[block[v]] += 1
        cut = cut_of(graph, block)
        if least < 0 or cut < least:
            least = cut
            best = block
    return best


@njit
def costs(graph: Graph, groups: Ints) -> Floats:
    """Cost of each group, in double precision as in TreeMatch."""
    volume = volumes(graph.indptr, graph.weight, len(graph.indptr) - 1)
    inside = np.zeros(len(volume), dtype=np.bool_)
    cost = np.empty(len(groups))
    for g in range(len(groups)):
        cost[g] = cost_of(graph, volume, groups[g], inside)
    return cost


@subroutine
def complete(
    groups: Ints, cost: Floats, order: Ints, begin: int, least: float, chosen: Ints
) -> float:
    """Take the group at a place of the order and then all that fit; keep them if they cost less.

    Returns their cost, or `least` where they do not cost less or do not hold all vertices.
    """
    taken = np.zeros(groups.shape[1] * len(chosen), dtype=np.bool_)
    mine = np.empty_like(chosen)
    count = 0
    total = 0.0
    for place in range(begin, len(order)):
        g = order[place]
        fits = True
        for v in groups[g]:
            if taken[v]:
                fits = False
                break
        if fits:
            for v in groups[g]:
                taken[v] = True
            mine[count] = g
            count += 1
            total += cost[g]
            if count == len(chosen):
                break
    if count < len(chosen) or total >= least:
        return least
    chosen[:] = mine
    return total


@njit
def pick(groups: Ints, cost: Floats, order: Ints, starts: int, least: float, chosen: Ints) -> float:
    """`complete` from each of the first places."""
    for begin in range(min(starts, len(order))):
        least = complete(groups, cost, order, begin, least, chosen)
    return least


@njit
def pick_late(
    groups: Ints, cost: Floats, order: Ints, bound: int, least: float, chosen: Ints
) -> float:
    """`complete` from the last places backwards, until so many were better."""
    step = max(len(order) // 10_000, 2) ** 2
    better = 0
    for begin in range(len(order) - 1, -1, -step):
        cheaper = complete(groups, cost, order, begin, least, chosen)
        better += cheaper < least
        least = cheaper
        if better >= bound:
            break
    return least


@njit
def conflicts(groups: Ints, cost: Floats, vertices: int) -> Floats:
    """Weighted degree of each group: the cost of all that share a vertex with it over its own."""
    words = np.zeros((len(groups), (vertices + 63) // 64), dtype=np.uint64)
    for g in range(len(groups)):
        for v in groups[g]:
            words[g, v // 64] |= np.uint64(1) << np.uint64(v % 64)
    degree = np.zeros(len(groups))
    for g in range(len(groups)):
        for h in range(g):
            for w in range(words.shape[1]):
                if words[g, w] & words[h, w]:
                    degree[g] += cost[h]
                    degree[h] += cost[g]
                    break
    for g in range(len(groups)):
        if degree[g] > 0:
            degree[g] = degree[g] / cost[g] if cost[g] > 0 else np.inf
    return degree

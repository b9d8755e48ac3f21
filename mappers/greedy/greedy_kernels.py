"""Compiled constructions of `greedy`, `udfs`, `fhgreedy` and MinMD.

At the end, for MinMD with ``order=maplib``: how a dict of Python before 3.6 lists its keys.
"""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np

from hopmap.arrays import Bools, Ints, Ints32
from hopmap.compilation import njit, subroutine
from hopmap.mappers.cost_model import CostModel
from hopmap.topologies.routing import Router, distance

BEYOND = 2**63 - 1  # any distance


@subroutine
def nearest_room(router: Router, free: Ints, here: int) -> int:
    """First node with a free slot that is nearest to `here`, itself included; O(nodes)."""
    if free[here] > 0:
        return here
    best = -1
    least = 0
    for x in range(len(free)):
        if free[x] > 0:
            far = distance(router, here, x)
            if best < 0 or far < least:
                best = x
                least = far
    return best


@subroutine
def volumes(indptr: Ints, weight: Ints, ranks: int) -> Ints:
    """Sum of the weights of each rank's pairs."""
    volume = np.zeros(ranks, dtype=np.int64)
    for rank in range(ranks):
        for i in range(indptr[rank], indptr[rank + 1]):
            volume[rank] += weight[i]
    return volume


@njit
def embed(model: CostModel, slots: Ints, heaviest: Ints, start: int, node_of: Ints) -> None:
    """Fill `node_of`, the first of the heaviest ranks on the start node or nearest to it."""
    indptr, peer, weight = model.indptr, model.peer, model.weight
    ranks = len(node_of)
    free = slots.copy()
    here = start
    edges = [(np.int64(0), 0, np.int64(0))]  # negated weight, when its end was placed, the other
    edges.pop()
    top = 0
    placed = 0
    while placed < ranks:
        if len(edges) > 0:
            rank = heappop(edges)[2]
        else:
            rank = heaviest[top]
            top += 1
        if node_of[rank] >= 0:
            continue
        here = nearest_room(model.router, free, here)
        node_of[rank] = here
        free[here] -= 1
        placed += 1
        for i in range(indptr[rank], indptr[rank + 1]):
            if node_of[peer[i]] < 0:
                heappush(edges, (-weight[i], placed, peer[i]))


@njit
def walk(model: CostModel, slots: Ints, heaviest: Ints, start: int, node_of: Ints) -> None:
    """Fill `node_of`; the peers of every rank are sorted, the heaviest first."""
    indptr, peer = model.indptr, model.peer
    ranks = len(node_of)
    free = slots.copy()
    at = indptr.copy()  # first peer of each rank that has not been looked at
    path = np.empty(ranks, dtype=np.int64)
    for root in heaviest:
        if node_of[root] >= 0:
            continue
        rank, here, depth = root, start, 0
        while True:
            node = nearest_room(model.router, free, here)
            node_of[rank] = node
            free[node] -= 1
            path[depth] = rank
            depth += 1
            while depth > 0:
                parent = path[depth - 1]
                while at[parent] < indptr[parent + 1] and node_of[peer[at[parent]]] >= 0:
                    at[parent] += 1
                if at[parent] < indptr[parent + 1]:
                    break
                depth -= 1
            if depth == 0:
                break
            rank = peer[at[parent]]
            here = node_of[parent]


@njit
def grow(model: CostModel, slots: Ints, start: int, seeds: int, node_of: Ints) -> None:
    """Fill `node_of`: the rank with the most traffic, then the seeds, then by connectivity."""
    router, indptr, peer, weight = model.router, model.indptr, model.peer, model.weight
    ranks, nodes = len(node_of), len(slots)
    free = slots.copy()
    connected = np.zeros(ranks, dtype=np.int64)
    away = np.empty(nodes, dtype=np.int64)  # distance of each node from those in use
    away[:] = BEYOND
    for done in range(ranks):
        if done == 0:
            volume, rank = volumes(indptr, weight, ranks), 0
            for r in range(ranks):
                if volume[r] > volume[rank]:
                    rank = r
            node = nearest_room(router, free, start)
        else:
            if done <= seeds:
                rank = farthest(indptr, peer, node_of)
            else:
                rank = -1
                for r in range(ranks):
                    if node_of[r] < 0 and (rank < 0 or connected[r] > connected[rank]):
                        rank = r
            node = best_node(model, free, away, node_of, rank)
        node_of[rank] = node
        free[node] -= 1
        for x in range(nodes):
            away[x] = min(away[x], distance(router, node, x))
        for i in range(indptr[rank], indptr[rank + 1]):
            connected[peer[i]] += weight[i]


@subroutine
def best_node(model: CostModel, free: Ints, away: Ints, node_of: Ints, rank: int) -> int:
    """Nearest to any placed partner, then of least cost; without partners far from all in use."""
    router, peer, weight = model.router, model.peer, model.weight
    node = -1
    level = 0
    least = 0
    for x in range(len(free)):
        if free[x] == 0:
            continue
        near = -1
        cost = 0
        for i in range(model.indptr[rank], model.indptr[rank + 1]):
            there = node_of[peer[i]]
            if there >= 0:
                far = distance(router, x, there)
                cost += weight[i] * far
                if near < 0 or far < near:
                    near = far
        if near < 0:
            near = -away[x]
        if node < 0 or near < level or (near == level and cost < least):
            node = x
            level = near
            least = cost
    return node


@subroutine
def farthest(indptr: Ints, peer: Ints, node_of: Ints) -> int:
    """First rank that takes most steps of the traffic to reach from the placed ones, or none do."""
    ranks = len(node_of)
    steps, queue = np.empty(ranks, dtype=np.int64), np.empty(ranks, dtype=np.int64)
    head, tail = 0, 0
    for r in range(ranks):
        steps[r] = ranks
        if node_of[r] >= 0:
            steps[r] = 0
            queue[tail] = r
            tail += 1
    while head < tail:
        here = queue[head]
        head += 1
        for i in range(indptr[here], indptr[here + 1]):
            if steps[peer[i]] == ranks:
                steps[peer[i]] = steps[here] + 1
                queue[tail] = peer[i]
                tail += 1
    far = 0
    for r in range(ranks):
        if steps[r] > steps[far]:
            far = r
    return far


@subroutine
def nearest_free(
    indptr: Ints,
    neighbour: Ints32,
    used: Ints,
    slots: Ints,
    limit: int,
    root: int,
    last_first: bool,
    queue: Ints,
    seen: Bools,
) -> int:
    """First node met with room below the limit, breadth first from root, root included; or -1.

    `last_first` goes on from the vertex met last, as MapLib does. Vertices beyond the nodes
    (switches) are passed through.
    """
    if root < len(slots) and used[root] < min(limit, slots[root]):
        return root
    seen[:] = False
    seen[root] = True
    queue[0] = root
    head = 0
    tail = 1
    while head < tail:
        if last_first:
            tail -= 1
            here = queue[tail]
        else:
            here = queue[head]
            head += 1
        for i in range(indptr[here], indptr[here + 1]):
            there = neighbour[i]
            if not seen[there]:
                if there < len(slots) and used[there] < min(limit, slots[there]):
                    return int(there)
                seen[there] = True
                queue[tail] = there
                tail += 1
    return -1


@njit
def place_pairs(
    indptr: Ints,
    neighbour: Ints32,
    slots: Ints,
    start: int,
    last_first: bool,
    pairs: Ints,
    node_of: Ints,
) -> None:
    """Algorithm 2 on pairs in order, then the ranks that are left, from the start node."""
    vertices = len(indptr) - 1
    queue = np.empty(vertices, dtype=np.int64)
    seen = np.empty(vertices, dtype=np.bool_)
    used = np.zeros(len(slots), dtype=np.int64)
    limit = 1
    for i in range(len(pairs) + len(node_of)):
        if i < len(pairs):
            u, v = pairs[i, 0], pairs[i, 1]
            if node_of[u] < 0 and node_of[v] >= 0:
                u, v = v, u
        else:
            u = i - len(pairs)
            v = u
        for rank in (u, v):
            if node_of[rank] >= 0:
                continue
            root = start if rank == u else node_of[u]
            node = -1
            while node < 0:
                node = nearest_free(
                    indptr, neighbour, used, slots, limit, root, last_first, queue, seen
                )
                limit += 1 if node < 0 else 0
            used[node] += 1
            node_of[rank] = node


@njit
def order_by_hash(keys: Ints) -> Ints:
    """Positions of the keys as a dict would list them that got them in this order.

    Keys are distinct and >= 0, and their own hashes. A dict lists its table of 8, 16, ... places,
    of which up to two thirds are taken, from the front. Source: CPython 3.5, Objects/dictobject.c.
    """
    size = 8
    table = np.full(size, -1)
    for k in range(len(keys)):
        if k == (2 * size + 1) // 3:
            kept = table[table >= 0]
            enough = 2 * k + size // 2
            while size <= enough:
                size *= 2
            table = np.full(size, -1)
            for j in kept:
                table[_free_place(table, keys, j)] = j
        table[_free_place(table, keys, k)] = k
    return table[table >= 0]


@subroutine
def _free_place(table: Ints, keys: Ints, k: int) -> int:
    """First free place of the table on the walk that the key's hash begins."""
    mask = len(table) - 1
    rest = keys[k]
    place = rest & mask
    while table[place] >= 0:
        place = (5 * place + rest + 1) & mask
        rest >>= 5
    return int(place)


@njit
def list_partners(indptr: Ints, partner: Ints, order: Ints) -> None:
    """Fill `order`: the place of each partner in the list of its rank, row by row."""
    for row in range(len(indptr) - 1):
        begin, end = indptr[row], indptr[row + 1]
        listed = order_by_hash(partner[begin:end])
        for i in range(len(listed)):
            order[begin + listed[i]] = i

"""Compiled steps of MinMD: breadth-first searches for a free node, and placing by connection.

At the end, for ``order=maplib``: how a dict of Python before 3.6 lists its keys.
"""

from __future__ import annotations

import numpy as np

from hopmap.arrays import Bools, Ints, Ints32
from hopmap.compilation import njit, subroutine
from hopmap.mappers.cost_model import CostModel
from hopmap.topologies.routing import distance

from .greedy_kernels import volumes


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
            node = nearest_free(
                indptr, neighbour, used, slots, limit, root, last_first, queue, seen
            )
            while node < 0:
                limit += 1
                node = nearest_free(
                    indptr, neighbour, used, slots, limit, root, last_first, queue, seen
                )
            used[node] += 1
            node_of[rank] = node


@njit
def place_connected(model: CostModel, slots: Ints, node_of: Ints) -> None:
    """Place the rank with the heaviest connection to placed ones where its pairs cost least.

    Equal ranks: the one with the least traffic in all, so that most of it is placed already, then
    the lower number; ranks without traffic last. Equal nodes: the one farthest from node 0, which
    packs the ranks into a corner, then the lower number.
    """
    router, indptr, peer, weight = model.router, model.indptr, model.peer, model.weight
    ranks = len(node_of)
    nodes = len(slots)
    room = slots.copy()
    total = volumes(indptr, weight, ranks)
    away = np.empty(nodes, dtype=np.int64)
    for node in range(nodes):
        away[node] = distance(router, 0, node)
    connection = np.zeros(ranks, dtype=np.int64)
    for _ in range(ranks):
        rank = -1
        for r in range(ranks):
            if node_of[r] < 0 and (
                rank < 0
                or connection[r] > connection[rank]
                or (
                    connection[r] == connection[rank]
                    and total[r] > 0
                    and (total[r] < total[rank] or total[rank] == 0)
                )
            ):
                rank = r
        node = -1
        least = 0
        for x in range(nodes):
            if room[x] == 0:
                continue
            cost = 0
            for i in range(indptr[rank], indptr[rank + 1]):
                if node_of[peer[i]] >= 0:
                    cost += weight[i] * distance(router, x, node_of[peer[i]])
            if node < 0 or cost < least or (cost == least and away[x] > away[node]):
                node = x
                least = cost
        node_of[rank] = node
        room[node] -= 1
        for i in range(indptr[rank], indptr[rank + 1]):
            connection[peer[i]] += weight[i]


@njit
def listed_by_hash(keys: Ints) -> Ints:
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
        listed = listed_by_hash(partner[begin:end])
        for i in range(len(listed)):
            order[begin + listed[i]] = i

"""Compiled PaCMap: the centre of the traffic, and the expansion over framing nodes."""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np

from hopmap.arrays import Ints
from hopmap.compilation import njit
from hopmap.mappers.greedy.greedy_kernels import nearest_room
from hopmap.topologies.routing import Router, distance

from .partition_kernels import Graph


@njit
def centre_rank(graph: Graph, centres: int) -> int:
    """Rank that reaches most ranks, and of these with the least sum of distances.

    A pair that exchanges w is 1 / w long. At most so many ranks around the middle are tried.
    """
    indptr, peer, weight = graph.indptr, graph.peer, graph.weight
    ranks = len(indptr) - 1
    first = max(0, ranks // 2 - centres // 2)
    best = -1
    most = 0
    least = 0.0
    length = np.full(ranks, np.inf)
    reached = np.empty(ranks, dtype=np.int64)
    for centre in range(first, min(ranks, first + centres)):
        length[centre] = 0.0
        queue = [(0.0, np.int64(centre))]
        total = 0.0
        touched = 1
        reached[0] = centre
        settled = 0
        while len(queue) > 0 and not (best >= 0 and most == ranks and total >= least):
            far, here = heappop(queue)
            if far > length[here]:
                continue
            settled += 1
            total += far
            for i in range(indptr[here], indptr[here + 1]):
                if weight[i] > 0 and far + 1.0 / weight[i] < length[peer[i]]:
                    if length[peer[i]] == np.inf:
                        reached[touched] = peer[i]
                        touched += 1
                    length[peer[i]] = far + 1.0 / weight[i]
                    heappush(queue, (length[peer[i]], peer[i]))
        for i in range(touched):
            length[reached[i]] = np.inf
        if best < 0 or settled > most or (settled == most and total < least):
            best, most, least = centre, settled, total
    return best


@njit
def expand(
    router: Router, graph: Graph, slots: Ints, start: int, first: int, node_of: Ints
) -> None:
    """Fill `node_of` from the first rank on the start node, or nearest to it."""
    indptr, peer, weight = graph.indptr, graph.peer, graph.weight
    ranks, nodes = len(node_of), len(slots)
    free = slots.copy()
    start = nearest_room(router, free, start)
    framing = np.zeros(nodes, dtype=np.bool_)
    framing[start] = True
    connected = np.full(ranks, -1, dtype=np.int64)  # -1: no partner is placed
    connected[first] = 0
    for _ in range(ranks):
        rank = -1
        for r in range(ranks):
            if node_of[r] < 0 and (rank < 0 or connected[r] > connected[rank]):
                rank = r
        node = -1
        least = 0
        for x in range(nodes):
            if not framing[x]:
                continue
            cost = 0
            for i in range(indptr[rank], indptr[rank + 1]):
                there = node_of[peer[i]]
                if there >= 0:
                    cost += weight[i] * distance(router, there, x)
            if (
                node < 0
                or cost < least
                or (cost == least and distance(router, start, x) < distance(router, start, node))
            ):
                node = x
                least = cost
        node_of[rank] = node
        free[node] -= 1
        framing[node] = free[node] > 0
        for i in range(indptr[rank], indptr[rank + 1]):
            connected[peer[i]] = max(connected[peer[i]], 0) + weight[i]
        near = distance(router, node, nearest_room(router, free, node)) if free.any() else 0
        for x in range(nodes):
            if free[x] > 0 and distance(router, node, x) == near:
                framing[x] = True

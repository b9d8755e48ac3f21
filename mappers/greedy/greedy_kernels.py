"""Compiled constructions of `greedy`, `udfs` and `fhgreedy`; see `constructions.py`."""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np

from hopmap.arrays import Ints
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

"""Compiled FHgreedy: the next rank, and the best node for it; see `fhgreedy.py`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hopmap.compilation import njit, subroutine
from hopmap.mappers.cost_model import CostModel
from hopmap.topologies.routing import distance

from .construction_kernels import nearest_room, volumes

BEYOND = 2**63 - 1  # any distance


@njit
def grow(
    model: CostModel,
    slots: NDArray[np.int64],
    start: int,
    seeds: int,
    node_of: NDArray[np.int64],
) -> None:
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
def best_node(
    model: CostModel,
    free: NDArray[np.int64],
    away: NDArray[np.int64],
    node_of: NDArray[np.int64],
    rank: int,
) -> int:
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
def farthest(indptr: NDArray[np.int64], peer: NDArray[np.int64], node_of: NDArray[np.int64]) -> int:
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

"""Compiled lower bound of the cost of pairs of ranks that are not placed yet; see `astar`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hopmap.compilation import njit
from hopmap.mappers.cost_kernels import priced
from hopmap.mappers.cost_model import CostModel
from hopmap.mappers.sort_kernels import sort_by
from hopmap.topologies.routing import distance


@njit
def closest(model: CostModel, slots: NDArray[np.int64], worst: int) -> NDArray[np.int64]:
    """Most slots that cost at most d for a rank on any node, its own apart, for d = least..worst.

    Entry d - least, with least the cost of two ranks on one node.
    """
    router, kind = model.router, model.kind
    least = priced(kind, 0)
    most = np.zeros(worst - least + 1, dtype=np.int64)
    here = np.empty_like(most)
    for x in range(len(slots)):
        if slots[x] == 0:
            continue
        here[:] = 0
        for y in range(len(slots)):
            here[priced(kind, distance(router, x, y)) - least] += slots[y]
        here[0] -= 1
        within = 0
        for d in range(len(most)):
            within += here[d]
            most[d] = max(most[d], within)
    return most


@njit
def unplaced_bounds(
    model: CostModel, order: NDArray[np.int64], most: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Lower bound of all pairs among the ranks order[depth:], for every depth."""
    least = priced(model.kind, 0)
    ranks = len(order)
    bounds = np.zeros(ranks + 1, dtype=np.int64)
    twice = np.zeros(ranks, dtype=np.int64)
    placed = np.ones(ranks, dtype=np.bool_)
    weights, items = np.empty(ranks, dtype=np.int64), np.empty(ranks, dtype=np.int64)
    spare = np.empty(ranks, dtype=np.int64)
    total = 0
    for depth in range(ranks - 1, -1, -1):
        u = order[depth]
        placed[u] = False
        for j in range(model.indptr[u] - 1, model.indptr[u + 1]):
            rank = u if j < model.indptr[u] else model.peer[j]
            if placed[rank]:
                continue
            count = 0
            for i in range(model.indptr[rank], model.indptr[rank + 1]):
                if not placed[model.peer[i]]:
                    weights[count] = -model.weight[i]
                    count += 1
            for i in range(count):
                items[i] = i
            sort_by(weights, items[:count], spare)
            d = 0
            bound = 0
            for i in range(count):
                while d < len(most) - 1 and most[d] <= i:
                    d += 1
                bound -= weights[items[i]] * (d + least)
            total += bound - twice[rank]
            twice[rank] = bound
        bounds[depth] = -(-total // 2)
    return bounds

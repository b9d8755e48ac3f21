"""Compiled greedy graph embedding, with a queue of the edges that lead out of the placed ranks."""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from hopmap.compilation import njit
from hopmap.mappers.cost_model import CostModel

from .construction_kernels import nearest_room


@njit
def embed(
    model: CostModel,
    slots: NDArray[np.int64],
    heaviest: NDArray[np.int64],
    start: int,
    node_of: NDArray[np.int64],
) -> None:
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

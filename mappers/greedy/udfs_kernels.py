"""Compiled depth-first walk of UDFS; see `udfs.py`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hopmap.compilation import njit
from hopmap.mappers.cost_model import CostModel

from .construction_kernels import nearest_room


@njit
def walk(
    model: CostModel,
    slots: NDArray[np.int64],
    heaviest: NDArray[np.int64],
    start: int,
    node_of: NDArray[np.int64],
) -> None:
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

"""Compiled steps of several constructions: the nearest node with room, the traffic of ranks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hopmap.compilation import subroutine
from hopmap.topologies.routing import Router, distance


@subroutine
def nearest_room(router: Router, free: NDArray[np.int64], here: int) -> int:
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
def volumes(indptr: NDArray[np.int64], weight: NDArray[np.int64], ranks: int) -> NDArray[np.int64]:
    """Sum of the weights of each rank's pairs."""
    volume = np.zeros(ranks, dtype=np.int64)
    for rank in range(ranks):
        for i in range(indptr[rank], indptr[rank + 1]):
            volume[rank] += weight[i]
    return volume

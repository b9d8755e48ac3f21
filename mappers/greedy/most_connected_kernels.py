"""Compiled constructions that place rank after rank, the one most tied to those placed next.

| mapper | next rank | its node |
|---|---|---|
| mueller_merbach | most traffic with all placed ranks | least sum of distances to all of them |
| greedy_all_c | most traffic with all placed ranks | least sum of traffic times distance |
| greedy_min | most traffic with one placed rank | nearest to that one |

The first rank is the one with the most traffic, on the node with the least sum of distances to all
nodes. What the sources leave open: of equal ranks the one with more traffic in all, then the lower
one; of equal nodes the lower; a rank that is not tied to any goes where mueller_merbach puts it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hopmap.compilation import njit, subroutine
from hopmap.mappers.cost_model import CostModel
from hopmap.topologies.routing import distance

MUELLER_MERBACH, ALL_C, MIN = range(3)


@njit
def place(
    model: CostModel,
    slots: NDArray[np.int64],
    centre: int,
    rule: int,
    node_of: NDArray[np.int64],
) -> None:
    """Fill `node_of` rank by rank, the first one on the centre; O(ranks * (ranks + nodes)).

    ALL_C takes O(nodes) for every pair besides.
    """
    router, indptr, peer, weight = model.router, model.indptr, model.peer, model.weight
    ranks, nodes = len(node_of), len(slots)
    volume = np.zeros(ranks, dtype=np.int64)
    for rank in range(ranks):
        for i in range(indptr[rank], indptr[rank + 1]):
            volume[rank] += weight[i]
    free = slots.copy()
    placed = np.zeros(ranks, dtype=np.bool_)
    bound = np.zeros(ranks, dtype=np.int64)  # how strongly a rank is tied to those placed
    partner = np.full(ranks, -1, dtype=np.int64)  # the one it is tied to most
    most = np.zeros(ranks, dtype=np.int64)
    far = np.zeros(nodes, dtype=np.int64)  # sum of distances to all placed ranks
    cost = np.zeros(nodes, dtype=np.int64)
    for done in range(ranks):
        rank = -1
        for r in range(ranks):
            if not placed[r] and (
                rank < 0
                or bound[r] > bound[rank]
                or (bound[r] == bound[rank] and volume[r] > volume[rank])
            ):
                rank = r
        node = -1
        if done == 0 and free[centre] > 0:
            node = centre
        elif rule == MUELLER_MERBACH or bound[rank] == 0:
            node = _least(far, free)
        elif rule == MIN:
            here = node_of[partner[rank]]
            for x in range(nodes):
                cost[x] = distance(router, here, x)
            node = _least(cost, free)
        else:
            cost[:] = 0
            for i in range(indptr[rank], indptr[rank + 1]):
                if placed[peer[i]]:
                    there = node_of[peer[i]]
                    for x in range(nodes):
                        cost[x] += weight[i] * distance(router, there, x)
            node = _least(cost, free)
        node_of[rank] = node
        placed[rank] = True
        free[node] -= 1
        for x in range(nodes):
            far[x] += distance(router, node, x)
        for i in range(indptr[rank], indptr[rank + 1]):
            other = peer[i]
            bound[other] = max(bound[other], weight[i]) if rule == MIN else bound[other] + weight[i]
            if weight[i] > most[other]:
                most[other] = weight[i]
                partner[other] = rank


@subroutine
def _least(cost: NDArray[np.int64], free: NDArray[np.int64]) -> int:
    """Return the first node with a free slot that costs least."""
    best = -1
    for x in range(len(cost)):
        if free[x] > 0 and (best < 0 or cost[x] < cost[best]):
            best = x
    return best

"""Compiled: where the ranks go that have no room in a fold."""

from __future__ import annotations

from hopmap.arrays import Ints
from hopmap.compilation import njit
from hopmap.mappers.cost_model import CostModel
from hopmap.topologies.routing import distance


@njit
def add(model: CostModel, ranks: Ints, slots: Ints, node_of: Ints) -> None:
    """Put these ranks, one by one, on the first node where pairs with placed ones cost least.

    O(ranks to put * nodes * peers).

    - `ranks`, shape (ranks to put,): in this order.
    - `slots`, shape (nodes,): with room for all.
    - `node_of`, shape (all ranks,): -1 where a rank has no node; these ranks get one.
    """
    router, indptr, peer, weight = model.router, model.indptr, model.peer, model.weight
    free = slots.copy()
    for node in node_of[node_of >= 0]:
        free[node] -= 1
    for rank in ranks:
        node = -1
        least = 0
        for x in range(len(free)):
            if free[x] == 0:
                continue
            cost = 0
            for i in range(indptr[rank], indptr[rank + 1]):
                if node_of[peer[i]] >= 0:
                    cost += weight[i] * distance(router, x, node_of[peer[i]])
            if node < 0 or cost < least:
                node = x
                least = cost
        node_of[rank] = node
        free[node] -= 1

"""Compiled constructions that place rank after rank, the one most tied to those placed next.

What the sources leave open: the first rank is the one with the most traffic, on the node with the
least sum of distances to all nodes; of equal ranks the one with more traffic in all, then the lower
one; of equal nodes the lower; a rank that is not tied to any goes where mueller_merbach puts it.

TopoLB (`topo_aware`) places the most critical rank next, without its table of ranks x nodes. All
its estimates are multiplied by the number of slots, so that mean distances are whole numbers.
"""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np

from hopmap.arrays import Floats, Ints
from hopmap.compilation import njit, subroutine
from hopmap.mappers.basic_kernels import Graph
from hopmap.mappers.cost_model import CostModel
from hopmap.topologies.routing import Router, distance

from .greedy_kernels import nearest_room, volumes

MUELLER_MERBACH, ALL_C, MIN = range(3)


@njit
def place(model: CostModel, slots: Ints, centre: int, rule: int, node_of: Ints) -> None:
    """Fill `node_of` rank by rank, the first one on the centre; O(ranks * (ranks + nodes)).

    ALL_C takes O(nodes) more for every pair.
    """
    router, indptr, peer, weight = model.router, model.indptr, model.peer, model.weight
    ranks, nodes = len(node_of), len(slots)
    volume = volumes(indptr, weight, ranks)
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
            node = _cheapest(far, free)
        elif rule == MIN:
            here = node_of[partner[rank]]
            for x in range(nodes):
                cost[x] = distance(router, here, x)
            node = _cheapest(cost, free)
        else:
            cost[:] = 0
            for i in range(indptr[rank], indptr[rank + 1]):
                if placed[peer[i]]:
                    there = node_of[peer[i]]
                    for x in range(nodes):
                        cost[x] += weight[i] * distance(router, there, x)
            node = _cheapest(cost, free)
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
def _cheapest(cost: Ints, free: Ints) -> int:
    """Return the first node with a free slot that costs least."""
    best = -1
    for x in range(len(cost)):
        if free[x] > 0 and (best < 0 or cost[x] < cost[best]):
            best = x
    return best


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
def place_critical(model: CostModel, slots: Ints, second: bool, node_of: Ints) -> None:
    """Fill `node_of` rank by rank."""
    indptr, peer, weight = model.indptr, model.peer, model.weight
    ranks, nodes = len(node_of), len(slots)
    far = np.zeros(nodes)  # sum of distances to all slots
    if second:
        for x in range(nodes):
            for y in range(nodes):
                far[x] += slots[y] * distance(model.router, x, y)
    free = slots.copy()
    left = slots.sum()
    waiting = volumes(indptr, weight, ranks)  # traffic of each rank with ranks not placed
    touched = np.zeros(ranks, dtype=np.bool_)  # has a partner that is placed
    total = np.zeros(ranks)  # sum, least and where of the estimates over the free slots
    least = np.zeros(ranks)
    where = np.zeros(ranks, dtype=np.int64)
    for _ in range(ranks):
        # Ranks without placed partners: their traffic times what is the same for all of them.
        near = -1
        spread = 0.0
        for x in range(nodes):
            if free[x] > 0:
                spread += free[x] * far[x]
                if near < 0 or far[x] < far[near]:
                    near = x
        rank = -1
        most = 0.0
        for r in range(ranks):
            if node_of[r] >= 0:
                continue
            if touched[r]:
                critical = total[r] - left * least[r]
            else:
                critical = waiting[r] * (spread - left * far[near])
            if rank < 0 or critical > most:
                rank = r
                most = critical
        node = where[rank] if touched[rank] else near
        if not touched[rank] and waiting[rank] == 0:  # silent: all nodes are equal
            node = int(np.argmax(free > 0))
        node_of[rank] = node
        free[node] -= 1
        left -= 1
        for i in range(indptr[rank], indptr[rank + 1]):
            waiting[peer[i]] -= weight[i]
            touched[peer[i]] = True
            where[peer[i]] = -1
        for r in range(ranks):
            if not touched[r] or node_of[r] >= 0:
                continue
            if where[r] < 0 or (where[r] == node and free[node] == 0):
                total[r], least[r], where[r] = sum_costs(model, far, waiting[r], node_of, r, free)
            else:
                total[r] -= estimate(model, far, waiting[r], node_of, r, node)


@subroutine
def estimate(
    model: CostModel, far: Floats, waiting: int, node_of: Ints, rank: int, node: int
) -> float:
    """Return what a rank costs on a node, times the number of slots."""
    peer, weight = model.peer, model.weight
    cost = 0.0
    for i in range(model.indptr[rank], model.indptr[rank + 1]):
        if node_of[peer[i]] >= 0:
            cost += weight[i] * distance(model.router, node, node_of[peer[i]])
    return cost * (len(model.indptr) - 1) + waiting * float(far[node])


@subroutine
def sum_costs(
    model: CostModel, far: Floats, waiting: int, node_of: Ints, rank: int, free: Ints
) -> tuple[float, float, int]:
    """Sum of a rank's estimates over the free slots, the least, and the first node that has it."""
    total = 0.0
    least = 0.0
    where = -1
    for x in range(len(free)):
        if free[x] > 0:
            cost = estimate(model, far, waiting, node_of, rank, x)
            total += free[x] * cost
            if where < 0 or cost < least:
                least = cost
                where = x
    return total, least, where


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

"""Compiled parts of the multilevel mapper: mean distances of groups, descent, blocks that move.

A block is a range of slots in an order in which groups of nodes are ranges. Blocks of equal size
exchange their ranks, two of them, or three in a cycle; every rank keeps its position in the block.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hopmap.arrays import Ints
from hopmap.compilation import njit
from hopmap.mappers.basic_kernels import below, following
from hopmap.mappers.cost_kernels import priced
from hopmap.mappers.cost_model import CostModel
from hopmap.mappers.exchanges.annealing_kernels import Assignment
from hopmap.topologies.routing import Router, distance

from .bisection_kernels import mean_hops


@njit
def group_hops(
    router: Router, nodes: Ints, starts: Ints, samples: int, scale: float
) -> NDArray[np.int16]:
    """Mean distance between groups ``nodes[starts[g]:starts[g + 1]]``, times the scale, rounded."""
    groups = len(starts) - 1
    hops = np.zeros((groups, groups), dtype=np.int16)
    for g in range(groups):
        for h in range(g + 1):
            mean = mean_hops(
                router, nodes, starts[g], starts[g + 1], starts[h], starts[h + 1], samples
            )
            hops[g, h] = hops[h, g] = np.int16(mean * scale + 0.5)
    return hops


@njit
def move_blocks(
    model: CostModel,
    assignment: Assignment,
    order: Ints,
    starts: Ints,
    temperature: float,
    proposals: int,
) -> int:
    """Propose exchanges of blocks ``slots[starts[b]:starts[b + 1]]``; return the cost saved.

    A block is proposed next to one that it talks to. The cost is exact, from true distances;
    what costs no more than `temperature` is accepted.
    """
    router, kind = model.router, model.kind
    indptr, peer, weight = model.indptr, model.peer, model.weight
    places, slot_of = assignment.places, assignment.slot_of
    item_at, own = assignment.item_at, assignment.own
    near_indptr, near, active = assignment.near_indptr, assignment.near, assignment.active
    node_of_slot = np.empty(len(order), dtype=np.int64)
    for item in range(len(order)):
        node_of_slot[slot_of[item]] = places[item]
    block_of, largest = np.empty(len(order), dtype=np.int64), 0
    for b in range(len(starts) - 1):
        largest = max(largest, starts[b + 1] - starts[b])
        for i in range(starts[b], starts[b + 1]):
            block_of[order[i]] = b
    goes = np.empty(len(places), dtype=np.int64)
    goes[:] = -1
    moving = np.empty(3 * largest, dtype=np.int64)
    chosen = np.empty(3, dtype=np.int64)
    state = assignment.random[0]
    saved = 0
    for _ in range(proposals):
        state = following(state)
        u = active[below(state, len(active))]
        count = 1 + below(following(state), 2)
        chosen[0] = block_of[slot_of[u]]
        fits = True
        for k in range(1, count + 1):
            state = following(state)
            p = peer[indptr[u] + below(state, indptr[u + 1] - indptr[u])]
            x = places[p]
            state = following(state)
            slot = near[near_indptr[x] + below(state, near_indptr[x + 1] - near_indptr[x])]
            chosen[k] = block_of[slot]
            u = item_at[slot]
            if indptr[u + 1] == indptr[u] and k < count:
                fits = False
                break
            for i in range(k):
                fits = fits and chosen[i] != chosen[k]
        if not fits:
            continue
        length = starts[chosen[0] + 1] - starts[chosen[0]]
        for k in range(1, count + 1):
            fits = fits and starts[chosen[k] + 1] - starts[chosen[k]] == length
        if not fits:
            continue
        moved = 0
        for k in range(count + 1):
            here, there = starts[chosen[k]], starts[chosen[(k + 1) % (count + 1)]]
            for i in range(length):
                item = item_at[order[here + i]]
                goes[item] = order[there + i]
                moving[moved] = item
                moved += 1
        # Pairs within the blocks are met twice, from either end.
        doubled = 0
        for m in range(moved):
            u = moving[m]
            a, b = places[u], node_of_slot[goes[u]]
            for i in range(indptr[u], indptr[u + 1]):
                q = peer[i]
                now = priced(kind, distance(router, a, places[q]))
                if goes[q] >= 0:
                    then = priced(kind, distance(router, b, node_of_slot[goes[q]]))
                    doubled += weight[i] * (then - now)
                else:
                    then = priced(kind, distance(router, b, places[q]))
                    doubled += 2 * weight[i] * (then - now)
        if doubled <= 2 * temperature:
            for m in range(moved):
                u = moving[m]
                a, b = places[u], node_of_slot[goes[u]]
                for i in range(indptr[u], indptr[u + 1]):
                    q = peer[i]
                    if goes[q] < 0:
                        more = priced(kind, distance(router, b, places[q]))
                        own[q] += weight[i] * (more - priced(kind, distance(router, a, places[q])))
            for m in range(moved):
                u = moving[m]
                slot_of[u] = goes[u]
                item_at[goes[u]] = u
                places[u] = node_of_slot[goes[u]]
            for m in range(moved):
                u = moving[m]
                own[u] = 0
                for i in range(indptr[u], indptr[u + 1]):
                    own[u] += weight[i] * priced(kind, distance(router, places[u], places[peer[i]]))
            saved -= doubled // 2
        for m in range(moved):
            goes[moving[m]] = -1
    assignment.random[0] = state
    return saved

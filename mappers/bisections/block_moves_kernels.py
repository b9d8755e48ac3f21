"""Compiled moves of many ranks at once: blocks of slots exchange theirs, or are split again.

A block of `move_blocks` is a range of slots in an order in which groups of nodes are ranges. Blocks
of equal size exchange their ranks, two of them, or three in a cycle; every rank keeps its position
in the block.

`recreate` throws the vertices of a few blocks together and splits them by multilevel recursive
bisection. Two to some dozen blocks with a common parent that talk are chosen; what comes out is
kept if it cuts no more, or little more while the temperature lasts. Blocks keep their sizes. All
this is right where blocks with a common parent are equally far from each other and from any third,
as in a hierarchy. Sources: large neighbourhood search (Shaw, CP 1998), ruin and recreate (Schrimpf
et al., Record breaking optimization results using the ruin and recreate principle, J. Comput. Phys.
2000).
"""

from __future__ import annotations

from math import log

import numpy as np
from numpy.typing import NDArray

from hopmap.arrays import Ints, Words
from hopmap.compilation import njit, subroutine
from hopmap.mappers.basic_kernels import Graph, draw, group_by_block, next_state, subgraph
from hopmap.mappers.cost_kernels import charge
from hopmap.mappers.cost_model import CostModel
from hopmap.mappers.exchanges.annealing_kernels import Assignment
from hopmap.topologies.routing import Router, distance

from .bisection_kernels import mean_hops
from .halving_kernels import TRIES, bisect


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
    model: CostModel, assignment: Assignment, order: Ints, starts: Ints, proposals: int
) -> int:
    """Propose exchanges of blocks ``slots[starts[b]:starts[b + 1]]``; return the cost saved.

    A block is proposed next to one that it talks to. The cost is exact, from true distances;
    what costs nothing is accepted.
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
        state = next_state(state)
        u = active[draw(state, len(active))]
        count = 1 + draw(next_state(state), 2)
        chosen[0] = block_of[slot_of[u]]
        fits = True
        for k in range(1, count + 1):
            state = next_state(state)
            p = peer[indptr[u] + draw(state, indptr[u + 1] - indptr[u])]
            x = places[p]
            state = next_state(state)
            slot = near[near_indptr[x] + draw(state, near_indptr[x + 1] - near_indptr[x])]
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
                now = charge(kind, distance(router, a, places[q]))
                if goes[q] >= 0:
                    then = charge(kind, distance(router, b, node_of_slot[goes[q]]))
                    doubled += weight[i] * (then - now)
                else:
                    then = charge(kind, distance(router, b, places[q]))
                    doubled += 2 * weight[i] * (then - now)
        if doubled <= 0:
            for m in range(moved):
                u = moving[m]
                a, b = places[u], node_of_slot[goes[u]]
                for i in range(indptr[u], indptr[u + 1]):
                    q = peer[i]
                    if goes[q] < 0:
                        more = charge(kind, distance(router, b, places[q]))
                        own[q] += weight[i] * (more - charge(kind, distance(router, a, places[q])))
            for m in range(moved):
                u = moving[m]
                slot_of[u] = goes[u]
                item_at[goes[u]] = u
                places[u] = node_of_slot[goes[u]]
            for m in range(moved):
                u = moving[m]
                own[u] = 0
                for i in range(indptr[u], indptr[u + 1]):
                    own[u] += weight[i] * charge(kind, distance(router, places[u], places[peer[i]]))
            saved -= doubled // 2
        for m in range(moved):
            goes[moving[m]] = -1
    assignment.random[0] = state
    return saved


DRAWS = 8  # for each block that is to be chosen
FINE = 1 << 20  # steps of a number drawn between 0 and 1


@njit
def recreate(
    graph: Graph,
    block: Ints,
    parent: Ints,
    most: int,
    trials: int,
    temperature: float,
    cycles: float,
    random: Words,
) -> float:
    """Split a few blocks again, so many times, in place; return the weight saved.

    `block` is the block of every vertex. Only blocks of the same `parent` mix. A trial
    takes 2 to `most` blocks and may cut `temperature` more on the average. A share of `cycles` of
    the trials refines the split as it is (see `divide`). The graph has both directions of a pair.
    """
    starts, members = group_by_block(block, len(parent))
    local = np.full(len(block), -1, dtype=np.int64)
    saved = 0.0
    for _ in range(trials):
        random[0] = next_state(random[0])
        wanted = int(2.0 * (most / 2.0) ** (draw(random[0], FINE) / FINE) + 0.5)
        chosen = choose(graph, block, parent, starts, members, wanted, random)
        if len(chosen) < 2:
            continue
        room = np.zeros(len(chosen) + 1, dtype=np.int64)
        for k in range(len(chosen)):
            room[k + 1] = room[k] + starts[chosen[k] + 1] - starts[chosen[k]]
        here = np.empty(room[len(chosen)], dtype=np.int64)
        for k in range(len(chosen)):
            for i in range(room[k], room[k + 1]):
                here[i] = members[starts[chosen[k]] + i - room[k]]
        now = np.empty(len(here), dtype=np.int64)
        for k in range(len(chosen)):
            now[room[k] : room[k + 1]] = k
        inner = subgraph(graph, here, local)
        sub_indptr, sub_peer, sub_weight = inner
        before = 0.0
        for u in range(len(here)):
            for i in range(sub_indptr[u], sub_indptr[u + 1]):
                if block[here[sub_peer[i]]] != block[here[u]]:
                    before += sub_weight[i] / 2
        random[0] = next_state(random[0])
        if draw(random[0], FINE) >= cycles * FINE:
            now = now[:0]
        part = divide(inner, room, now, local, random)
        after = 0.0
        for u in range(len(here)):
            for i in range(sub_indptr[u], sub_indptr[u + 1]):
                if part[sub_peer[i]] != part[u]:
                    after += sub_weight[i] / 2
        random[0] = next_state(random[0])
        slack = -temperature * log((1.0 + draw(random[0], FINE)) / (1.0 + FINE))
        if after > before + slack:
            continue
        saved += before - after
        fill = np.zeros(len(chosen), dtype=np.int64)
        for u in range(len(here)):
            block[here[u]] = chosen[part[u]]
            members[starts[chosen[part[u]]] + fill[part[u]]] = here[u]
            fill[part[u]] += 1
    return saved


@subroutine
def choose(
    graph: Graph, block: Ints, parent: Ints, starts: Ints, members: Ints, wanted: int, random: Words
) -> Ints:
    """Draw blocks with a common parent, each but the first talking to one drawn before."""
    indptr, peer = graph.indptr, graph.peer
    chosen = np.empty(wanted, dtype=np.int64)
    random[0] = next_state(random[0])
    chosen[0] = draw(random[0], len(parent))
    count = 1
    for _ in range(DRAWS * wanted):
        if count == wanted:
            break
        random[0] = next_state(random[0])
        b = chosen[draw(random[0], count)]
        if starts[b + 1] == starts[b]:
            continue
        random[0] = next_state(random[0])
        u = members[starts[b] + draw(random[0], starts[b + 1] - starts[b])]
        if indptr[u + 1] == indptr[u]:
            continue
        random[0] = next_state(random[0])
        other = block[peer[indptr[u] + draw(random[0], indptr[u + 1] - indptr[u])]]
        new = parent[other] == parent[b]
        for k in range(count):
            new = new and chosen[k] != other
        if new:
            chosen[count] = other
            count += 1
    return chosen[:count]


@subroutine
def divide(graph: Graph, room: Ints, now: Ints, local: Ints, random: Words) -> Ints:
    """Part of every vertex by recursive bisection; part p has room[p + 1] - room[p] vertices.

    From the parts they have `now`, shape (vertices,) or (0,), every bisection is a V-cycle: it
    contracts no pair that is apart, and refines on every level (Walshaw, Multilevel refinement for
    combinatorial optimisation problems, 2004).
    """
    parts = len(room) - 1
    vertices = np.empty(room[parts], dtype=np.int64)
    for u in range(len(vertices)):
        vertices[u] = u
    part = np.empty(room[parts], dtype=np.int64)
    first, last = np.zeros(parts, dtype=np.int64), np.zeros(parts, dtype=np.int64)
    last[0], waiting = parts, 1  # parts first[k] to last[k] are to be split
    while waiting > 0:
        waiting -= 1
        lo, hi = first[waiting], last[waiting]
        if hi - lo == 1:
            for k in range(room[lo], room[hi]):
                part[vertices[k]] = lo
            continue
        mid = lo + 1
        for cut in range(lo + 1, hi):
            off = abs(2 * room[cut] - room[lo] - room[hi])
            if off < abs(2 * room[mid] - room[lo] - room[hi]):
                mid = cut
        n = room[hi] - room[lo]
        here = np.empty(n, dtype=np.int64)
        for k in range(n):
            here[k] = vertices[room[lo] + k]
        inner = subgraph(graph, here, local)
        size, bias, label = np.ones(n, dtype=np.int64), np.zeros(n), np.zeros(n, dtype=np.int8)
        target = room[mid] - room[lo]
        for k in range(n if len(now) else 0):
            label[k] = 2 if now[here[k]] >= mid else 0
        growths = 0 if len(now) else TRIES
        side = bisect(inner, size, bias, label, target, growths, random)
        left, right = room[lo], room[mid]
        for k in range(len(here)):
            if side[k] == 0:
                vertices[left] = here[k]
                left += 1
            else:
                vertices[right] = here[k]
                right += 1
        first[waiting], last[waiting] = lo, mid
        first[waiting + 1], last[waiting + 1] = mid, hi
        waiting += 2
    return part

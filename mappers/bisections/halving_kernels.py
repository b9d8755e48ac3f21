"""Compiled bisection of a graph into two sides of exact sizes: multilevel, with FM refinement.

Source: Karypis and Kumar, A fast and high quality multilevel scheme for partitioning irregular
graphs, SISC 1998: heavy-edge matchings, greedy growing of the coarsest graph, refinement on every
level. O(pairs * log(vertices)) a level.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hopmap.arrays import Floats, Ints, Ints8, Ints32, Words
from hopmap.compilation import njit, subroutine
from hopmap.mappers.basic_kernels import Graph, contract, draw, next_state

from .fm_kernels import cut_cost, grow, refine

FEW = 8  # bisections that are not worth combining
COARSE = 40  # vertices at which coarsening stops
TRIES: Any = np.int64(4)  # greedy growths of the coarsest graph; not a literal, see FIRST


@njit
def match(
    graph: Graph, size: Ints, largest: int, label: Ints8, random: Words
) -> tuple[Ints32, int]:
    """Match each vertex with its heaviest free peer, in random order; return groups, their number.

    Weights are rated by the sizes that they join; nothing larger than `largest` comes out, and
    no vertex is matched with a vertex of another label.
    """
    indptr, peer, weight = graph
    n = len(size)
    order, group = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int32)
    for u in range(n):
        order[u], group[u] = u, -1
    state = random[0]
    for i in range(n - 1, 0, -1):
        state = next_state(state)
        j = draw(state, i + 1)
        order[i], order[j] = order[j], order[i]
    random[0] = state
    groups = 0
    for k in range(n):
        u = order[k]
        if group[u] >= 0:
            continue
        best, rated = -1, 0.0
        for i in range(indptr[u], indptr[u + 1]):
            v = peer[i]
            if group[v] < 0 and v != u and label[v] == label[u] and size[u] + size[v] <= largest:
                rating = weight[i] / (size[u] * size[v])
                if rating > rated:
                    best, rated = v, rating
        group[u] = groups
        if best >= 0:
            group[best] = groups
        groups += 1
    return group, groups


@njit
def bisect(
    graph: Graph, size: Ints, bias: Floats, label: Ints8, target: int, growths: int, random: Words
) -> Ints8:
    """Side (0 or 1) of every vertex, `target` of their sizes on side 0, with little between them.

    It calls itself for the graph of matched vertices, which all have one label. The coarsest graph
    is grown so many times, or, with 0 growths, has the sides that half of the labels say.
    """
    n, total, heaviest, biased = len(size), 0, 0, False
    for u in range(n):
        total += size[u]
        heaviest = max(heaviest, size[u])
        biased = biased or bias[u] != 0
    side = np.empty(n, dtype=np.int8)
    if target == 0 or target == total:
        side[:] = 1 if target == 0 else 0
        return side
    exact = heaviest == 1
    if n > COARSE:
        group, groups = match(graph, size, max(total // 16, 1), label, random)
        if groups <= 0.95 * n:
            small = contract(graph, group, groups)
            sizes = np.zeros(groups, dtype=np.int64)
            biases = np.zeros(groups)
            labels = np.empty(groups, dtype=np.int8)
            for u in range(n):
                sizes[group[u]] += size[u]
                biases[group[u]] += bias[u]
                labels[group[u]] = label[u]
            coarse = bisect(small, sizes, biases, labels, target, growths, random)
            for u in range(n):
                side[u] = coarse[group[u]]
            refine(graph, size, bias, side, target, heaviest, exact)
            return side
    best_cost = np.inf
    grown = np.empty(n, dtype=np.int8)
    for attempt in range(max(growths, 1)):
        if growths == 0:
            for u in range(n):
                grown[u] = label[u] >> 1
        else:
            random[0] = next_state(random[0])
            seed = -1 if biased and attempt == 0 else draw(random[0], n)
            grow(graph, size, bias, grown, target, seed)
        refine(graph, size, bias, grown, target, heaviest, exact)
        cost = cut_cost(graph, bias, grown)
        if cost < best_cost:
            best_cost = cost
            side, grown = grown, side
    return side


@subroutine
def evolve(
    graph: Graph, bias: Floats, target: int, tries: int, random: Words, growths: int
) -> Ints8:
    """Best of so many bisections; of more than a few, most combine two earlier ones.

    Two are combined by contracting only pairs that neither of them cuts; seldom worse.
    Source: Sanders and Schulz, Distributed evolutionary graph partitioning, ALENEX 2012 (KaFFPaE).
    """
    n = len(bias)
    size = np.ones(n, dtype=np.int64)
    label = np.zeros(n, dtype=np.int8)
    fresh = tries if tries < FEW else max(tries // 5, FEW // 2)
    sides = np.empty((fresh, n), dtype=np.int8)
    costs = np.empty(fresh)
    for k in range(tries):
        at = k
        if k >= fresh:
            random[0] = next_state(random[0])
            a = draw(random[0], fresh)
            random[0] = next_state(random[0])
            b = draw(random[0], fresh)
            if costs[b] < costs[a]:
                a, b = b, a
            for u in range(n):
                label[u] = 2 * sides[a, u] + sides[b, u]
            at = a
            for i in range(fresh if a != b else 0):
                if costs[i] > costs[at] or (costs[i] == costs[at] and i < at):
                    at = i
        grown = growths if k < fresh else 0
        side = bisect(graph, size, bias, label, target, grown, random)
        cost = cut_cost(graph, bias, side)
        if k < fresh or cost < costs[at]:
            costs[at] = cost
            for u in range(n):
                sides[at, u] = side[u]
    best = 0
    for i in range(1, fresh):
        if costs[i] < costs[best]:
            best = i
    found: Ints8 = sides[best]
    return found

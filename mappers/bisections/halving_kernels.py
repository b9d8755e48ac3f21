"""Compiled bisection of a graph into two sides of exact sizes: multilevel, with FM refinement.

Source: Karypis and Kumar, A fast and high quality multilevel scheme for partitioning irregular
graphs, SISC 1998: heavy-edge matchings, greedy growing of the coarsest graph, refinement on every
level. O(pairs * log(vertices)) a level.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hopmap.compilation import njit, subroutine
from hopmap.mappers.random_kernels import below, following

from .fm_kernels import cut_cost, grow, refine

Level: TypeAlias = tuple[
    NDArray[np.int64], NDArray[np.int64], Any, NDArray[np.int64], Any, NDArray[np.int32]
]  # row pointers, peers, weights, sizes, biases, and the group of every vertex one level below

FEW = 8  # bisections that are not worth combining
COARSE = 40  # vertices at which coarsening stops
TRIES = 4  # greedy growths of the coarsest graph


@njit
def match(
    indptr: NDArray[np.int64],
    peer: NDArray[np.int64],
    weight: NDArray[Any],
    size: NDArray[np.int64],
    largest: int,
    label: NDArray[np.int8],
    random: NDArray[np.uint64],
) -> tuple[NDArray[np.int32], int]:
    """Match each vertex with its heaviest free peer, in random order; return groups, their number.

    Weights are rated by the sizes that they join; nothing larger than `largest` comes out, and
    nobody is matched with a vertex of another label.
    """
    n = len(size)
    order = np.arange(n)
    state = random[0]
    for i in range(n - 1, 0, -1):
        state = following(state)
        j = below(state, i + 1)
        order[i], order[j] = order[j], order[i]
    random[0] = state
    group = np.full(n, -1, dtype=np.int32)
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
def contract(
    indptr: NDArray[np.int64],
    peer: NDArray[np.int64],
    weight: NDArray[Any],
    group: NDArray[Any],
    groups: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any]]:
    """Graph of the groups: pairs of the same two groups added up, those within left out."""
    n = len(group)
    starts = np.zeros(groups + 1, dtype=np.int64)
    for u in range(n):
        starts[group[u] + 1] += 1
    for g in range(groups):
        starts[g + 1] += starts[g]
    members = np.empty(n, dtype=np.int32)
    fill = starts[:-1].copy()
    for u in range(n):
        members[fill[group[u]]] = u
        fill[group[u]] += 1
    new_indptr = np.zeros(groups + 1, dtype=np.int64)
    new_peer = np.empty(len(peer), dtype=np.int64)
    new_weight = np.empty(len(peer), dtype=weight.dtype)
    slot = np.full(groups, -1, dtype=np.int64)
    count = 0
    for g in range(groups):
        first = count
        for k in range(starts[g], starts[g + 1]):
            u = members[k]
            for i in range(indptr[u], indptr[u + 1]):
                h = group[peer[i]]
                if h == g:
                    continue
                if slot[h] < first:
                    slot[h] = count
                    new_peer[count] = h
                    new_weight[count] = weight[i]
                    count += 1
                else:
                    new_weight[slot[h]] += weight[i]
        new_indptr[g + 1] = count
    return new_indptr, new_peer[:count].copy(), new_weight[:count].copy()


@subroutine
def coarsen(
    indptr: NDArray[np.int64],
    peer: NDArray[np.int64],
    weight: NDArray[np.float64],
    bias: NDArray[np.float64],
    label: NDArray[np.int8],
    random: NDArray[np.uint64],
) -> list[Level]:
    """Graphs from the finest to the coarsest, matched again and again within labels."""
    n = len(bias)
    size = np.ones(n, dtype=np.int64)
    levels = [(indptr, peer, weight, size, bias, np.empty(0, dtype=np.int32))]
    largest = max(n // 16, 1)
    while len(levels[-1][3]) > COARSE:
        ip, pe, we, sz, bi, _ = levels[-1]
        group, groups = match(ip, pe, we, sz, largest, label, random)
        if groups > 0.95 * len(sz):
            break
        ip2, pe2, we2 = contract(ip, pe, we, group, groups)
        sz2 = np.zeros(groups, dtype=np.int64)
        bi2 = np.zeros(groups)
        label2 = np.empty(groups, dtype=np.int8)
        for u in range(len(sz)):
            sz2[group[u]] += sz[u]
            bi2[group[u]] += bi[u]
            label2[group[u]] = label[u]
        levels.append((ip2, pe2, we2, sz2, bi2, group))
        label = label2
    return levels


@subroutine
def uncoarsen(levels: list[Level], side: NDArray[np.int8], target: int) -> NDArray[np.int8]:
    """Sides of the finest graph from those of the coarsest, refined on every level below it."""
    for k in range(len(levels) - 1, 0, -1):
        group = levels[k][5]
        ip, pe, we, sz, bi, _ = levels[k - 1]
        fine = np.empty(len(sz), dtype=np.int8)
        for u in range(len(sz)):
            fine[u] = side[group[u]]
        side = fine
        refine(ip, pe, we, sz, bi, side, target, int(sz.max()), k == 1)
    return side


@subroutine
def bisect(
    indptr: NDArray[np.int64],
    peer: NDArray[np.int64],
    weight: NDArray[np.float64],
    bias: NDArray[np.float64],
    target: int,
    random: NDArray[np.uint64],
    growths: int = TRIES,
) -> NDArray[np.int8]:
    """Side (0 or 1) of every vertex, `target` of them on side 0, with little between the sides."""
    n = len(bias)
    if target == 0 or target == n:
        return np.full(n, 1 if target == 0 else 0, dtype=np.int8)
    levels = coarsen(indptr, peer, weight, bias, np.zeros(n, dtype=np.int8), random)
    ip, pe, we, sz, bi, _ = levels[-1]
    best = np.empty(0, dtype=np.int8)
    best_cost = np.inf
    slack = int(sz.max())
    biased = np.abs(bi).max() > 0
    for attempt in range(growths):
        side = np.ones(len(sz), dtype=np.int8)
        random[0] = following(random[0])
        seed = -1 if biased and attempt == 0 else below(random[0], len(sz))
        grow(ip, pe, we, sz, bi, side, target, seed)
        refine(ip, pe, we, sz, bi, side, target, slack, slack == 1)
        cost = cut_cost(ip, pe, we, bi, side)
        if cost < best_cost:
            best, best_cost = side, cost
    return uncoarsen(levels, best, target)


@subroutine
def combine(
    indptr: NDArray[np.int64],
    peer: NDArray[np.int64],
    weight: NDArray[np.float64],
    bias: NDArray[np.float64],
    target: int,
    first: NDArray[np.int8],
    second: NDArray[np.int8],
    random: NDArray[np.uint64],
) -> NDArray[np.int8]:
    """Refine `first` where only pairs that neither parent cuts are contracted; seldom worse."""
    label = (2 * first + second).astype(np.int8)
    levels = coarsen(indptr, peer, weight, bias, label, random)
    side = first
    for k in range(1, len(levels)):
        group = levels[k][5]
        coarse = np.empty(len(levels[k][3]), dtype=np.int8)
        for u in range(len(group)):
            coarse[group[u]] = side[u]
        side = coarse
    side = side.copy()
    ip, pe, we, sz, bi, _ = levels[-1]
    refine(ip, pe, we, sz, bi, side, target, int(sz.max()), len(levels) == 1)
    return uncoarsen(levels, side, target)


@subroutine
def evolve(
    indptr: NDArray[np.int64],
    peer: NDArray[np.int64],
    weight: NDArray[np.float64],
    bias: NDArray[np.float64],
    target: int,
    tries: int,
    random: NDArray[np.uint64],
    growths: int = TRIES,
) -> tuple[NDArray[np.int8], float]:
    """Best of so many bisections, and its cost; of more than a few, most combine two earlier ones.

    Source: Sanders and Schulz, Distributed evolutionary graph partitioning, ALENEX 2012 (KaFFPaE).
    """
    fresh = tries if tries < FEW else max(tries // 5, FEW // 2)
    sides = np.empty((fresh, len(bias)), dtype=np.int8)
    costs = np.empty(fresh)
    for k in range(fresh):
        sides[k] = bisect(indptr, peer, weight, bias, target, random, growths)
        costs[k] = cut_cost(indptr, peer, weight, bias, sides[k])
    for _ in range(fresh, tries):
        random[0] = following(random[0])
        a = below(random[0], fresh)
        random[0] = following(random[0])
        b = below(random[0], fresh)
        if costs[b] < costs[a]:
            a, b = b, a
        child = combine(indptr, peer, weight, bias, target, sides[a], sides[b], random)
        cost = cut_cost(indptr, peer, weight, bias, child)
        replaced = a if a == b else int(costs.argmax())
        if cost < costs[replaced]:
            sides[replaced], costs[replaced] = child, cost
    best = int(costs.argmin())
    return sides[best].copy(), costs[best]

"""Compiled choice among all groups of TreeMatch's vertices; see `treematch.py`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hopmap.compilation import njit, subroutine

from .partition_kernels import Graph
from .treematch_kernels import cost_of, following, volumes


@njit
def all_groups(vertices: int, arity: int, sets: int) -> NDArray[np.int64]:
    """All sets of so many vertices, in lexicographic order, shape (sets, arity)."""
    groups = np.empty((sets, arity), dtype=np.int64)
    at = np.arange(arity)
    for g in range(sets):
        groups[g] = at
        following(at, vertices)
    return groups


@njit
def costs(graph: Graph, groups: NDArray[np.int64]) -> NDArray[np.float64]:
    """Cost of each group, in double precision as in TreeMatch."""
    volume = volumes(graph)
    inside = np.zeros(len(volume), dtype=np.bool_)
    cost = np.empty(len(groups))
    for g in range(len(groups)):
        cost[g] = cost_of(graph, volume, groups[g], inside)
    return cost


@subroutine
def complete(
    groups: NDArray[np.int64],
    cost: NDArray[np.float64],
    order: NDArray[np.int64],
    begin: int,
    least: float,
    chosen: NDArray[np.int64],
) -> float:
    """Take the group at a place of the order and then all that fit; keep them if they cost less.

    Returns their cost, or `least` where they do not cost less or do not hold all vertices.
    """
    taken = np.zeros(groups.shape[1] * len(chosen), dtype=np.bool_)
    mine = np.empty_like(chosen)
    count = 0
    total = 0.0
    for place in range(begin, len(order)):
        g = order[place]
        fits = True
        for v in groups[g]:
            if taken[v]:
                fits = False
                break
        if fits:
            for v in groups[g]:
                taken[v] = True
            mine[count] = g
            count += 1
            total += cost[g]
            if count == len(chosen):
                break
    if count < len(chosen) or total >= least:
        return least
    chosen[:] = mine
    return total


@njit
def pick(
    groups: NDArray[np.int64],
    cost: NDArray[np.float64],
    order: NDArray[np.int64],
    starts: int,
    least: float,
    chosen: NDArray[np.int64],
) -> float:
    """`complete` from each of the first places."""
    for begin in range(min(starts, len(order))):
        least = complete(groups, cost, order, begin, least, chosen)
    return least


@njit
def pick_late(
    groups: NDArray[np.int64],
    cost: NDArray[np.float64],
    order: NDArray[np.int64],
    bound: int,
    least: float,
    chosen: NDArray[np.int64],
) -> float:
    """`complete` from the last places backwards, until so many were better."""
    step = max(len(order) // 10_000, 2) ** 2
    better = 0
    for begin in range(len(order) - 1, -1, -step):
        cheaper = complete(groups, cost, order, begin, least, chosen)
        better += cheaper < least
        least = cheaper
        if better >= bound:
            break
    return least


@njit
def conflicts(
    groups: NDArray[np.int64], cost: NDArray[np.float64], vertices: int
) -> NDArray[np.float64]:
    """Weighted degree of each group: the cost of all that share a vertex with it over its own."""
    words = np.zeros((len(groups), (vertices + 63) // 64), dtype=np.uint64)
    for g in range(len(groups)):
        for v in groups[g]:
            words[g, v // 64] |= np.uint64(1) << np.uint64(v % 64)
    degree = np.zeros(len(groups))
    for g in range(len(groups)):
        for h in range(g):
            for w in range(words.shape[1]):
                if words[g, w] & words[h, w]:
                    degree[g] += cost[h]
                    degree[h] += cost[g]
                    break
    for g in range(len(groups)):
        if degree[g] > 0:
            degree[g] = degree[g] / cost[g] if cost[g] > 0 else np.inf
    return degree

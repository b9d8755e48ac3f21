"""Compiled sorting, grouping, graphs and parts of them, random numbers and a power.

numba's own sorts take a second to compile. Random numbers have a state of their own, a uint64 that
is never zero: xorshift64*. Source: Vigna, An experimental exploration of Marsaglia's xorshift
generators, scrambled, ACM TOMS 42 (2016).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.arrays import Ints
from hopmap.compilation import njit, subroutine


class Graph(NamedTuple):
    """Undirected weighted graph, every edge listed at both ends."""

    # shape (vertices + 1,): neighbours of vertex v are ``peer[indptr[v]:indptr[v + 1]]``
    indptr: Ints
    # peer, weight: shape (2 * edges,): the neighbours and the weights of the edges; no loops
    peer: Ints
    weight: NDArray[Any]


@subroutine
def sort_by(key: Ints, items: Ints, spare: Ints) -> None:
    """Sort items by their keys in place, equal ones as they are, by merging runs."""
    n = len(items)
    width = 1
    while width < n:
        for lo in range(0, n - width, 2 * width):
            mid, hi = lo + width, min(lo + 2 * width, n)
            if key[items[mid - 1]] <= key[items[mid]]:
                continue
            for i in range(lo, mid):
                spare[i] = items[i]
            left, right = lo, mid
            for i in range(lo, hi):
                if left == mid:
                    break
                if right < hi and key[items[right]] < key[spare[left]]:
                    items[i] = items[right]
                    right += 1
                else:
                    items[i] = spare[left]
                    left += 1
        width *= 2


@subroutine
def group_by_block(block: NDArray[Any], blocks: int) -> tuple[Ints, Ints]:
    """Vertices of every block b, in order: ``members[starts[b]:starts[b + 1]]``."""
    starts = np.zeros(blocks + 1, dtype=np.int64)
    for b in block:
        starts[b + 1] += 1
    for b in range(blocks):
        starts[b + 1] += starts[b]
    members = np.empty(len(block), dtype=np.int64)
    fill = starts.copy()
    for u in range(len(block)):
        members[fill[block[u]]] = u
        fill[block[u]] += 1
    return starts, members


@njit
def contract(graph: Graph, group: NDArray[Any], groups: int) -> Graph:
    """Graph of the groups: pairs of the same two groups added up, those within left out."""
    indptr, peer, weight = graph
    starts, members = group_by_block(group, groups)
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
    return Graph(new_indptr, new_peer[:count], new_weight[:count])


@njit
def subgraph(graph: Graph, here: Ints, local: Ints) -> Graph:
    """Graph of some vertices, numbered as they come; `local` is scratch, -1 everywhere."""
    indptr, peer, weight = graph
    entries = 0
    for k in range(len(here)):
        local[here[k]] = k
        entries += indptr[here[k] + 1] - indptr[here[k]]
    sub_indptr = np.zeros(len(here) + 1, dtype=np.int64)
    sub_peer = np.empty(entries, dtype=np.int64)
    sub_weight = np.empty(entries, dtype=weight.dtype)
    used = 0
    for k in range(len(here)):
        for i in range(indptr[here[k]], indptr[here[k] + 1]):
            if local[peer[i]] >= 0:
                sub_peer[used] = local[peer[i]]
                sub_weight[used] = weight[i]
                used += 1
        sub_indptr[k + 1] = used
    for u in here:
        local[u] = -1
    return Graph(sub_indptr, sub_peer[:used], sub_weight[:used])


@subroutine
def next_state(state: np.uint64) -> np.uint64:
    """Return the next state."""
    state ^= state >> np.uint64(12)
    state ^= state << np.uint64(25)
    state ^= state >> np.uint64(27)
    return state


@subroutine
def draw(state: np.uint64, bound: int) -> Any:
    """Return the state's number, 0..bound-1; bound below 2^32."""
    mixed = (state * np.uint64(2685821657736338717)) >> np.uint64(32)
    return np.int64((mixed * np.uint64(bound)) >> np.uint64(32))


@subroutine
def eighth_power(x: float) -> float:
    """x^8 by squarings alone: the same bits on every machine."""
    x *= x
    x *= x
    return x * x

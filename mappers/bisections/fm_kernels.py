"""Compiled FM refinement of a graph's two sides, of sizes that are kept, and greedy growing.

Source: Fiduccia and Mattheyses, A linear-time heuristic for improving network partitions, DAC
1982, with heaps for buckets. Every vertex may have a bias, what side 1 costs it more than side 0:
that is how external pairs pull (terminal propagation). O(pairs * log(vertices)) a pass.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hopmap.arrays import Floats, Ints, Ints8, Ints32
from hopmap.compilation import subroutine
from hopmap.mappers.basic_kernels import Graph

PASSES = 4
FIRST: Any = np.int64(0)  # of a heap; a literal would make another kind of `_sink`


@subroutine
def _raise(heap: Ints32, at: Ints32, key: Floats, i: int) -> None:
    """Move the vertex in slot i of a max-heap upwards."""
    u = heap[i]
    while i > 0 and key[heap[(i - 1) >> 1]] < key[u]:
        heap[i] = heap[(i - 1) >> 1]
        at[heap[i]] = i
        i = (i - 1) >> 1
    heap[i] = u
    at[u] = i


@subroutine
def _sink(heap: Ints32, at: Ints32, key: Floats, i: int, length: int) -> None:
    """Move the vertex in slot i of a max-heap downwards."""
    u = heap[i]
    while True:
        child = 2 * i + 1
        if child >= length:
            break
        if child + 1 < length and key[heap[child + 1]] > key[heap[child]]:
            child += 1
        if key[heap[child]] <= key[u]:
            break
        heap[i] = heap[child]
        at[heap[i]] = i
        i = child
    heap[i] = u
    at[u] = i


@subroutine
def _pop(heap: Ints32, at: Ints32, key: Floats, length: int) -> int:
    """Take the first vertex out of a heap and return it."""
    u: int = heap[0]
    heap[0] = heap[length - 1]
    _sink(heap, at, key, FIRST, length - 1)
    at[u] = -1
    return u


@subroutine
def _gains(graph: Graph, bias: Floats, side: Ints8, gain: Floats) -> None:
    """Fill in what moving each vertex to the other side saves."""
    indptr, peer, weight = graph
    for u in range(len(side)):
        total = bias[u] if side[u] == 1 else -bias[u]
        for i in range(indptr[u], indptr[u + 1]):
            total += weight[i] if side[peer[i]] != side[u] else -weight[i]
        gain[u] = total


@subroutine
def refine(
    graph: Graph, size: Ints, bias: Floats, side: Ints8, target: int, slack: int, exact: bool
) -> None:
    """FM passes, in place: moves by best gain, each vertex once, back to the best state met.

    Side 0 may be off its target by `slack` on the way, and in the end if not `exact`.
    """
    indptr, peer, weight = graph
    n = len(side)
    gain = np.empty(n)
    heaps = np.empty((2, n), dtype=np.int32)
    at = np.empty(n, dtype=np.int32)
    moved = np.empty(n, dtype=np.int32)
    lengths = np.empty(2, dtype=np.int64)
    allowed = 0 if exact else slack
    excess = -target
    for u in range(n):
        if side[u] == 0:
            excess += size[u]
    for _ in range(PASSES):
        _gains(graph, bias, side, gain)
        lengths[:] = 0
        for u in range(n):
            s = side[u]
            heaps[s, lengths[s]] = u
            at[u] = lengths[s]
            lengths[s] += 1
        for s in range(2):
            heap = heaps[s]
            for i in range(lengths[s] // 2 - 1, -1, -1):
                _sink(heap, at, gain, i, lengths[s])
        count, best_count = 0, 0
        saved, best_saved = 0.0, 0.0
        best_off = max(abs(excess) - allowed, 0)
        start_off = best_off
        patience = max(30, n // 8)
        while count - best_count < patience or best_off > 0:
            s = -1
            if lengths[0] > 0:
                u = heaps[0, 0]
                if excess - size[u] >= -slack or excess > slack:
                    s = 0
            if lengths[1] > 0:
                v = heaps[1, 0]
                fits = excess + size[v] <= slack or excess < -slack
                if fits and (s < 0 or gain[v] > gain[heaps[0, 0]] or excess < -slack):
                    s = 1
            if s == 1 and excess > slack:
                s = 0 if lengths[0] > 0 else -1
            if s < 0:
                break
            heap, other = heaps[s], heaps[1 - s]
            length = lengths[1 - s]
            u = _pop(heap, at, gain, lengths[s])
            lengths[s] -= 1
            saved += gain[u]
            excess += size[u] if s == 1 else -size[u]
            side[u] = 1 - s
            moved[count] = u
            count += 1
            for i in range(indptr[u], indptr[u + 1]):
                v = peer[i]
                k: Any = np.int64(at[v])
                if side[v] == s:
                    gain[v] += 2 * weight[i]
                    if k > 0 and gain[heap[(k - 1) >> 1]] < gain[v]:
                        _raise(heap, at, gain, k)
                else:
                    gain[v] -= 2 * weight[i]
                    first = 2 * k + 1
                    if k >= 0 and (
                        (first < length and gain[other[first]] > gain[v])
                        or (first + 1 < length and gain[other[first + 1]] > gain[v])
                    ):
                        _sink(other, at, gain, k, length)
            off = max(abs(excess) - allowed, 0)
            if off < best_off or (off == best_off and saved > best_saved + 1e-9):
                best_off, best_saved, best_count = off, saved, count
        for k in range(count - 1, best_count - 1, -1):
            u = moved[k]
            side[u] = 1 - side[u]
            excess += size[u] if side[u] == 0 else -size[u]
        if best_saved <= 1e-9 and best_off == start_off:
            break


@subroutine
def grow(graph: Graph, size: Ints, bias: Floats, side: Ints8, target: int, seed: int) -> None:
    """Grow side 0 from the seed, or from the vertex of largest gain (-1), until its target."""
    indptr, peer, weight = graph
    n = len(side)
    side[:] = 1
    gain = np.empty(n)
    _gains(graph, bias, side, gain)
    heap, at = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int32)
    for u in range(n):
        heap[u] = at[u] = u
    length = n
    if seed >= 0:
        gain[seed] = np.inf
    for i in range(n // 2 - 1, -1, -1):
        _sink(heap, at, gain, i, length)
    total = 0
    while length > 0 and total < target:
        u = _pop(heap, at, gain, length)
        length -= 1
        if total + size[u] > target and 2 * (target - total) < size[u]:
            continue
        side[u] = 0
        total += size[u]
        for i in range(indptr[u], indptr[u + 1]):
            v = peer[i]
            k: Any = np.int64(at[v])
            if k >= 0:
                gain[v] += 2 * weight[i]
                if k > 0 and gain[heap[(k - 1) >> 1]] < gain[v]:
                    _raise(heap, at, gain, k)


@subroutine
def cut_cost(graph: Graph, bias: Floats, side: Ints8) -> float:
    """Weight between the sides and biases of side 1."""
    indptr, peer, weight = graph
    cost = 0.0
    for u in range(len(side)):
        if side[u] == 1:
            cost += bias[u]
            for i in range(indptr[u], indptr[u + 1]):
                if side[peer[i]] == 0:
                    cost += weight[i]
    return cost

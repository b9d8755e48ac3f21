"""Compiled: which edges of a Cartesian product are parallel."""

from __future__ import annotations

import numpy as np

from hopmap.arrays import Ints
from hopmap.compilation import njit, subroutine


@subroutine
def _find(root: Ints, edge: int) -> int:
    while root[edge] != edge:
        root[edge] = root[root[edge]]
        edge = root[edge]
    return edge


@subroutine
def _unite(root: Ints, one: int, other: int) -> int:
    """Unite the classes of two edges; 1 if they were two."""
    a, b = _find(root, one), _find(root, other)
    if a == b:
        return 0
    root[max(a, b)] = min(a, b)
    return 1


@subroutine
def _are_one(root: Ints, edges: Ints) -> bool:
    """Whether all of these edges are in one class."""
    first, same = _find(root, edges[0]), 0
    for edge in edges:
        same += _find(root, edge) == first
    return same == len(edges)


@njit
def parallel_edges(indptr: Ints, peer: Ints, edge: Ints, order: Ints, few: int) -> Ints:
    """Class of every edge, by the square property of Cartesian products.

    In one class are: the edges of a triangle; the opposite edges of a square without chords; and
    two edges at a vertex that are in no such square. Of the squares of a vertex and one across
    from it, only the first counts, so that with a third common neighbour all are in one class.

    It ends where there are a `few` classes and many vertices have united none, and where all edges
    of a vertex are in one class: it has edges of every factor.

    - `edge`, shape (2 * edges,): number of the edge that each entry of `peer` stands for.
    - `order`, shape (vertices,): in which vertices are looked at, best breadth first.
    """
    n, edges = len(indptr) - 1, len(peer) // 2
    root = np.arange(edges)
    classes, idle = edges, 0
    at, common = np.full(n, -1), np.zeros(n, dtype=np.int64)
    first, second = np.empty((n, 2), dtype=np.int64), np.empty((n, 2), dtype=np.int64)
    reached = np.empty(n, dtype=np.int64)
    widest = 0
    for v in range(n):
        widest = max(widest, indptr[v + 1] - indptr[v])
    square = np.zeros((widest, widest), dtype=np.bool_)
    for v in order:
        lo, hi, before = indptr[v], indptr[v + 1], classes
        for i in range(lo, hi):
            at[peer[i]] = i
        count = 0
        for i in range(lo, hi):
            u = peer[i]
            for j in range(indptr[u], indptr[u + 1]):
                x = peer[j]
                if x == v:
                    continue
                if at[x] >= 0:
                    square[i - lo, at[x] - lo] = True
                    if u < x:
                        classes -= _unite(root, edge[i], edge[j])
                        classes -= _unite(root, edge[i], edge[at[x]])
                elif common[x] == 0:
                    reached[count], count = x, count + 1
                    first[x, 0], first[x, 1] = i, j
                elif common[x] == 1:
                    second[x, 0], second[x, 1] = i, j
                if at[x] < 0:
                    common[x] += 1
        for k in range(count):
            x = reached[k]
            if common[x] > 1:
                one, other = first[x], second[x]
                square[one[0] - lo, other[0] - lo] = square[other[0] - lo, one[0] - lo] = True
                classes -= _unite(root, edge[one[0]], edge[other[1]])
                classes -= _unite(root, edge[other[0]], edge[one[1]])
            common[x] = 0
        for a in range(hi - lo):
            for b in range(hi - lo):
                if a < b and not square[a, b]:
                    classes -= _unite(root, edge[lo + a], edge[lo + b])
                square[a, b] = False
        for i in range(lo, hi):
            at[peer[i]] = -1
        idle = 0 if classes < before else idle + 1
        if _are_one(root, edge[lo:hi]):
            root[:] = 0
            break
        if classes <= few and idle > 64 + 2 * widest:
            break
    for k in range(edges):
        root[k] = _find(root, k)
    return root

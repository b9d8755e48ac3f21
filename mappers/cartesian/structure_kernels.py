"""Compiled: which edges of a product are parallel, and where vertices of a lattice are."""

from __future__ import annotations

import numpy as np

from hopmap.arrays import Bools, Ints
from hopmap.compilation import njit, subroutine

LOOKS = 3  # at vertices, for each that has got a cell


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


@subroutine
def _code(place: Ints) -> int:
    """Return the number of a cell, unique within 2^(60 / dimensions) steps."""
    base, code = 1 << (60 // len(place)), 0
    for x in place:
        code = code * base + x + (base >> 1)
    return code


@subroutine
def _entry(table: Ints, codes: Ints, code: int) -> int:
    """Where in the table the vertex of a cell is, or would be."""
    slot = (code * 0x9E3779B97F4A7C1 >> 20) & (len(table) - 1)
    while table[slot] >= 0 and codes[table[slot]] != code:
        slot = (slot + 1) & (len(table) - 1)
    return slot


@njit
def grow(indptr: Ints, peer: Ints, vectors: Ints, place: Ints, placed: Bools) -> int:
    """Give vertices their cells in a lattice, from a few that have one; return how many have.

    A vertex goes to the free cell around which it has most neighbours, two at least, less those who
    are there and are no neighbours. The last neighbour of a vertex whose other cells are taken goes
    to the last cell. Where only equals are left, the first of them is taken. A lattice takes a
    look or two for each vertex; what is none could take hundreds, so that `LOOKS` end it.

    - `vectors`, shape (neighbours, dimensions): steps of the stencil.
    - `place`, shape (vertices, dimensions), and `placed`: they are filled.
    """
    n, k, d = len(indptr) - 1, len(vectors), place.shape[1]
    size = 1
    while size < 4 * n:
        size *= 2
    table, codes, step = np.full(size, -1), np.zeros(n, np.int64), np.zeros(k, np.int64)
    origin = np.zeros(d, dtype=np.int64)
    for s in range(k):
        step[s] = _code(vectors[s]) - _code(origin)
    missing, near = np.empty(n, dtype=np.int64), np.zeros(n, dtype=np.bool_)
    queue, queued = np.empty(n, dtype=np.int64), np.zeros(n, dtype=np.bool_)
    fresh = np.empty(n, dtype=np.int64)  # placed, their neighbours not yet told
    head, waiting, new = 0, 0, 0
    for v in range(n):
        missing[v] = indptr[v + 1] - indptr[v]
        if placed[v]:
            codes[v] = _code(place[v])
            table[_entry(table, codes, codes[v])] = v
            fresh[new], new = v, new + 1
    done, relaxed = new, False
    looks = 0
    while looks <= LOOKS * done:
        looks += 1
        while new > 0:
            new -= 1
            v = fresh[new]
            for i in range(indptr[v], indptr[v + 1]):
                u = peer[i]
                missing[u] -= 1
                if not placed[u] and not queued[u]:
                    queue[(head + waiting) % n], queued[u] = u, True
                    waiting += 1
        if waiting == 0:
            if relaxed or done == n:
                break
            relaxed = True
            for v in range(n):
                if not placed[v] and missing[v] < indptr[v + 1] - indptr[v]:
                    queue[(head + waiting) % n], queued[v] = v, True
                    waiting += 1
            continue
        w = queue[head]
        head, waiting = (head + 1) % n, waiting - 1
        queued[w] = False
        for i in range(indptr[w], indptr[w + 1]):
            near[peer[i]] = True
        best, second, from_, by = 0, 0, -1, -1
        looked = 0
        for i in range(indptr[w], indptr[w + 1]):
            u = peer[i]
            last = placed[u] and missing[u] == 1 and indptr[u + 1] - indptr[u] == k
            if not placed[u] or (looked > 1 and not last):
                continue
            looked += 1
            free, only = 0, -1
            for s in range(k):
                cell = codes[u] + step[s]
                if table[_entry(table, codes, cell)] >= 0:
                    continue
                free, only = free + 1, s
                hits, score = 0, 0
                for r in range(k):
                    there = table[_entry(table, codes, cell + step[r])]
                    if there >= 0:
                        hits += near[there]
                        score += 1 if near[there] else -1
                if hits < 2:
                    continue
                if score > best:
                    if from_ < 0 or codes[from_] + step[by] != cell:
                        second = best
                    best, from_, by = score, u, s
                elif from_ < 0 or codes[from_] + step[by] != cell:
                    second = max(second, score)
            if last and free == 1:
                best, second, from_, by = max(best, 1), 0, u, only
                break
        for i in range(indptr[w], indptr[w + 1]):
            near[peer[i]] = False
        if best > second or (best > 0 and relaxed):
            codes[w], placed[w] = codes[from_] + step[by], True
            for c in range(d):
                place[w, c] = place[from_, c] + vectors[by, c]
            table[_entry(table, codes, codes[w])] = w
            fresh[new], new, done, relaxed = w, new + 1, done + 1, False
    return done

"""Compiled breadth-first searches and Hamming distances for `partial_cube.py`.

A graph is given by rows: the neighbours of vertex v are ``ends[starts[v]:starts[v + 1]]``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hopmap.compilation import njit, subroutine


@subroutine
def bits_set(word: np.uint64) -> int:
    """Count the ones of a machine word (Warren, Hacker's Delight, section 5-1)."""
    x = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return int((x * np.uint64(0x0101010101010101)) >> np.uint64(56))


@subroutine
def hamming(labels: NDArray[np.uint64], u: int, v: int) -> int:
    """Digits in which two labels differ."""
    count = 0
    for word in range(labels.shape[1]):
        count += bits_set(labels[u, word] ^ labels[v, word])
    return count


@njit
def hammings(
    labels: NDArray[np.uint64], u: NDArray[np.int64], v: NDArray[np.int64]
) -> NDArray[np.int64]:
    """`hamming` of each pair."""
    counts = np.empty(len(u), dtype=np.int64)
    for i in range(len(u)):
        counts[i] = hamming(labels, u[i], v[i])
    return counts


@subroutine
def hops_from(
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    source: int,
    hops: NDArray[np.int64],
    queue: NDArray[np.int64],
) -> None:
    """Fill ``hops[vertex]``, all of which can be reached; `queue` is scratch of the same size."""
    hops[:] = -1
    hops[source] = 0
    queue[0] = source
    head, tail = 0, 1
    while head < tail:
        here = queue[head]
        head += 1
        for i in range(starts[here], starts[here + 1]):
            if hops[ends[i]] < 0:
                hops[ends[i]] = hops[here] + 1
                queue[tail] = ends[i]
                tail += 1


@njit
def odd_edge(starts: NDArray[np.int64], ends: NDArray[np.int64]) -> tuple[int, int]:
    """Return the ends of an edge equally far from vertex 0; (-1, -1) in a bipartite graph."""
    vertices = len(starts) - 1
    hops, queue = np.empty(vertices, dtype=np.int64), np.empty(vertices, dtype=np.int64)
    hops_from(starts, ends, 0, hops, queue)
    for u in range(vertices):
        for i in range(starts[u], starts[u + 1]):
            if hops[u] == hops[ends[i]]:
                return u, ends[i]
    return -1, -1


@njit
def cut_of(
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    x: int,
    y: int,
    class_of: NDArray[np.int64],
    number: int,
    side: NDArray[np.bool_],
) -> int:
    """Enter the edges that are Djokovic related to {x, y}, and the sides of the vertices.

    Parameters
    ----------
    class_of : ndarray(int64, shape=(2 * edges,))
        Class of each entry of `ends`, -1 for none; those of this class are set to `number`.
    side : ndarray(bool, shape=(vertices,))
        Set to whether a vertex is nearer to y (W_yx) than to x (W_xy).

    Returns
    -------
    int
        An entry that is of another class already; -1 if there is none.
    """
    vertices = len(starts) - 1
    from_x, from_y = np.empty(vertices, dtype=np.int64), np.empty(vertices, dtype=np.int64)
    queue = np.empty(vertices, dtype=np.int64)
    hops_from(starts, ends, x, from_x, queue)
    hops_from(starts, ends, y, from_y, queue)
    for v in range(vertices):
        side[v] = from_y[v] < from_x[v]
    for u in range(vertices):
        for i in range(starts[u], starts[u + 1]):
            if side[u] != side[ends[i]]:
                if class_of[i] >= 0:
                    return i
                class_of[i] = number
    return -1


@njit
def unlike(
    starts: NDArray[np.int64], ends: NDArray[np.int64], labels: NDArray[np.uint64]
) -> tuple[int, int, int]:
    """First two vertices whose hops are not the Hamming distance, and their hops; else -1, -1, 0.

    O(vertices * (edges + vertices * words)).
    """
    vertices = len(starts) - 1
    hops, queue = np.empty(vertices, dtype=np.int64), np.empty(vertices, dtype=np.int64)
    for u in range(vertices):
        hops_from(starts, ends, u, hops, queue)
        for v in range(u):
            if hops[v] != hamming(labels, u, v):
                return v, u, hops[v]
    return -1, -1, 0

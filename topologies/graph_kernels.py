"""Distance and routes on arbitrary graphs, from a table of hops; see `graph.py`.

The two routing functions are compiled where `kernels.distance` and `next_link` are called.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.compilation import njit


class GraphRouter(NamedTuple):
    """All that a kernel needs to know of a graph.

    Attributes
    ----------
    hops : ndarray(int16, shape=(nodes, vertices))
        Distance of every vertex from every node, the same both ways.
    starts : ndarray(int64, shape=(vertices + 1,))
        Links that leave vertex v are ``starts[v]:starts[v + 1]``, to ascending vertices.
    link_to : ndarray(int32, shape=(links,))
        Vertex at the end of each link.
    """

    hops: NDArray[np.int16]
    starts: NDArray[np.int64]
    link_to: NDArray[np.int32]


def graph_distance(router: GraphRouter, source: int, target: int) -> int:
    """Hops between two nodes."""
    return int(router.hops[target, source])


def graph_link(router: GraphRouter, here: int, target: int, source: int) -> int:
    """First link, that is to the lowest vertex, after which one hop less is left."""
    left = router.hops[target, here]
    link = router.starts[here]
    while router.hops[target, router.link_to[link]] >= left:
        link += 1
    return int(link)


FARTHEST = 2**15 - 1
"""Links of a way, which the tables of hops have 16 bits for."""


@njit
def breadth_first(
    starts: NDArray[np.int64], link_to: NDArray[np.int32], hops: NDArray[np.int16]
) -> bool:
    """Fill ``hops[node, vertex]`` for the node of every row; -1 where there is no way.

    False, with hops half-filled, where a way has more than `FARTHEST` links.
    """
    queue = np.empty(hops.shape[1], dtype=np.int32)
    for node in range(hops.shape[0]):
        row = hops[node]
        row[:] = -1
        row[node] = 0
        queue[0] = node
        head, tail = 0, 1
        while head < tail:
            here = queue[head]
            head += 1
            for link in range(starts[here], starts[here + 1]):
                there = link_to[link]
                if row[there] < 0:
                    if row[here] == FARTHEST:
                        return False
                    row[there] = row[here] + 1
                    queue[tail] = there
                    tail += 1
    return True

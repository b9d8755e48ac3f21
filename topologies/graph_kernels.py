"""Distance and routes on arbitrary graphs (`graph.py`), and routes round failures (`failures.py`).

The routing functions of graphs are compiled where `routing.distance` and `next_link` are called;
those of detours are in `routing.py`, since they ask the network's own router.
"""

from __future__ import annotations

from typing import Any, NamedTuple

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


class DetourRouter(NamedTuple):
    """Another router, and the routes that are not its own, by source and then by target.

    Attributes
    ----------
    base : Router
        Of all links.
    number : ndarray(int32, shape=(links of base,))
        What each link of the base is called here; -1 where it is none any more.
    starts : ndarray(int64, shape=(nodes + 1,))
        Detours from node s are ``starts[s]:starts[s + 1]``.
    targets : ndarray(int32, shape=(detours,))
        Where they go, ascending for each source.
    begins : ndarray(int64, shape=(detours + 1,))
        Detour d is ``links[begins[d]:begins[d + 1]]``.
    links : ndarray(int32)
    link_from, link_to : ndarray(int32, shape=(links,))
        Vertices at the ends of each link.
    """

    base: Any
    number: NDArray[np.int32]
    starts: NDArray[np.int64]
    targets: NDArray[np.int32]
    begins: NDArray[np.int64]
    links: NDArray[np.int32]
    link_from: NDArray[np.int32]
    link_to: NDArray[np.int32]


@njit
def detour(router: DetourRouter, source: int, target: int) -> int:
    """Return the number of the detour of a pair, -1 where it has none; O(log detours)."""
    low, high = router.starts[source], router.starts[source + 1]
    end = high
    while low < high:
        middle = (low + high) // 2
        if router.targets[middle] < target:
            low = middle + 1
        else:
            high = middle
    if low < end and router.targets[low] == target:
        return int(low)
    return -1

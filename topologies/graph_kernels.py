"""Distance and routes on arbitrary graphs (`graph.py`), and routes round failures (`failures.py`).

The routing functions of graphs are compiled where `routing.distance` and `next_link` are called;
routing functions of detours are in `routing.py`, since they ask the network's own router.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.arrays import Ints, Ints32
from hopmap.compilation import njit


class GraphRouter(NamedTuple):
    """All that a kernel needs to know of a graph."""

    # shape (nodes, vertices): distance of every vertex from every node, the same both ways
    hops: NDArray[np.int16]
    # shape (vertices + 1,): links that leave vertex v are ``starts[v]:starts[v + 1]``, to
    # ascending vertices
    starts: Ints
    link_to: Ints32  # shape (links,): vertex at the end of each link


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
def breadth_first(starts: Ints, link_to: Ints32, hops: NDArray[np.int16]) -> bool:
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
    """Another router, and the routes that are not its own, by source and then by target."""

    base: Any  # the router, of all links
    number: Ints32  # shape (links of base,): what each is called here; -1 where it is none any more
    starts: Ints  # shape (nodes + 1,): detours from node s are ``starts[s]:starts[s + 1]``
    targets: Ints32  # shape (detours,): where they go, ascending for each source
    begins: Ints  # shape (detours + 1,): detour d is ``links[begins[d]:begins[d + 1]]``
    links: Ints32
    # link_from, link_to: shape (links,): vertices at the ends of each link
    link_from: Ints32
    link_to: Ints32


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

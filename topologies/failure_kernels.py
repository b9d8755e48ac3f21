"""Which routes meet a link that is down, and the shortest ways round; see `failures.py`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hopmap.compilation import njit

from .routing import Router, next_link


@njit
def routes_met(router: Router, nodes: int, down: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Pairs, ``target * nodes + source``, whose route takes a link that is down; ascending."""
    found = np.empty(1024, dtype=np.int64)
    count = 0
    for target in range(nodes):
        for source in range(nodes):
            here, met = source, False
            while here != target and not met:
                link = next_link(router, here, target, source)
                met = down[link]
                here = int(router.link_to[link])
            if met:
                if count == len(found):
                    more = np.empty(2 * count, dtype=np.int64)
                    more[:count] = found
                    found = more
                found[count] = target * nodes + source
                count += 1
    return found[:count]


@njit
def ways_round(
    pairs: NDArray[np.int64],
    nodes: int,
    into: NDArray[np.int64],
    into_from: NDArray[np.int32],
    out: NDArray[np.int64],
    out_link: NDArray[np.int64],
    link_to: NDArray[np.int32],
    lengths: NDArray[np.int64],
    links: NDArray[np.int32],
) -> None:
    """Find a shortest route of each pair, that to the lowest vertex first.

    A search from each target against the direction of the links, in O(vertices + links), then a
    walk from each source.

    Parameters
    ----------
    pairs : ndarray(int64)
        ``target * nodes + source``, ascending.
    into, into_from : ndarray
        Links into vertex v begin at ``into_from[into[v]:into[v + 1]]``.
    out, out_link : ndarray
        Links that leave v are ``out_link[out[v]:out[v + 1]]``, to ascending vertices.
    lengths : ndarray(int64, shape=(pairs,))
        Filled with the links of each route; -1 where there is none.
    links : ndarray(int32)
        Filled with the routes one after the other; empty to learn the lengths only.
    """
    vertices = len(into) - 1
    left = np.empty(vertices, dtype=np.int64)
    queue = np.empty(vertices, dtype=np.int64)
    now, written = -1, 0
    for pair in range(len(pairs)):
        target, source = pairs[pair] // nodes, pairs[pair] % nodes
        if target != now:
            now = target
            left[:] = -1
            left[target] = 0
            queue[0] = target
            head, tail = 0, 1
            while head < tail:
                there = queue[head]
                head += 1
                for place in range(into[there], into[there + 1]):
                    here = into_from[place]
                    if left[here] < 0:
                        left[here] = left[there] + 1
                        queue[tail] = here
                        tail += 1
        lengths[pair] = left[source]
        if len(links) == 0 or left[source] < 0:
            continue
        here = source
        while here != target:
            place = out[here]
            while left[link_to[out_link[place]]] != left[here] - 1:
                place += 1
            links[written] = out_link[place]
            written += 1
            here = link_to[out_link[place]]

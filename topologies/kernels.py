"""Compiled distance and routing: the only place where hops are counted or routes walked.

Kernels take a `Router`, a named tuple of plain arrays, so that one compiled `distance` serves every
topology without an n x n table. Memory is linear in nodes and links.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

GRID = 0
HAEC = 1


class Router(NamedTuple):
    """All that a kernel needs to know of a topology.

    Attributes
    ----------
    family : int
        GRID (mesh and torus) or HAEC.
    dims : ndarray(int64, shape=(d,))
        Nodes per dimension, x first.
    wraps : ndarray(bool, shape=(d,))
        Whether the dimension is a ring.
    coords : ndarray(int32, shape=(nodes, d))
        Coordinates of each node.
    ports : ndarray(int32, shape=(nodes, 2 * d))
        Link leaving the node upwards (column 2k) and downwards (2k + 1) in dimension k, or -1.
    link_to : ndarray(int32, shape=(links,))
        Node at the end of each link.
    parity : bool
        Half-way round a ring: False, the direction that does not wrap; True, upwards from even
        source coordinates and downwards from odd ones.
    """

    family: int
    dims: NDArray[np.int64]
    wraps: NDArray[np.bool_]
    coords: NDArray[np.int32]
    ports: NDArray[np.int32]
    link_to: NDArray[np.int32]
    parity: bool


@njit(cache=True)
def distance(router: Router, source: int, target: int) -> int:
    """Hops of the route from source to target; O(dimensions)."""
    if router.family == HAEC:
        boards = abs(int(router.coords[source, 2]) - int(router.coords[target, 2]))
        if boards != 0:
            return boards
    hops = 0
    for k in range(len(router.dims)):
        away = abs(int(router.coords[source, k]) - int(router.coords[target, k]))
        if router.wraps[k]:
            away = min(away, int(router.dims[k]) - away)
        hops += away
    return hops


@njit(cache=True)
def next_link(router: Router, here: int, target: int) -> int:
    """First link of the route from here to another node, the target.

    Dimension order x, y, z, ...; the rest of a route is the route of the node reached, so walking
    means calling this again.
    """
    dims = router.dims
    if router.family == HAEC:
        boards = int(router.coords[target, 2]) - int(router.coords[here, 2])
        if boards != 0:
            # The first wireless hop lands on the target's (x, y), the others go straight.
            board = int(dims[0]) * int(dims[1])
            place = target % board
            if boards > 0:
                return int(router.ports[0, 4]) + here * board + place
            return int(router.ports[0, 5]) + (here - board) * board + place
    for k in range(len(dims)):
        a = int(router.coords[here, k])
        b = int(router.coords[target, k])
        if a == b:
            continue
        up = b > a
        if router.wraps[k]:
            twice = 2 * abs(b - a)
            if twice > dims[k]:
                up = not up
            elif twice == dims[k] and router.parity:
                up = a % 2 == 0
        return int(router.ports[here, 2 * k if up else 2 * k + 1])
    return -1


@njit(cache=True)
def distances(
    router: Router, source: NDArray[np.int64], target: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Hops of each pair."""
    hops = np.empty(len(source), dtype=np.int64)
    for i in range(len(source)):
        hops[i] = distance(router, source[i], target[i])
    return hops


@njit(cache=True)
def walk_routes(
    router: Router,
    source: NDArray[np.int64],
    target: NDArray[np.int64],
    indptr: NDArray[np.int64],
    links: NDArray[np.int32],
) -> None:
    """Write the links of each pair's route to ``links[indptr[i]:indptr[i + 1]]``."""
    for i in range(len(source)):
        here = source[i]
        for hop in range(indptr[i], indptr[i + 1]):
            link = next_link(router, here, target[i])
            links[hop] = link
            here = int(router.link_to[link])


@njit(cache=True)
def add_loads(
    router: Router,
    source: NDArray[np.int64],
    target: NDArray[np.int64],
    weight: NDArray[np.int64],
    loads: NDArray[np.int64],
) -> None:
    """Add each pair's weight to the load of every link on its route; nothing is stored."""
    for i in range(len(source)):
        here = source[i]
        while here != target[i]:
            link = next_link(router, here, target[i])
            loads[link] += weight[i]
            here = int(router.link_to[link])

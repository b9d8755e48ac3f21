"""Distance and routes on boxes of nodes: meshes, tori, hypercubes and the HAEC Box.

Plain functions, compiled where `kernels.distance` and `kernels.next_link` are called.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

GRID = 0
HAEC = 1


class BoxRouter(NamedTuple):
    """All that a kernel needs to know of a box.

    Attributes
    ----------
    family : int
        GRID (mesh, torus and hypercube) or HAEC.
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


class FoldedRouter(NamedTuple):
    """A box whose nodes are numbered otherwise, so that it has no coordinates for mappers.

    Attributes
    ----------
    family, dims, wraps, coords, ports, link_to, parity
        As of a `BoxRouter`, with `family` GRID; routes are the same.
    """

    family: int
    dims: NDArray[np.int64]
    wraps: NDArray[np.bool_]
    coords: NDArray[np.int32]
    ports: NDArray[np.int32]
    link_to: NDArray[np.int32]
    parity: bool


def box_distance(router: BoxRouter | FoldedRouter, source: int, target: int) -> int:
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


def box_link(router: BoxRouter | FoldedRouter, here: int, target: int, source: int) -> int:
    """First link from here to another node, the target, in dimension order x, y, z, ..."""
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

"""Distance and routes on boxes of nodes: meshes, tori, hypercubes and the HAEC Box.

Plain functions, compiled where `kernels.distance` and `kernels.next_link` are called.
"""

from __future__ import annotations

from typing import NamedTuple

from hopmap.arrays import Bools, Ints, Ints32

GRID = 0
HAEC = 1


class BoxRouter(NamedTuple):
    """All that a kernel needs to know of a box of d dimensions."""

    family: int  # GRID (mesh, torus and hypercube) or HAEC
    dims: Ints  # shape (d,): nodes per dimension, x first
    wraps: Bools  # shape (d,): whether the dimension is a ring
    coords: Ints32  # shape (nodes, d)
    # shape (nodes, 2 * d): link leaving the node upwards (column 2k) and downwards (2k + 1) in
    # dimension k, or -1
    ports: Ints32
    link_to: Ints32  # shape (links,): node at the end of each link
    # half-way round a ring: the direction that does not wrap, or if so upwards from even source
    # coordinates and downwards from odd ones
    parity: bool


class FoldedRouter(NamedTuple):
    """A GRID whose nodes are numbered otherwise, so that it has no coordinates for mappers.

    Fields and routes are a `BoxRouter`'s.
    """

    family: int
    dims: Ints
    wraps: Bools
    coords: Ints32
    ports: Ints32
    link_to: Ints32
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

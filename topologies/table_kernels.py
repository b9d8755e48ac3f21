"""Distance from tables: of all routes (see `routed.py`), or of parts that are alike.

Plain functions, compiled where `routing.distance` and `routing.next_link` are called.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class RouteRouter(NamedTuple):
    """All that a kernel needs to know of a network whose routes are listed.

    Attributes
    ----------
    nodes : int
        Number of nodes.
    starts : ndarray(int64, shape=(nodes * nodes + 1,))
        The route from node s to t is ``links[starts[s * nodes + t]:starts[s * nodes + t + 1]]``.
    links : ndarray(int32, shape=(total hops,))
        Links of all routes.
    link_from, link_to : ndarray(int32, shape=(links,))
        Vertices at the ends of each link.
    """

    nodes: int
    starts: NDArray[np.int64]
    links: NDArray[np.int32]
    link_from: NDArray[np.int32]
    link_to: NDArray[np.int32]


def route_distance(router: RouteRouter, source: int, target: int) -> int:
    """Links on the route."""
    pair = source * router.nodes + target
    return int(router.starts[pair + 1] - router.starts[pair])


def route_link(router: RouteRouter, here: int, target: int, source: int) -> int:
    """Link of the route that leaves `here`; a route comes to a vertex once."""
    hop = router.starts[source * router.nodes + target]
    while router.link_from[router.links[hop]] != here:
        hop += 1
    return int(router.links[hop])


class PartRouter(NamedTuple):
    """Distances only, from two small tables, for networks of parts that are alike.

    On a box the hops within a plane and those between planes add up. In a hierarchy nodes of unlike
    groups are as far apart as their groups. Two tables of about sqrt(nodes) rows say what one of
    nodes * nodes would, and stay in the processor's caches. Any table of distances is a single
    group. There are no routes.

    Attributes
    ----------
    group, place : ndarray(uint16, shape=(nodes,))
        Group of every node, and where in its group it is.
    between : ndarray(int16, shape=(groups, groups))
        Distance of two groups.
    within : ndarray(int16, shape=(places, places))
        Distance of two places, the same in every group.
    adds : bool
        Whether both distances add up; else that of unlike groups is the whole.
    """

    group: NDArray[np.uint16]
    place: NDArray[np.uint16]
    between: NDArray[np.int16]
    within: NDArray[np.int16]
    adds: bool

    @property
    def link_to(self) -> NDArray[np.int32]:
        """There are no links."""
        return np.zeros(0, dtype=np.int32)


def part_distance(router: PartRouter, source: int, target: int) -> int:
    """Distance of two nodes."""
    far = int(router.between[router.group[source], router.group[target]])
    if far > 0 and not router.adds:
        return far
    return far + int(router.within[router.place[source], router.place[target]])


def part_link(router: PartRouter, here: int, target: int, source: int) -> int:
    """Nobody knows."""
    return -1

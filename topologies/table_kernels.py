"""Distance from tables: of all routes (see `families/graph.py`), or of equal parts.

Plain functions, compiled where `routing.distance` and `routing.next_link` are called.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.arrays import Ints, Ints32


class RouteRouter(NamedTuple):
    """All that a kernel needs to know of a network whose routes are listed."""

    nodes: int
    # shape (nodes * nodes + 1,): the route from node s to t is
    # ``links[starts[s * nodes + t]:starts[s * nodes + t + 1]]``
    starts: Ints
    links: Ints32  # shape (total hops,)
    # link_from, link_to: shape (links,): vertices at the ends of each link
    link_from: Ints32
    link_to: Ints32


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
    """Distances only, from two small tables, for networks of equal parts.

    On a box the hops within a plane and those between planes add up. In a hierarchy nodes of unlike
    groups are as far apart as their groups. Two tables of about sqrt(nodes) rows say what one of
    nodes * nodes would, and stay in the processor's caches. Any table of distances is a single
    group. There are no routes.
    """

    # group, place: shape (nodes,): group of every node, and where in its group it is
    group: NDArray[np.uint16]
    place: NDArray[np.uint16]
    between: NDArray[np.int16]  # shape (groups, groups): distance of two groups
    within: NDArray[np.int16]  # shape (places, places): of two places, the same in every group
    adds: bool  # whether both distances add up; else that of unlike groups is the whole

    @property
    def link_to(self) -> Ints32:
        """There are no links."""
        return np.zeros(0, dtype=np.int32)


def part_distance(router: PartRouter, source: int, target: int) -> int:
    """Distance of two nodes."""
    far = int(router.between[router.group[source], router.group[target]])
    if far > 0 and not router.adds:
        return far
    return far + int(router.within[router.place[source], router.place[target]])


def part_link(router: PartRouter, here: int, target: int, source: int) -> int:
    """Return -1: there are no routes."""
    return -1

"""Distance from two small tables, for networks that are made of parts that are alike.

On a box the hops within a plane and those between planes add up; in a hierarchy nodes of unlike
groups are as far apart as their groups, whoever they are. So two tables of about sqrt(nodes) rows
say all that one of nodes * nodes would, and stay in the processor's caches. Any table of distances
is a single group. There are no routes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class PartRouter(NamedTuple):
    """Distances only.

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

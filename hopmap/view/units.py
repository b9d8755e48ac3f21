"""What nodes belong to: their switch, group or pod, or the plane or row of a grid."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hopmap.arrays import Ints
from hopmap.topologies import Topology
from hopmap.topologies.switch_kernels import SUBTREE, DragonflyRouter, FatTreeRouter
from hopmap.topologies.tree_kernels import TreeRouter


class Level(NamedTuple):
    """Units of one kind, which divide the nodes."""

    name: str  # of one unit, like "switch"
    of_node: Ints  # shape (nodes,): number of the unit that each node is in

    @property
    def units(self) -> int:
        """How many there are."""
        return int(self.of_node.max(initial=-1)) + 1


def levels_of(topology: Topology) -> list[Level]:
    """Return the units of a network, the smallest first; nodes are the first level.

    Left out are levels with a single unit, or with as many as the level before.
    """
    router, nodes = topology.router, np.arange(topology.nodes)
    found = [Level("node", nodes)]
    dims = topology.dims
    if len(dims) > 1:
        found.append(
            Level("row" if len(dims) == 2 else "plane", topology.coords[:, -1].astype(np.int64))
        )
    if topology.switches:
        home = home_of(topology)
        found.append(Level("switch", np.unique(home, return_inverse=True)[1]))
    if isinstance(router, DragonflyRouter):
        found.append(Level("group", nodes // (router.hosts * router.routers)))
    if isinstance(router, FatTreeRouter):
        below = router.levels[2:-1, SUBTREE].tolist()
        found += [Level("pod" if len(below) == 1 else f"pod of {n}", nodes // n) for n in below]
    if isinstance(router, TreeRouter):
        found += [Level(f"part of {n}", nodes // n) for n in router.spans[2:-1].tolist()]
    kept = found[:1]
    for level in found[1:]:
        if 1 < level.units < kept[-1].units:
            kept.append(level)
    return kept


def home_of(topology: Topology) -> Ints:
    """Return the vertex that the first link of each node leads to, shape (nodes,)."""
    home = np.arange(topology.nodes)
    own = np.flatnonzero(topology.link_from < topology.nodes)[::-1]
    home[topology.link_from[own]] = topology.link_to[own]
    return home

"""What nodes belong to: their switch, group or pod, or the plane, board or row of a grid."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hopmap.arrays import Ints
from hopmap.figures.layout import is_haec, name_of_units
from hopmap.topologies import Topology
from hopmap.topologies.families.hierarchy import hierarchy


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
    nodes = np.arange(topology.nodes)
    found = [Level("node", nodes)]
    dims = topology.dims
    if len(dims) in (2, 3):
        name = "row" if len(dims) == 2 else "board" if is_haec(topology) else "plane"
        found.append(Level(name, topology.coords[:, -1].astype(np.int64)))
    elif len(dims) > 3:  # boxes of the first dimensions, about as many as there are nodes in each
        sizes = np.cumprod(dims)
        size = int(sizes[np.argmin(np.abs(np.log(sizes / np.sqrt(topology.nodes))))])
        found.append(Level(f"box of {size}", nodes // size))
    if topology.switches:
        home = home_of(topology)
        found.append(Level("switch", np.unique(home, return_inverse=True)[1]))
    below = np.cumprod(hierarchy(topology) or (1,))[1:-1].tolist()  # nodes of each unit
    name = name_of_units(topology)
    found += [Level(name if len(below) == 1 else f"{name} of {n}", nodes // n) for n in below]
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

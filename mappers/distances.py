"""Tables of distances: faster than formulas, and kernels are compiled once for all networks.

One table of few nodes, two small ones of boxes and hierarchies (see `table_kernels`), of other
networks one up to `TABLE` nodes; above, the network's own router answers. Memory: 32 MiB at most.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hopmap.arrays import Ints
from hopmap.topologies import Topology, hierarchy
from hopmap.topologies.box_kernels import GRID, BoxRouter
from hopmap.topologies.table_kernels import PartRouter
from hopmap.topologies.tree_kernels import TreeRouter

if TYPE_CHECKING:
    from hopmap.topologies import Router

WHOLE, TABLE = 1024, 4096  # nodes up to which one table is as fast as two; that one is made for
FEW_WHOLE, FEW_TABLE = 32, 256  # the same where few distances are asked for
FARTHEST = 32767  # in a table
ROWS = 32  # computed at once
NO_GROUPS = np.zeros((1, 1), dtype=np.int16)


def router_of(topology: Topology, *, few: bool = False) -> Router:
    """Return a router that answers for distances only, from tables if it can.

    Tables are of int16, of shape (nodes, nodes), or two of (part, part) and (parts, parts). Where
    they will not do, or a distance is beyond 32,767, it is the network's own. With `few` only some
    distances for each node are asked for, so that no large table pays.
    """
    from hopmap.topologies.graph_kernels import GraphRouter

    router = topology.router
    nodes, whole, most = topology.nodes, *((FEW_WHOLE, FEW_TABLE) if few else (WHOLE, TABLE))
    size = _part_size(topology) if nodes > whole else None
    if size is not None:
        within = table_of(router, np.arange(size))
        between = table_of(router, np.arange(0, nodes, size))
        number = np.arange(nodes)
        adds = isinstance(router, BoxRouter) and router.family == GRID
        if not (within.size and between.size) or int(within.max()) + between.max() > FARTHEST:
            return router
        group, place = (part.astype(np.uint16) for part in (number // size, number % size))
        return PartRouter(group, place, between, within, adds)
    if isinstance(router, GraphRouter):
        return table_router(np.ascontiguousarray(router.hops[:, :nodes]))
    if nodes > most:
        return router
    # Searches are nowhere but where there are slots.
    used = np.arange(nodes) if few else np.flatnonzero(topology.slots)
    table = table_of(router, used)
    if len(table) < len(used):
        return router
    place = np.zeros(nodes, dtype=np.uint16)
    place[used] = np.arange(len(used))
    return table_router(table)._replace(group=np.zeros_like(place), place=place)


def _part_size(topology: Topology) -> int | None:
    """Nodes of a part, such that neither parts nor their number are many; None if there are none.

    The first dimensions of a box, the inner levels of a hierarchy.
    """
    from hopmap.topologies.switch_kernels import FatTreeRouter

    router = topology.router
    if isinstance(router, BoxRouter):
        sizes = np.cumprod(router.dims)
        if router.family != GRID:
            sizes = sizes[1:2]  # a board; boards are as far apart as they are
    elif isinstance(router, TreeRouter | FatTreeRouter):
        sizes = np.cumprod(hierarchy(topology) or ())
    else:
        return None
    size = min(sizes.tolist(), key=lambda size: max(size, topology.nodes // size))
    return size if max(size, topology.nodes // size) <= TABLE else None


def table_of(router: Router, nodes: Ints) -> NDArray[np.int16]:
    """Distances between these nodes, shape (n, n); an empty table where one exceeds `FARTHEST`."""
    from hopmap.topologies.routing import distances

    table = np.empty((len(nodes), len(nodes)), dtype=np.int16)
    for first in range(0, len(nodes), ROWS):
        rows, columns = nodes[first : first + ROWS], nodes[: first + ROWS]
        far = distances(router, np.repeat(rows, len(columns)), np.tile(columns, len(rows)))
        if far.max() > FARTHEST:
            return table[:0, :0]
        far = far.reshape(len(rows), len(columns))
        table[first : first + ROWS, : len(columns)] = far
        table[: len(columns), first : first + ROWS] = far.T
    return table


def table_router(table: NDArray[np.int16]) -> PartRouter:
    """Router that answers for distances only."""
    place = np.arange(len(table), dtype=np.uint16)
    return PartRouter(np.zeros_like(place), place, NO_GROUPS, table, True)

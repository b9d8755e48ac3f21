"""UDFS: a depth-first walk over the traffic, heaviest neighbour first, each next to its parent.

Source: MapLib (`unibas-dmi-hpc/MapLib`, mapper `udfs`), where it is called utilisation-based
depth-first mapping, "slightly changed": a rank goes on the free node nearest to the one it was
reached from, not on the next one. The walk begins with the rank that has the most traffic, on node
nodes // 2, and goes on to the heaviest neighbour that is not placed, then from there.

Left open, and taken here: of equal ranks and nodes the lower one; nodes with several slots are
filled; where the traffic falls apart, the walk goes on with the rank with the most traffic of those
left, nearest to the start (MapLib leaves them out). O(pairs log pairs + ranks * nodes), memory
linear, no recursion.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from hopmap.mappers.mapper import CountOrZero, mapper
from hopmap.mappers.objectives import cost_model
from hopmap.topologies import Mapping, Topology
from hopmap.traces import Traffic

from .construction import first_node, heaviest_first


@mapper("udfs", source="MapLib")
def udfs(
    traffic: Traffic,
    topology: Topology,
    *,
    weight: Literal["bytes", "messages"] = "bytes",
    start: CountOrZero | None = None,
) -> Mapping:
    """Depth first along the heaviest pairs, each rank nearest to its parent (MapLib's UDFS).

    Parameters
    ----------
    traffic, topology
        See `map_ranks`.
    weight : {"bytes", "messages"}
        What traffic is.
    start : int, optional
        Node of the first rank; nodes // 2 by default.

    Raises
    ------
    MappingError
        No such node.
    """
    from .udfs_kernels import walk

    model = cost_model(traffic, topology, f"hop_{weight}", few=True)
    source = np.repeat(np.arange(len(model.indptr) - 1), np.diff(model.indptr))
    heaviest = np.lexsort((model.peer, -model.weight, source))
    model = model._replace(peer=model.peer[heaviest], weight=model.weight[heaviest])
    begin = first_node("udfs", topology, topology.nodes // 2 if start is None else start)
    node_of = np.full(traffic.ranks, -1, dtype=np.int64)
    walk(model, topology.slots, heaviest_first(model, traffic.ranks), begin, node_of)
    return node_of

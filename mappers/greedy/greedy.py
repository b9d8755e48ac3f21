"""Greedy graph embedding: along the heaviest edges, each rank as near as possible to the last one.

Source: Hoefler and Snir, Generic topology mapping strategies for large-scale parallel architectures
(ICS 2011), the greedy strategy of LibTopoMap; MapLib's `greedy`. From a start node s: the rank with
the most traffic goes on s; then, as long as an edge leads from placed ranks to others, the rank at
the end of the heaviest goes on s, where there is room, or on the nearest node with room, which
becomes s. Where no edge does, the rank with the most traffic of all that are left comes next.

Distance is counted from the node filled last; `greedy_min` counts it from the partner's.

Left open, and taken here: the start is the middle of the machine (start=); of equal edges the one
whose placed end was placed first, then the lower rank; of equal ranks and nodes the lower one.
O(pairs log pairs + ranks * nodes), memory linear.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from hopmap.mappers.mapper import CountOrZero, mapper
from hopmap.mappers.objectives import cost_model
from hopmap.topologies import Mapping, Topology
from hopmap.traces import Traffic

from .construction import first_node, heaviest_first


@mapper("greedy", source="Hoefler, Snir 2011")
def greedy_embedding(
    traffic: Traffic,
    topology: Topology,
    *,
    weight: Literal["bytes", "messages"] = "bytes",
    start: CountOrZero | None = None,
) -> Mapping:
    """Heaviest edge to the placed ranks, node nearest to the last one (LibTopoMap's greedy).

    Parameters
    ----------
    traffic, topology
        See `map_ranks`.
    weight : {"bytes", "messages"}
        What traffic is.
    start : int, optional
        Node of the first rank; the middle of the machine by default.

    Raises
    ------
    MappingError
        No such node.
    """
    from .greedy_kernels import embed

    model = cost_model(traffic, topology, f"hop_{weight}", few=True)
    node_of = np.full(traffic.ranks, -1, dtype=np.int64)
    begin = first_node("greedy", topology, start)
    embed(model, topology.slots, heaviest_first(model, traffic.ranks), begin, node_of)
    return node_of

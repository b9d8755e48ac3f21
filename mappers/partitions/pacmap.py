"""PaCMap: outwards from the centre of the traffic, over the nodes that frame those in use.

Source: Tuncer, Leung and Coskun, PaCMap: topology mapping of unstructured communication patterns
onto non-contiguous allocations (ICS 2015), and its authors' code in SST's scheduler. The centre
rank, from which the sum of the distances to all ranks is least (a pair that exchanges w is 1 / w
long), goes on the centre node. Next comes the rank with the most traffic to the placed ones.
Candidates are the nodes of the frame: for each node in use, those nearest to it that were free when
it was taken. The rank takes the one where its traffic times distance to placed ranks is least; of
equal ones the nearest to the centre node. Where nodes take several ranks, a partitioner groups the
ranks first (KaHIP for METIS), and groups are mapped.

Left open, and taken here: the whole machine is free, so that the centre node, that with the most
free nodes close by, is its middle (start=); of equals the lower one; ranks that cannot be reached
from a centre count before all distances; where nodes differ in their slots, ranks are not grouped,
and a node stays in the frame until it is full. As in the authors' code, only so many ranks around
the middle number are tried as centres (`CENTRES`). O(ranks * (ranks + nodes * peers)), and a
Dijkstra search for each centre, cut off when it is longer than the best; memory linear.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from hopmap.mappers.greedy.minmd import announce_quadratic, first_node
from hopmap.mappers.mapper import mapper
from hopmap.mappers.objectives import cost_model
from hopmap.mappers.options import CountOrZero
from hopmap.topologies import Mapping, Topology
from hopmap.traces import Traffic

from .partition import partition

CENTRES = 4096


@mapper("pacmap", source="Tuncer, Leung, Coskun 2015")
def pacmap(
    traffic: Traffic,
    topology: Topology,
    *,
    rng: np.random.Generator,
    weight: Literal["bytes", "messages"] = "bytes",
    start: CountOrZero | None = None,
) -> Mapping:
    """Expand from the centre of the traffic over the nodes that frame those in use (PaCMap).

    - `rng`: for the partitioner, where nodes have several slots.
    - `start`: the centre node; the middle of the machine by default.
    """
    from hopmap.mappers.basic_kernels import Graph, contract
    from hopmap.mappers.greedy.most_connected_kernels import centre_rank, expand

    announce_quadratic("pacmap", traffic.ranks)
    model = cost_model(traffic, topology, f"hop_{weight}", few=True)
    graph = Graph(model.indptr[: traffic.ranks + 1], model.peer, model.weight)
    slots, units = topology.slots, traffic.ranks
    group = np.arange(units)
    several = int(slots[0])
    if several > 1 and (slots == several).all():
        units = -(-units // several)
        group = partition(graph, np.full(units, several), rng)
        graph = contract(graph, group, units)
        slots = np.ones_like(slots)
    node_of = np.full(units, -1, dtype=np.int64)
    first = centre_rank(graph, CENTRES)
    expand(model.router, graph, slots, first_node("pacmap", topology, start), first, node_of)
    return node_of[group]

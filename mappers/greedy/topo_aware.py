"""TopoLB: the rank that has most to lose by waiting comes next, on the node where it costs least.

Source: Agarwal, Sharma and Kale, Topology-aware task mapping for reducing communication contention
on large parallel machines (IPDPS 2006); Charm++'s TopoLB; MapLib's `topo_aware`. f(rank, node) is
an estimate of what the rank would add to the hop-bytes on the node. The most critical rank, the one
with the largest difference between the mean of f over the free processors and its least, is placed
where f is least. Estimates of

- *first* order: traffic times distance to the ranks that are placed (MapLib's choice);
- *second* order, which Charm++'s TopoLB takes, the default: and the traffic with the others times
  the mean distance of the node to all processors.

The third order (mean distance to the free processors) would change every estimate at every step,
and is left out. Every free slot is a processor. Of equal ranks and nodes the lower one.

The paper keeps f in a table of ranks x nodes. Here only its sum, its least and where that is are
kept for each rank and computed anew when they change: O(ranks * nodes * peers^2) time, and memory
linear. f is a whole number kept in double precision, exact up to 2^53.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from hopmap.mappers.mapper import mapper
from hopmap.mappers.objectives import cost_model
from hopmap.topologies import Mapping, Topology
from hopmap.traces import Traffic

from .construction import announce_quadratic


@mapper("topo_aware", source="Agarwal, Sharma, Kale 2006")
def topo_aware(
    traffic: Traffic,
    topology: Topology,
    *,
    weight: Literal["bytes", "messages"] = "bytes",
    estimate: Literal["first", "second"] = "second",
) -> Mapping:
    """Most critical rank first, on the node of least estimated cost (TopoLB).

    Parameters
    ----------
    traffic, topology
        See `map_ranks`.
    weight : {"bytes", "messages"}
        What traffic is.
    estimate : {"first", "second"}
        Order of the estimation function.
    """
    from .topo_aware_kernels import place_critical

    announce_quadratic("topo_aware", traffic.ranks)
    model = cost_model(traffic, topology, f"hop_{weight}")
    node_of = np.full(traffic.ranks, -1, dtype=np.int64)
    place_critical(model, topology.slots, estimate == "second", node_of)
    return node_of

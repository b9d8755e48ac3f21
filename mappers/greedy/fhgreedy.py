"""FHgreedy: the most connected rank next, on the nearest nodes with room where it costs least.

Source: Deveci, Kaya, Ucar and Catalyurek, Fast and high quality topology-aware task mapping (IPDPS
2015), the greedy mapping (UG) without its refinement; MapLib's `FHGreedy`. The rank with the most
traffic (t_MSRV) goes on the start node. Next comes the rank with the most traffic to the placed
ones. Breadth-first searches from the nodes of its placed partners stop at the first level where
there is room (the early exit), and of the nodes of that level it takes the one that adds least
weighted hops. A rank that no placed rank talks to goes as far as possible from all nodes in use.

After the first rank, seeds=1 (N_BFS) ranks that are farthest in the traffic from those placed are
put down in the same way, so that the mapping grows from several places. As published, N_BFS = 0 and
1 are both tried and the better mapping is returned; seeds=0 is what MapLib does, which also looks
at one partner at a time only. (MapLib's code confirms the steps and their names; the early exit and
the two values of N_BFS are the paper's as we know it, its text was not at hand.)

Left open, and taken here: the start is the middle of the machine; levels are counted in the
topology's distance, which is that of the search on meshes and tori; ranks that cannot be reached
are farthest; of equals the lower one. O(ranks * (ranks + nodes * peers)), memory linear.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from hopmap.mappers.mapper import CountOrZero, mapper
from hopmap.mappers.objectives import cost_model
from hopmap.topologies import Mapping, Topology
from hopmap.traces import Traffic

from .construction import announce_quadratic, first_node


@mapper("fhgreedy", source="Deveci, Kaya, Ucar, Catalyurek 2015")
def fhgreedy(
    traffic: Traffic,
    topology: Topology,
    *,
    weight: Literal["bytes", "messages"] = "bytes",
    start: CountOrZero | None = None,
    seeds: CountOrZero | None = None,
) -> Mapping:
    """Most connected rank next, nearest nodes with room, least weighted hops there (UG).

    Parameters
    ----------
    traffic, topology
        See `map_ranks`.
    weight : {"bytes", "messages"}
        What traffic is.
    start : int, optional
        Node of the first rank; the middle of the machine by default.
    seeds : int, optional
        Ranks far from the others placed after the first one; the better of 0 and 1 by default.

    Raises
    ------
    MappingError
        No such node.
    """
    from hopmap.mappers.cost_kernels import total_cost

    from .fhgreedy_kernels import grow

    announce_quadratic("fhgreedy", traffic.ranks)
    model = cost_model(traffic, topology, f"hop_{weight}", few=True)
    begin = first_node("fhgreedy", topology, start)
    made = []
    for count in (0, 1) if seeds is None else (seeds,):
        node_of = np.full(traffic.ranks, -1, dtype=np.int64)
        grow(model, topology.slots, begin, count, node_of)
        made.append(node_of)
    return min(made, key=lambda node_of: total_cost(model, node_of))

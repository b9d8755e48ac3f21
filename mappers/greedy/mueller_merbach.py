"""Mueller-Merbach's construction: the most connected rank next, where distances are least.

Source: Mueller-Merbach, Optimale Reihenfolgen (1970), as told by Schulz, Traeff and von Kirchbach,
Better process mapping and sparse quadratic assignment, section 2. The next rank is the one with
most traffic with all placed ranks, its node the one with the least sum of distances to all of them.
What is left open, see `most_connected_kernels`. O(ranks^2) time, linear memory.
"""

from __future__ import annotations

from typing import Literal

from hopmap.mappers.mapper import mapper
from hopmap.topologies import Mapping, Topology
from hopmap.traces import Traffic

from .construction import most_connected_first


@mapper("mueller_merbach", source="Mueller-Merbach 1970")
def mueller_merbach(
    traffic: Traffic,
    topology: Topology,
    *,
    weight: Literal["bytes", "messages"] = "bytes",
) -> Mapping:
    """Rank with most traffic to those placed, node with least distance to them (Mueller-Merbach).

    Parameters
    ----------
    traffic, topology
        See `map_ranks`.
    weight : {"bytes", "messages"}
        What traffic is.
    """
    from .most_connected_kernels import MUELLER_MERBACH

    return most_connected_first("mueller_merbach", MUELLER_MERBACH, traffic, topology, weight)

"""GreedyMin: the rank with the heaviest edge to a placed one next, nearest to that one.

Source: the name of Glantz, Meyerhenke and Noe (PDP 2015) for the construction of Hoefler and Snir,
Generic topology mapping strategies (ICS 2011), as told in the TiMEr paper, section 7.1. The next
rank is the one with most traffic with one placed rank, its node the nearest to that one; `greedy`
counts the distance from the node filled last. What is left open, see `most_connected_kernels`.
O(ranks^2) time, linear memory.
"""

from __future__ import annotations

from typing import Literal

from hopmap.mappers.mapper import mapper
from hopmap.topologies import Mapping, Topology
from hopmap.traces import Traffic

from .construction import most_connected_first


@mapper("greedy_min", source="Hoefler, Snir 2011; Glantz, Meyerhenke, Noe 2015")
def greedy_min(
    traffic: Traffic,
    topology: Topology,
    *,
    weight: Literal["bytes", "messages"] = "bytes",
) -> Mapping:
    """Rank with most traffic to one that is placed, node nearest to that one (GreedyMin).

    Parameters
    ----------
    traffic, topology
        See `map_ranks`.
    weight : {"bytes", "messages"}
        What traffic is.
    """
    from .most_connected_kernels import MIN

    return most_connected_first("greedy_min", MIN, traffic, topology, weight)

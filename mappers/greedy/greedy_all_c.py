"""GreedyAllC: the most connected rank next, where it costs least.

Source: Glantz, Meyerhenke and Noe, Algorithms for mapping parallel processes onto grid and torus
architectures (PDP 2015), as told in the TiMEr paper, section 7.1. The next rank is the one with
most traffic with all placed ranks, its node the one with the least sum of traffic times distance.
On trees and fat trees it is Mueller-Merbach's mapping: both fill the cores in order, since a core
of the subsystem filled last is no farther from any placed rank than one of another subsystem, and
the order of the ranks is the same. What is left open, see `most_connected_kernels`. O(ranks^2) time
and O(nodes) for every pair, linear memory. `minmd(rule=connected)` is the same with other ties.
"""

from __future__ import annotations

from typing import Literal

from hopmap.mappers.mapper import mapper
from hopmap.topologies import Mapping, Topology
from hopmap.traces import Traffic

from .construction import most_connected_first


@mapper("greedy_all_c", source="Glantz, Meyerhenke, Noe 2015")
def greedy_all_c(
    traffic: Traffic,
    topology: Topology,
    *,
    weight: Literal["bytes", "messages"] = "bytes",
) -> Mapping:
    """Rank with most traffic to those placed, node with least traffic times distance (GreedyAllC).

    Parameters
    ----------
    traffic, topology
        See `map_ranks`.
    weight : {"bytes", "messages"}
        What traffic is.
    """
    from .most_connected_kernels import ALL_C

    return most_connected_first("greedy_all_c", ALL_C, traffic, topology, weight)

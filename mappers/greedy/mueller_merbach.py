"""Greedy constructions: rank after rank, the one most tied to those placed, where it costs least.

Sources: Mueller-Merbach, Optimale Reihenfolgen (1970), as told by Schulz, Traeff and von Kirchbach,
Better process mapping and sparse quadratic assignment, section 2; GreedyAllC of Glantz, Meyerhenke
and Noe, Algorithms for mapping parallel processes onto grid and torus architectures (PDP 2015), and
GreedyMin, their name for the construction of Hoefler and Snir, Generic topology mapping strategies
(ICS 2011), both as told in the TiMEr paper, section 7.1. They differ in two choices:

| mapper | next rank | its node |
|---|---|---|
| mueller_merbach | most traffic with all placed ranks | least sum of distances to all of them |
| greedy_all_c | most traffic with all placed ranks | least sum of traffic times distance |
| greedy_min | most traffic with one placed rank | nearest to that one |

The first rank is the one with the most traffic, on the node with the least sum of distances to all
nodes. What the sources leave open: of equal ranks the one with more traffic in all, then the lower
one; of equal nodes the lower; a rank that is not tied to any goes where mueller_merbach puts it.

Time grows with the square of the ranks, memory linearly. `minmd(rule=connected)` is greedy_all_c
with other ties.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from hopmap.mappers.mapper import mapper
from hopmap.mappers.objectives import cost_model
from hopmap.topologies import Mapping, Topology
from hopmap.traces import Traffic

from .construction import announce_quadratic
from .heaviest_first_kernels import ALL_C, MIN, MUELLER_MERBACH, place
from .minmd import centre


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
    return _greedy("mueller_merbach", MUELLER_MERBACH, traffic, topology, weight)


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
    traffic, topology, weight
        As for `mueller_merbach`.
    """
    return _greedy("greedy_all_c", ALL_C, traffic, topology, weight)


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
    traffic, topology, weight
        As for `mueller_merbach`.
    """
    return _greedy("greedy_min", MIN, traffic, topology, weight)


def _greedy(name: str, rule: int, traffic: Traffic, topology: Topology, weight: str) -> Mapping:
    announce_quadratic(name, traffic.ranks)
    model = cost_model(traffic, topology, f"hop_{weight}")
    node_of = np.full(traffic.ranks, -1, dtype=np.int64)
    place(model, topology.slots, centre(topology), rule, node_of)
    return node_of

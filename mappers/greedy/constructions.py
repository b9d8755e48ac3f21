"""Published constructions that place rank after rank, each close to its peers.

Of equal ranks and nodes the lower one is taken, and nodes with several slots are filled, where a
mapper says nothing else. ``weight`` is what counts as traffic, ``start`` the node of the first
rank. Memory is linear.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from hopmap.arrays import Ints
from hopmap.mappers.cost_model import CostModel
from hopmap.mappers.mapper import mapper
from hopmap.mappers.objectives import cost_model
from hopmap.mappers.options import CountOrZero
from hopmap.topologies import Mapping, Topology
from hopmap.traces import Traffic

from .minmd import announce_quadratic, centre, first_node

Weight: TypeAlias = Literal["bytes", "messages"]


@mapper("greedy", source="Hoefler, Snir 2011")
def greedy_embedding(
    traffic: Traffic,
    topology: Topology,
    *,
    weight: Weight = "bytes",
    start: CountOrZero | None = None,
) -> Mapping:
    """Heaviest edge to the placed ranks, node nearest to the last one (LibTopoMap's greedy).

    Source: Hoefler and Snir, Generic topology mapping strategies for large-scale parallel
    architectures (ICS 2011); MapLib's `greedy`. From a start node s: the rank with the most traffic
    goes on s. The rank at the end of the heaviest edge from a placed rank goes on s, where there is
    room, or on the nearest node with room, which becomes s. Where no edge leads on, the rank with
    the most traffic of all that are left comes next.

    Left open, and taken here: the start is the middle of the machine; of equal edges the one whose
    placed end was placed first. O(pairs log pairs + ranks * nodes).
    """
    from .greedy_kernels import embed

    model = cost_model(traffic, topology, f"hop_{weight}", few=True)
    node_of = np.full(traffic.ranks, -1, dtype=np.int64)
    begin = first_node("greedy", topology, start)
    embed(model, topology.slots, _heaviest_first(model, traffic.ranks), begin, node_of)
    return node_of


@mapper("udfs", source="MapLib")
def udfs(
    traffic: Traffic,
    topology: Topology,
    *,
    weight: Weight = "bytes",
    start: CountOrZero | None = None,
) -> Mapping:
    """Depth first along the heaviest pairs, each rank nearest to its parent (MapLib's UDFS).

    Source: MapLib (`unibas-dmi-hpc/MapLib`, mapper `udfs`), where it is called utilisation-based
    depth-first mapping, "slightly changed": a rank goes on the free node nearest to the one it was
    reached from, not on the next one. The walk begins with the rank that has the most traffic, on
    node nodes // 2, and goes on to the heaviest neighbour that is not placed, then from there.

    Left open, and taken here: where the traffic falls apart, the walk goes on with the rank with
    the most traffic of those left, nearest to the start (MapLib leaves them out).
    O(pairs log pairs + ranks * nodes), no recursion.
    """
    from .greedy_kernels import walk

    model = cost_model(traffic, topology, f"hop_{weight}", few=True)
    source = np.repeat(np.arange(len(model.indptr) - 1), np.diff(model.indptr))
    heaviest = np.lexsort((model.peer, -model.weight, source))
    model = model._replace(peer=model.peer[heaviest], weight=model.weight[heaviest])
    begin = first_node("udfs", topology, topology.nodes // 2 if start is None else start)
    node_of = np.full(traffic.ranks, -1, dtype=np.int64)
    walk(model, topology.slots, _heaviest_first(model, traffic.ranks), begin, node_of)
    return node_of


@mapper("fhgreedy", source="Deveci, Kaya, Ucar, Catalyurek 2015")
def fhgreedy(
    traffic: Traffic,
    topology: Topology,
    *,
    weight: Weight = "bytes",
    start: CountOrZero | None = None,
    seeds: CountOrZero | None = None,
) -> Mapping:
    """Most connected rank next, nearest nodes with room, least weighted hops there (UG).

    Source: Deveci, Kaya, Ucar and Catalyurek, Fast and high quality topology-aware task mapping
    (IPDPS 2015), the greedy mapping (UG) without its refinement; MapLib's `FHGreedy`. The rank with
    the most traffic (t_MSRV) goes on the start node. Breadth-first searches from the nodes of a
    rank's placed partners stop at the first level where there is room (the early exit), and of the
    nodes of that level it takes the one that adds least weighted hops. A rank that no placed rank
    talks to goes as far as possible from all nodes in use. MapLib's code confirms the steps and
    their names; the early exit and the two values of N_BFS are the paper's as we know it, its text
    was not at hand.

    Left open, and taken here: the start is the middle of the machine; levels are counted in the
    topology's distance, which is that of the search on meshes and tori; ranks that cannot be
    reached are farthest. O(ranks * (ranks + nodes * peers)).

    - `seeds`: N_BFS: ranks that are farthest in the traffic from those placed and follow the first
      rank, so that the mapping grows from several places. As published the better of 0 and 1 by
      default; 0 is what MapLib does, which also looks at one partner at a time only.
    """
    from hopmap.mappers.cost_kernels import total_cost

    from .greedy_kernels import grow

    announce_quadratic("fhgreedy", traffic.ranks)
    model = cost_model(traffic, topology, f"hop_{weight}", few=True)
    begin = first_node("fhgreedy", topology, start)
    made = []
    for count in (0, 1) if seeds is None else (seeds,):
        node_of = np.full(traffic.ranks, -1, dtype=np.int64)
        grow(model, topology.slots, begin, count, node_of)
        made.append(node_of)
    return min(made, key=lambda node_of: total_cost(model, node_of))


@mapper("mueller_merbach", source="Mueller-Merbach 1970")
def mueller_merbach(traffic: Traffic, topology: Topology, *, weight: Weight = "bytes") -> Mapping:
    """Rank with most traffic to those placed, node with least distance to them (Mueller-Merbach).

    Source: Mueller-Merbach, Optimale Reihenfolgen (1970), as described by Schulz, Traeff and von
    Kirchbach, Better process mapping and sparse quadratic assignment, section 2. What is left open,
    see `most_connected_kernels`. O(ranks^2).
    """
    from .most_connected_kernels import MUELLER_MERBACH

    return _most_connected_first("mueller_merbach", MUELLER_MERBACH, traffic, topology, weight)


@mapper("greedy_all_c", source="Glantz, Meyerhenke, Noe 2015")
def greedy_all_c(traffic: Traffic, topology: Topology, *, weight: Weight = "bytes") -> Mapping:
    """Rank with most traffic to those placed, node with least traffic times distance (GreedyAllC).

    Source: Glantz, Meyerhenke and Noe, Algorithms for mapping parallel processes onto grid and
    torus architectures (PDP 2015), as described in the TiMEr paper, section 7.1. On trees and fat
    trees it is Mueller-Merbach's mapping: both fill the cores in order, since a core of the
    subsystem filled last is no farther from any placed rank than one of another subsystem, and the
    order of the ranks is the same. `minmd(rule=connected)` is the same with other ties. What is
    left open, see `most_connected_kernels`. O(ranks^2), and O(nodes) for every pair.
    """
    from .most_connected_kernels import ALL_C

    return _most_connected_first("greedy_all_c", ALL_C, traffic, topology, weight)


@mapper("greedy_min", source="Hoefler, Snir 2011; Glantz, Meyerhenke, Noe 2015")
def greedy_min(traffic: Traffic, topology: Topology, *, weight: Weight = "bytes") -> Mapping:
    """Rank with most traffic to one that is placed, node nearest to that one (GreedyMin).

    Source: the name of Glantz, Meyerhenke and Noe (PDP 2015) for the construction of Hoefler and
    Snir (ICS 2011), as described in the TiMEr paper, section 7.1. `greedy` counts the distance from
    the node filled last. What is left open, see `most_connected_kernels`. O(ranks^2).
    """
    from .most_connected_kernels import MIN

    return _most_connected_first("greedy_min", MIN, traffic, topology, weight)


@mapper("topo_aware", source="Agarwal, Sharma, Kale 2006")
def topo_aware(
    traffic: Traffic,
    topology: Topology,
    *,
    weight: Weight = "bytes",
    estimate: Literal["first", "second"] = "second",
) -> Mapping:
    """Most critical rank first, on the node of least estimated cost (TopoLB).

    Source: Agarwal, Sharma and Kale, Topology-aware task mapping for reducing communication
    contention on large parallel machines (IPDPS 2006); Charm++'s TopoLB; MapLib's `topo_aware`.
    f(rank, node) is an estimate of what the rank would add to the hop-bytes on the node. The most
    critical rank, the one with the largest difference between the mean of f over the free
    processors and its least, is placed where f is least. Every free slot is a processor.

    The paper keeps f in a table of ranks x nodes. Here only its sum, its least and where that is
    are kept for each rank and updated when they change: O(ranks * nodes * peers^2). f is a
    whole number kept in double precision, exact up to 2^53.

    - `estimate`: first order: traffic times distance to the ranks that are placed (MapLib's
      choice). Second order, which Charm++'s TopoLB takes: and the traffic with the others times the
      mean distance of the node to all processors. The third (mean distance to the free processors)
      would change every estimate at every step, and is left out.
    """
    from .most_connected_kernels import place_critical

    announce_quadratic("topo_aware", traffic.ranks)
    model = cost_model(traffic, topology, f"hop_{weight}")
    node_of = np.full(traffic.ranks, -1, dtype=np.int64)
    place_critical(model, topology.slots, estimate == "second", node_of)
    return node_of


def _heaviest_first(model: CostModel, ranks: int) -> Ints:
    """Ranks by their traffic, the most first, equal ones in order."""
    before = np.concatenate(([0], np.cumsum(model.weight)))
    return np.argsort(-np.diff(before[model.indptr[: ranks + 1]]), kind="stable")


def _most_connected_first(
    name: str, rule: int, traffic: Traffic, topology: Topology, weight: Weight
) -> Mapping:
    """Place rank after rank by a rule of `most_connected_kernels`."""
    from .most_connected_kernels import place

    announce_quadratic(name, traffic.ranks)
    model = cost_model(traffic, topology, f"hop_{weight}", few=True)
    node_of = np.full(traffic.ranks, -1, dtype=np.int64)
    place(model, topology.slots, centre(topology), rule, node_of)
    return node_of

"""Ranks in an order of the nodes: `identity`, `sweep`, `random`, `random_sampling` and `rcm`.

Every node takes as many ranks as it has slots, one after the other, before the order goes on.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hopmap.arrays import Ints
from hopmap.mappers.mapper import mapper
from hopmap.mappers.objectives import ObjectiveName, cost_model, objective_named
from hopmap.mappers.options import Count
from hopmap.mappers.stop import Stop, keeping
from hopmap.topologies import Mapping, Topology
from hopmap.traces import Traffic

BATCH = 50_000_000  # pairs and slots of random mappings looked at between two looks at the clock


def along(order: Ints, traffic: Traffic, topology: Topology) -> Mapping:
    """Place rank after rank on the nodes in this order."""
    return np.repeat(order, topology.slots[order])[: traffic.ranks].astype(np.int64)


@mapper("identity", source="Schulz, Traeff, von Kirchbach 2017")
def identity(traffic: Traffic, topology: Topology) -> Mapping:
    """Rank r on the r-th slot.

    So launchers place ranks when nobody asks. Source: the baseline of Schulz, Traeff and von
    Kirchbach, Better process mapping and sparse quadratic assignment, section 4: as good as the
    numbering of the ranks. On a box it is `sweep`; under a job whose hosts are listed the slots are
    in the list's order. O(ranks).
    """
    order = topology.order
    return along(order if order.size else np.arange(topology.nodes), traffic, topology)


@mapper("sweep", source="HAEC thesis, section 3.3", presets={"thesis": {}})
def sweep(traffic: Traffic, topology: Topology) -> Mapping:
    """Nodes in order: x fastest, then y, then z.

    Source: HAEC thesis, section 3.3 (Mokbel, Aref, Kamel: Performance of multi-dimensional
    space-filling curves, 2002). On any topology nodes in the order of their numbers. O(ranks).
    """
    return along(np.arange(topology.nodes), traffic, topology)


@mapper("random", source="HAEC thesis, section 3.1")
def random_mapping(traffic: Traffic, topology: Topology, *, rng: np.random.Generator) -> Mapping:
    """Every rank on a slot drawn at random.

    The baseline of every mapping paper. O(slots).
    """
    slots = np.repeat(np.arange(topology.nodes), topology.slots)
    return rng.permutation(slots)[: traffic.ranks].astype(np.int64)


@mapper("random_sampling", source="HAEC thesis, section 4.1", presets={"thesis": {}})
def random_sampling(
    traffic: Traffic,
    topology: Topology,
    *,
    rng: np.random.Generator,
    samples: Count = 10_000,
    objective: ObjectiveName = "cardinality",
    stop: Stop,
) -> Mapping:
    """Best of `samples` random mappings, the first of equals.

    The thesis takes 10,000 samples, by cardinality, as its successor MapLib shows.
    O(samples * (slots + pairs)).
    """
    from hopmap.mappers import cost_kernels

    model = cost_model(traffic, topology, objective)
    named = objective_named(objective)
    watch = stop.watch()
    slots = np.repeat(np.arange(topology.nodes, dtype=np.int64), topology.slots)
    best, best_cost = rng.permutation(slots), 0
    best_cost = cost_kernels.total_cost(model, best)
    batch = max(1, min(1000, BATCH // 10 // (len(slots) + len(model.peer) + 1)))
    done = 1
    with keeping(lambda: best[: traffic.ranks]):
        while done < samples and not watch.over():
            rows = min(batch, samples - done)
            drawn = rng.permuted(np.broadcast_to(slots, (rows, len(slots))), axis=1)
            costs = cost_kernels.total_costs(model, drawn)
            first = int(costs.argmin())
            if costs[first] < best_cost:
                best, best_cost = drawn[first].copy(), int(costs[first])
            done += rows
            watch.report(done, samples, f"{named.name} {named.value(best_cost)}")
    return best[: traffic.ranks]


@mapper("rcm", source="Hoefler, Snir 2011")
def rcm(traffic: Traffic, topology: Topology) -> Mapping:
    """Match the reverse Cuthill-McKee orders of ranks and nodes (LibTopoMap's RCM).

    Source: Hoefler and Snir, Generic topology mapping strategies for large-scale parallel
    architectures (ICS 2011), section "mapping based on graph similarity": both graphs are
    renumbered so that their adjacency matrices have a small bandwidth, and what comes at the same
    place in both orders belongs together. Weights of pairs and distances beyond neighbours play no
    part.

    The orders are scipy's, which begins each component at the vertex of the lowest degree;
    LibTopoMap begins at a pseudo-peripheral one. Switches are vertices of the network that take no
    ranks. Nodes with several slots take as many ranks, one after the other, where LibTopoMap groups
    ranks by a partitioner first. O(pairs + links) but for sorting, memory linear.
    """
    pairs = traffic.without_self()
    nodes = banded(topology.link_from, topology.link_to, topology.vertices)
    node_of = np.empty(traffic.ranks, dtype=np.int64)
    ranks = banded(pairs.src, pairs.dst, traffic.ranks)
    node_of[ranks] = along(nodes[nodes < topology.nodes], traffic, topology)
    return node_of


def banded(source: NDArray[np.integer], target: NDArray[np.integer], vertices: int) -> Ints:
    """Vertices in reverse Cuthill-McKee order of the graph with these edges, taken both ways."""
    from scipy.sparse import csr_array  # slow to import, and few commands come here
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    ends = np.concatenate((source, target)), np.concatenate((target, source))
    graph = csr_array((np.ones(len(ends[0]), dtype=np.int8), ends), shape=(vertices, vertices))
    graph.sum_duplicates()
    return reverse_cuthill_mckee(graph, symmetric_mode=True).astype(np.int64)

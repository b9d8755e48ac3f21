"""RCM: ranks and nodes each in the order of reverse Cuthill-McKee, matched one to one.

Source: Hoefler and Snir, Generic topology mapping strategies for large-scale parallel architectures
(ICS 2011), section "mapping based on graph similarity", as in their LibTopoMap: both graphs are
renumbered so that their adjacency matrices have a small bandwidth, and what comes at the same place
in both orders belongs together. Weights of pairs and distances beyond neighbours play no part.

The orders are scipy's, which begins each component at the vertex of the lowest degree; LibTopoMap
begins at a pseudo-peripheral one. Switches are vertices of the network that take no ranks. Nodes
with several slots take as many ranks, one after the other, where LibTopoMap groups ranks by a
partitioner first. O(pairs + links) but for sorting, memory linear.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hopmap.mappers.mapper import mapper
from hopmap.topologies import Mapping, Topology
from hopmap.traces import Traffic

from .curve import along


@mapper("rcm", source="Hoefler, Snir 2011")
def rcm(traffic: Traffic, topology: Topology) -> Mapping:
    """Match the reverse Cuthill-McKee orders of ranks and nodes (LibTopoMap's RCM).

    Parameters
    ----------
    traffic, topology
        See `map_ranks`.
    """
    pairs = traffic.without_self()
    nodes = banded(topology.link_from, topology.link_to, topology.vertices)
    node_of = np.empty(traffic.ranks, dtype=np.int64)
    ranks = banded(pairs.src, pairs.dst, traffic.ranks)
    node_of[ranks] = along(nodes[nodes < topology.nodes], traffic, topology)
    return node_of


def banded(
    source: NDArray[np.integer], target: NDArray[np.integer], vertices: int
) -> NDArray[np.int64]:
    """Vertices in reverse Cuthill-McKee order of the graph with these edges, taken both ways."""
    from scipy.sparse import csr_array  # slow to import, and few commands come here
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    ends = np.concatenate((source, target)), np.concatenate((target, source))
    graph = csr_array((np.ones(len(ends[0]), dtype=np.int8), ends), shape=(vertices, vertices))
    graph.sum_duplicates()
    return reverse_cuthill_mckee(graph, symmetric_mode=True).astype(np.int64)

"""Which routes are longer than the shortest path: those of two families, by definition."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import shortest_path

from hopmap.topologies import topology_from_spec

LONGER = {"haec:4x4x4": (0.079, 2), "dragonfly:2x4x2": (0.028, 1)}
SHORTEST = (
    *("mesh:4x3", "torus:4x4x4", "torus:5x3", "haec:2x2x2", "hypercube:5", "fattree:4x4x4"),
    *("tree:4:4", "cluster:8*2", "tofud:job=2x3x2", "dragonfly+:2x4x4x5x1"),
)


@pytest.mark.parametrize("spec", [*LONGER, *SHORTEST])
def test_routes_are_the_shortest_but_for_what_the_docs_say(spec):
    network = topology_from_spec(spec)
    count = network.nodes
    ends = (network.link_from, network.link_to)
    vertices = 1 + int(np.concatenate(ends).max())
    graph = csr_matrix((np.ones(network.links), ends), shape=(vertices, vertices))
    least = shortest_path(graph, unweighted=True, indices=np.arange(count))[:, :count]
    source, target = np.divmod(np.arange(count * count), count)
    hops = np.diff(network.routes(source, target)[0]).reshape(count, count)
    more = (hops - least)[~np.eye(count, dtype=bool)]
    share, most = LONGER.get(spec, (0, 0))
    assert (round(float((more > 0).mean()), 3), more.max()) == (share, most)

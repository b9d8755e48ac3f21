"""RCM: both graphs in scipy's order, matched place by place."""

import networkx as nx
import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee

from hopmap.mappers import map_ranks
from hopmap.topologies import topology_from_spec
from hopmap.traces import Traffic


def traffic_of(graph: nx.Graph, seed: int) -> Traffic:
    """Edges in one direction or the other, ranks renumbered at random."""
    rng = np.random.default_rng(seed)
    number = rng.permutation(len(graph))
    ends = rng.permuted(number[np.array(graph.edges)], axis=1)
    return Traffic.from_pairs(len(graph), *ends.T, np.ones(len(ends), dtype=int), ends[:, 0] + 1)


@pytest.mark.parametrize("seed", range(5))
def test_a_shuffled_path_is_laid_out_along_a_line(seed):
    traffic, topology = traffic_of(nx.path_graph(12), seed), topology_from_spec("mesh:12")
    node_of = map_ranks(traffic, topology, "rcm")
    assert (topology.distance(node_of[traffic.src], node_of[traffic.dst]) == 1).all()


@pytest.mark.parametrize("spec", ["mesh:4x4", "torus:3x3x2", "fattree:3x3x2", "file"])
def test_what_is_at_one_place_in_both_orders_belongs_together(spec, tmp_path):
    if spec == "file":
        nx.write_graphml(nx.petersen_graph(), tmp_path / "net.graphml")
        spec = f"file:{tmp_path}/net.graphml"
    topology = topology_from_spec(spec)
    traffic = traffic_of(nx.gnm_random_graph(topology.nodes, 3 * topology.nodes, seed=1), 1)
    node_of = map_ranks(traffic, topology, "rcm")

    def order(source, target, vertices):
        dense = np.zeros((vertices, vertices))
        dense[source, target] = dense[target, source] = 1
        return reverse_cuthill_mckee(csr_array(dense), symmetric_mode=True)

    ranks = order(traffic.src, traffic.dst, traffic.ranks)
    vertices = order(topology.link_from, topology.link_to, topology.vertices)
    nodes = vertices[vertices < topology.nodes]
    assert node_of[ranks].tolist() == nodes.tolist()


def test_the_slots_of_a_node_take_ranks_that_follow_each_other():
    traffic, topology = traffic_of(nx.path_graph(12), 0), topology_from_spec("mesh:4*3")
    node_of = map_ranks(traffic, topology, "rcm")
    apart = topology.distance(node_of[traffic.src], node_of[traffic.dst])
    assert sorted(apart.tolist()) == [0] * 8 + [1] * 3

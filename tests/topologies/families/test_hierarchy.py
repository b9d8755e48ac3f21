"""Hierarchies: VieM's distances against the definition and networkx, routes by the only path."""

from math import prod

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopmap.mappers import objective_value
from hopmap.topologies import Topology, hierarchy, topology_from_spec, tree
from hopmap.traces import Traffic
from support.slow import examples

trees = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 20)), min_size=1, max_size=4).map(
    lambda levels: ([a for a, _ in levels], np.cumsum([d for _, d in levels]).tolist())
)


def all_pairs(topology: Topology) -> tuple[np.ndarray, np.ndarray]:
    nodes = np.arange(topology.nodes)
    return np.repeat(nodes, topology.nodes), np.tile(nodes, topology.nodes)


def costed(topology: Topology, costs: list[int]) -> nx.Graph:
    """The links as edges, one of level i costing (d_i - d_(i-1)) / 2."""
    steps = np.diff([0, *costs])
    graph = nx.Graph()
    graph.add_nodes_from(range(topology.vertices))
    for u, v, kind in zip(
        topology.link_from.tolist(), topology.link_to.tolist(), topology.link_kind, strict=True
    ):
        graph.add_edge(u, v, cost=steps[kind] / 2)
    return graph


@examples(60, least=10)
@given(trees)
def test_distance_is_the_cost_of_the_path_and_hops_are_its_links(given_tree):
    sizes, costs = given_tree
    topology = tree(sizes, costs)
    u, v = all_pairs(topology)
    graph = costed(topology, costs)
    far = dict(nx.all_pairs_dijkstra_path_length(graph, weight="cost"))
    assert topology.distance(u, v).tolist() == [far[a][b] for a, b in zip(u, v, strict=True)]
    near = dict(nx.all_pairs_shortest_path_length(graph))
    hops = [near[a][b] for a, b in zip(u, v, strict=True)]
    assert topology.hops(u, v).tolist() == hops
    assert topology.diameter() == topology.distance(u, v).max()
    assert nx.is_tree(graph)
    assert topology_from_spec(topology.spec).spec == topology.spec
    indptr, links = topology.routes(u, v)
    assert np.diff(indptr).tolist() == hops
    for i in np.flatnonzero(u != v):
        route = links[indptr[i] : indptr[i + 1]]
        path = [u[i], *topology.link_to[route]]
        assert topology.link_from[route].tolist() == path[:-1]
        assert path[-1] == v[i]


@examples(60)
@given(trees, st.data())
def test_two_cores_are_as_far_apart_as_their_lowest_common_subsystem_says(given_tree, data):
    """Section 5.1: d_i for cores of one subsystem of level i and of two of level i - 1."""
    sizes, costs = given_tree
    topology = tree(sizes, costs)
    core = st.integers(0, topology.nodes - 1)
    u, v = data.draw(core), data.draw(core)
    common = next(i for i in range(len(sizes) + 1) if u // prod(sizes[:i]) == v // prod(sizes[:i]))
    assert topology.distance(u, v) == [0, *costs][common]


def test_hop_bytes_are_the_objective_of_the_paper_with_every_pair_once():
    topology = topology_from_spec("tree:2:2:2@1:10:100")
    ring = Traffic.from_pairs(8, range(8), [(i + 1) % 8 for i in range(8)], [1] * 8, [3] * 8)
    assert objective_value(ring, topology, range(8), "hop_bytes") == 3 * (4 * 1 + 2 * 10 + 2 * 100)


def test_uniform_traffic_crosses_a_link_as_often_as_a_pair_is_split_by_it():
    topology = topology_from_spec("tree:4:3:2@1:10:100")
    u, v = all_pairs(topology)
    loads = topology.loads(u, v, np.ones_like(u))
    for level, below in enumerate([1, 4, 12]):
        assert (loads[topology.link_kind == level] == below * (24 - below)).all()


def test_a_tree_says_how_large_it_is():
    topology = topology_from_spec("tree:4:16:8@1:10:100")
    assert (topology.nodes, topology.switches) == (512, 128 + 8 + 1)
    assert topology.links == 2 * (512 + 128 + 8)
    assert [kind.name for kind in topology.kinds] == ["level1", "level2", "level3"]
    assert topology.dims == ()
    assert topology_from_spec("tree:4:16*3").slots.tolist() == [3] * 64
    assert topology_from_spec("tree:4:16:2").spec == "tree:4:16:2@1:10:100"


@pytest.mark.parametrize(
    ("spec", "sizes"),
    [
        ("tree:4:16:8@1:10:100", (4, 16, 8)),
        ("fattree:4x4x2", (4, 4, 2)),
        ("fattree:4x6x2:1x2x3", (4, 6, 2)),
        ("cluster:17*9+9*8", (26,)),
        ("dragonfly:2x4x2", (2, 4, 9)),
        ("torus:4x4x4", None),
        ("hypercube:4", None),
    ],
)
def test_networks_that_are_made_of_nested_subsystems_say_so(spec, sizes):
    topology = topology_from_spec(spec)
    assert hierarchy(topology) == sizes
    if sizes is None or spec.startswith("dragonfly"):
        return
    # Sharing a lower subsystem never makes a distance longer, and decides it alone.
    u, v = all_pairs(topology)
    level = sum(
        (u // prod(sizes[:i]) != v // prod(sizes[:i])).astype(int) for i in range(len(sizes))
    )
    far = topology.distance(u, v)
    per_level = [set(far[level == i].tolist()) for i in range(len(sizes) + 1)]
    assert all(len(distances) == 1 for distances in per_level)
    assert sorted(per_level, key=max) == per_level


def test_half_a_million_cores_need_no_table():
    topology = topology_from_spec("tree:4:16:128:64@1:10:100:1000")
    assert topology.nodes == 2**19
    assert topology.distance([0, 0, 0, 0, 5], [3, 4, 64, 2**19 - 1, 5]).tolist() == [
        *(1, 10, 100, 1000, 0)
    ]

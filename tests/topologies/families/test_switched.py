"""Hypercubes, fat trees, dragonflies and clusters against networkx and closed forms."""

import time
import tracemalloc
from math import prod

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopmap.topologies import (
    Topology,
    TopologyError,
    cluster,
    dragonfly,
    fat_tree,
    hypercube,
    topology_from_spec,
)
from support.slow import examples


def all_pairs(topology: Topology) -> tuple[np.ndarray, np.ndarray]:
    nodes = np.arange(topology.nodes)
    return np.repeat(nodes, topology.nodes), np.tile(nodes, topology.nodes)


def graph_of(topology: Topology) -> nx.DiGraph:
    graph = nx.DiGraph()
    graph.add_nodes_from(range(topology.vertices))
    graph.add_edges_from(zip(topology.link_from.tolist(), topology.link_to.tolist(), strict=True))
    return graph


def shortest(graph: nx.DiGraph, u: np.ndarray, v: np.ndarray) -> list[int]:
    hops = dict(nx.all_pairs_shortest_path_length(graph))
    return [hops[a][b] for a, b in zip(u.tolist(), v.tolist(), strict=True)]


def assert_routes(topology: Topology, expected: list[int]) -> None:
    """Every route is contiguous, passes switches only, ends at its target, and has that length."""
    u, v = all_pairs(topology)
    assert topology.distance(u, v).tolist() == expected
    indptr, links = topology.routes(u, v)
    assert np.diff(indptr).tolist() == expected
    for i, (a, b) in enumerate(zip(u.tolist(), v.tolist(), strict=True)):
        here = a
        for link in links[indptr[i] : indptr[i + 1]]:
            assert here == a or here >= topology.nodes or topology.switches == 0
            assert topology.link_from[link] == here
            here = topology.link_to[link]
        assert here == b
    assert topology.diameter() == max(expected)
    assert topology.link_kind.max(initial=0) < len(topology.kinds)
    far = topology.distance(list(topology.representatives()), np.zeros(1, dtype=int))
    assert far.max() <= topology.diameter()


def assert_links_pair_up(topology: Topology) -> None:
    """Every link has one of its kind the other way."""
    ends = zip(topology.link_from, topology.link_to, topology.link_kind, strict=True)
    links = sorted((int(a), int(b), int(k)) for a, b, k in ends)
    assert links == sorted((b, a, k) for a, b, k in links)


def uniform(topology: Topology) -> np.ndarray:
    u, v = all_pairs(topology)
    return topology.loads(u, v, np.ones_like(u))


sizes = st.integers(1, 4)
trees = st.integers(1, 3).flatmap(
    lambda levels: st.tuples(
        st.lists(sizes, min_size=levels, max_size=levels),
        st.lists(st.integers(1, 3), min_size=levels, max_size=levels),
        st.lists(st.integers(1, 2), min_size=levels, max_size=levels),
    )
)


@examples(40)
@given(trees, st.sampled_from(["dmodk", "ecmp"]), st.integers(0, 5))
def test_fat_tree_routes_go_up_and_down_by_a_shortest_path(tree, routing, seed):
    m, w, p = tree
    topology = fat_tree(m, w, p, routing=routing, seed=seed if routing == "ecmp" else 0)
    assert topology_from_spec(topology.spec).spec == topology.spec
    assert_routes(topology, shortest(graph_of(topology), *all_pairs(topology)))
    assert_links_pair_up(topology)
    counts = [prod(w[:level]) * prod(m[level:]) for level in range(len(m) + 1)]
    assert topology.nodes == counts[0]
    assert topology.vertices == sum(counts)
    ups = [counts[level] * w[level] * p[level] for level in range(len(m))]
    assert np.bincount(topology.link_kind).tolist() == [2 * up for up in ups]
    # As many links from below as the children and parallel links say.
    assert ups == [counts[level + 1] * m[level] * p[level] for level in range(len(m))]


@examples(80)
@given(st.integers(1, 3), st.integers(1, 4), st.integers(0, 3), st.data())
def test_dragonfly_routes_are_the_shortest_with_one_global_link(p, a, h, data):
    groups = data.draw(st.integers(1, a * h + 1))
    topology = dragonfly(p, a, h, groups)
    assert topology_from_spec(topology.spec).spec == topology.spec
    u, v = all_pairs(topology)
    # A copy of every vertex for routes that have used their global link, or have none to use.
    n = topology.vertices
    twice = nx.DiGraph()
    twice.add_nodes_from(range(2 * n))
    group = lambda node: node // (p * a)  # noqa: E731
    for s, t, kind in zip(
        topology.link_from.tolist(), topology.link_to.tolist(), topology.link_kind, strict=True
    ):
        if topology.kinds[kind].name == "global":
            twice.add_edge(s, n + t)
        else:
            twice.add_edges_from([(s, t), (n + s, n + t)])
    hops = dict(nx.all_pairs_shortest_path_length(twice))
    expected = [
        hops[s][t] if group(s) == group(t) else hops[s][n + t]
        for s, t in zip(u.tolist(), v.tolist(), strict=True)
    ]
    assert_routes(topology, expected)
    assert_links_pair_up(topology)
    rounds = a * h // (groups - 1) if groups > 1 else 0
    kinds = [2 * p * a * groups, groups * a * (a - 1), groups * rounds * (groups - 1)]
    assert np.bincount(topology.link_kind, minlength=3).tolist() == kinds


def test_any_two_groups_of_a_dragonfly_are_joined_by_as_many_links():
    for topology in (dragonfly(2, 4, 2), dragonfly(1, 4, 2, 5), dragonfly(1, 4, 3, 6)):
        p, a, g = topology.router.hosts, topology.router.routers, topology.router.groups
        globals_ = topology.link_kind == 2
        group = (np.stack((topology.link_from, topology.link_to))[:, globals_] - p * a * g) // a
        joined = np.zeros((g, g), dtype=int)
        np.add.at(joined, tuple(group), 1)
        assert (joined == topology.router.rounds * (1 - np.eye(g))).all()
        ports = np.bincount(topology.link_from[globals_], minlength=topology.vertices)
        assert ports.max() <= topology.router.ports


def test_a_balanced_dragonfly_spreads_uniform_traffic_over_its_global_links():
    topology = dragonfly(2, 4, 2)
    loads = uniform(topology)[topology.link_kind == 2]
    assert (loads == 8 * 8).all()  # all pairs of nodes of two groups over the one link


@pytest.mark.parametrize("dimensions", range(1, 8))
def test_hypercube(dimensions):
    topology = hypercube(dimensions)
    u, v = all_pairs(topology)
    assert_routes(topology, [(int(a) ^ int(b)).bit_count() for a, b in zip(u, v, strict=True)])
    assert topology.links == dimensions * 2**dimensions
    assert topology.dims == (2,) * dimensions
    assert (uniform(topology) == 2 ** (dimensions - 1)).all()
    _, links = topology.routes([0], [topology.nodes - 1])
    flipped = topology.link_from[links] ^ topology.link_to[links]
    assert flipped.tolist() == [1 << k for k in range(dimensions)]  # lowest dimension first


FULL = ["fattree:4x4", "fattree:2x2x2x2", "fattree:3x3x3", "fattree:4x4:1x2:1x2", "fattree:4x4x2"]


@pytest.mark.parametrize("spec", FULL)
def test_d_mod_k_on_full_bisection_carries_every_shift_without_sharing_a_link(spec):
    """Zahavi 2012."""
    topology = topology_from_spec(spec)
    nodes = np.arange(topology.nodes)
    for shift in range(1, topology.nodes):
        loads = topology.loads(nodes, (nodes + shift) % topology.nodes, np.ones_like(nodes))
        assert loads.max() == 1


@pytest.mark.parametrize("spec", ["fattree:4x4", "fattree:2x2x2x2", "fattree:3x3x3"])
def test_uniform_traffic_loads_the_levels_of_a_k_ary_n_tree_evenly(spec):
    """A link between levels l and l + 1 carries what k^l nodes send beyond their subtree / k^l."""
    topology = topology_from_spec(spec)
    loads = uniform(topology)
    k = topology.router.levels[0, 0]
    for level in range(len(topology.kinds)):
        assert (loads[topology.link_kind == level] == topology.nodes - k**level).all()


def test_a_tapered_tree_is_loaded_by_its_taper():
    topology = topology_from_spec("fattree:4x4:1x2")
    loads = uniform(topology)
    assert (loads[topology.link_kind == 1] == 4 * 12 / 2).all()


def test_ecmp_keeps_a_pair_on_one_route_and_changes_with_the_seed():
    u, v = all_pairs(topology_from_spec("fattree:4x4x4"))
    routes = [
        topology_from_spec(f"fattree:4x4x4,routing=ecmp,seed={seed}").routes(u, v)[1].tolist()
        for seed in (0, 1, 1)
    ]
    assert routes[1] == routes[2] != routes[0]
    topology = topology_from_spec("fattree:8x8,routing=ecmp")
    loads = uniform(topology)[topology.link_kind == 1]
    assert loads.sum() == 2 * 64 * 56
    assert 30 < loads.min() < loads.mean() == 56 < loads.max() < 90  # random, roughly even


def test_a_cluster_is_nodes_behind_one_switch():
    topology = topology_from_spec("cluster:17*9+9*8")
    assert topology.slots.tolist() == [9] * 17 + [8] * 9
    assert (topology.nodes, topology.switches, topology.links) == (26, 1, 52)
    assert_routes(topology, [0 if a == b else 2 for a in range(26) for b in range(26)])
    assert cluster([2, 2, 3]).spec == "cluster:2*2+1*3"


def test_networks_of_switches_have_no_coordinates():
    for spec in ("fattree:4x4", "dragonfly:2x4x2", "cluster:4"):
        topology = topology_from_spec(spec)
        assert topology.dims == ()
        assert topology.coords.shape == (topology.nodes, 0)


def test_switches_are_no_nodes():
    topology = topology_from_spec("cluster:4")
    with pytest.raises(TopologyError, match=r"cluster:4 has nodes 0\.\.3 only"):
        topology.distance([0], [4])


@pytest.mark.parametrize(
    ("spec", "nodes"),
    [("fattree:16x16x16x16", 65536), ("hypercube:16", 65536), ("dragonfly:8x16x8", 16512),
     ("dragonfly:16x32x16x128", 65536)],
)  # fmt: skip
def test_sixty_five_thousand_nodes_are_built_in_seconds_and_memory_linear_in_links(spec, nodes):
    topology_from_spec("fattree:2x2")
    tracemalloc.start()
    start = time.process_time()
    topology = topology_from_spec(spec)
    seconds = time.process_time() - start
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert topology.nodes == nodes
    assert seconds < 10
    assert peak < 250 * (topology.links + topology.vertices)

"""Classes of virtual channels, and rings of packets that would wait for each other."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopmap.topologies import topology_from_spec, torus
from hopmap.topologies.channel_classes import channel_classes, class_count, waiting_cycle


def every_route(topology):
    source, target = np.divmod(np.arange(topology.nodes**2), topology.nodes)
    away = source != target
    indptr, links = topology.routes(source[away], target[away])
    return indptr, links.astype(np.int64)


@pytest.mark.parametrize(
    ("spec", "classes"),
    [
        ("mesh:4x3x3", 1),
        ("hypercube:4", 1),
        ("torus:3x3", 1),  # no route goes on behind a wrap-around link, nor on a ring of four
        ("torus:4x4", 1),
        ("torus:4x3,ties=parity", 1),
        ("torus:3x5", 2),
        ("torus:5", 2),
        ("torus:8x6,ties=parity", 2),
        ("haec:5x5x3", 2),
        ("fattree:4x4", 1),
        ("tree:2:3:4", 1),
        ("dragonfly:2x4x2", 2),
    ],
)
def test_no_routes_of_any_family_wait_in_a_ring_with_its_classes(spec, classes):
    topology = topology_from_spec(spec)
    indptr, links = every_route(topology)
    of_hop = channel_classes(topology, indptr, links)
    assert of_hop.max() + 1 == classes == class_count(topology)
    assert not len(waiting_cycle(indptr, links * classes + of_hop))
    assert bool(len(waiting_cycle(indptr, links))) == (classes > 1)


def test_how_many_classes_a_long_ring_has_is_known_without_its_routes():
    assert class_count(torus((50_000,))) == 2


def test_a_route_changes_its_class_behind_the_link_that_wraps_around_in_each_dimension():
    topology = torus((8, 8))
    indptr, links = topology.routes([6 + 8 * 6], [1 + 8 * 1])  # x: 6 7 0 1, y: the same
    assert channel_classes(topology, indptr, links).tolist() == [0, 0, 1, 0, 0, 1]


def test_routes_of_a_graph_with_a_ring_rise_by_a_class_each_hop(tmp_path):
    file = tmp_path / "ring.graphml"
    nx.write_graphml(nx.cycle_graph(6), file)
    topology = topology_from_spec(f"file:{file}")
    indptr, links = every_route(topology)
    of_hop = channel_classes(topology, indptr, links)
    assert of_hop.max() == 2
    assert not len(waiting_cycle(indptr, links * 3 + of_hop))


@given(st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=5, unique=True), max_size=12))
def test_a_ring_is_found_where_networkx_finds_one(routes):
    indptr = np.concatenate(([0], np.cumsum([len(route) for route in routes]))).astype(np.int64)
    channels = np.array([channel for route in routes for channel in route], dtype=np.int64)
    graph = nx.DiGraph()
    for route in routes:
        nx.add_path(graph, route)
    cycle = waiting_cycle(indptr, channels).tolist()
    assert bool(cycle) == (not nx.is_directed_acyclic_graph(graph))
    assert all(graph.has_edge(a, b) for a, b in zip(cycle, cycle[1:] + cycle[:1], strict=True))

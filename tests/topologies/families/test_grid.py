"""Meshes, tori and HAEC Boxes against networkx and closed forms."""

from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopmap.topologies import (
    Topology,
    TopologyError,
    both_ways,
    haec,
    mesh,
    topology_from_spec,
    torus,
)
from support.slow import examples


def all_pairs(topology: Topology) -> tuple[np.ndarray, np.ndarray]:
    nodes = np.arange(topology.nodes)
    return np.repeat(nodes, topology.nodes), np.tile(nodes, topology.nodes)


def graph_of(topology: Topology) -> nx.DiGraph:
    graph = nx.DiGraph()
    graph.add_nodes_from(range(topology.nodes))
    graph.add_edges_from(zip(topology.link_from.tolist(), topology.link_to.tolist(), strict=True))
    return graph


def shortest_hops(graph: nx.DiGraph, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    hops = dict(nx.all_pairs_shortest_path_length(graph))
    return np.array([hops[a].get(b, -1) for a, b in zip(u.tolist(), v.tolist(), strict=True)])


def assert_routes_are_shortest_paths(topology: Topology) -> None:
    u, v = all_pairs(topology)
    assert_routes_have_length(topology, u, v, shortest_hops(graph_of(topology), u, v).tolist())


def assert_routes_have_length(topology, u, v, expected: list[int]) -> None:
    assert topology.distance(u, v).tolist() == expected
    indptr, links = topology.routes(u, v)
    assert np.diff(indptr).tolist() == expected
    for i, (a, b) in enumerate(zip(u.tolist(), v.tolist(), strict=True)):
        here = a
        for link in links[indptr[i] : indptr[i + 1]]:
            assert topology.link_from[link] == here
            here = topology.link_to[link]
        assert here == b
    assert topology.diameter() == max(expected)


@examples(40)
@given(
    dims=st.tuples(st.integers(1, 6), st.integers(1, 5), st.integers(1, 4)),
    d=st.integers(1, 3),
    ring=st.booleans(),
    ties=st.sampled_from(["direct", "parity"]),
)
def test_mesh_and_torus_routes_are_shortest_paths(dims, d, ring, ties):
    topology = torus(dims[:d], ties=ties) if ring else mesh(dims[:d])
    assert_routes_are_shortest_paths(topology)


@settings(deadline=None, max_examples=20)
@given(dims=st.tuples(*[st.integers(1, 4)] * 3))
def test_haec_routes_are_shortest_paths_that_stay_on_the_board_within_a_board(dims):
    """Up and down again would join far corners of a board in two hops; routing does not do so."""
    box = haec(dims)
    u, v = all_pairs(box)
    whole = graph_of(box)
    boards = whole.copy()
    boards.remove_edges_from(
        (int(box.link_from[i]), int(box.link_to[i])) for i in np.flatnonzero(box.link_kind == 1)
    )
    same_board = box.coords[u, 2] == box.coords[v, 2]
    expected = np.where(same_board, shortest_hops(boards, u, v), shortest_hops(whole, u, v))
    assert_routes_have_length(box, u, v, expected.tolist())


@pytest.mark.parametrize("dims", [(6, 5, 4), (4, 4, 4), (2, 3, 2), (1, 1, 1), (2,), (2, 2, 2, 3)])
@pytest.mark.parametrize("build", [mesh, torus])
def test_links_are_those_of_the_networkx_grid(dims, build):
    grid = nx.grid_graph(dims[::-1], periodic=build is torus)
    topology = build(dims)
    node = {tuple(c): n for n, c in enumerate(topology.coords.tolist())}
    if len(dims) == 1:
        node = {c: n for (c,), n in node.items()}
    expected = {(node[a], node[b]) for a, b in grid.edges if a != b}
    expected |= {(b, a) for a, b in expected}
    ours = set(zip(topology.link_from.tolist(), topology.link_to.tolist(), strict=True))
    assert ours == expected
    assert topology.links == len(expected)  # no link twice, not on rings of two either


@pytest.mark.parametrize("length", range(1, 18))
def test_every_route_ends_where_it_should_on_rings_of_any_size(length):
    assert_routes_are_shortest_paths(torus([length]))


def test_node_index_has_x_fastest():
    topology = mesh((4, 3, 2))
    for node, (x, y, z) in enumerate(topology.coords.tolist()):
        assert node == (z * 3 + y) * 4 + x


def test_routes_go_in_dimension_order():
    topology = torus((5, 4, 3))
    u, v = all_pairs(topology)
    indptr, links = topology.routes(u, v)
    moved = np.argmax(
        topology.coords[topology.link_from] != topology.coords[topology.link_to], axis=1
    )
    for i in range(len(u)):
        axes = moved[links[indptr[i] : indptr[i + 1]]]
        assert (np.diff(axes) >= 0).all()


def ring_route(topology: Topology, a: int, b: int) -> list[int]:
    _, links = topology.routes([a], [b])
    return [int(topology.link_to[link]) for link in links]


def test_half_way_round_the_direct_tie_does_not_wrap():
    ring = torus([6])
    assert ring_route(ring, 0, 3) == [1, 2, 3]
    assert ring_route(ring, 4, 1) == [3, 2, 1]


def test_half_way_round_the_parity_tie_goes_up_from_even_coordinates():
    ring = torus([6], ties="parity")
    assert ring_route(ring, 0, 3) == [1, 2, 3]
    assert ring_route(ring, 4, 1) == [5, 0, 1]
    assert ring_route(ring, 1, 4) == [0, 5, 4]


def test_haec_box_has_the_published_links():
    box = haec((4, 4, 4))
    kinds = [kind.name for kind in box.kinds]
    assert kinds == ["optical", "wireless"]
    assert np.bincount(box.link_kind).tolist() == [256, 1536]
    assert box.diameter() == 4


def test_haec_goes_across_boards_first_and_then_straight():
    box = haec((4, 4, 4))
    source, target = 0, 3 * 16 + 6  # (0, 0, 0) to (2, 1, 3)
    _, links = box.routes([source], [target])
    assert [int(box.link_to[link]) for link in links] == [16 + 6, 32 + 6, 48 + 6]
    assert (box.link_kind[links] == 1).all()


def test_uniform_traffic_loads_haec_as_published():
    """FIELD survey: 17/32 of a node's rate on the middle straight links, at most 3/64 on others."""
    box = haec((4, 4, 4))
    u, v = all_pairs(box)
    loads = box.loads(u, v, np.ones(len(u), dtype=np.int64))
    wireless = box.link_kind == 1
    straight = box.link_from % 16 == box.link_to % 16
    assert loads.max() / 64 == 17 / 32
    assert loads[wireless & ~straight].max() / 64 <= 3 / 64


@pytest.mark.parametrize(
    ("spec", "pattern", "expected"),
    [
        ("mesh:8x8", "uniform", 2),
        ("mesh:4x4x4", "uniform", 1),
        ("haec:4x4x4", "uniform", 17 / 32),
        ("mesh:8x8", "transpose", 7),
        ("mesh:4x4x4", "transpose", 4),
        ("haec:4x4x4", "transpose", 2),
        ("torus:8x8", "tornado", 3),
        ("mesh:8x8", "tornado", 3),
        ("torus:4x4x4", "tornado", 1),
        ("haec:4x4x4", "tornado", 1),
        ("mesh:8x8", "complement", 4),
        ("mesh:4x4x4", "complement", 2),
        ("torus:8x8", "neighbour", 1),
        ("torus:4x4x4", "neighbour", 1),
        ("mesh:8x8", "neighbour", 1),
    ],
)
def test_channel_loads_equal_the_closed_forms(spec, pattern, expected):
    """Max link load per unit of injection (Dally & Towles' patterns)."""
    topology = topology_from_spec(spec)
    dims = np.array(topology.dims)
    c = topology.coords.astype(np.int64)
    strides = np.concatenate(([1], np.cumprod(dims[:-1])))
    index = lambda coords: coords @ strides  # noqa: E731
    nodes = np.arange(topology.nodes)
    if pattern == "uniform":
        u, v = all_pairs(topology)
        assert topology.loads(u, v, np.ones_like(u)).max() / topology.nodes == expected
        return
    targets = {
        "transpose": np.roll(c, 1, axis=1),
        "tornado": (c + np.eye(len(dims), dtype=int)[0] * (-(-dims[0] // 2) - 1)) % dims,
        "complement": dims - 1 - c,
        "neighbour": (c + 1) % dims,
    }[pattern]
    assert topology.loads(nodes, index(targets), np.ones_like(nodes)).max() == expected


def test_all_to_all_on_an_even_ring_loads_links_evenly_with_parity_ties():
    for n in (4, 8, 12):
        u, v = all_pairs(torus([n], ties="parity"))
        loads = torus([n], ties="parity").loads(u, v, np.ones_like(u))
        assert loads.max() == n * n / 8


def test_slots_and_link_speeds():
    topology = topology_from_spec("haec:2x2x2*3")
    assert topology.slots.tolist() == [3] * 8
    faster = topology.with_links("wireless", bandwidth=1e9, latency=2e-6)
    assert [kind.bandwidth for kind in faster.kinds] == [topology.kinds[0].bandwidth, 1e9]
    assert [kind.provenance for kind in faster.kinds] == ["DEFAULT", "set by the user"]
    same = topology.with_links(latency=topology.kinds[0].latency)
    assert [kind.sources for kind in same.kinds] == [("DEFAULT", "set by the user")] * 2
    with pytest.raises(TopologyError, match="expected one of optical, wireless"):
        topology.with_links("copper", bandwidth=1e9)
    with pytest.raises(TopologyError, match="expected > 0"):
        topology.with_links(bandwidth=0.0)


def test_sixty_five_thousand_nodes_need_memory_linear_in_links():
    topology = torus((64, 32, 32))
    assert topology.links == 6 * 65536
    assert int(topology.distance([0], [65535])[0]) == 3


@pytest.mark.parametrize("build", [torus, haec])
def test_both_ways_are_shortest_and_part_at_every_tie(build):
    first, second = both_ways(build((4, 6, 2)))
    if build is torus:
        assert_routes_are_shortest_paths(first)
        assert_routes_are_shortest_paths(second)
    u, v = all_pairs(first)
    same_board = np.flatnonzero((u // 24 == v // 24) | (build is torus))
    u, v = u[same_board], v[same_board]
    away = np.abs(first.coords[u] - first.coords[v])
    tied = (away[:, :2] * 2 == (4, 6)).any(axis=1)
    indptr, links = first.routes(u, v)
    _, others = second.routes(u, v)
    differs = [not np.array_equal(links[a:b], others[a:b]) for a, b in pairwise(indptr)]
    assert np.array_equal(differs, tied)


def test_a_network_without_rings_has_one_way():
    plain = mesh((4, 4))
    assert both_ways(plain) == (plain,)

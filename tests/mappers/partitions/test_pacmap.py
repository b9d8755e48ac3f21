"""PaCMap: centre, frame and ties in plain Python, and by hand."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopmap.mappers import map_ranks
from hopmap.mappers.basic_kernels import Graph
from hopmap.mappers.greedy.minmd import centre
from hopmap.mappers.greedy.most_connected_kernels import centre_rank
from hopmap.topologies import topology_from_spec
from hopmap.traces import Traffic


def graph_of(weight) -> Graph:
    source, peer = weight.nonzero()
    indptr = np.searchsorted(source, np.arange(len(weight) + 1))
    return Graph(indptr, peer, weight[source, peer])


def random_weight(ranks, seed, *, density=0.4) -> np.ndarray:
    """Powers of two, so that lengths add up without rounding."""
    rng = np.random.default_rng(seed)
    weight = 2 ** rng.integers(0, 4, (ranks, ranks)) * (rng.random((ranks, ranks)) < density)
    return np.triu(weight, 1) + np.triu(weight, 1).T


def traffic_of(weight) -> Traffic:
    src, dst = np.triu(weight).nonzero()
    return Traffic.from_pairs(len(weight), src, dst, np.ones_like(src), weight[src, dst])


def lengths(weight, rank) -> list[float]:
    graph = nx.from_numpy_array(weight)
    length = nx.single_source_dijkstra_path_length(
        graph, rank, weight=lambda u, v, e: 1 / e["weight"]
    )
    return list(length.values())


def expanded(weight, topology, start) -> list[int]:
    """Frame as a set of nodes: what was nearest to every node taken, while it is free."""
    ranks = len(weight)
    far = np.array([topology.distance(x, range(topology.nodes)) for x in range(topology.nodes)])
    first = min(range(ranks), key=lambda r: (-len(lengths(weight, r)), sum(lengths(weight, r)), r))
    free, node_of, frame = topology.slots.tolist(), {}, {start}

    def price(rank, x):
        return sum(weight[rank, u] * far[x, node_of[u]] for u in node_of)

    while len(node_of) < ranks:
        left = [r for r in range(ranks) if r not in node_of]
        reached = [r for r in left if any(weight[r, u] for u in node_of)]
        rank = max(reached or left, key=lambda r: (sum(weight[r, u] for u in node_of), -r))
        rank = rank if node_of else first
        node = min(frame, key=lambda x: (price(rank, x), far[start, x], x))
        node_of[rank] = node
        free[node] -= 1
        room = [x for x in range(topology.nodes) if free[x]]
        nearest = [x for x in room if far[node, x] == min(far[node, room])]
        frame = {x for x in frame | set(nearest) if free[x]}
    return [node_of[r] for r in range(ranks)]


@settings(deadline=None, max_examples=25)
@given(
    st.sampled_from(["mesh:3x3", "torus:7", "tree:2:3@1:10", "haec:2x2x2", "cluster:1*3+2*1"]),
    st.integers(0, 2**16),
)
def test_every_step_is_that_of_the_rule(spec, seed):
    topology, rng = topology_from_spec(spec), np.random.default_rng(seed)
    weight = random_weight(int(rng.integers(1, topology.slots.sum() + 1)), seed)
    node_of = map_ranks(traffic_of(weight), topology, "pacmap")
    assert node_of.tolist() == expanded(weight, topology, centre(topology))


@pytest.mark.parametrize("seed", range(10))
def test_the_centre_is_the_rank_with_the_least_sum_of_distances(seed):
    weight = random_weight(12, seed, density=0.2)
    reach = [(-len(lengths(weight, r)), sum(lengths(weight, r)), r) for r in range(12)]
    assert centre_rank(graph_of(weight), 12) == min(reach)[2]
    assert centre_rank(graph_of(weight), 4) == min(reach[4:8])[2]


def test_heavy_pairs_are_short():
    """A ring of four is the same from everywhere but for the heavy pair (2, 3)."""
    weight = np.zeros((4, 4), dtype=int)
    for u, v, w in [(0, 1, 1), (1, 2, 1), (2, 3, 8), (3, 0, 1)]:
        weight[u, v] = weight[v, u] = w
    assert centre_rank(graph_of(weight), 4) == 2
    assert centre_rank(graph_of(np.minimum(weight, 1)), 4) == 0


def test_of_equal_nodes_the_nearest_to_the_centre_is_taken():
    """0 has no partner: every node of the frame costs nothing, and 5 and 3 are one hop away."""
    traffic = Traffic.from_pairs(3, [1], [2], [1], [5])
    node_of = map_ranks(traffic, topology_from_spec("mesh:9"), "pacmap")
    assert node_of.tolist() == [5, 4, 3]


def test_ranks_that_share_a_node_are_grouped_by_their_traffic():
    """Pairs (0, 4), (1, 5), ... talk a lot, and their nodes form a path."""
    heavy = [(r, r + 4) for r in range(4)]
    light = [(r, r + 1) for r in range(3)]
    traffic = Traffic.from_pairs(8, *np.array(heavy + light).T, [1] * 7, [1000] * 4 + [1] * 3)
    topology = topology_from_spec("mesh:4*2")
    node_of = map_ranks(traffic, topology, "pacmap")
    assert (node_of[:4] == node_of[4:]).all()


@pytest.mark.parametrize("family", ["mesh", "torus"])
def test_maplib_s_stored_mappings_on_mesh_and_torus(maplib, family, weight):
    """MapLib prices every free node by |dx| + |dy| + |dz|, from node 21 on; we, the frame."""
    traffic, topology, stored = maplib
    pairs = traffic.without_self().undirected()
    weights = np.zeros((64, 64), dtype=int)
    weights[pairs.src, pairs.dst] = weights[pairs.dst, pairs.src] = getattr(pairs, weight)
    coords = topology.coords.astype(int)
    apart = np.abs(coords[:, None] - coords[None]).sum(axis=2)
    node_of = {stored("pacmap").index(21): 21}
    free = [x for x in range(64) if x != 21]
    while free:
        placed = list(node_of)
        left = [r for r in range(64) if r not in node_of]
        rank = left[int(weights[np.ix_(left, placed)].sum(axis=1).argmax())]
        nodes = [node_of[u] for u in placed]
        price = apart[np.ix_(free, nodes)] @ weights[rank, placed]
        node_of[rank] = free.pop(int(price.argmin()))
    theirs = [node_of[r] for r in range(64)]
    assert theirs == stored("pacmap")
    assert map_ranks(traffic, topology, f"pacmap(start=21, weight={weight})").tolist() != theirs

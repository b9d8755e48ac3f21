"""Greedy graph embedding: its rule in plain Python, and MapLib's stored mappings."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopmap.mappers import map_ranks
from hopmap.topologies import MappingError, topology_from_spec
from hopmap.traces import Traffic

SPECS = ["mesh:3x3", "torus:5", "tree:2:3:2@1:10:100", "mesh:2x2*2", "fattree:3x3"]


def embedded(weight, topology, start, volume=None, listed=sorted) -> list[int]:
    """Queue of edges, heaviest first, and the nearest node to the last one."""
    volume = weight.sum(axis=1) if volume is None else volume
    node_of: dict[int, int] = {}
    free, here, queue = topology.slots.tolist(), start, []
    for root in sorted(range(len(weight)), key=lambda r: (-volume[r], r)):
        queue.append(root)
        edges = []
        while queue:
            rank = queue.pop()
            if rank not in node_of:
                nodes = [x for x in range(topology.nodes) if free[x]]
                here = min(nodes, key=lambda x: (int(topology.distance(here, x)[0]), x))
                node_of[rank] = here
                free[here] -= 1
                peers = [int(u) for u in np.flatnonzero(weight[rank])]
                edges += [(weight[rank, u], u) for u in listed(peers) if u not in node_of]
            edges = [edge for edge in edges if edge[1] not in node_of]
            if edges:
                edges.sort(key=lambda edge: -edge[0])  # of equals the one that came first
                queue.append(edges.pop(0)[1])
    return [node_of[r] for r in range(len(weight))]


def matrix(traffic: Traffic, quantity: str = "bytes") -> np.ndarray:
    pairs = traffic.undirected()
    weight = np.zeros((traffic.ranks,) * 2, dtype=int)
    weight[pairs.src, pairs.dst] = weight[pairs.dst, pairs.src] = getattr(pairs, quantity)
    return weight


@settings(deadline=None, max_examples=25)
@given(st.sampled_from(SPECS), st.integers(0, 2**16))
def test_every_step_is_that_of_the_rule(spec, seed):
    topology, rng = topology_from_spec(spec), np.random.default_rng(seed)
    ranks = int(rng.integers(1, topology.slots.sum() + 1))
    src, dst = np.nonzero(np.triu(rng.random((ranks, ranks)) < 0.4, 1))
    volume = rng.integers(1, 4, len(src))
    traffic = Traffic.from_pairs(ranks, src, dst, np.ones_like(src), volume)
    start = int(rng.integers(topology.nodes))
    node_of = map_ranks(traffic, topology, f"greedy(start={start})")
    assert node_of.tolist() == embedded(matrix(traffic), topology, start)


def test_distance_is_from_the_last_node_and_not_from_the_partner():
    """A star: 0 in the middle of the line, 1 beside it, 2 beside 1 and not at 0's other side."""
    traffic = Traffic.from_pairs(4, [0, 0, 0], [1, 2, 3], [1] * 3, [9, 8, 7])
    topology = topology_from_spec("mesh:7")
    assert map_ranks(traffic, topology, "greedy").tolist() == [3, 2, 1, 0]
    assert map_ranks(traffic, topology, "greedy_min").tolist() == [3, 2, 4, 1]


def test_a_start_beyond_the_machine_is_refused():
    traffic = Traffic.from_pairs(4, [0], [1], [1], [1])
    for name in ("greedy", "udfs", "fhgreedy", "pacmap"):
        with pytest.raises(MappingError, match=f"{name}: start=7: .* node of mesh:7, 0 to 6"):
            map_ranks(traffic, topology_from_spec("mesh:7"), f"{name}(start=7)")


def hashed(keys: list[int]) -> list[int]:
    """Order in which a dict of up to five small numbers was walked before Python 3.6."""
    table: list[int | None] = [None] * 8
    for key in keys:
        slot, perturb = key % 8, key
        while table[slot] is not None:
            slot, perturb = (5 * slot + perturb + 1) % 8, perturb >> 5
        table[slot] = key
    return [key for key in table if key is not None]


def test_maplib_s_stored_mappings(maplib, app, weight):
    """AMG: equal. CG: once self messages choose the first rank, and hashes settle equal edges."""
    traffic, topology, stored = maplib
    ours = map_ranks(traffic, topology, f"greedy(start=32, weight={weight})").tolist()
    if app == "amg":
        assert ours == stored("greedy")
        return
    weights = matrix(traffic, weight)
    volume = weights.sum(axis=1) + np.diag(weights)
    np.fill_diagonal(weights, 0)
    assert ours != stored("greedy")
    assert embedded(weights, topology, 32, volume, hashed) == stored("greedy")

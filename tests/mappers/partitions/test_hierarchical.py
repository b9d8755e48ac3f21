"""Topdown and bottomup: subsystems filled exactly, and what the VieM paper says of the two."""

from math import prod

import numpy as np
import pytest

from hopmap.mappers import map_ranks, objective_value
from hopmap.topologies import MappingError, topology_from_spec
from hopmap.traces import Traffic, nas_traffic

MAPPERS = ["topdown", "bottomup"]


def nested(sizes: list[int], seed: int = 0) -> tuple[Traffic, int]:
    """Traffic between all pairs, ten times as much for every level shared, ranks shuffled.

    And its least J on the tree of these sizes with distances 1, 10, 100, ...: every group on a
    subsystem of its own, ten to the number of levels for each pair.
    """
    ranks = prod(sizes)
    u, v = np.triu_indices(ranks, 1)
    shared = sum(u // prod(sizes[:i]) == v // prod(sizes[:i]) for i in range(1, len(sizes)))
    names = np.random.default_rng(seed).permutation(ranks)
    weight = 10**shared
    traffic = Traffic.from_pairs(ranks, names[u], names[v], weight, weight)
    return traffic, ranks * (ranks - 1) // 2 * 10 ** (len(sizes) - 1)


@pytest.mark.parametrize("name", MAPPERS)
@pytest.mark.parametrize("sizes", [[4, 4, 4], [3, 5, 2], [2, 2, 2, 2]])
def test_traffic_that_is_nested_as_the_machine_is_finds_its_place(name, sizes):
    traffic, least = nested(sizes)
    topology = topology_from_spec(f"tree:{':'.join(map(str, sizes))}")
    node_of = map_ranks(traffic, topology, name)
    assert objective_value(traffic, topology, node_of, "hop_bytes") == least


@pytest.mark.parametrize("name", MAPPERS)
@pytest.mark.parametrize(
    "spec",
    [
        *("tree:2:3:2@1:10:100", "tree:2:3:2@1:10:100*3", "fattree:4x4", "dragonfly:2x4x2"),
        *("cluster:4*5", "cluster:3*4+2*1", "tree:17:3@1:10", "tree:1:1:4@1:2:3", "tree:40:2@1:5"),
    ],
)
def test_as_many_ranks_as_slots_fill_the_machine(name, spec):
    topology = topology_from_spec(spec)
    slots = int(topology.slots.sum())
    rng = np.random.default_rng(0)
    src, dst = np.nonzero(rng.random((slots, slots)) < 0.2)
    traffic = Traffic.from_pairs(slots, src, dst, np.ones_like(src), rng.integers(0, 99, len(src)))
    node_of = map_ranks(traffic, topology, f"{name}(preset=fast)")
    assert np.bincount(node_of, minlength=topology.nodes).tolist() == topology.slots.tolist()


@pytest.mark.parametrize("name", MAPPERS)
def test_few_ranks_stay_together(name):
    """16 ranks that fit on one of eight subsystems are not spread over two."""
    traffic, topology = nas_traffic("lu.S.16"), topology_from_spec("tree:4:4:8@1:10:100")
    node_of = map_ranks(traffic, topology, name)
    assert topology.distance(node_of[:1], node_of).max() <= 10


def test_topdown_solves_lu_on_4x4x4():
    """112 edges of the 8 x 8 grid: 64 within 2 x 2, 32 within 4 x 4, 16 between these."""
    traffic, topology = nas_traffic("lu.C.64"), topology_from_spec("tree:4:4:4@1:10:100")
    pairs = traffic.undirected()
    once = Traffic.from_pairs(64, pairs.src, pairs.dst, np.ones(112, int), np.ones(112, int))
    for setting in ("", "(in_order=false)", "(preset=eco, in_order=false)"):
        node_of = map_ranks(once, topology, f"topdown{setting}")
        assert objective_value(once, topology, node_of, "hop_bytes") == 64 * 1 + 32 * 10 + 16 * 100


def test_topdown_and_local_search_beat_the_greedy_construction(compiled):
    """Section 5.1: by half on average, and local search adds to it."""
    traffic, topology = nas_traffic("lu.D.256"), topology_from_spec("tree:4:16:4@1:10:100")
    greedy, top, both = (
        objective_value(traffic, topology, map_ranks(traffic, topology, pipeline), "hop_bytes")
        for pipeline in ("mueller_merbach", "topdown(in_order=false)", "topdown | local_search")
    )
    assert both <= top < 0.7 * greedy


@pytest.mark.parametrize("name", MAPPERS)
@pytest.mark.parametrize("spec", ["torus:4x4", "hypercube:4"])
def test_a_network_without_subsystems_is_refused(name, spec):
    words = f"mapper {name}: {spec} is not made of nested subsystems: expected a tree"
    with pytest.raises(MappingError, match=words):
        map_ranks(nas_traffic("lu.S.16"), topology_from_spec(spec), name)


@pytest.mark.parametrize("name", MAPPERS)
def test_the_order_of_the_ranks_is_a_candidate_unless_told_otherwise(name):
    """A path in order is cut least by taking it in order, which KaHIP's blocks do not keep to."""
    rank = np.arange(29)
    traffic = Traffic.from_pairs(30, rank, rank + 1, [1] * 29, [1] * 29)
    topology = topology_from_spec("tree:5:6")
    ordered, free = (
        map_ranks(traffic, topology, f"{name}(preset=fast, in_order={value})").tolist()
        for value in ("true", "false")
    )
    assert ordered == list(range(30))
    assert free != ordered

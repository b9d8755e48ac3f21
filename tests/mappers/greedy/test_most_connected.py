"""Greedy constructions against their rules in plain Python, step by step."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopmap.mappers import map_ranks
from hopmap.mappers.greedy import construction
from hopmap.mappers.greedy.minmd import centre
from hopmap.topologies import topology_from_spec
from hopmap.traces import Traffic
from support.slow import examples

SPECS = ["mesh:3x3", "torus:5", "tree:2:3:2@1:10:100", "mesh:2x2*2", "fattree:3x3"]
RULES = ["mueller_merbach", "greedy_all_c", "greedy_min"]


def constructed(traffic: Traffic, topology, name: str) -> list[int]:
    """The table of the module, in plain Python."""
    pairs = traffic.without_self().undirected()
    weight = np.zeros((traffic.ranks,) * 2, dtype=int)
    weight[pairs.src, pairs.dst] = weight[pairs.dst, pairs.src] = pairs.bytes
    nodes = range(topology.nodes)
    far = np.array([topology.distance(x, nodes) for x in nodes])
    node_of: dict[int, int] = {}
    free = topology.slots.tolist()
    while len(node_of) < traffic.ranks:
        placed = list(node_of)

        def tie(rank):
            ties = [weight[rank, other] for other in placed]  # noqa: B023
            return (max if name == "greedy_min" else sum)(ties or [0])

        rank = max(
            (r for r in range(traffic.ranks) if r not in node_of),
            key=lambda r: (tie(r), weight[r].sum(), -r),
        )

        def price(x):
            if not placed:  # noqa: B023
                return x != centre(topology)
            if name == "mueller_merbach" or tie(rank) == 0:  # noqa: B023
                return sum(far[x, node_of[other]] for other in placed)  # noqa: B023
            if name == "greedy_min":
                partner = max(placed, key=lambda other: weight[rank, other])  # noqa: B023
                return far[x, node_of[partner]]
            return sum(weight[rank, other] * far[x, node_of[other]] for other in placed)  # noqa: B023

        node_of[rank] = min((x for x in nodes if free[x]), key=lambda x: (price(x), x))
        free[node_of[rank]] -= 1
    return [node_of[r] for r in range(traffic.ranks)]


@examples(60)
@given(
    st.sampled_from(SPECS),
    st.sampled_from(RULES),
    st.integers(0, 2**16),
)
def test_every_step_is_that_of_the_rule(spec, name, seed):
    topology, rng = topology_from_spec(spec), np.random.default_rng(seed)
    ranks = int(rng.integers(1, topology.slots.sum() + 1))
    src, dst = np.nonzero(np.triu(rng.random((ranks, ranks)) < 0.4, 1))
    volume = rng.permutation(len(src)) + 1
    traffic = Traffic.from_pairs(ranks, src, dst, np.ones_like(src), volume)
    assert map_ranks(traffic, topology, name).tolist() == constructed(traffic, topology, name)


@pytest.mark.parametrize("name", ["mueller_merbach", "greedy_all_c"])
def test_a_rank_is_tied_to_all_that_are_placed(name):
    """mesh:4: 0 on node 2 and 1 beside it; then 2, of 6 bytes to each of them, before 3, of 10."""
    traffic = Traffic.from_pairs(4, [0, 0, 1, 0], [1, 2, 2, 3], [1, 1, 1, 1], [50, 6, 6, 10])
    assert map_ranks(traffic, topology_from_spec("mesh:4"), name).tolist() == [2, 1, 0, 3]


@examples(60)
@given(
    st.sampled_from(["tree:2:3:2", "tree:4:4@1:100", "fattree:3x3", "tree:2:2*3"]),
    st.integers(0, 999),
)
def test_on_hierarchies_greedy_all_c_and_mueller_merbach_fill_the_cores_in_order(spec, seed):
    """A core beside those filled last is as near to every placed rank as any other, or nearer."""
    topology, rng = topology_from_spec(spec), np.random.default_rng(seed)
    ranks = int(topology.slots.sum())
    src, dst = np.nonzero(np.triu(rng.random((ranks, ranks)) < 0.3, 1))
    volume = rng.integers(1, 4, len(src))
    traffic = Traffic.from_pairs(ranks, src, dst, np.ones_like(src), volume)
    first, second = (
        map_ranks(traffic, topology, name).tolist() for name in ("mueller_merbach", "greedy_all_c")
    )
    assert first == second
    part = Traffic.from_pairs(ranks, [0], [1], [1], [1])  # 0, 1, then the silent ones
    made = map_ranks(part, topology, "greedy_all_c")
    assert made.tolist() == np.repeat(np.arange(topology.nodes), topology.slots).tolist()


def test_a_path_of_falling_weights_is_laid_out_along_a_ring():
    topology = topology_from_spec("torus:8")
    traffic = Traffic.from_pairs(8, range(7), range(1, 8), [1] * 7, range(9, 2, -1))
    for name in ("greedy_all_c", "greedy_min"):
        node_of = map_ranks(traffic, topology, name)
        assert topology.distance(node_of[:2], node_of[1:3]).tolist() == [1, 1]


@pytest.mark.parametrize("name", [*RULES, "topo_aware", "fhgreedy", "pacmap"])
def test_quadratic_time_is_announced(name, monkeypatch):
    monkeypatch.setattr(construction, "MANY", 7)
    traffic = Traffic.from_pairs(8, [0], [1], [1], [1])
    with pytest.warns(UserWarning, match=f"mapper {name}: time grows with the square"):
        map_ranks(traffic, topology_from_spec("torus:8"), name)

"""Constructions by connection and TopoLB: their rules in plain Python, MapLib's stored mappings."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopmap.mappers import map_ranks
from hopmap.mappers.greedy import minmd
from hopmap.mappers.greedy.minmd import centre
from hopmap.topologies import Topology, topology_from_spec
from hopmap.topologies.graph_kernels import GraphRouter
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
    monkeypatch.setattr(minmd, "MANY", 7)
    traffic = Traffic.from_pairs(8, [0], [1], [1], [1])
    with pytest.warns(UserWarning, match=f"mapper {name}: time grows with the square"):
        map_ranks(traffic, topology_from_spec("torus:8"), name)


def placed(weight, topology, second) -> list[int]:
    """Every estimate anew at every step, in fractions."""
    ranks, nodes = len(weight), range(topology.nodes)
    far = np.array([topology.distance(x, nodes) for x in nodes])
    mean = [Fraction(int(far[x] @ topology.slots), int(topology.slots.sum())) for x in nodes]
    free, node_of = topology.slots.copy(), {}

    def estimate(rank, x):
        cost = Fraction(0)
        for other in range(ranks):
            if other in node_of:
                cost += int(weight[rank, other] * far[x, node_of[other]])
            elif second:
                cost += int(weight[rank, other]) * mean[x]
        return cost

    while len(node_of) < ranks:
        rows = {
            r: {x: estimate(r, x) for x in nodes if free[x]}
            for r in range(ranks)
            if r not in node_of
        }

        def critical(r):
            row = rows[r]  # noqa: B023
            return sum(int(free[x]) * row[x] for x in row) / int(free.sum()) - min(row.values())

        rank = max(rows, key=lambda r: (critical(r), -r))
        node = min(rows[rank], key=lambda x: (rows[rank][x], x))
        node_of[rank] = node
        free[node] -= 1
    return [node_of[r] for r in range(ranks)]


@settings(deadline=None, max_examples=25)
@given(
    st.sampled_from(["mesh:3x2", "torus:5", "tree:2:3@1:10", "mesh:2x2*2", "cluster:1*3+2*1"]),
    st.sampled_from(["first", "second"]),
    st.integers(0, 2**16),
)
def test_every_step_is_that_of_the_table(spec, estimate, seed):
    topology, rng = topology_from_spec(spec), np.random.default_rng(seed)
    ranks = int(rng.integers(1, topology.slots.sum() + 1))
    weight = np.triu(rng.integers(1, 5, (ranks, ranks)) * (rng.random((ranks, ranks)) < 0.5), 1)
    src, dst = weight.nonzero()
    traffic = Traffic.from_pairs(ranks, src, dst, np.ones_like(src), weight[src, dst])
    node_of = map_ranks(traffic, topology, f"topo_aware(estimate={estimate})")
    assert node_of.tolist() == placed(weight + weight.T, topology, estimate == "second")


def test_the_second_order_begins_in_the_middle_with_the_most_traffic():
    """The first has nothing to tell ranks and nodes apart by until one rank is placed."""
    traffic = Traffic.from_pairs(3, [0, 1], [1, 2], [1, 1], [5, 5])
    topology = topology_from_spec("mesh:3")
    assert map_ranks(traffic, topology, "topo_aware").tolist() == [0, 1, 2]
    first = map_ranks(traffic, topology, "topo_aware(estimate=first)")
    assert first.tolist() == [0, 1, 2]
    swapped = Traffic.from_pairs(3, [1, 0], [0, 2], [1, 1], [5, 5])  # 0 in the middle
    assert map_ranks(swapped, topology, "topo_aware").tolist() == [1, 0, 2]
    assert map_ranks(swapped, topology, "topo_aware(estimate=first)").tolist() == [0, 1, 2]


def with_manhattan_distance(topology: Topology) -> Topology:
    """MapLib's distance: 1 between neighbours, or else |dx| + |dy| + |dz|, on every network."""
    coords = topology.coords.astype(int)
    apart = np.abs(coords[:, None] - coords[None]).sum(axis=2)
    apart[topology.link_from, topology.link_to] = 1
    order = np.argsort(topology.link_from, kind="stable")
    starts = np.searchsorted(topology.link_from[order], np.arange(topology.nodes + 1))
    router = GraphRouter(apart.astype(np.int16), starts.astype(np.int64), topology.link_to[order])
    return replace(topology, router=router)


def test_maplib_s_stored_mappings(compiled, maplib, family, weight):
    """Equal with MapLib's distance, which is wrong on all but meshes."""
    traffic, topology, stored = maplib
    pipeline = f"topo_aware(estimate=first, weight={weight})"
    theirs = map_ranks(traffic, with_manhattan_distance(topology), pipeline)
    assert theirs.tolist() == stored("topo_aware")
    ours = map_ranks(traffic, topology, pipeline)
    assert (ours.tolist() == stored("topo_aware")) == (family == "mesh")

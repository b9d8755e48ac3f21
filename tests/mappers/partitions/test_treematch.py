"""TreeMatch: each way of grouping by hand, and J of Open MPI's TreeMatch to the last digit."""

import csv
from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopmap.mappers import map_ranks, objective_value, treematch
from hopmap.mappers.basic_kernels import Graph
from hopmap.mappers.partitions.hierarchical import factors
from hopmap.mappers.partitions.partition_kernels import conflicts, costs, fast, grow, pair_up
from hopmap.topologies import MappingError, topology_from_spec
from hopmap.traces import Traffic, load_traffic


class Twister:
    """Random vertices as TreeMatch draws them: Mersenne Twister 5489, modulo, until one is new."""

    def __init__(self):
        self.generator = np.random.RandomState(5489)._bit_generator

    def choice(self, vertices, count, replace):
        assert not replace
        drawn = []
        while len(drawn) < count:
            vertex = int(self.generator.random_raw()) % vertices
            if vertex not in drawn:
                drawn.append(vertex)
        return np.array(drawn)


def graph_of(weights) -> Graph:
    """CSR of a symmetric matrix."""
    dense = np.array(weights, dtype=np.int64)
    source, peer = dense.nonzero()
    indptr = np.searchsorted(source, np.arange(len(dense) + 1))
    return Graph(indptr, peer, dense[source, peer])


def random_weights(vertices: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    weights = np.triu(rng.integers(0, 9, (vertices, vertices)), 1)
    return weights + weights.T


def leaving(weights: np.ndarray, group) -> int:
    group = list(group)
    return int(weights[group].sum() - weights[np.ix_(group, group)].sum())


def grid_traffic(*dims: int) -> Traffic:
    """Unit weights on a grid, x first."""
    edges = np.array(nx.convert_node_labels_to_integers(nx.grid_graph(dims)).edges)
    ones = np.ones(len(edges), dtype=int)
    return Traffic.from_pairs(int(np.prod(dims)), *edges.T, ones, ones)


@pytest.mark.parametrize(("divide", "published"), [("true", 1984), ("false", 3163)])
def test_a_grid_of_64_ranks_costs_what_open_mpi_s_treematch_makes_of_it(divide, published):
    topology = topology_from_spec("tree:4:4:4@1:10:100")
    traffic = grid_traffic(8, 8)
    node_of = map_ranks(traffic, topology, f"treematch(divide={divide})")
    assert objective_value(traffic, topology, node_of, "hop_bytes") == published


def test_all_peers_rows_are_reproduced_with_its_own_random_numbers(compiled, shared):
    folder = shared / "mapping"
    with (folder / "peers.csv").open() as stream:
        rows = [row for row in csv.DictReader(stream) if row["tool"] == "treematch"]
    assert len(rows) == 22
    for row in rows:
        traffic = load_traffic(folder / "instances" / f"{row['instance']}.graph")
        topology = topology_from_spec(row["topology"].replace("hier:", "tree:").replace("/", "@"))
        divide = "opt=1" in row["settings"]
        node_of = treematch(traffic, topology, rng=Twister(), divide=divide)
        assert objective_value(traffic, topology, node_of, "hop_bytes") == float(row["best_J"]), row


@pytest.mark.parametrize(
    ("arity", "expected"),
    [(1, [1]), (3, [3]), (6, [2, 3]), (7, [7]), (10, [5, 2]), (16, [2] * 4), (36, [2, 2, 3, 3])],
)
def test_arities_are_divided_by_threes_then_twos_from_the_outside(arity, expected):
    assert factors(arity) == expected


def test_pairs_are_taken_heaviest_first_and_silent_ones_from_the_end():
    pairs = np.array([(2, 5), (0, 2), (1, 5), (0, 3)])
    assert pair_up(pairs, 10).tolist() == [[2, 5], [0, 3], [8, 9], [6, 7], [1, 4]]


def test_a_group_is_the_cheapest_of_the_first_sets_only():
    """Of six vertices left, three sets: {0, 1, 2}, {0, 1, 3}, {0, 1, 4}; never 5, however heavy."""
    weights = np.zeros((6, 6), dtype=int)
    for u, v, weight in [(0, 5, 9), (0, 4, 1), (1, 3, 2), (2, 5, 1)]:
        weights[u, v] = weights[v, u] = weight
    assert fast(graph_of(weights), 3, 2).tolist() == [[0, 1, 3], [2, 4, 5]]
    assert sorted(fast(graph_of(weights), 3, 100)[0].tolist()) == [0, 2, 5]


def test_blocks_grow_by_the_heaviest_edge_to_a_block_with_room():
    """0 and 1 begin; 2 prefers 1, 3 too but it is full, so that 3 joins 0; then what is left."""
    weights = np.zeros((6, 6), dtype=int)
    for u, v, weight in [(1, 2, 5), (1, 3, 4), (0, 3, 1), (2, 4, 1)]:
        weights[u, v] = weights[v, u] = weight
    assert grow(graph_of(weights), 2, np.array([[0, 1, 5]])).tolist() == [0, 1, 1, 0, 2, 2]
    best = grow(graph_of(weights), 2, np.array([[3, 4, 5], [0, 1, 5]]))
    assert best.tolist() == [0, 1, 1, 0, 2, 2]


@settings(deadline=None, max_examples=30)
@given(st.integers(2, 3), st.integers(2, 3), st.integers(0, 999))
def test_costs_and_conflicts_of_groups_are_what_they_are_defined_to_be(arity, count, seed):
    weights = random_weights(arity * count, seed)
    groups = np.array(list(combinations(range(arity * count), arity)))
    cost = costs(graph_of(weights), groups)
    assert cost.tolist() == [leaving(weights, group) for group in groups]
    degree = conflicts(groups, cost, arity * count)
    for g, group in enumerate(groups):
        shared = sum(
            cost[h] for h, other in enumerate(groups) if h != g and set(group) & set(other)
        )
        expected = shared / cost[g] if cost[g] else (np.inf if shared else 0)
        assert degree[g] == pytest.approx(expected)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 999))
def test_listed_groups_are_no_worse_than_the_ranks_in_order_or_greedy_by_cost(seed):
    weights = random_weights(9, seed)
    source, peer = np.triu(weights).nonzero()
    traffic = Traffic.from_pairs(9, source, peer, np.ones_like(source), weights[source, peer])
    node_of = map_ranks(traffic, topology_from_spec("tree:3:3"), "treematch")
    groups = [np.flatnonzero(node_of // 3 == g) for g in range(3)]
    cost = sum(leaving(weights, group) for group in groups)
    assert cost <= sum(leaving(weights, range(g, g + 3)) for g in (0, 3, 6)) * (1 + 1e-9)
    best = min(leaving(weights, group) for group in combinations(range(9), 3))
    assert cost >= 3 * best


def test_cliques_are_kept_together_at_every_level():
    """Fours of 16 shuffled ranks that talk a lot, and pairs of fours that talk a little."""
    number = np.random.default_rng(0).permutation(16)
    pairs = [(u, v) for u in range(16) for v in range(u) if u // 4 == v // 4 or u // 8 == v // 8]
    weight = [100 if u // 4 == v // 4 else 1 for u, v in pairs]
    ends = number[np.array(pairs)].T
    traffic = Traffic.from_pairs(16, *ends, np.ones(len(pairs), dtype=int), weight)
    for divide in ("true", "false"):
        node_of = map_ranks(
            traffic, topology_from_spec("tree:4:2:2"), f"treematch(divide={divide})"
        )
        where = node_of[number]
        assert all(len(set(where[k : k + 4] // 4)) == 1 for k in range(0, 16, 4))
        assert all(len(set(where[k : k + 8] // 8)) == 1 for k in range(0, 16, 8))


def test_nodes_of_unlike_slots_are_refused():
    traffic = grid_traffic(2, 2)
    with pytest.raises(MappingError, match="nodes have 1 to 3 slots: expected as many on every"):
        map_ranks(traffic, topology_from_spec("cluster:2*3+2*1"), "treematch")

"""Bisection: exact sizes, cuts that are known, halves of networks, and blocks split anew."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopmap.mappers import map_ranks, objective_value
from hopmap.mappers.basic_kernels import Graph, contract, group_by_block
from hopmap.mappers.bisections import halving_kernels, recursive_bisection
from hopmap.mappers.bisections.block_moves_kernels import choose, divide, recreate
from hopmap.mappers.bisections.fm_kernels import cut_cost
from hopmap.mappers.bisections.halving_kernels import FEW, TRIES, bisect, evolve
from hopmap.mappers.bisections.recursive_bisection import bisect_nodes, cluster_ranks, halves
from hopmap.mappers.cost_kernels import total_cost
from hopmap.mappers.objectives import cost_model
from hopmap.topologies import hierarchy, topology_from_spec
from hopmap.traces import Traffic
from support.traffic import grid_traffic


def graph_of(traffic: Traffic):
    model = cost_model(traffic, topology_from_spec(f"mesh:{traffic.ranks}"), "hop_bytes")
    return Graph(model.indptr, model.peer, model.weight.astype(float))


def two_sides(graph, bias, target, seed, label=None):
    """Bisect vertices of size 1; with labels, combine the two bisections that they stand for."""
    n = len(bias)
    growths, label = (TRIES, np.zeros(n, dtype=np.int8)) if label is None else (0, label)
    size = np.ones(n, dtype=np.int64)
    return bisect(graph, size, bias, label, target, growths, random(seed))


def halves_of(topology):
    model = cost_model(grid_traffic(2, 2), topology, "hop_bytes")
    return halves(model, topology)


def random(seed: int):
    return np.array([seed + 1], dtype=np.uint64)


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 60), st.floats(0, 0.5), st.integers(0, 10**6))
def test_both_sides_have_exactly_their_sizes(n, density, seed):
    rng = np.random.default_rng(seed)
    src, dst = np.nonzero(np.triu(rng.random((n, n)) < density, 1))
    traffic = Traffic.from_pairs(n, src, dst, np.ones(len(src)), rng.integers(1, 9, len(src)))
    graph = graph_of(traffic)
    target = int(rng.integers(0, n + 1))
    bias = rng.integers(-5, 6, n).astype(float)
    side = two_sides(graph, bias, target, seed)
    assert np.bincount(side, minlength=2).tolist() == [target, n - target]


def test_a_long_grid_is_cut_across(compiled):
    """Half of 24 x 4 ranks: four pairs are cut, which is least; with 4 x 24 x 4, sixteen."""
    for dims, least in (((24, 4), 4), ((4, 24, 4), 16)):
        traffic = grid_traffic(*dims)
        graph = graph_of(traffic)
        bias, half = np.zeros(traffic.ranks), traffic.ranks // 2
        cuts = []
        for seed in range(3):
            side = two_sides(graph, bias, half, seed)
            cuts.append(cut_cost(graph, bias, side))
        assert min(cuts) == least


def test_a_bias_decides_where_there_is_no_traffic():
    nothing = np.zeros(9, dtype=np.int64)
    bias = np.array([3.0, -1, 2, -4, 0.5, -2, -3, 1])
    side = two_sides(Graph(nothing, nothing[:0], np.zeros(0)), bias, 4, 0)
    assert np.array_equal(side, (bias < 0).astype(np.int8))


def test_contraction_keeps_the_weight_between_groups():
    traffic = grid_traffic(5, 6)
    indptr, peer, weight = graph_of(traffic)
    group = np.random.default_rng(2).integers(0, 7, 30, dtype=np.int32)
    new_indptr, new_peer, new_weight = contract(Graph(indptr, peer, weight), group, 7)
    dense, small = np.zeros((7, 7)), np.zeros((7, 7))
    np.add.at(dense, (group[np.repeat(np.arange(30), np.diff(indptr[:31]))], group[peer]), weight)
    np.fill_diagonal(dense, 0)
    np.add.at(small, (np.repeat(np.arange(7), np.diff(new_indptr)), new_peer), new_weight)
    assert np.array_equal(dense, small)


@pytest.mark.parametrize(
    ("spec", "across"), [("mesh:4x8", 1), ("torus:6x2", 0), ("mesh:3x3x5", 2), ("mesh:4x4x2", 0)]
)
def test_boxes_are_cut_across_their_longest_side(spec, across):
    topology = topology_from_spec(spec)
    nodes, domains = halves_of(topology)
    first = topology.coords[nodes[: domains[0, 1]]]
    second = topology.coords[nodes[domains[0, 1] :]]
    assert first[:, across].max() < second[:, across].min()
    assert sorted(nodes) == list(range(topology.nodes))
    assert (domains[:, 1] == domains[:, 2]).sum() == topology.nodes


@pytest.mark.parametrize("spec", ["mesh:16", "torus:6x5", "mesh:5x3x2*2", "mesh:4x4x4"])
def test_boxes_are_cut_at_the_plane_nearest_to_half_of_the_slots(spec):
    topology = topology_from_spec(spec)
    nodes, domains = halves_of(topology)
    slots = topology.slots
    for lo, mid, hi, _ in domains:
        if mid == hi:
            continue
        here = topology.coords[nodes[lo:hi]]
        planes = min(len(set(axis)) for axis in here.T.tolist() if len(set(axis)) > 1)
        first, total = slots[nodes[lo:mid]].sum(), slots[nodes[lo:hi]].sum()
        assert abs(2 * first - total) <= total / planes


def test_trees_are_cut_between_their_subsystems():
    topology = topology_from_spec("tree:4:3:2")
    nodes, domains = halves_of(topology)
    assert domains[0, 1] == 12
    assert len({int(node) // 12 for node in nodes[:12]}) == 1


def test_a_bisection_that_is_over_early_has_the_halves_that_it_got_to(monkeypatch):
    """4 x 16 ranks: after the first slice everybody is in a half, as with all the time there is."""
    topology = topology_from_spec("mesh:16x4")
    model = cost_model(grid_traffic(16, 4), topology, "hop_bytes")
    whole = bisect_nodes(model, topology, np.random.default_rng(1))
    monkeypatch.setattr(recursive_bisection, "SLICE", 64)
    sliced = bisect_nodes(model, topology, np.random.default_rng(1))
    looks = iter([False, True])
    early = bisect_nodes(model, topology, np.random.default_rng(1), over=lambda: next(looks))
    assert np.array_equal(whole, sliced)
    assert np.array_equal(np.sort(early), np.arange(64))
    assert not np.array_equal(early, whole)
    first = topology.coords[:, 0] < 8
    assert np.array_equal(first[early], first[whole])


@pytest.mark.parametrize("spec", ["mesh:16x16", "tree:4:16:4@1:10:100", "mesh:8x16*2"])
def test_a_bisection_without_any_time_brings_together_who_talks(spec, monkeypatch):
    """Less than half of what 256 ranks of a grid in no order cost; the longer, the less."""
    monkeypatch.setattr(recursive_bisection, "SLICE", 256)
    topology = topology_from_spec(spec)
    model = cost_model(grid_traffic(16, 16), topology, "hop_bytes")
    costs = []
    for slices in (0, 4, 10**6):
        looks = iter([False] * slices)
        places = bisect_nodes(
            model, topology, np.random.default_rng(1), over=lambda looks=looks: next(looks, True)
        )
        assert np.array_equal(np.bincount(places), topology.slots)
        costs.append(total_cost(model, places))
    anyhow = np.random.default_rng(1).permutation(
        np.repeat(np.arange(topology.nodes), topology.slots)
    )
    assert costs[0] < total_cost(model, anyhow) / 2
    assert costs[2] <= costs[1] <= costs[0]


def test_who_talks_most_stands_side_by_side():
    """Four pairs of weight 9, two of these by 5 with two others, and two free slots."""
    src, dst = [0, 2, 4, 6, 0, 4], [1, 3, 5, 7, 2, 6]
    traffic = Traffic.from_pairs(8, src, dst, np.ones(6), [9, 9, 9, 9, 5, 5])
    model = cost_model(traffic, topology_from_spec("mesh:10"), "hop_bytes")
    for seed in range(9):
        order = cluster_ranks(model, random(seed))
        place = np.argsort(order)
        assert np.array_equal(order[place], np.arange(10))
        assert all(abs(place[a] - place[a + 1]) == 1 for a in (0, 2, 4, 6))
        assert np.ptp(place[:4]) == np.ptp(place[4:8]) == 3


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 40), st.integers(0, 9), st.integers(0, 10**6))
def test_an_order_of_clusters_is_an_order(n, free, seed):
    rng = np.random.default_rng(seed)
    src, dst = np.nonzero(rng.random((n, n)) < 0.1)
    traffic = Traffic.from_pairs(n, src, dst, np.ones(len(src)), rng.integers(0, 9, len(src)))
    model = cost_model(traffic, topology_from_spec(f"mesh:{n + free}"), "hop_bytes")
    order = cluster_ranks(model, random(seed))
    assert np.array_equal(np.sort(order), np.arange(n + free))
    assert np.array_equal(order, cluster_ranks(model, random(seed)))


def test_a_star_is_not_matched_level_by_level(monkeypatch):
    """A thousand talk to one: every level would match one pair only."""
    star = Traffic.from_pairs(1000, np.zeros(999), np.arange(1, 1000), *np.ones((2, 999)))
    model = cost_model(star, topology_from_spec("mesh:1000"), "hop_bytes")
    levels = []
    match = halving_kernels.match
    monkeypatch.setattr(halving_kernels, "match", lambda *a: levels.append(1) or match(*a))
    assert np.array_equal(np.sort(cluster_ranks(model, random(1))), np.arange(1000))
    assert len(levels) == 1


def test_a_line_ends_up_in_order(compiled):
    """31 pairs of neighbours on a line of 32 nodes: nothing is better than one hop each."""
    traffic, topology = grid_traffic(32, 1), topology_from_spec("mesh:32")
    node_of = map_ranks(traffic, topology, "recursive_bisection(tries=4)")
    assert objective_value(traffic, topology, node_of, "hop_bytes") == 31


@pytest.mark.parametrize(
    ("dims", "spec", "least"), [((16, 1), "mesh:16", 15), ((4, 4), "mesh:4x4", 24)]
)
@pytest.mark.parametrize("seed", range(3))
def test_what_is_outside_pulls_halves_to_their_sides(dims, spec, least, seed):
    """Each half alone could as well be turned round, and one pair in two would be longer."""
    traffic, topology = grid_traffic(*dims), topology_from_spec(spec)
    node_of = map_ranks(traffic, topology, "recursive_bisection", seed=seed)
    assert objective_value(traffic, topology, node_of, "hop_bytes") == least


def cut_of(traffic: Traffic, block) -> int:
    indptr, peer, weight = graph_of(traffic)
    row = np.repeat(np.arange(traffic.ranks), np.diff(indptr[: traffic.ranks + 1]))
    return int(weight[block[row] != block[peer]].sum()) // 2


@pytest.mark.parametrize("seed", range(3))
def test_what_is_cut_counts_as_much_as_its_halves_are_apart(compiled, seed):
    """mesh:8, ranks 4 to 7 on one half. Of 0 to 3 two are next to them: 0, and 1 or 2.

    2 talks to them (6 bytes, two hops nearer: 12), 0 to 1 and 2 to 3 (5 bytes each; halves of two
    nodes are 1.5 hops farther apart than within: 15). So the pairs stay together.
    """
    clique = [(a, b, 100) for a in range(4, 8) for b in range(a + 1, 8)]
    src, dst, size = np.transpose([*clique, (0, 4, 20), (2, 5, 6), (0, 1, 5), (2, 3, 5)])
    traffic = Traffic.from_pairs(8, src, dst, np.ones(10), size)
    node_of = map_ranks(traffic, topology_from_spec("mesh:8"), "recursive_bisection", seed=seed)
    if node_of[4] < 4:
        node_of = 7 - node_of
    assert sorted(node_of[:2].tolist()) == [2, 3]


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 60), st.floats(0.05, 0.5), st.integers(0, 10**6))
def test_what_combines_bisections_has_their_sizes_and_tries_never_cut_more(n, density, seed):
    rng = np.random.default_rng(seed)
    src, dst = np.nonzero(np.triu(rng.random((n, n)) < density, 1))
    traffic = Traffic.from_pairs(n, src, dst, np.ones(len(src)), rng.integers(1, 9, len(src)))
    graph = graph_of(traffic), rng.integers(-5, 6, n).astype(float)
    target = int(rng.integers(1, n))
    first, second = (two_sides(*graph, target, seed + k) for k in range(2))
    child = two_sides(*graph, target, seed, label=(2 * first + second).astype(np.int8))
    assert np.bincount(child, minlength=2).tolist() == [target, n - target]
    # The first of many tries are those of few: what combines them comes on top.
    few, many = (
        evolve(*graph, target, tries, random(seed), TRIES) for tries in (FEW // 2, 3 * FEW)
    )
    assert np.bincount(many, minlength=2).tolist() == [target, n - target]
    assert cut_cost(*graph, many) <= cut_cost(*graph, few)


def test_more_tries_cut_no_more(compiled):
    traffic = grid_traffic(12, 12, seed=4)
    graph = graph_of(traffic)
    costs = []
    for tries in (1, 40):
        side = evolve(graph, np.zeros(144), 72, tries, random(3), TRIES)
        costs.append(cut_cost(graph, np.zeros(144), side))
    assert costs[1] == 12 <= costs[0]


@pytest.mark.parametrize("spec", ["tree:4:3:2", "cluster:3*4", "tree:2:5:7", "fattree:3x3x4"])
def test_hierarchies_are_cut_between_subsystems_as_evenly_as_possible(spec):
    topology = topology_from_spec(spec)
    nodes, domains = halves_of(topology)
    sizes = hierarchy(topology)
    spans = np.cumprod((1, *sizes))
    assert np.array_equal(nodes, np.arange(topology.nodes))
    for lo, mid, hi, _ in domains:
        if mid < hi:
            span = max(span for span in spans if span < hi - lo)
            assert mid % span == 0
            assert abs(2 * mid - lo - hi) <= span


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), most=st.integers(2, 6), cycles=st.sampled_from([0.0, 0.5, 1.0]))
def test_blocks_that_are_recreated_keep_their_sizes_and_parents_and_cut_no_more(seed, most, cycles):
    traffic = grid_traffic(6, 6, seed=seed)
    rng = np.random.default_rng(seed)
    block = rng.permutation(np.repeat(np.arange(6), [6, 6, 6, 6, 8, 4]))
    parent = np.array([0, 0, 0, 0, 1, 1])
    after = block.copy()
    saved = recreate(graph_of(traffic), after, parent, most, 10, 0.0, cycles, random(seed))
    assert np.array_equal(np.bincount(block), np.bincount(after))
    assert np.array_equal(parent[block], parent[after])
    assert cut_of(traffic, block) - cut_of(traffic, after) == saved >= 0


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_hot_trials_may_cut_more_and_say_how_much(seed):
    traffic = grid_traffic(6, 6, seed=seed)
    block = np.arange(36) // 6
    after = block.copy()
    parent = np.zeros(6, np.int64)
    saved = recreate(graph_of(traffic), after, parent, 4, 5, 50.0, 0.5, random(seed))
    assert np.array_equal(np.bincount(after), np.full(6, 6))
    assert cut_of(traffic, block) - cut_of(traffic, after) == saved


def test_chosen_blocks_have_one_parent_and_talk(compiled):
    """Blocks are the columns of a grid: those of a parent that talk are consecutive."""
    traffic = Traffic.from_pairs(24, np.arange(20), np.arange(4, 24), *np.ones((2, 20)))
    graph = graph_of(traffic)
    block, parent = np.arange(24) // 4, np.array([0, 0, 0, 1, 1, 1])
    starts, members = group_by_block(block, 6)
    for seed in range(50):
        chosen = choose(graph, block, parent, starts, members, 3, random(seed))
        assert len(set(parent[chosen])) == 1
        assert sorted(chosen) == list(range(min(chosen), max(chosen) + 1))


def test_a_division_has_parts_of_the_sizes_that_are_asked_for():
    traffic = grid_traffic(5, 6)
    graph = graph_of(traffic)
    room = np.array([0, 3, 4, 14, 14, 30])
    local = np.full(30, -1)
    part = divide(graph, room, np.empty(0, np.int64), local, random(1))
    assert np.array_equal(np.bincount(part, minlength=5), np.diff(room))
    assert (local == -1).all()


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_a_division_that_begins_with_two_parts_cuts_no_more(seed):
    traffic = grid_traffic(16, 20, seed=seed)
    now = np.random.default_rng(seed).permutation(np.arange(320) // 160)
    room, local = np.array([0, 160, 320]), np.full(320, -1)
    part = now
    for again in range(4):
        before = cut_of(traffic, part)
        part = divide(graph_of(traffic), room, part, local, random(seed + again))
        assert np.array_equal(np.bincount(part), [160, 160])
        assert cut_of(traffic, part) <= before
    assert cut_of(traffic, part) < cut_of(traffic, now)

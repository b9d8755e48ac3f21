"""Multilevel: tables of mean distances that hold any network's, and mappings that come of them."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopmap.mappers import map_ranks, objective_value
from hopmap.mappers.basic_kernels import Graph
from hopmap.mappers.bisections import block_moves_kernels, multilevel
from hopmap.mappers.bisections.block_moves_kernels import group_hops
from hopmap.mappers.bisections.multilevel import SCALE, _group, place_by_levels, table_scale
from hopmap.mappers.bisections.recursive_bisection import exchange_blocks, slot_layers
from hopmap.mappers.exchanges.annealing import AnnealingSearch
from hopmap.mappers.objectives import MOST, cost_model
from hopmap.mappers.stop import Watch
from hopmap.topologies import topology_from_spec
from hopmap.traces import Traffic
from support.traffic import grid_traffic


def table_of(traffic, topology, groups):
    """Scaled mean distances of so many groups of nodes, their starts, and the scale."""
    model = cost_model(traffic, topology, "hop_bytes")
    nodes, layers = slot_layers(model, topology)
    starts = next(layer for layer in layers if len(layer) > groups)
    scale = table_scale(model, topology)
    return group_hops(model.router, nodes, starts, 2**20, scale), nodes, starts, scale


@settings(deadline=None, max_examples=25)
@given(
    st.lists(st.integers(0, 10**6), min_size=3, max_size=3).map(sorted),
    st.integers(1, 2**40),
)
def test_a_table_holds_the_mean_distances_of_its_groups(far, volume):
    topology = topology_from_spec(f"tree:3:2:4@{':'.join(map(str, far))}")
    traffic = Traffic.from_pairs(24, [0], [23], [1], [volume])
    table, nodes, starts, scale = table_of(traffic, topology, 4)
    groups = [nodes[a:b] for a, b in pairwise(starts)]
    for g, row in enumerate(groups):
        for h, column in enumerate(groups):
            mean = np.mean([topology.distance(x, column) for x in row])
            assert table[g, h] == pytest.approx(scale * mean, abs=0.51)
    assert (table >= 0).all()
    assert volume * int(table.max()) <= 2 * MOST


def test_the_scale_is_that_of_always_where_it_fits():
    traffic = grid_traffic(8, 8)
    for spec in ("mesh:2048", "torus:8x8x8", "tree:4:4:4:4", "fattree:16x16x16"):
        topology = topology_from_spec(spec)
        assert table_scale(cost_model(traffic, topology, "hop_bytes"), topology) == SCALE


def test_a_long_line_has_no_negative_distances(compiled):
    """Up to 65,000 sixteenths of a hop were -500 in 16 bits, and J six times as large."""
    topology, rank = topology_from_spec("mesh:4096"), np.arange(4095)
    traffic = Traffic.from_pairs(4096, rank, rank + 1, [1] * 4095, [1] * 4095)
    table, *_ = table_of(traffic, topology, 32)
    assert (np.diff(table[0]) > 0).all()


def test_distances_ten_times_as_large_are_mapped_as_well(compiled):
    """Five levels, the outermost so far that sixteenths of it do not fit 16 bits."""
    near = topology_from_spec("tree:4:4:4:4:4@1:2:3:4:2000")
    far = topology_from_spec("tree:4:4:4:4:4@10:20:30:40:20000")
    traffic, pipeline = grid_traffic(32, 32), "multilevel(moves=200000)"
    reached = [
        objective_value(traffic, near, map_ranks(traffic, topology, pipeline, seed=1), "hop_bytes")
        for topology in (near, far)
    ]
    assert reached[1] <= 1.2 * reached[0]


def ring(ranks):
    rank, one = np.arange(ranks), np.ones(ranks, dtype=np.int64)
    return Traffic.from_pairs(ranks, rank, (rank + 1) % ranks, one, one)


def test_ranks_are_grouped_by_their_heaviest_pairs():
    """A ring of 64 whose every second pair is a hundred times as heavy."""
    first = np.arange(0, 64, 2)
    weight = np.concatenate((np.full(32, 100), np.ones(32, dtype=np.int64)))
    src, dst = np.concatenate((first, first + 1)), np.concatenate((first + 1, (first + 2) % 64))
    traffic = Traffic.from_pairs(64, src, dst, weight, weight)
    model = cost_model(traffic, topology_from_spec("mesh:64"), "hop_bytes")
    sizes, random = np.ones(64, dtype=np.int64), np.array([5], dtype=np.uint64)
    group = _group(Graph(model.indptr, model.peer, model.weight), sizes, 32, random)
    assert (group[first] == group[first + 1]).all()
    assert len(np.unique(group)) == 32


@pytest.mark.parametrize("seed", range(3))
def test_groups_are_annealed_before_single_ranks(compiled, seed):
    """A ring of 256 on a line costs 510 at least, random places some 22,000.

    Groups that stay where they began cost 5,100 and more here, annealed ones 1,100 to 1,900.
    """
    topology, rng = topology_from_spec("mesh:256"), np.random.default_rng(seed)
    search = AnnealingSearch(
        ring(256), topology, rng.permutation(256), "hop_bytes", rng, Watch(None, None)
    )
    place_by_levels(search, rng, 50_000, None)
    assert search.cost < 3_000


@pytest.mark.parametrize("seed", range(3))
def test_blocks_of_nodes_exchange_their_ranks_where_that_gains(compiled, seed):
    """A ring in eight blocks that lie in another order; 64 is the least, and counts are exact."""
    topology, traffic = topology_from_spec("torus:64"), ring(64)
    start = np.arange(64).reshape(8, 8)[[0, 5, 2, 7, 4, 1, 6, 3]].ravel()
    search = AnnealingSearch(
        traffic, topology, start, "hop_bytes", np.random.default_rng(seed), Watch(None, None)
    )
    assert search.cost == 304
    exchange_blocks(search, 20_000)
    assert search.cost <= 128
    assert search.cost == objective_value(traffic, topology, search.mapping, "hop_bytes")


def test_blocks_are_exchanged_at_the_end_by_a_tenth_of_the_moves(compiled, monkeypatch):
    asked = []
    monkeypatch.setattr(
        multilevel, "exchange_blocks", lambda search, proposals: asked.append(proposals)
    )
    map_ranks(ring(16), topology_from_spec("mesh:16"), "multilevel(moves=100)")
    map_ranks(ring(16), topology_from_spec("mesh:16"), "multilevel")
    assert asked == [10, 200 * 16]


def test_a_table_that_takes_longer_than_is_left_is_not_made(monkeypatch):
    """With a clock that moves by the distances looked at: 1, 4, 16 seconds."""
    now, made = [0.0], []

    def slow_hops(router, nodes, starts, *rest):
        made.append(len(starts) - 1)
        now[0] += (made[-1] / 32) ** 2
        return group_hops(router, nodes, starts, *rest)

    monkeypatch.setattr(block_moves_kernels, "group_hops", slow_hops)
    topology, rng = topology_from_spec("mesh:16x16"), np.random.default_rng(2)
    watch = Watch()
    watch.now = lambda: now[0]
    search = AnnealingSearch(ring(256), topology, np.arange(256), "hop_bytes", rng, watch)
    for seconds, tables in ((6.0, [32, 64]), (None, [32, 64, 128])):
        made.clear()
        place_by_levels(search, rng, 1000, seconds)
        assert made == tables
        assert (np.sort(search.assignment.places) == np.arange(256)).all()

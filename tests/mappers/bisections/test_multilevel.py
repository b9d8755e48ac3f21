"""Multilevel: tables of mean distances that hold any network's, and mappings that come of them."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopmap.mappers import map_ranks, objective_value
from hopmap.mappers.bisections.multilevel import SCALE, slot_layers, table_scale
from hopmap.mappers.bisections.multilevel_kernels import group_hops
from hopmap.mappers.objectives import MOST, cost_model
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

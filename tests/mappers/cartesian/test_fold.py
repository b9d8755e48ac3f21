"""Fold: grids are recognised in any numbering and folded as well as is known."""

from dataclasses import replace
from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopmap.mappers import map_ranks, objective_value
from hopmap.mappers.cartesian import fold as fold_module
from hopmap.mappers.cartesian.grid import recognise_cells
from hopmap.topologies import check_mapping, topology_from_spec
from hopmap.traces import Traffic
from hopmap.traces.patterns.stencils import stencil_traffic
from support.slow import examples
from support.traffic import grid_traffic


def test_the_heavy_pairs_of_a_stencil_with_diagonals_are_its_grid():
    number = np.arange(30).reshape(5, 6)
    pairs = [(number[:-1], number[1:], 100), (number[:, :-1], number[:, 1:], 90)]
    pairs += [(number[:-1, :-1], number[1:, 1:], 1), (number[:-1, 1:], number[1:, :-1], 1)]
    src = np.concatenate([a.ravel() for a, _, _ in pairs])
    dst = np.concatenate([b.ravel() for _, b, _ in pairs])
    volume = np.concatenate([np.full(a.size, w) for a, _, w in pairs])
    traffic = Traffic.from_pairs(30, src, dst, np.ones(len(src)), volume).undirected()
    grid = recognise_cells(traffic, traffic.bytes)
    assert grid is not None
    assert grid.dims == (6, 5)


@pytest.mark.parametrize(
    ("dims", "spec", "least"),
    [
        ((8, 8), "torus:4x4x4", 112),
        ((8, 8), "haec:4x4x4", 112),
        ((8, 8), "mesh:4x4x4", 120),
        ((32, 16), "torus:8x8x8", 1008),
        ((32, 16), "mesh:8x8x8", 1024),
        ((4, 4, 4), "mesh:4x4x4", 144),
        ((6, 4, 2), "mesh:2x6x4", 100),
        ((6, 5), "mesh:5x8", 49),
    ],
)
def test_grids_are_folded_as_well_as_is_known(dims, spec, least, compiled):
    """LU on 64 ranks: 112 pairs, all one hop apart on torus and HAEC; 1,008 and 1,024 for 976."""
    traffic, topology = grid_traffic(*dims, seed=3), topology_from_spec(spec)
    node_of = map_ranks(traffic, topology, "fold")
    assert objective_value(traffic, topology, node_of, "hop_bytes") == least


def test_a_grid_is_cut_into_boxes_along_a_hierarchy(compiled):
    """LU on 32 x 16 ranks and 4:16:8: 12,352, the best that is known (VieM, mpicartreorderlib)."""
    traffic, topology = grid_traffic(32, 16), topology_from_spec("tree:4:16:8@1:10:100")
    node_of = map_ranks(traffic, topology, "fold")
    assert objective_value(traffic, topology, node_of, "hop_bytes") == 12352


def test_slots_of_a_node_are_filled_with_neighbours(compiled):
    """8 x 4 ranks on 4 x 4 nodes of two slots: 16 pairs stay on their nodes, 36 take one hop."""
    traffic, topology = grid_traffic(8, 4), topology_from_spec("mesh:4x4*2")
    node_of = map_ranks(traffic, topology, "fold")
    assert objective_value(traffic, topology, node_of, "hop_bytes") == 36


@pytest.mark.parametrize(
    ("dims", "stencil", "periodic", "spec", "hops"),
    [
        ((8, 8), "5pt", "xy", "torus:8x8", 128),
        ((8, 8, 8), "7pt", "xyz", "torus:16x8x4", 2048),
        ((4, 8), "9pt", "", "mesh:8x4", 52 + 2 * 42),
    ],
)
def test_a_grid_that_says_so_is_folded_though_it_is_periodic_or_has_diagonals(
    dims, stencil, periodic, spec, hops
):
    """Hops over undirected pairs; a diagonal takes two."""
    wraps = ["xyz"[d] in periodic for d in range(len(dims))]
    traffic = stencil_traffic(dims, stencil, periodic=wraps)
    topology = topology_from_spec(spec)
    node_of = map_ranks(traffic, topology, "fold(objective=hop_messages)")
    assert objective_value(traffic, topology, node_of, "hop_messages") == 2 * hops


def test_metadata_that_contradict_the_traffic_are_no_grid():
    traffic = stencil_traffic((4, 4), "5pt")
    wrong = replace(traffic, metadata={**traffic.metadata, "dims": [3, 5]})
    topology = topology_from_spec("mesh:4x4")
    check_mapping(map_ranks(wrong, topology, "fold"), topology, 16)


@examples(100)
@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=3),
    st.lists(st.integers(1, 9), min_size=1, max_size=5),
    st.sampled_from([7, 1 << 20]),
)
def test_digits_that_fit_are_found_as_among_all_of_them(dims, box, at_once):
    shares = [fold_module._shares(length, box) for length in dims]
    fitting = [
        chosen
        for chosen in product(*shares)
        if all(prod(share[k] for share in chosen) <= box[k] for k in range(len(box)))
    ]
    fitting.sort(key=lambda chosen: sum(digit > 1 for share in chosen for digit in share))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fold_module, "AT_ONCE", at_once)
        assert [tuple(chosen) for chosen in fold_module._fitting(shares, box)] == fitting

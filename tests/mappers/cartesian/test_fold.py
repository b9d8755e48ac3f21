"""Folds: grids of ranks are folded onto the nodes as is known, as a whole and in part."""

from dataclasses import replace
from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopmap.mappers import map_ranks, objective_value
from hopmap.mappers.cartesian import fold as fold_module
from hopmap.mappers.cartesian.fold import fold_partly
from hopmap.mappers.cartesian.grid import find_structures
from hopmap.mappers.objectives import cost_model
from hopmap.topologies import check_mapping, topology_from_spec
from hopmap.topologies.routing import distances
from hopmap.traces import Traffic
from hopmap.traces.patterns.stencils import stencil_traffic
from support.slow import examples
from support.traffic import grid_traffic


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


@pytest.mark.parametrize(
    ("spec", "least"), [("mesh:4x6", 24), ("mesh:5x2", 10), ("mesh:3x4x5", 60), ("mesh:3x5", 16)]
)
def test_a_ring_is_a_round_trip_through_a_mesh(spec, least, compiled):
    """All pairs are one hop apart; of an odd number one cannot be, as meshes are bipartite."""
    topology = topology_from_spec(spec)
    ranks = np.random.default_rng(4).permutation(topology.nodes)
    ones = np.ones(len(ranks), dtype=np.int64)
    traffic = Traffic.from_pairs(len(ranks), ranks, np.roll(ranks, 1), ones, ones)
    node_of = map_ranks(traffic, topology, "fold")
    check_mapping(node_of, topology, len(ranks))
    assert objective_value(traffic, topology, node_of, "hop_bytes") == least


def test_a_grid_is_cut_into_boxes_along_a_hierarchy(compiled):
    """LU on 32 x 16 ranks and 4:16:8: 12,352, the best that is known (VieM, mpicartreorderlib)."""
    traffic, topology = grid_traffic(32, 16), topology_from_spec("tree:4:16:8@1:10:100")
    node_of = map_ranks(traffic, topology, "fold")
    assert objective_value(traffic, topology, node_of, "hop_bytes") == 12352


@pytest.mark.parametrize(
    ("dims", "spec", "most"),
    [
        ((20, 25), "mesh:32x16", 1.55),
        ((31, 33), "mesh:32x32", 1.2),
        ((10, 10, 10), "torus:8x8x16", 1.8),
        ((7, 11, 13), "torus:10x10x11", 1.8),
        ((15, 17), "mesh:16x16", 1.25),
        ((20, 25), "torus:8x8x8", 1.25),
        ((10, 10, 5), "torus:8x8x8", 1.5),
    ],
)
def test_a_grid_that_does_not_fold_fills_the_box_of_nodes(dims, spec, most, compiled):
    """Hops a pair, in a hidden numbering; recursive bisection has 1.4 to 2.1."""
    traffic, topology = grid_traffic(*dims, seed=3), topology_from_spec(spec)
    node_of = map_ranks(traffic, topology, "fold")
    check_mapping(node_of, topology, traffic.ranks)
    assert objective_value(traffic, topology, node_of, "hop_bytes") < most * traffic.pairs


@pytest.mark.parametrize("spec", ["mesh:8x12", "torus:8x12", "torus:4x4x6", "mesh:4x12*2"])
def test_what_fits_of_a_grid_is_folded_and_others_go_near_their_peers(spec, compiled):
    """Of 10 x 9 ranks, a box of 12 x 8 has no room for ten, in a row, of which each follows."""
    traffic, topology = grid_traffic(10, 9, seed=3), topology_from_spec(spec)
    cells = next(find_structures(traffic)[1])
    model = cost_model(traffic, topology, "hop_bytes")
    node_of = fold_partly(cells, topology, model)
    check_mapping(node_of, topology, traffic.ranks)
    far = distances(topology.router, *np.indices((topology.nodes,) * 2).reshape(2, -1))
    far = far.reshape(topology.nodes, -1)
    fits = cells.coords[:, 1] < 8
    within = fits[traffic.src] & fits[traffic.dst]
    apart = far[node_of[traffic.src], node_of[traffic.dst]]
    free = np.flatnonzero(np.bincount(node_of, minlength=topology.nodes) < topology.slots)
    assert len(free)
    assert apart[within].max() <= 1
    for rank in np.flatnonzero(~fits):
        peers = model.peer[slice(*model.indptr[rank : rank + 2])]
        before = node_of[peers[fits[peers] | (peers < rank)]]
        assert far[node_of[rank], before].sum() <= far[free][:, before].sum(axis=1).min()


def test_a_hypercube_fills_boxes_of_few_sides(monkeypatch, compiled):
    """There are 455 boxes of 2^12 nodes with four sides, and 1.4 million with twelve."""
    seen, shapes = [], fold_module.shapes

    def noted(size, sides):
        seen.append(len(sides))
        return shapes(size, sides)

    monkeypatch.setattr(fold_module, "shapes", noted)
    src, bit = np.divmod(np.arange(256 * 8), 8)
    new = np.random.default_rng(1).permutation(256)
    src, dst = new[src], new[src ^ 1 << bit]
    ones, topology = np.ones(len(src), dtype=np.int64), topology_from_spec("mesh:6x45")
    traffic = Traffic.from_pairs(256, src, dst, ones, ones)
    node_of = map_ranks(traffic, topology, "fold")
    check_mapping(node_of, topology, 256)
    assert max(seen) == 4


def test_no_part_of_a_grid_is_folded_where_nodes_differ():
    traffic, topology = grid_traffic(5, 5), topology_from_spec("mesh:6x6").only(np.arange(30))
    cells = next(find_structures(traffic)[1])
    assert fold_partly(cells, topology, cost_model(traffic, topology, "hop_bytes")) is None


@pytest.mark.parametrize(
    ("spec", "low", "high"),
    [
        ("mesh:16x8x8", (2, 0, 0), (14, 8, 8)),
        ("torus:8x8x8", (1, 2, 0), (7, 8, 5)),
        ("mesh:16x16", (3, 5), (13, 14)),
    ],
)
def test_a_job_on_a_box_of_the_nodes_is_mapped_as_if_it_were_alone(spec, low, high, compiled):
    """Grid of the nodes of a box in the network, in a hidden numbering: one hop a pair."""
    whole = topology_from_spec(spec)
    inside = ((whole.coords >= low) & (whole.coords < high)).all(axis=1)
    topology = whole.only(np.flatnonzero(inside))
    traffic = grid_traffic(*np.subtract(high, low).tolist(), seed=3)
    node_of = map_ranks(traffic, topology, "fold")
    check_mapping(node_of, topology, traffic.ranks)
    assert objective_value(traffic, topology, node_of, "hop_bytes") == traffic.pairs


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


def test_metadata_without_periodicity_are_left_aside():
    traffic = replace(grid_traffic(4, 3), metadata={"dims": [2, 6], "stencil": [[1, 0]]})
    topology = topology_from_spec("mesh:4x3")
    node_of = map_ranks(traffic, topology, "fold")
    assert objective_value(traffic, topology, node_of, "hop_bytes") == traffic.pairs


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

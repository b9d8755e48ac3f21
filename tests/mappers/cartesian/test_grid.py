"""Mappers of Cartesian grids: what they promise, what they refuse, and how they weigh bytes."""

from __future__ import annotations

import warnings
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopmap.errors import HopmapWarning
from hopmap.mappers import map_ranks
from hopmap.mappers.cartesian.grid import crossing
from hopmap.mappers.cartesian.halvings import hyperplane_all, skewed_kd_tree_all
from hopmap.mappers.cartesian.strips import stencil_strips_all
from hopmap.simulator import evaluate
from hopmap.topologies import MappingError, topology_from_spec
from hopmap.traces import Traffic, stencil_traffic
from hopmap.traces.patterns.stencils import star
from support.grids import nodes_on_grid, stencils_on_nodes
from support.slow import examples

ANY_SIZES = [
    "row_major",
    "kd_tree",
    "skewed_kd_tree",
    "squarest_strips",
    "squarest_strips(carry=narrower)",
    "squarest_strips(path=snake)",
    "stencil_strips",
    "hyperplane",
]
EQUAL_SIZES = ["gropp", "factorisation"]
WEIGHED = ["hyperplane", "stencil_strips", "skewed_kd_tree"]


def test_a_kd_tree_serves_nodes_sockets_and_cores_at_once():
    """Cores of a hierarchy are consecutive: their sockets and nodes are the cluster's."""
    traffic = stencil_traffic((12, 11, 8), "7pt")
    core_of = map_ranks(traffic, topology_from_spec("tree:16:2:33"), "kd_tree")
    for spec, cores in (("cluster:33*32", 32), ("cluster:66*16", 16)):
        assert np.array_equal(
            core_of // cores, map_ranks(traffic, topology_from_spec(spec), "kd_tree")
        )


@examples(60)
@given(stencils_on_nodes(longest=7, most_dimensions=3))
def test_mappers_work_on_networks_with_slots_to_spare(case):
    dims, size, stencil = case
    traffic = stencil_traffic(dims, stencil)
    nodes = prod(dims) // size
    topology = topology_from_spec(f"mesh:{nodes + 2}*{size}")
    for mapper in (*ANY_SIZES, *EQUAL_SIZES):
        node_of = map_ranks(traffic, topology, mapper)
        assert np.bincount(node_of, minlength=nodes + 2).tolist() == [size] * nodes + [0, 0]


@pytest.mark.parametrize("mapper", ANY_SIZES)
def test_nodes_of_unequal_sizes_are_filled(mapper):
    topology = topology_from_spec("cluster:17*9+9*8")
    node_of = map_ranks(stencil_traffic((15, 15), "5pt"), topology, mapper)
    assert np.array_equal(np.bincount(node_of), topology.slots)


@pytest.mark.parametrize("mapper", ["kd_tree", "squarest_strips", "gropp"])
def test_a_grid_without_metadata_is_recognised_in_any_numbering(mapper):
    """The same cut, as the numbering of a grid's ranks does not matter."""
    traffic = stencil_traffic((12, 11, 8), "7pt")
    shuffle = np.random.default_rng(1).permutation(traffic.ranks)
    other = Traffic.from_pairs(
        traffic.ranks, shuffle[traffic.src], shuffle[traffic.dst], traffic.messages, traffic.bytes
    )
    topology = topology_from_spec("cluster:33*32")
    node_of = map_ranks(other, topology, mapper)
    found = evaluate(other, topology, node_of).messages.off_node
    expected = {"kd_tree": 71, "squarest_strips": 64, "gropp": 80}
    assert found.max == expected[mapper]


def test_off_node_messages_weigh_their_bytes():
    traffic = stencil_traffic((4, 4), "5pt", size=[10, 10, 1, 1])
    topology = topology_from_spec("cluster:4*4")
    found = evaluate(traffic, topology, map_ranks(traffic, topology, "row_major"))
    assert (found.messages.off_node.max, found.messages.off_node.total) == (8, 24)
    assert (found.bytes.off_node.max, found.bytes.off_node.total) == (80, 240)


@pytest.mark.parametrize("mapper", EQUAL_SIZES)
def test_nodes_of_unequal_sizes_are_refused_where_they_are_factorised(mapper):
    with pytest.raises(MappingError, match=rf"^mapper {mapper}: nodes with 8 and 9 ranks: .*$"):
        nodes_on_grid((15, 15), "cluster:17*9+9*8", mapper)


@pytest.mark.parametrize("mapper", ANY_SIZES + EQUAL_SIZES)
def test_nodes_too_small_for_the_grid_are_refused(mapper):
    with pytest.raises(MappingError, match=r"^20 ranks do not fit on cluster:2\*9.*$"):
        nodes_on_grid((5, 4), "cluster:2*9", mapper)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("dims", [5, 5], "dims 5x5 have 25 ranks: expected the traffic's 20"),
        ("stencil", [[1, 0, 0]], "stencil vector 1:0:0 has 3 dimensions: expected 2 as in 5x4"),
        ("periodic", [True], "periodic 1 has 1 dimensions: expected 2 as in 5x4"),
    ],
)
def test_metadata_that_contradict_themselves_are_refused(key, value, said):
    good = stencil_traffic((5, 4), "5pt")
    rows = (good.src, good.dst, good.messages, good.bytes)
    bad = Traffic.from_pairs(20, *rows, {**good.metadata, key: value})
    with pytest.raises(MappingError) as refused:
        map_ranks(bad, topology_from_spec("cluster:2*10"), "kd_tree")
    assert str(refused.value) == f"mapper kd_tree: {said}"


@pytest.mark.parametrize("mapper", WEIGHED)
@pytest.mark.parametrize("size", [[1000, 1000, 1, 1], [1, 1, 1000, 1000]])
def test_weighed_by_bytes_nodes_span_the_dimension_of_the_most(mapper, size):
    """8 x 8 ranks, four nodes of 8 x 2: three borders of 8 ranks, a byte each way."""
    traffic, topology = (
        stencil_traffic((8, 8), "5pt", size=size),
        topology_from_spec("cluster:4*16"),
    )
    with pytest.warns(HopmapWarning, match=rf"^mapper {mapper} ignores .* 1 to 1000 bytes: .*$"):
        published = map_ranks(traffic, topology, mapper)
    weighed = map_ranks(traffic, topology, f"{mapper}(weight=bytes)")
    assert evaluate(traffic, topology, published).bytes.off_node.total == 16016
    assert evaluate(traffic, topology, weighed).bytes.off_node.total == 48


@examples(50)
@given(stencils_on_nodes(longest=7, most_dimensions=3), st.integers(1, 10**6))
def test_equal_bytes_weigh_as_messages_do_where_vectors_are_short(case, size):
    """On stars, that is: a long vector counts once, but it crosses several cuts."""
    dims, node, _ = case
    weights = [size] * 2 * len(dims)
    vectors = star(len(dims))
    assert np.array_equal(
        hyperplane_all(dims, node, vectors), hyperplane_all(dims, node, vectors, weights)
    )
    assert np.array_equal(
        stencil_strips_all(dims, node, vectors), stencil_strips_all(dims, node, vectors, weights)
    )
    assert np.array_equal(
        skewed_kd_tree_all(dims, vectors), skewed_kd_tree_all(dims, vectors, weights)
    )


def test_a_far_neighbour_crosses_as_many_cuts_as_it_is_far():
    assert crossing([(3, 0), (0, -1), (-1, 2)], [10, 100, 1], 2) == [31, 102]
    assert crossing([(3, 0), (0, -1), (-1, 2)], None, 2) == [4, 3]


@pytest.mark.parametrize("mapper", ["gropp", "kd_tree", "squarest_strips"])
def test_mappers_that_ignore_the_stencil_say_so_where_bytes_differ(mapper):
    topology = topology_from_spec("cluster:4*16")
    with pytest.warns(HopmapWarning, match=f"^mapper {mapper} ignores"):
        map_ranks(stencil_traffic((8, 8), "5pt", size=[2, 2, 1, 1]), topology, mapper)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        map_ranks(stencil_traffic((8, 8), "5pt", size=7), topology, mapper)
        traffic = stencil_traffic((4, 4), "5pt", size=[2, 2, 1, 1])
        for quiet in ("factorisation", "grid_portfolio(moves=0)", "row_major"):
            map_ranks(traffic, topology_from_spec("cluster:4*4"), quiet)

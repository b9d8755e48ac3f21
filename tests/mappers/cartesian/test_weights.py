"""Bytes as weights of neighbours, and a word from those mappers that ignore them."""

from __future__ import annotations

import warnings

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
from hopmap.topologies import topology_from_spec
from hopmap.traces import stencil_traffic
from hopmap.traces.patterns.stencils import star
from support.grids import stencils_on_nodes
from support.slow import examples

WEIGHED = ["hyperplane", "stencil_strips", "skewed_kd_tree"]


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

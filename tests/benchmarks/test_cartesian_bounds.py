"""Bounds of the thesis: its tables to their four digits, and no mapping beyond them."""

from __future__ import annotations

from math import prod

import pytest
from cartesian_bounds import (
    TABLES,
    cube_edges,
    kd_tree_bound,
    kd_tree_bound_of,
    show,
    stretched_strips_bound,
    strips_bound,
    surface,
    tables,
)
from hypothesis import given
from hypothesis import strategies as st

from hopmap.mappers import map_ranks
from hopmap.simulator import evaluate
from hopmap.topologies import topology_from_spec
from hopmap.traces import stencil_traffic
from support.slow import examples


@pytest.mark.parametrize("name", TABLES)
def test_every_cell_of_the_table_follows(name):
    published, ours = tables()[name]
    assert len(published) == 13
    assert ours == published


def test_one_command_prints_the_three_tables_and_what_is_met(capsys):
    show(grids=200)
    text = capsys.readouterr().out
    assert "met on 200 random grids 1." in text
    assert text.count("65 of 65 cells the same") == 3
    assert "1.1667" in text


def test_bounds_of_the_kd_tree_are_as_printed():
    """Section 5.3.2's example prints 2.044..., section 5.3.3 2.12... and 2.09..., towards 2."""
    assert kd_tree_bound_of((10, 8, 6)) == pytest.approx(2.0444, abs=5e-5)
    assert kd_tree_bound(2) == pytest.approx(2.1213, abs=5e-5)
    assert kd_tree_bound(3) == pytest.approx(2.0999, abs=5e-5)
    assert kd_tree_bound(1000) == pytest.approx(2, abs=0.01)


def test_a_node_that_spans_a_cube_twice_is_twice_as_bad():
    assert kd_tree_bound_of((4, 4)) == pytest.approx(2)
    assert kd_tree_bound_of((8, 4)) == pytest.approx(kd_tree_bound(2))
    assert surface((3, 3, 3)) == pytest.approx(cube_edges(27, 3)) == 54


@st.composite
def grids_of_nodes(draw):
    """Dims within a factor of two of each other, and a node size that divides the grid."""
    dimensions = draw(st.integers(2, 3))
    shortest = draw(st.integers(1, {2: 24, 3: 8}[dimensions]))
    side = st.integers(shortest, 2 * shortest)
    dims = draw(st.tuples(*[side] * dimensions))
    ranks = prod(dims)
    sizes = [size for size in range(1, ranks + 1) if ranks % size == 0]
    return dims, draw(st.sampled_from(sizes)), draw(st.booleans())


def measured(dims, size, periodic, mapper):
    """Messages that leave the worst node over those that leave a cube of its size."""
    traffic = stencil_traffic(dims, "star", periodic=periodic)
    topology = topology_from_spec(f"cluster:{prod(dims) // size}*{size}")
    node_of = map_ranks(traffic, topology, mapper)
    worst = evaluate(traffic, topology, node_of).messages.off_node.max
    return worst / cube_edges(size, len(dims))


@examples(150)
@given(grids_of_nodes())
def test_no_kd_tree_exceeds_its_proven_bound(case):
    dims, size, periodic = case
    assert measured(dims, size, periodic, "kd_tree") <= kd_tree_bound(len(dims))


@examples(150)
@given(grids_of_nodes())
def test_no_strips_exceed_their_computed_bound(case):
    """Where a cube of a node's ranks fits into the grid, which the bound takes for granted."""
    dims, size, periodic = case
    if min(dims) ** len(dims) < size:
        return
    bound = max(
        strips_bound(size, len(dims)),
        stretched_strips_bound(size, len(dims), periodic=periodic),
    )
    assert measured(dims, size, periodic, "squarest_strips") <= bound + 1e-9

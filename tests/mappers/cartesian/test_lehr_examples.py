"""Mappers of Cartesian grids on examples of Lehr's thesis by hand, and on authors' libraries."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from hopmap.mappers import map_ranks
from hopmap.mappers.cartesian.boxes import box_shape, gropp_all, level_factors
from hopmap.mappers.cartesian.cells import prime_factors
from hopmap.mappers.cartesian.halvings import (
    angles,
    dividing_mean,
    hyperplane_all,
    kd_tree_all,
    skewed_kd_tree_all,
)
from hopmap.mappers.cartesian.strips import (
    squarest_cuts,
    squarest_strips_all,
    stencil_strips_all,
)
from hopmap.simulator import evaluate
from hopmap.topologies import topology_from_spec
from hopmap.traces import stencil_traffic
from support.grids import nodes_on_grid

MAPPERS = {
    "hyperplane": hyperplane_all,
    "stencil_strips": stencil_strips_all,
    "skewed_kd_tree": lambda dims, size, stencil: skewed_kd_tree_all(dims, stencil),
    "gropp": lambda dims, size, stencil: gropp_all(dims, size),
}


def rows(file):
    """Algorithm, dims, ranks a node, stencil and numbers of every line; provenance is its head."""
    lines = (Path(__file__).parent / file).read_text(encoding="utf-8").splitlines()
    for row in csv.DictReader(line for line in lines if not line.startswith("#")):
        yield (
            row["algorithm"],
            tuple(map(int, row["dims"].split("x"))),
            int(row["node_size"]),
            [tuple(map(int, vector.split(":"))) for vector in row["stencil"].split()],
            list(map(int, row["numbers"].split())),
        )


def off_node(dims, stencil, spec, mapper, *, periodic=False, size=1):
    """Messages that leave the worst node, and all nodes."""
    traffic, topology = stencil_traffic(dims, stencil, periodic=periodic, size=size), spec
    if isinstance(spec, str):
        topology = topology_from_spec(spec)
    found = evaluate(traffic, topology, map_ranks(traffic, topology, mapper)).messages.off_node
    return found.max, found.total


def box_of(grid, node):
    """Extents of the ranks of a node."""
    cells = np.argwhere(grid == node)
    return tuple((cells.max(axis=0) - cells.min(axis=0) + 1).tolist())


@pytest.mark.parametrize(
    ("mapper", "worst", "total"),
    [
        ("kd_tree", 71, 1928),
        ("squarest_strips", 64, 1522),
        ("gropp", 80, 2272),
        ("row_major", 80, 2416),
        ("squarest_strips(carry=narrower)", 56, 1522),  # ours
        ("squarest_strips(path=snake)", 64, 1526),  # ours, connected
        ("squarest_strips(carry=narrower, path=snake)", 56, 1524),  # ours
    ],
)
def test_the_large_grid_of_section_7_3_2(mapper, worst, total):
    assert off_node((12, 11, 8), "7pt", "cluster:33*32", mapper) == (worst, total)


def test_the_mapping_of_figure_1_2_is_counted_as_printed():
    """Three squares on nine columns, the fourth node along the bottom row, all periodic."""
    x, y = np.divmod(np.arange(36), 4)
    node_of = np.where(y < 3, x // 3, 3)
    traffic = stencil_traffic((9, 4), "5pt", periodic=True)
    found = evaluate(traffic, topology_from_spec("cluster:4*9"), node_of).messages.off_node
    assert (found.max, found.total) == (18, 54)


def test_the_mapping_of_figure_3_1_is_counted_as_printed():
    """The thesis names 5 and 10: its drawing cuts in y, where [(0, 1), (0, -1)] goes."""
    node_of = (np.arange(20) % 4 >= 2).astype(int)
    traffic = stencil_traffic((5, 4), [(0, 1), (0, -1)])
    found = evaluate(traffic, topology_from_spec("cluster:2*10"), node_of).messages.off_node
    assert (found.max, found.total) == (5, 10)


@pytest.mark.parametrize(
    ("mapper", "worst"),
    [
        ("gropp", 14),
        ("squarest_strips", 14),
        ("squarest_strips(path=snake)", 14),
        ("row_major", 20),
    ],
)
def test_the_worst_node_of_20_x_10_ranks(mapper, worst):
    assert off_node((20, 10), "5pt", "cluster:20*10", mapper)[0] == worst


@pytest.mark.parametrize(
    ("mapper", "box"),
    [
        ("row_major", (3, 10)),
        ("gropp", (15, 2)),
        ("squarest_strips", (6, 5)),
        ("squarest_strips(path=snake)", (6, 5)),
    ],
)
def test_the_blocks_of_figure_7_16(mapper, box):
    grid = nodes_on_grid((30, 10), "cluster:10*30", mapper)
    assert {box_of(grid, node) for node in range(10)} == {box}


def test_row_major_beats_gropp_and_the_kd_tree_in_figure_6_1():
    worst = {
        mapper: off_node((11, 4), "5pt", "cluster:4*11", mapper)[0]
        for mapper in ("row_major", "gropp", "kd_tree")
    }
    assert worst["row_major"] < min(worst["gropp"], worst["kd_tree"])


def test_the_3_way_partition_of_theorem_3_2_1_costs_6():
    """{6, 3, 3, 2, 2, 2} in three columns of 6, messages up and down: 2 |S| - 6."""
    assert off_node((3, 6), [(0, 1), (0, -1)], "cluster:1*6+2*3+3*2", "row_major")[1] == 6


def test_nine_ranks_are_squares_in_figure_7_3():
    grid = nodes_on_grid((15, 15), "cluster:17*9+9*8", "squarest_strips")
    assert {box_of(grid, node) for node in range(17)} == {(3, 3)}


def test_the_leaves_of_the_tree_in_figure_5_1():
    """A 10 x 3 grid: (0, 0) by going left always, (1, 0) by going right once, in the end."""
    assert kd_tree_all((10, 3))[:2].tolist() == [[0, 0], [1, 0]]


def test_the_strips_of_the_example_in_section_6_1_1():
    """5 x 4 x 8 ranks and nodes of 16: strips of 3 and 2, of 2 and 2, and slices of 1.

    The thesis lists the narrower strip first there and the wider ones first in listing 6.1.
    """
    order, cuts = squarest_cuts((5, 4, 8), 16, "wider")
    assert order == [0, 1, 2]
    assert [(c.width, c.wide, c.narrow) for c in cuts] == [(2, 1, 1), (2, 0, 2), (1, 0, 8)]


# Steps by hand


def test_gropp_gives_factors_to_the_shortest_side_of_the_box():
    assert prime_factors(360) == [5, 3, 3, 2, 2, 2]
    assert box_shape((12, 11, 8), 32) == [4, 1, 8]
    assert box_shape((30, 10), 30) == [15, 2]
    assert box_shape((10, 30), 30) == [5, 6]


def test_a_column_begins_beside_the_end_of_the_one_before():
    assert squarest_strips_all((4, 5), 4).tolist()[8:12] == [[0, 4], [1, 4], [2, 4], [3, 4]]


def test_the_skewed_tree_cuts_first_where_nothing_is_sent():
    grid = nodes_on_grid((8, 8), "cluster:4*16", "skewed_kd_tree", [(1, 0), (-1, 0)])
    assert {box_of(grid, node) for node in range(4)} == {(8, 2)}
    assert off_node((8, 8), [(1, 0), (-1, 0)], "cluster:4*16", "skewed_kd_tree") == (0, 0)
    assert off_node((8, 8), [(1, 0), (-1, 0)], "cluster:4*16", "kd_tree")[1] > 0


@pytest.mark.parametrize("mapper", ["hyperplane", "stencil_strips"])
def test_the_successors_follow_the_component_stencil(mapper):
    """Messages in x only: nodes that span x whole send nothing."""
    assert off_node((8, 32), "component", "cluster:8*32", mapper) == (0, 0)


def test_the_hyperplane_cuts_no_node():
    """12 x 10 ranks: halves of 6 x 10, those in 2 and 4, the 2 outside; 4 x 10 are filled by y."""
    grid = nodes_on_grid((12, 10), "cluster:6*20", "hyperplane")
    outer, inner = [(2, 10)], [(4, 5)] * 2
    assert [box_of(grid, node) for node in range(6)] == [*outer, *inner, *inner, *outer]


def test_the_hyperplane_takes_the_mean_of_the_nodes_or_less_where_that_does_not_divide():
    assert dividing_mean([5, 5, 3, 3]) == 4
    assert dividing_mean([4, 3, 3]) == 2


def test_equal_angles_are_equal_whatever_their_sums_round_to():
    """Six times 1/6, as additions round it, and 1."""
    first, second, _, _ = angles([(1, 0, 1, 2)] * 6 + [(0, 1, 0, 0)], 4)
    assert first == second


def test_levels_are_factorised_from_the_coarsest():
    """16 x 16 ranks, 4 nodes of 2 sockets of 32 cores: 2 x 2 nodes, 2 x 1 sockets of 4 x 8."""
    assert level_factors((16, 16), (4, 2, 32), (2, 2)) == [[2, 2], [1, 2], [8, 4]]


def test_of_equal_costs_the_factors_that_differ_least_are_taken():
    """4 x 8 ranks: a cut across the first dimension is twice as large, 2 + 4 = 2 2 + 2."""
    assert level_factors((4, 8), (4, 8), (2, 2))[0] == [2, 2]


def test_factors_follow_what_crosses_a_cut():
    cheap_in_x = [(1, 0), (-1, 0), (0, 1), (0, -1)]
    traffic = stencil_traffic((16, 16), cheap_in_x, size=[1, 1, 1000, 1000])
    node_of = map_ranks(traffic, topology_from_spec("cluster:4*64"), "factorisation")
    assert box_of(node_of.reshape(16, 16), 0) == (4, 16)


@pytest.mark.parametrize("algorithm", ["hyperplane", "stencil_strips", "skewed_kd_tree"])
def test_all_ranks_are_where_mpicartreorderlib_puts_them(algorithm):
    cases = [row for row in rows("mpicartreorderlib.csv") if row[0] == algorithm]
    assert len(cases) == 57
    for _, dims, size, stencil, numbers in cases:
        found = MAPPERS[algorithm](dims, size, stencil)
        assert np.ravel_multi_index(tuple(found.T), dims).tolist() == numbers, (dims, stencil)


def test_all_ranks_are_where_nodecart_puts_them():
    cases = list(rows("nodecart.csv"))
    assert len(cases) == 12
    for algorithm, dims, size, stencil, numbers in cases:
        found = MAPPERS[algorithm](dims, size, stencil)
        assert np.ravel_multi_index(tuple(found.T), dims).tolist() == numbers, (dims, size)


def test_the_worst_node_of_6_x_6_x_3_ranks_is_the_library_s():
    """24 messages: smaller parts are at the nearer border; 27 if they are always the lower ones."""
    traffic, topology = stencil_traffic((6, 6, 3), "7pt"), topology_from_spec("cluster:9*12")
    node_of = map_ranks(traffic, topology, "hyperplane")
    assert evaluate(traffic, topology, node_of).messages.off_node.max == 24

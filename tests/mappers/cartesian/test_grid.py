"""Mappers of Cartesian grids: the thesis' examples, local forms, and what they promise."""

from __future__ import annotations

import time
import warnings
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from hopmap.errors import HopmapWarning
from hopmap.mappers import map_ranks
from hopmap.mappers.cartesian.factorisation import (
    factorised_all,
    factorised_coordinates,
    level_factors,
)
from hopmap.mappers.cartesian.grid import all_row_major, crossing, row_major
from hopmap.mappers.cartesian.gropp import box_shape, gropp_all, gropp_coordinates, prime_factors
from hopmap.mappers.cartesian.hyperplane import (
    angles,
    dividing_mean,
    hyperplane_all,
    hyperplane_coordinates,
)
from hopmap.mappers.cartesian.kd_tree import kd_tree_all, kd_tree_coordinates
from hopmap.mappers.cartesian.skewed_kd_tree import skewed_kd_tree_all, skewed_kd_tree_coordinates
from hopmap.mappers.cartesian.squarest_strips import (
    squarest_cuts,
    squarest_strips_all,
    squarest_strips_coordinates,
)
from hopmap.mappers.cartesian.stencil_strips import stencil_strips_all, stencil_strips_coordinates
from hopmap.simulator import evaluate
from hopmap.topologies import MappingError, topology_from_spec
from hopmap.traces import Traffic, stencil_traffic
from hopmap.traces.patterns.stencils import star
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


def off_node(dims, stencil, spec, mapper, *, periodic=False, size=1):
    """Messages that leave the worst node, and all nodes."""
    traffic, topology = stencil_traffic(dims, stencil, periodic=periodic, size=size), spec
    if isinstance(spec, str):
        topology = topology_from_spec(spec)
    found = evaluate(traffic, topology, map_ranks(traffic, topology, mapper)).messages.off_node
    return found.max, found.total


def nodes_on_grid(dims, spec, mapper, stencil="star"):
    traffic = stencil_traffic(dims, stencil)
    return map_ranks(traffic, topology_from_spec(spec), mapper).reshape(dims)


def box_of(grid, node):
    """Extents of the ranks of a node."""
    cells = np.argwhere(grid == node)
    return tuple((cells.max(axis=0) - cells.min(axis=0) + 1).tolist())


@st.composite
def stencils_on_nodes(draw, longest=9, most_dimensions=4):
    """Dims, a node size that divides the grid, and a stencil."""
    dims = draw(st.lists(st.integers(1, longest), min_size=1, max_size=most_dimensions))
    ranks = prod(dims)
    size = draw(st.sampled_from([size for size in range(1, ranks + 1) if ranks % size == 0]))
    vector = st.tuples(*[st.integers(-2, 2)] * len(dims))
    return tuple(dims), size, draw(st.lists(vector, min_size=1, max_size=6))


# Published examples


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
    assert kd_tree_coordinates(0, (10, 3)) == [0, 0]
    assert kd_tree_coordinates(1, (10, 3)) == [1, 0]


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


def test_a_kd_tree_serves_nodes_sockets_and_cores_at_once():
    """Cores of a hierarchy are consecutive: their sockets and nodes are the cluster's."""
    traffic = stencil_traffic((12, 11, 8), "7pt")
    core_of = map_ranks(traffic, topology_from_spec("tree:16:2:33"), "kd_tree")
    for spec, cores in (("cluster:33*32", 32), ("cluster:66*16", 16)):
        assert np.array_equal(
            core_of // cores, map_ranks(traffic, topology_from_spec(spec), "kd_tree")
        )


# Local and vectorised forms


def forms(dims, size, stencil):
    """Pairs of (coordinates of one rank, coordinates of all)."""
    across = crossing(stencil, None, len(dims))
    factors = level_factors(dims, (prod(dims) // size, size), across)
    return {
        "row_major": (lambda r: row_major(r, dims), all_row_major(dims)),
        "gropp": (lambda r: gropp_coordinates(r, dims, size), gropp_all(dims, size)),
        "factorisation": (lambda r: factorised_coordinates(r, factors), factorised_all(factors)),
        "kd_tree": (lambda r: kd_tree_coordinates(r, dims), kd_tree_all(dims)),
        "skewed_kd_tree": (
            lambda r: skewed_kd_tree_coordinates(r, dims, stencil),
            skewed_kd_tree_all(dims, stencil),
        ),
        "squarest_strips": (
            lambda r: squarest_strips_coordinates(r, dims, size),
            squarest_strips_all(dims, size),
        ),
        "squarest_strips, ours": (
            lambda r: squarest_strips_coordinates(r, dims, size, "narrower"),
            squarest_strips_all(dims, size, "narrower"),
        ),
        "squarest_strips, snake": (
            lambda r: squarest_strips_coordinates(r, dims, size, path="snake"),
            squarest_strips_all(dims, size, path="snake"),
        ),
        "stencil_strips": (
            lambda r: stencil_strips_coordinates(r, dims, size, stencil),
            stencil_strips_all(dims, size, stencil),
        ),
        "hyperplane": (
            lambda r: hyperplane_coordinates(r, dims, size, stencil),
            hyperplane_all(dims, size, stencil),
        ),
    }


@examples(200)
@given(stencils_on_nodes())
def test_every_rank_finds_its_coordinates_alone(case):
    dims, _, _ = case
    for name, (local, everyone) in forms(*case).items():
        assert [local(rank) for rank in range(prod(dims))] == everyone.tolist(), name


@examples(100)
@given(stencils_on_nodes())
def test_every_coordinate_is_taken_once(case):
    dims, _, _ = case
    for name, (_, everyone) in forms(*case).items():
        numbers = np.ravel_multi_index(tuple(everyone.T), dims)
        assert np.array_equal(np.sort(numbers), np.arange(prod(dims))), name


def test_a_million_ranks_take_less_than_a_second():
    dims, size, stencil = (1024, 1024), 32, star(2)
    makers = {
        "kd_tree": lambda: kd_tree_all(dims),
        "skewed_kd_tree": lambda: skewed_kd_tree_all(dims, stencil),
        "squarest_strips": lambda: squarest_strips_all(dims, size),
        "squarest_strips, snake": lambda: squarest_strips_all(dims, size, path="snake"),
        "stencil_strips": lambda: stencil_strips_all(dims, size, stencil),
        "hyperplane": lambda: hyperplane_all(dims, size, stencil),
        "gropp": lambda: gropp_all(dims, size),
        "factorisation": lambda: factorised_all(level_factors(dims, (2**15, size), (2, 2))),
    }
    for name, make in makers.items():
        begin = time.process_time()
        assert len(make()) == 2**20
        assert time.process_time() - begin < 1, name


# Promises


def connected(numbers, dims, sizes):
    """Whether each node's ranks hang together, by neighbours in the grid."""
    node_at = np.empty(prod(dims), dtype=np.int64)
    node_at[np.ravel_multi_index(tuple(numbers.T), dims)] = np.repeat(np.arange(len(sizes)), sizes)
    grid = stencil_traffic(dims, "star")
    same = node_at[grid.src] == node_at[grid.dst]
    joined = csr_array(
        (np.ones(same.sum()), (grid.src[same], grid.dst[same])), shape=(len(node_at),) * 2
    )
    part = connected_components(joined, directed=False)[1]
    return [len(np.unique(part[node_at == node])) == 1 for node in range(len(sizes))]


@examples(200)
@given(stencils_on_nodes(longest=12, most_dimensions=3))
def test_strips_of_equal_nodes_are_connected(case):
    dims, size, _ = case
    sizes = [size] * (prod(dims) // size)
    assert all(connected(squarest_strips_all(dims, size), dims, sizes))


@examples(100)
@given(
    st.lists(st.integers(1, 9), min_size=2, max_size=3),
    st.integers(0, 10**6),
    st.sampled_from(["wider", "narrower"]),
)
def test_strips_of_unequal_nodes_are_connected_where_larger_than_a_slice(dims, seed, carry):
    """Smaller nodes may not be: 5 x 5 ranks on nodes of 4 and of 3 are in slices of 3."""
    rng = np.random.default_rng(seed)
    cuts = np.sort(rng.integers(0, prod(dims) + 1, rng.integers(0, 6)))
    sizes = [int(size) for size in np.diff([0, *cuts, prod(dims)]) if size]
    _, strips = squarest_cuts(dims, max(sizes), carry)
    slice_ = prod(cut.width + (cut.wide > 0) for cut in strips[:-1])
    numbers = squarest_strips_all(dims, max(sizes), carry)
    for size, whole in zip(sizes, connected(numbers, dims, sizes), strict=True):
        assert whole or size <= slice_


def test_small_nodes_among_larger_ones_can_fall_apart():
    """Against the thesis' claim that partitions are connected; a snake's are."""
    sizes = [4] + [3] * 7
    assert not all(connected(squarest_strips_all((5, 5), 4), (5, 5), sizes))
    assert all(connected(squarest_strips_all((5, 5), 4, path="snake"), (5, 5), sizes))


CARRY = st.sampled_from(["wider", "narrower"])


@examples(300)
@given(st.lists(st.integers(1, 12), min_size=1, max_size=4), st.integers(1, 60), CARRY)
def test_each_rank_of_a_snake_is_a_neighbour_of_the_one_before(dims, size, carry):
    numbers = squarest_strips_all(dims, size, carry, "snake")
    assert (np.abs(np.diff(numbers, axis=0)).sum(axis=1) == 1).all()


@examples(100)
@given(st.lists(st.integers(1, 7), min_size=1, max_size=4), st.integers(0, 10**6), CARRY)
def test_strips_of_a_snake_are_connected_for_nodes_of_any_sizes(dims, seed, carry):
    rng = np.random.default_rng(seed)
    cuts = np.sort(rng.integers(0, prod(dims) + 1, rng.integers(0, 20)))
    sizes = [int(size) for size in np.diff([0, *cuts, prod(dims)]) if size]
    assert all(connected(squarest_strips_all(dims, max(sizes), carry, "snake"), dims, sizes))


def test_a_snake_turns_crosswise_between_strips_of_even_length():
    """4 x 4 ranks, two strips of 2: the first ends one slice early, where the second begins."""
    numbers = squarest_strips_all((4, 4), 4, path="snake")
    assert numbers[:, ::-1].tolist() == [
        *([0, 0], [1, 0], [1, 1], [0, 1], [0, 2], [0, 3], [1, 3], [1, 2]),
        *([2, 2], [2, 3], [3, 3], [3, 2], [3, 1], [2, 1], [2, 0], [3, 0]),
    ]


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


# Refusals


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

"""Bounds of the thesis: its tables to their four digits, and no mapping beyond them."""

from __future__ import annotations

from math import prod

import pytest
from cartesian_bounds import (
    cube_edges,
    kd_tree_bound,
    kd_tree_bound_of,
    stretched_strips_bound,
    strips_bound,
    surface,
)
from hypothesis import given
from hypothesis import strategies as st

from hopmap.mappers import map_ranks
from hopmap.simulator import evaluate
from hopmap.topologies import topology_from_spec
from hopmap.traces import stencil_traffic
from support.slow import examples

# Rows: ranks of a node; columns: 2 to 6 dimensions.
TABLE_6_1 = """
2 1.4142 1.4699 1.4865 1.4933 1.4966
3 1.7321 1.7627 1.7548 1.7440 1.7347
4 1.1667 1.2787 1.2964 1.2975 1.2949
5 1.1926 1.4060 1.4455 1.4533 1.4530
10 1.2649 1.1730 1.2152 1.2151 1.2069
12 1.2702 1.2083 1.3184 1.3424 1.3450
14 1.2829 1.2433 1.4047 1.4450 1.4539
16 1.3214 1.2774 1.4792 1.5307 1.5433
18 1.3132 1.3104 1.5448 1.6043 1.6189
20 1.3097 1.3421 1.6037 1.6689 1.6842
25 1.3556 1.3126 1.7292 1.8021 1.8164
30 1.3389 1.3465 1.1702 1.2241 1.2339
32 1.3356 1.3603 1.1892 1.2625 1.2807
"""
TABLE_6_2 = """
2 1.0607 1.4699 1.6352 1.7230 1.7772
3 1.4434 2.0832 2.3031 2.4084 2.4686
4 1.1667 1.4992 1.8856 2.0672 2.1699
5 0.9690 1.1020 1.3209 1.4165 1.4675
10 1.1068 1.4363 1.5412 1.7962 1.9244
12 1.1258 1.5263 1.7061 2.0273 2.1856
14 1.1492 1.0903 1.1168 1.2674 1.3368
16 1.1964 1.2074 1.5938 1.5162 1.6150
18 1.1953 1.3104 1.8023 1.7232 1.8437
20 1.1979 1.4024 1.9826 1.8995 2.0366
25 1.2556 1.1566 2.3479 2.2488 2.4130
30 1.2476 1.4155 1.5992 1.6585 1.8803
32 1.2473 1.4706 1.6475 2.0333 1.9674
"""
TABLE_6_3 = """
2 1.4142 1.6799 1.7838 1.8379 1.8708
3 1.7321 2.2435 2.4128 2.4915 2.5353
4 1.9167 1.8961 2.1508 2.2652 2.3274
5 1.6398 1.4440 1.5452 1.5821 1.5983
10 1.8974 2.0826 1.9413 2.0815 2.1446
12 1.8475 2.0986 2.0551 2.2739 2.3747
14 1.8174 1.6068 1.4277 1.4853 1.5032
16 2.0714 1.6799 1.8750 1.7121 1.7638
18 2.0203 1.7472 2.0598 1.9014 1.9786
20 1.9805 1.8096 2.2205 2.0633 2.1601
25 2.1556 1.7414 2.5491 2.3859 2.5156
30 2.0692 1.9334 2.1258 2.0138 2.1447
32 2.0428 1.9666 2.1492 2.3708 2.2180
"""


@pytest.mark.parametrize(
    ("table", "bound"),
    [
        (TABLE_6_1, strips_bound),
        (TABLE_6_2, lambda p, n: stretched_strips_bound(p, n, periodic=False)),
        (TABLE_6_3, lambda p, n: stretched_strips_bound(p, n, periodic=True)),
    ],
    ids=["6.1", "6.2", "6.3"],
)
def test_every_cell_of_the_table_follows(table, bound):
    for row in table.split("\n")[1:-1]:
        size, *cells = row.split()
        assert [f"{bound(int(size), n):.4f}" for n in range(2, 7)] == cells, size


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

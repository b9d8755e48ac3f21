"""Which strips keep the ranks of a node together."""

from __future__ import annotations

from math import prod

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from hopmap.mappers.cartesian.strips import (
    squarest_cuts,
    squarest_strips_all,
)
from hopmap.traces import stencil_traffic
from support.grids import stencils_on_nodes
from support.slow import examples


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

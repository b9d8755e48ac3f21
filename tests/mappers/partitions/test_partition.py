"""Partitions: exact sizes whatever is asked of KaHIP, the cut and the contraction by definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopmap.mappers.basic_kernels import Graph, contract, subgraph
from hopmap.mappers.partitions.partition import partition, split
from hopmap.mappers.partitions.partition_kernels import cut_of, fit
from support.slow import examples


def graph_from(matrix: np.ndarray) -> Graph:
    """Graph of a symmetric matrix of weights."""
    rows, columns = np.nonzero(matrix)
    indptr = np.searchsorted(rows, np.arange(len(matrix) + 1)).astype(np.int64)
    return Graph(indptr, columns.astype(np.int64), matrix[rows, columns].astype(np.int64))


def matrix_of(graph: Graph) -> np.ndarray:
    vertices = len(graph.indptr) - 1
    matrix = np.zeros((vertices, vertices), dtype=np.int64)
    rows = np.repeat(np.arange(vertices), np.diff(graph.indptr))
    np.add.at(matrix, (rows, graph.peer), graph.weight)
    return matrix


@st.composite
def matrices(draw, most: int = 30):
    vertices = draw(st.integers(1, most))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    density = draw(st.sampled_from([0.0, 0.1, 0.5, 1.0]))
    heaviest = draw(st.sampled_from([2, 100, 2**40]))
    weights = rng.integers(0, heaviest, (vertices, vertices))
    upper = np.triu(weights * (rng.random((vertices, vertices)) < density), 1)
    return upper + upper.T


@examples(60)
@given(matrices(), st.data())
def test_no_block_is_above_its_capacity_and_equal_blocks_are_filled(matrix, data):
    vertices = len(matrix)
    capacity = np.array(data.draw(st.lists(st.integers(0, 9), min_size=1, max_size=24)))
    missing = vertices - capacity.sum()
    if missing > 0:
        capacity[data.draw(st.integers(0, len(capacity) - 1))] += missing
    settings_ = {
        "preset": data.draw(st.sampled_from(["fast", "eco", "strong"])),
        "in_order": data.draw(st.booleans()),
        "tries": data.draw(st.integers(1, 2)),
    }
    graph = graph_from(matrix)
    block, again = (
        partition(graph, capacity, np.random.default_rng(1), **settings_) for _ in range(2)
    )
    size = np.bincount(block, minlength=len(capacity))
    assert (size <= capacity).all()
    if capacity.sum() == vertices:
        assert size.tolist() == capacity.tolist()
    assert block.tolist() == again.tolist()


@pytest.mark.parametrize(("blocks", "room"), [(4, 16), (17, 5), (40, 3), (64, 2), (67, 2)])
def test_many_blocks_are_exact_as_well(blocks, room):
    rng = np.random.default_rng(0)
    upper = np.triu(rng.random((blocks * room,) * 2) < 0.1, 1) * 5
    graph = graph_from(upper + upper.T)
    block = partition(graph, np.full(blocks, room), rng, preset="fast")
    assert np.bincount(block, minlength=blocks).tolist() == [room] * blocks


def test_cliques_are_found():
    cliques = np.kron(np.eye(6, dtype=int), np.ones((5, 5), dtype=int)) - np.eye(30, dtype=int)
    shuffle = np.random.default_rng(2).permutation(30)
    graph = graph_from(cliques[np.ix_(shuffle, shuffle)])
    block = partition(graph, np.full(6, 5), np.random.default_rng(0))
    assert cut_of(graph, block) == 0


def test_the_order_of_the_vertices_is_a_candidate():
    """A path in order is cut optimally by taking it in order."""
    path = np.diag(np.ones(63, dtype=int), 1)
    graph = graph_from(path + path.T)
    block = partition(graph, np.full(8, 8), np.random.default_rng(0), preset="fast", in_order=True)
    assert cut_of(graph, block) == 7


def test_few_vertices_take_few_blocks():
    graph = graph_from(np.zeros((10, 10), dtype=int))
    block = partition(graph, np.array([3, 6, 1, 6, 3]), np.random.default_rng(0))
    assert set(block.tolist()) <= {1, 3}


@examples(60)
@given(matrices(16), st.data())
def test_cut_contraction_and_parts_are_those_of_the_matrix(matrix, data):
    graph = graph_from(matrix)
    blocks = data.draw(st.integers(1, 5))
    block = np.array(
        data.draw(st.lists(st.integers(0, blocks - 1), min_size=len(matrix), max_size=len(matrix)))
    )
    between = np.not_equal.outer(block, block)
    assert cut_of(graph, block) == (matrix * between).sum() // 2
    membership = np.eye(blocks, dtype=np.int64)[block]
    expected = membership.T @ matrix @ membership
    np.fill_diagonal(expected, 0)
    assert (matrix_of(contract(graph, block, blocks)) == expected).all()
    number = np.full(len(matrix), -1, dtype=np.int64)
    parts = split(block, blocks)
    for part in parts:
        assert (matrix_of(subgraph(graph, part, number)) == matrix[np.ix_(part, part)]).all()
    assert (number == -1).all()
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(matrix)))


@examples(60)
@given(matrices(16), st.data())
def test_what_does_not_fit_is_moved_and_nothing_else(matrix, data):
    vertices = len(matrix)
    blocks = data.draw(st.integers(1, 5))
    block = np.array(
        data.draw(st.lists(st.integers(0, blocks - 1), min_size=vertices, max_size=vertices))
    )
    capacity = np.array(data.draw(st.lists(st.integers(0, 8), min_size=blocks, max_size=blocks)))
    capacity[0] += max(0, vertices - capacity.sum())
    before = np.bincount(block, minlength=blocks)
    moved = block.copy()
    fit(graph_from(matrix), moved, capacity)
    assert (np.bincount(moved, minlength=blocks) <= capacity).all()
    assert (moved != block).sum() == np.maximum(before - capacity, 0).sum()

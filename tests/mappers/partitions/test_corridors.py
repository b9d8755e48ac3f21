"""Flows along the border of two blocks: the least cut, as far as both sides keep their room."""

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import maximum_flow

from hopmap.mappers.partitions.blocks_kernels import block_cost
from hopmap.mappers.partitions.corridor_kernels import recut
from hopmap.mappers.partitions.flow_kernels import Network, balanced_cut, max_flow
from hopmap.mappers.partitions.vcycles import Vertices


def undirected(vertices, pairs, weights):
    """Row pointers, peers and weights, every pair from both ends."""
    src, dst = np.concatenate((pairs, pairs[:, ::-1])).T
    both = np.concatenate((weights, weights))
    matrix = csr_array(coo_array((both, (src, dst)), shape=(vertices, vertices)))
    return (
        matrix.indptr.astype(np.int64),
        matrix.indices.astype(np.int64),
        matrix.data.astype(float),
    )


def network(graph, source, sink):
    indptr, head, free = graph
    tail = np.repeat(np.arange(len(source)), np.diff(indptr))
    back = np.lexsort((tail, head))  # sorted by tail and head, an arc's number is its rank
    return Network(
        *(each.astype(np.int32) for each in (indptr, head, back)), free.copy(), source, sink
    )


def lattice(rows, columns):
    number = np.arange(rows * columns).reshape(rows, columns)
    down = np.column_stack((number[:-1].ravel(), number[1:].ravel()))
    right = np.column_stack((number[:, :-1].ravel(), number[:, 1:].ravel()))
    pairs = np.concatenate((down, right))
    return undirected(rows * columns, pairs, np.ones(len(pairs)))


@pytest.mark.parametrize("seed", range(8))
def test_a_flow_is_as_large_as_scipys(seed):
    rng = np.random.default_rng(seed)
    n = 40
    pairs = np.unique(np.sort(rng.integers(n, size=(120, 2)), axis=1), axis=0)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    graph = undirected(n, pairs, rng.integers(1, 9, len(pairs)))
    source, sink = (rng.integers(0, 20, n) * (rng.random(n) < 0.2) for _ in range(2))
    whole = np.zeros((n + 2, n + 2), dtype=np.int32)
    whole[:n, :n] = csr_array((graph[2], graph[1], graph[0]), shape=(n, n)).toarray()
    whole[n, :n], whole[:n, n + 1] = source, sink
    expected = maximum_flow(csr_array(whole), n, n + 1).flow_value
    assert max_flow(network(graph, source.astype(float), sink.astype(float))) == expected


def test_a_cut_that_leaves_no_room_is_moved_on_at_the_least_price():
    """A path of 6 whose weakest link, 1, is at its end; both sides take 3 or 4 of its vertices."""
    pairs = np.array([[0, 1], [1, 2], [2, 3], [3, 4], [4, 5]])
    graph = undirected(6, pairs, np.array([1.0, 5.0, 4.0, 3.0, 9.0]))
    for room, value, near in (((6, 6), 1, 1), ((4, 4), 3, 4), ((3, 3), 4, 3)):
        source, sink = np.zeros(6), np.zeros(6)
        source[0] = sink[5] = np.inf
        sizes, depth = np.ones(6, dtype=np.int64), np.array([3, 2, 1, -1, -2, -3], dtype=np.int32)
        found = balanced_cut(network(graph, source, sink), sizes, depth, (0, 0), room, 100.0)
        assert found[0] == value
        assert found[1].tolist() == [True] * near + [False] * (6 - near)


def test_a_crooked_border_of_a_grid_becomes_straight():
    """Columns of 24 x 24 in two blocks, with a border that steps 4 to and fro in each third row."""
    graph, size = lattice(24, 24), np.ones(576, dtype=np.int64)
    rows, columns = np.divmod(np.arange(576), 24)
    block = (columns >= 12 + 4 * ((rows // 3) % 2) - 2).astype(np.int32)
    far, room = 1.0 - np.eye(2), np.array([288, 288])
    before = block_cost(*graph, block, far)
    saved = recut(Vertices(*graph, size), block, room, far, 0.5, 12, 3)
    assert block_cost(*graph, block, far) == 24 == before - saved
    assert np.bincount(block).tolist() == [288, 288]


@pytest.mark.parametrize("seed", range(6))
def test_what_is_saved_is_what_the_mapping_costs_less(seed):
    """Eight blocks on a ring of nodes: other blocks pull, by how much nearer one of the two is."""
    rng = np.random.default_rng(seed)
    graph, size = lattice(30, 30), rng.integers(1, 4, 900)
    columns = np.arange(900) % 30
    block = ((columns * 8 // 30 + rng.integers(0, 2, 900)) % 8).astype(np.int32)
    apart = np.abs(np.subtract.outer(np.arange(8), np.arange(8)))
    far = np.minimum(apart, 8 - apart) + 0.25 * np.eye(8)
    load = np.bincount(block, weights=size).astype(np.int64)
    room = load + load // 20
    before = block_cost(*graph, block, far)
    saved = recut(Vertices(*graph, size), block, room, far, 0.3, 10, 3)
    assert saved > 0
    assert block_cost(*graph, block, far) == pytest.approx(before - saved)
    assert (np.bincount(block, weights=size, minlength=8) <= room).all()

"""SpMV traffic: a matrix by hand, words counted row by row, and the connectivity metric."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import io, sparse

from hopmap.traces import (
    TraceError,
    hypergraph_of,
    partition_hypergraph,
    pattern_of,
    read_pattern,
    spmv_traffic,
)
from hopmap.traces.patterns import spmv

MODELS = ["row-net", "column-net"]

# Rows 0 and 1 on rank 0, row 2 on rank 1, row 3 on rank 2; the diagonal has a zero.
BY_HAND = np.array([[1, 1, 0, 0], [0, 1, 1, 0], [1, 1, 0, 0], [0, 1, 1, 1]])
BLOCK = np.array([0, 0, 1, 2])


def grid(edge: int):
    """Five-point stencil of a square."""
    line = sparse.diags_array([np.ones(edge - 1)] * 2, offsets=(-1, 1)) + sparse.eye_array(edge)
    return pattern_of(sparse.kronsum(line, line))


def nets(graph):
    return [part.tolist() for part in np.split(graph.pins, graph.indptr[1:-1])]


def words(traffic) -> dict[tuple[int, int], int]:
    assert set(traffic.messages.tolist()) <= {1}
    assert not (traffic.bytes % 8).any()
    rows = zip(traffic.src.tolist(), traffic.dst.tolist(), traffic.bytes // 8, strict=True)
    return {(source, target): int(count) for source, target, count in rows}


@st.composite
def split_matrices(draw):
    size = draw(st.integers(1, 12))
    ranks = draw(st.integers(1, size))
    cells = draw(st.lists(st.booleans(), min_size=size * size, max_size=size * size))
    block = draw(st.lists(st.integers(0, ranks - 1), min_size=size, max_size=size))
    return np.array(cells).reshape(size, size), np.array(block), ranks


def test_column_nets_by_hand():
    graph = hypergraph_of(pattern_of(BY_HAND), "column-net")
    assert nets(graph) == [[0, 2], [0, 1, 2, 3], [1, 2, 3], [3]]  # 2 joins its own column
    assert graph.weight.tolist() == [2, 2, 2, 3]
    # x_0 and x_1 go to row 2, x_1 to row 3, x_2 to rows 1 and 3.
    traffic = spmv_traffic(pattern_of(BY_HAND), 3, "column-net", block=BLOCK)
    assert words(traffic) == {(0, 1): 2, (0, 2): 1, (1, 0): 1, (1, 2): 1}


def test_row_nets_by_hand():
    graph = hypergraph_of(pattern_of(BY_HAND), "row-net")
    assert nets(graph) == [[0, 1], [1, 2], [0, 1, 2], [1, 2, 3]]
    assert graph.weight.tolist() == [2, 4, 2, 1]
    # y_1 wants the sum of column 2, y_2 that of columns 0 and 1, y_3 those of 1 and of 2.
    traffic = spmv_traffic(pattern_of(BY_HAND), 3, "row-net", block=BLOCK)
    assert words(traffic) == {(1, 0): 1, (0, 1): 1, (0, 2): 1, (1, 2): 1}


@settings(deadline=None)
@given(split_matrices())
def test_every_rank_receives_the_entries_of_x_that_its_rows_need(case):
    matrix, block, ranks = case
    traffic = spmv_traffic(pattern_of(matrix), ranks, "column-net", block=block)
    needed = {
        (int(block[j]), rank, j)
        for rank in range(ranks)
        for j in np.flatnonzero(matrix[block == rank].any(axis=0)).tolist()
        if block[j] != rank
    }
    expected: dict[tuple[int, int], int] = {}
    for source, target, _ in needed:
        expected[source, target] = expected.get((source, target), 0) + 1
    assert words(traffic) == expected


@settings(deadline=None)
@given(split_matrices())
def test_every_owner_receives_a_sum_from_each_rank_with_a_column_in_its_row(case):
    matrix, block, ranks = case
    traffic = spmv_traffic(pattern_of(matrix), ranks, "row-net", block=block)
    expected: dict[tuple[int, int], int] = {}
    for i, row in enumerate(matrix):
        for source in set(block[row].tolist()) - {int(block[i])}:
            pair = (source, int(block[i]))
            expected[pair] = expected.get(pair, 0) + 1
    assert words(traffic) == expected


@settings(deadline=None)
@given(split_matrices(), st.sampled_from(MODELS))
def test_the_volume_is_the_connectivity_metric(case, model):
    matrix, block, ranks = case
    pattern = pattern_of(matrix)
    graph = hypergraph_of(pattern, model)
    metric = sum(len({int(block[pin]) for pin in net}) - 1 for net in nets(graph))
    assert graph.connectivity(block, ranks) == metric
    assert spmv_traffic(pattern, ranks, model, block=block).bytes.sum() == 8 * metric


@settings(deadline=None)
@given(split_matrices())
def test_the_models_are_each_others_transpose_with_every_message_reversed(case):
    matrix, block, ranks = case
    one = spmv_traffic(pattern_of(matrix), ranks, "column-net", block=block)
    other = spmv_traffic(pattern_of(matrix.T), ranks, "row-net", block=block)
    assert words(one) == {(dst, src): count for (src, dst), count in words(other).items()}


@pytest.mark.parametrize("model", MODELS)
def test_the_partitioner_counts_the_same_volume_and_keeps_its_balance(model):
    mtkahypar = pytest.importorskip("mtkahypar", reason="the extra sparse is not installed")
    graph = hypergraph_of(grid(20), model)
    block = partition_hypergraph(graph, 8)
    load = np.bincount(block, graph.weight)
    assert load.max() <= 1.03 * np.ceil(graph.weight.sum() / 8)
    _, initializer = spmv._mtkahypar()
    context = initializer.context_from_preset(mtkahypar.PresetType.DETERMINISTIC)
    context.set_partitioning_parameters(8, 0.03, mtkahypar.Objective.KM1)
    theirs = initializer.create_hypergraph(context, 400, 400, nets(graph))
    split = theirs.create_partitioned_hypergraph(context, 8, block.tolist())
    assert split.km1() == graph.connectivity(block, 8)
    assert spmv_traffic(grid(20), 8, model).bytes.sum() == 8 * split.km1()
    # Eight strips of 50 vertices share 7 borders, sent over both ways.
    assert split.km1() < graph.connectivity(np.arange(400) // 50, 8)


def test_the_same_seed_gives_the_same_partition():
    pytest.importorskip("mtkahypar", reason="the extra sparse is not installed")
    graph = hypergraph_of(grid(12), "row-net")
    first, same, other = (partition_hypergraph(graph, 6, seed=seed) for seed in (1, 1, 2))
    assert first.tolist() == same.tolist() != other.tolist()


def test_one_rank_has_everything_and_sends_nothing():
    assert spmv_traffic(grid(3), 1, "row-net").pairs == 0


def test_what_the_partitioner_refuses_is_one_line(monkeypatch):
    class RefusedError(Exception):
        pass

    def refuse(*_):
        raise RefusedError("two\nlines")

    context = SimpleNamespace(set_partitioning_parameters=lambda *_: None)
    initializer = SimpleNamespace(context_from_preset=lambda _: context, create_hypergraph=refuse)
    library = SimpleNamespace(
        PresetType=SimpleNamespace(DETERMINISTIC=0),
        Objective=SimpleNamespace(KM1=0),
        InvalidInputError=RefusedError,
        InvalidParameterError=RefusedError,
    )
    monkeypatch.setattr(spmv, "_mtkahypar", lambda: (library, initializer))
    with pytest.raises(TraceError, match=r"^mtkahypar: 2 blocks: two lines$"):
        spmv_traffic(grid(3), 2, "row-net")


@settings(deadline=None, max_examples=20)
@given(split_matrices(), st.sampled_from(["general", "symmetric", "pattern"]))
def test_a_matrix_market_file_says_where_entries_are(tmp_path_factory, case, kind):
    matrix, _, _ = case
    matrix = matrix | matrix.T if kind == "symmetric" else matrix
    path = tmp_path_factory.mktemp("mtx") / "a.mtx"
    io.mmwrite(
        path,
        sparse.coo_array(matrix.astype(float)),
        field="pattern" if kind == "pattern" else "real",
        symmetry="symmetric" if kind == "symmetric" else "general",
    )
    pattern = read_pattern(path)
    assert pattern.size == len(matrix)
    assert np.array_equal(np.argwhere(matrix), np.stack((pattern.row, pattern.column), axis=1))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "cannot be read as a MatrixMarket matrix"),
        ("1 2\n3 4\n", "cannot be read as a MatrixMarket matrix"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 3\n1 1 1\n", "cannot be read"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 1\n3 1 1\n", "cannot be read"),
        (
            "%%MatrixMarket matrix coordinate real general\n2 3 1\n1 1 1\n",
            "2 rows, 3 columns: expected a square matrix",
        ),
        ("%%MatrixMarket matrix coordinate real general\n0 0 0\n", "no rows"),
    ],
)
def test_a_broken_file_is_one_line_that_names_it(tmp_path, text, message):
    path = tmp_path / "broken.mtx"
    path.write_text(text)
    with pytest.raises(TraceError, match=f"broken.mtx: .*{message}") as refused:
        read_pattern(path)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("ranks", "model", "message"),
    [
        (10, "row-net", "10 ranks for 9 rows: expected 1 to 9 ranks"),
        (0, "row-net", "0 ranks for 9 rows"),
        (2, "rows", "model 'rows': expected row-net or column-net"),
    ],
)
def test_what_does_not_fit_the_matrix_is_refused(ranks, model, message):
    with pytest.raises(TraceError, match=message):
        spmv_traffic(grid(3), ranks, model)


def test_no_file_is_one_line(tmp_path):
    with pytest.raises(TraceError, match=r"gone\.mtx: no such file"):
        read_pattern(tmp_path / "gone.mtx")

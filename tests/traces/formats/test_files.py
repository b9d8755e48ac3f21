"""Traffic files: what is written is read back, what is wrong is named."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import io, sparse

from hopmap.traces import FORMATS, TraceError, Traffic, load_traffic, save_traffic
from support import about

rows = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(1, 9), st.integers(1, 10**12)),
    min_size=1,
    max_size=30,
)


def test_ranks_that_talk_to_nobody_are_empty_lines_of_a_metis_graph(tmp_path):
    traffic = Traffic.from_pairs(7, [2], [4], [1], [8])
    save_traffic(tmp_path / "x.graph", traffic)
    assert (tmp_path / "x.graph").read_text() == "7 1 001\n\n\n5 8\n\n3 8\n\n\n"
    assert load_traffic(tmp_path / "x.graph").same_as(traffic)


def traffic_of_rows(drawn, ranks=7) -> Traffic:
    return Traffic.from_pairs(ranks, *np.array(drawn, dtype=np.int64).T, {"benchmark": "toy"})


def weights(traffic: Traffic, quantity: str) -> np.ndarray:
    dense = np.zeros((traffic.ranks, traffic.ranks), dtype=np.int64)
    dense[traffic.src, traffic.dst] = getattr(traffic, quantity)
    return dense


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(rows)
def test_npz_and_sparse_csv_keep_everything(tmp_path, drawn):
    traffic = traffic_of_rows(drawn)
    for name in ("x.npz", "x.csv"):
        save_traffic(tmp_path / name, traffic)
        assert load_traffic(tmp_path / name).same_as(traffic)
    assert load_traffic(tmp_path / "x.npz").metadata == {"benchmark": "toy"}
    assert (tmp_path / "x.csv").read_text().startswith("src,dst,messages,bytes\n")


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30, deadline=None
)
@given(rows)
def test_one_weight_formats_keep_bytes(tmp_path, drawn):
    traffic = traffic_of_rows(drawn)
    save_traffic(tmp_path / "x.mtx", traffic)
    assert (weights(load_traffic(tmp_path / "x.mtx"), "bytes") == weights(traffic, "bytes")).all()
    save_traffic(tmp_path / "x.graph", traffic)
    graph = load_traffic(tmp_path / "x.graph")
    both = traffic.without_self().undirected()
    assert (weights(graph, "bytes") == weights(both, "bytes")).all()
    assert (graph.messages == 1).all()
    assert (graph.src < graph.dst).all()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
@given(rows)
def test_maplib_matrices_side_by_side_keep_messages_and_bytes(tmp_path, drawn):
    traffic = traffic_of_rows(drawn)
    for name in ("m.count.csv", "m.size.csv"):
        save_traffic(tmp_path / name, traffic)
    for name in ("m.count.csv", "m.size.csv"):
        assert load_traffic(tmp_path / name).same_as(traffic)


def test_maplib_matrix_alone_holds_one_quantity(tmp_path):
    (tmp_path / "a.count.csv").write_text("0,3\n2,1\n")
    counts = load_traffic(tmp_path / "a.count.csv")
    assert counts.messages.tolist() == counts.bytes.tolist() == [3, 2, 1]
    (tmp_path / "b.size.csv").write_text("0,300\n200,100\n")
    sizes = load_traffic(tmp_path / "b.size.csv")
    assert (sizes.messages.tolist(), sizes.bytes.tolist()) == ([1, 1, 1], [300, 200, 100])


def test_silent_ranks_at_the_end_are_kept(tmp_path):
    traffic = Traffic.from_pairs(9, [0], [1], [1], [0])
    for name in ("x.csv", "x.npz"):
        save_traffic(tmp_path / name, traffic)
        assert load_traffic(tmp_path / name).same_as(traffic)


def test_marks_of_byte_order_comments_and_quotes_are_no_numbers(tmp_path):
    """As spreadsheets and pandas write them, or an editor of another system."""
    for name, text in (
        ("a.csv", "\ufeff# a comment\r\n\r\nsrc,dst,messages,bytes\r\n0,1,1,5\r\n1,0,1,7\r\n"),
        ("b.csv", '"src","dst","messages","bytes"\n"0","1","1","5"\n1,0,1,7\n'),
        ("c.csv", "\ufeff0,5\r\n7,0\r\n"),
        ("d.size.csv", "\ufeff0,5\r\n7,0\r\n"),
    ):
        (tmp_path / name).write_bytes(text.encode())
        assert weights(load_traffic(tmp_path / name), "bytes").tolist() == [[0, 5], [7, 0]]
    (tmp_path / "e.graph").write_bytes("% größer\r\n2 1 001\r\n2 5\r\n1 5\r\n".encode("latin-1"))
    assert load_traffic(tmp_path / "e.graph").bytes.tolist() == [5]


def test_a_table_without_messages_has_one_a_row(tmp_path):
    (tmp_path / "a.csv").write_text("src,dst,bytes\n0,1,100\n3,1,7\n0,1,1\n")
    traffic = load_traffic(tmp_path / "a.csv")
    columns = (traffic.src, traffic.dst, traffic.messages, traffic.bytes)
    assert np.stack(columns).T.tolist() == [[0, 1, 2, 101], [3, 1, 1, 7]]


def test_metis_manual_examples(tmp_path):
    """METIS 5.1 manual, figure 2: 7 vertices, 11 edges, with and without weights."""
    plain = "7 11\n5 3 2\n1 3 4\n5 4 2 1\n2 3 6 7\n1 3 6\n5 4 7\n6 4\n"
    weighted = (
        "% a comment\n7 11 001\n5 1 3 2 2 1\n1 1 3 2 4 1\n5 3 4 2 2 2 1 2\n2 1 3 2 6 2 7 5\n"
        "1 1 3 3 6 2\n5 2 4 2 7 6\n6 6 4 5\n"
    )
    vertex_weights = "2 1 011\n4 2 9\n5 1 9\n"
    for name, text, total in (("a", plain, 11), ("b", weighted, 27), ("c", vertex_weights, 9)):
        (tmp_path / f"{name}.graph").write_text(text)
        assert load_traffic(tmp_path / f"{name}.graph").bytes.sum() == total


def test_matrixmarket_from_elsewhere(tmp_path):
    matrix = sparse.coo_array(np.array([[0, 2.0, 0], [2.0, 1, 5], [0, 5, 0]]))
    io.mmwrite(tmp_path / "s.mtx", matrix, symmetry="symmetric")
    assert weights(load_traffic(tmp_path / "s.mtx"), "bytes").tolist() == matrix.toarray().tolist()


def test_what_is_wrong_is_named_in_one_line(tmp_path):
    for name, text, words in [
        ("a.csv", "1,2,3\n4,5,6\n", ["2 rows of 3 columns", "square"]),
        ("a.csv", "1,-2\n3,4\n", ["-2", "row 0, column 1", "whole number >= 0"]),
        ("a.csv", "1,nan\n3,4\n", ["nan", "row 0, column 1"]),
        ("a.csv", "1,2.5\n3,4\n", ["2.5"]),
        ("a.csv", "hello\n", ["entry 'hello' in row 0, column 0: expected a matrix"]),
        ("a.csv", "", ["no rows"]),
        ("a.csv", "src,dst,size\n0,1,2\n", ["header", "src,dst,messages,bytes", "src,dst,bytes"]),
        ("a.csv", "src,dst,bytes\n0,1,2,3\n", ["4 columns", "src,dst,bytes"]),
        ("a.csv", "src,dst,messages,bytes\n0,1,2,-7\n", ["bytes -7", "row 0"]),
        (
            "a.csv",
            "src,dst,messages,bytes\n0,1,x,7\n",
            ["entry 'x' in row 0, column 2: expected numbers"],
        ),
        (
            "a.csv",
            "src,dst,messages,bytes\n0,1,2,7\n0,1,2\n",
            ["3 columns in row 1: expected numbers"],
        ),
        ("a.mtx", "%%MatrixMarket matrix coordinate integer general\n2 3 1\n1 1 4\n", ["square"]),
        ("a.mtx", "%%MatrixMarket matrix coordinate integer general\n2 2 1\n1 2 -4\n", ["-4"]),
        ("a.mtx", "no matrix\n", ["cannot be read"]),
        ("a.graph", "3 x\n", ["header"]),
        ("a.graph", "2 1\n2\n", ["1 vertex lines: expected 2"]),
        ("a.graph", "2 1\n3\n1\n", ["neighbour 3", "1..2"]),
        ("a.graph", "2 1\n2\n\n", ["expected each edge twice"]),
        ("a.graph", "3 1\n2\n3\n\n", ["one of its ends only"]),
        ("a.graph", "2 1 001\n2 5\n1 9\n", ["an edge has two weights"]),
        ("a.npz", "not a zip", ["cannot be read"]),
        ("a.txt", "x", ["unknown kind", ".graph"]),
    ]:
        with about(name, text, words):
            (tmp_path / name).write_text(text)
            with pytest.raises(TraceError) as caught:
                load_traffic(tmp_path / name)
            message = str(caught.value)
            assert "\n" not in message
            for word in [name, *words]:
                assert word in message


def test_maplib_matrices_of_different_sizes_are_refused(tmp_path):
    (tmp_path / "m.count.csv").write_text("0,1\n1,0\n")
    (tmp_path / "m.size.csv").write_text("0\n")
    with pytest.raises(TraceError, match="1 ranks: expected 2"):
        load_traffic(tmp_path / "m.count.csv")


def test_a_dense_matrix_of_many_ranks_is_refused_and_nothing_is_written(tmp_path):
    traffic = Traffic.from_pairs(10_000, [0], [1], [1], [1])
    with pytest.raises(TraceError, match="expected at most 8192"):
        save_traffic(tmp_path / "x.size.csv", traffic)
    assert list(tmp_path.iterdir()) == []


def test_missing_file(tmp_path):
    for suffix in FORMATS:
        with pytest.raises(TraceError, match="no such file"):
            load_traffic(tmp_path / f"none{suffix}")

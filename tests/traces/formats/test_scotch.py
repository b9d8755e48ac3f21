"""Scotch's source graphs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopmap.traces import TraceError, Traffic, load_traffic, save_traffic
from support import about

TRIANGLE = "0\n4\t6\n0\t010\n2\t30\t1\t5\t2\n2\t30\t0\t7\t2\n2\t5\t0\t7\t1\n0\n"


def test_a_graph_is_written_as_the_users_guide_says(tmp_path):
    file = tmp_path / "t.grf"
    traffic = Traffic.from_pairs(
        4, [0, 1, 2, 1, 3], [1, 0, 0, 2, 3], [1, 2, 1, 1, 1], [10, 20, 5, 7, 9]
    )
    save_traffic(file, traffic)
    assert file.read_text().split() == TRIANGLE.split()


def test_labels_vertex_loads_and_bases_are_read(tmp_path):
    file = tmp_path / "t.grf"
    file.write_text("0\n3 4\n1 111\n7 1 1 30 9\n9 1 2 30 7 4 5\n5 2 1 4 9\n")
    traffic = load_traffic(file)
    rows = zip(traffic.src, traffic.dst, traffic.bytes, strict=True)
    assert [tuple(map(int, row)) for row in rows] == [(0, 1, 30), (1, 2, 4)]
    file.write_text("0 2 2 1 000 1 2 1 1")
    assert load_traffic(file).bytes.tolist() == [1]


pairs = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7), st.integers(1, 99)), max_size=30)


@settings(deadline=None)
@given(pairs)
def test_what_is_written_is_read_as_the_sum_of_both_directions(tmp_path_factory, rows):
    file = tmp_path_factory.mktemp("scotch") / "t.grf"
    src, dst, size = (np.array(c, dtype=np.int64) for c in (zip(*rows, strict=True) if rows else ((),) * 3))  # fmt: skip  # noqa: E501
    traffic = Traffic.from_pairs(8, src, dst, np.ones_like(src), size)
    save_traffic(file, traffic)
    both, back = traffic.without_self().undirected(), load_traffic(file)
    assert back.ranks == 8
    assert back.src.tolist() == both.src.tolist()
    assert back.dst.tolist() == both.dst.tolist()
    assert back.bytes.tolist() == both.bytes.tolist()


def test_what_is_no_graph_is_refused(tmp_path):
    for text, message in [
        ("", "expected 0, vertices, arcs, base, flags"),
        ("1 2 2 0 000 1 1 1 0", "begins with '1 2 2 0 000'"),
        ("0 2 2 0 020 1 1 1 0", "expected 0, vertices"),
        ("0 2 2 0 000 1 1 1", "vertex 1: expected its degree and arcs"),
        ("0 2 2 0 000 1 1 1 5", "arc to 5: expected a vertex"),
        ("0 2 4 0 000 1 1 1 0", "2 arcs: expected 4"),
        ("0 2 2 0 010 1 3 1 1 4 0", "an edge has two weights: expected the same at both its ends"),
        ("0 2 x 0 000", "cannot be read as Scotch graph"),
        ("0 99999999999 2 0 000", "expected fewer"),
    ]:
        with about(text, message):
            file = tmp_path / "bad.grf"
            file.write_text(text)
            with pytest.raises(TraceError, match=message):
                load_traffic(file)


def test_changed_files_are_read_or_refused(tmp_path):
    rng, file, refused = np.random.default_rng(0), tmp_path / "x.grf", 0
    for _ in range(300):
        words = TRIANGLE.split()
        words[rng.integers(len(words))] = str(rng.choice([-1, 0, 1, 9, 10**18, 10**30]))
        file.write_text(" ".join(words))
        try:
            load_traffic(file)
        except TraceError as error:
            refused += 1
            assert "\n" not in str(error)
    assert refused > 50

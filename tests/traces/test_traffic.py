"""Traffic: sums, order and refusals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopmap.traces import TraceError, Traffic, exact_sum, largest_product
from support import about

pairs = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(1, 9), st.integers(0, 99)),
    max_size=30,
)


def columns(rows: list[tuple[int, ...]]) -> np.ndarray:
    return np.array(rows, dtype=np.int64).reshape(-1, 4).T


@given(pairs)
def test_pairs_are_sorted_unique_and_summed(rows):
    traffic = Traffic.from_pairs(6, *columns(rows))
    key = traffic.src.astype(int) * 6 + traffic.dst
    assert (np.diff(key) > 0).all()
    for quantity, column in (("messages", 2), ("bytes", 3)):
        dense = np.zeros((6, 6), dtype=int)
        for row in rows:
            dense[row[0], row[1]] += row[column]
        ours = np.zeros((6, 6), dtype=int)
        ours[traffic.src, traffic.dst] = getattr(traffic, quantity)
        assert (ours == dense).all()


@given(pairs)
def test_undirected_keeps_totals_and_row_pointers_find_rows(rows):
    traffic = Traffic.from_pairs(6, *columns(rows))
    both = traffic.undirected()
    assert (both.src <= both.dst).all()
    assert both.messages.sum() == traffic.messages.sum()
    assert both.bytes.sum() == traffic.bytes.sum()
    pointers = traffic.indptr()
    for rank in range(6):
        assert (traffic.src[pointers[rank] : pointers[rank + 1]] == rank).all()
    assert pointers[-1] == traffic.pairs
    assert (traffic.without_self().src != traffic.without_self().dst).all()


@given(st.lists(st.tuples(st.integers(0, 2**53), st.integers(0, 2**24)), max_size=9))
def test_sums_are_exact_however_large(rows):
    weight, times = np.array(rows, dtype=np.int64).reshape(-1, 2).T
    assert exact_sum(weight, times) == sum(w * t for w, t in rows)
    assert exact_sum(weight) == sum(w for w, _ in rows)
    assert largest_product(weight, times) == max((w * t for w, t in rows), default=0)


def test_what_is_no_traffic_is_refused_with_its_place():
    for rows, message in [
        ([[0], [6], [1], [1]], "dst 6 in row 0: expected a rank below 6"),
        ([[-1], [0], [1], [1]], "src -1 in row 0: expected a whole number >= 0"),
        ([[0], [1], [-3], [1]], "messages -3 in row 0"),
        ([[0], [1], [1], [1.5]], r"bytes 1\.5 in row 0"),
        ([[0], [1], [1], [float("nan")]], "bytes nan in row 0"),
        ([[0], [1], [1], [float("inf")]], "bytes inf in row 0"),
        ([[0], [1], [0], [7]], "7 bytes in 0 messages"),
        ([[0, 1], [1], [1], [1]], "unequal length"),
        ([["a"], [1], [1], [1]], "expected numbers"),
    ]:
        with about(rows, message), pytest.raises(TraceError, match=message):
            Traffic.from_pairs(6, *rows)

"""How far two files agree on the order of algorithms, counted by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest

from hopmap.simulator.measured.errors import (
    agreement_of,
    by_algorithm,
    by_operation,
    choice_of,
    count_unknown,
    describe_order,
    error_of,
    facts,
    order_of,
)
from hopmap.simulator.measured.known_names import NO_NAME
from hopmap.simulator.measured.prediction import Prediction
from support.measured_calls import measured_of

MIB = 2**20


def both(*pairs, size=MIB, algorithms="xyzw", simulated=True):
    """Times of the same algorithms in two files."""
    rows = [
        {"collective": "bcast", "algorithm": name, "buffer_bytes": size, "median_ns": t, "nodes": n}
        for name, pair in zip(algorithms, pairs, strict=False)
        for t, n in ((pair[0], 4), (pair[1], pair[2] if len(pair) > 2 else 4))
    ]
    table = measured_of(rows)
    table = replace(table, file=np.arange(len(rows)) % 2, files=("one.csv", "two.csv"))
    time = np.full(len(rows), 1.0 if simulated else math.nan)
    return table, Prediction(time, ("" if simulated else NO_NAME,) * len(rows))


def test_two_files_agree_as_far_as_pairs_of_algorithms_are_in_the_same_order():
    found = agreement_of(*both((1, 1), (2, 3), (3, 2)))
    assert (found.cells, found.tau) == (1, pytest.approx(1 / 3))


@pytest.mark.parametrize(
    "given",
    [
        both((1, 1), (2, 3)),  # two algorithms have no order to speak of
        both((1, 1), (2, 3), (3, 2), size=MIB - 1),
        both((1, 1), (2, 3), (3, 2), simulated=False),
        both((1, 1, 8), (2, 3, 8), (3, 2, 8)),  # another number of nodes
    ],
)
def test_what_is_not_the_same_large_cell_is_not_compared(given):
    found = agreement_of(*given)
    assert found.cells == 0
    assert math.isnan(found.tau)


def table(*rows):
    keys = ("collective", "algorithm", "buffer_bytes", "median_ns")
    return measured_of([dict(zip(keys, row, strict=True)) for row in rows])


def predicted(*nanoseconds):
    time = np.array([math.nan if t is None else t * 1e-9 for t in nanoseconds])
    return Prediction(time, tuple(NO_NAME if t is None else "" for t in nanoseconds))


def test_an_error_is_the_share_by_which_a_prediction_is_off_and_bias_has_the_sign():
    error = error_of(np.array([104.0, 92.0, 80.0, 150.0, np.nan]), np.full(5, 100.0))
    assert error.rows == 4
    assert error.median == pytest.approx((0.08 + 0.20) / 2)
    assert error.p90 == pytest.approx(0.20 + 0.7 * (0.50 - 0.20))
    assert (error.within_5, error.within_10, error.within_25) == (0.25, 0.5, 0.75)
    assert error.bias == pytest.approx((-0.08 + 0.04) / 2)


def test_of_nothing_there_is_no_error():
    assert error_of(np.array([np.nan]), np.array([1.0])).rows == 0
    assert math.isnan(error_of(np.array([np.nan]), np.array([1.0])).median)


def test_errors_are_by_algorithm_and_class_of_sizes_with_the_bounds_in_the_upper_one():
    rows = [("bcast", "x", s, 100) for s in (4095, 4096, 2**18 - 1, 2**18, 2**20 - 1, 2**20)]
    groups = by_algorithm(table(*rows), predicted(*[110] * 6))
    assert [(g.sizes, g.error.rows) for g in groups] == [
        ("< 4 KiB", 1), ("4 to 256 KiB", 2), ("256 KiB to 1 MiB", 2), (">= 1 MiB", 1),
    ]  # fmt: skip
    assert groups[0].error.median == pytest.approx(0.1)


def test_errors_are_by_operation_ranks_and_what_one_rank_has_for_another():
    kib = 1 << 10
    calls = table(
        ("alltoall", "x", 16 * kib, 100), ("alltoall", "y", 16 * kib, 100),  # 2 KiB of 8 ranks
        ("alltoall", "x", 16 * kib, 100), ("bcast", "x", 16 * kib, 100),
        ("bcast", "x", 32 * kib, 100), ("bcast", "z", 32 * kib, 100),
    )  # fmt: skip
    ranks = np.array([8, 8, 16, 8, 8, 8])
    groups = by_operation(calls, replace(predicted(110, 130, 90, 100, 105, None), ranks=ranks))
    assert [(*g[:3], g.error.rows, round(g.error.median, 9)) for g in groups] == [
        ("alltoall", 8, "2 to 32 KiB", 2, 0.2),
        ("alltoall", 16, "< 2 KiB", 1, 0.1),
        ("bcast", 8, "2 to 32 KiB", 1, 0.0),
        ("bcast", 8, ">= 32 KiB", 1, 0.05),
    ]


def test_a_choice_is_right_or_close_or_neither_and_cells_of_one_algorithm_are_none():
    rows = [
        ("bcast", "x", 8, 100), ("bcast", "y", 8, 200),  # right
        ("bcast", "x", 16, 104), ("bcast", "y", 16, 100),  # x is taken, 4 % longer
        ("bcast", "x", 32, 110), ("bcast", "y", 32, 100),  # x is taken, 10 % longer
        ("bcast", "x", 64, 100), ("bcast", "y", 64, 1),  # y is not simulated
    ]  # fmt: skip
    choice = choice_of(table(*rows), predicted(1, 2, 1, 2, 1, 2, 1, None))
    assert choice == (3, 1, 2)


def test_the_order_of_large_cells_of_three_is_kendalls_tau():
    large = [("bcast", a, 2**20, t) for a, t in zip("xyz", (1, 2, 3), strict=True)]
    small = [("bcast", a, 8, t) for a, t in zip("xyz", (1, 2, 3), strict=True)]
    order = order_of(table(*large, *small), predicted(1, 3, 2, 3, 2, 1))
    assert order.cells == 1
    assert order.tau == pytest.approx(1 / 3)
    each = facts(table(*large, *small), predicted(1, 3, 2, 3, 2, 1))["order"]["each"]
    assert [(c["collective"], c["buffer_bytes"], c["nodes"]) for c in each] == [("bcast", 2**20, 0)]
    assert each[0]["tau"] == order.tau


def test_where_there_is_no_tau_it_is_said_why():
    two = table(("bcast", "x", 2**20, 100), ("bcast", "y", 2**20, 200))
    few = order_of(two, predicted(1, 2))
    assert describe_order(few) == "no Kendall's tau: no cell has three simulated algorithms"
    ties = table(*(("bcast", a, 2**20, 100) for a in "xyz"))
    tied = order_of(ties, predicted(1, 2, 3))
    assert describe_order(tied) == "no Kendall's tau: in each of 1 cells all times are equal"
    fact = facts(ties, predicted(1, 2, 3))["order"]
    assert (fact["cells"], fact["tau"], fact["why"]) == (0, None, describe_order(tied))


def test_facts_count_what_is_unknown_and_have_no_nan():
    measured = table(("bcast", "x", 8, 100), ("bcast", "odd", 8, 100), ("bcast", "odd", 9, 100))
    prediction = predicted(100, None, None)
    found = facts(measured, prediction)
    assert (found["rows"], found["known"]) == (3, 1)
    assert found["error"]["all"]["median"] == 0
    assert found["error"]["large"]["median"] is None
    assert found["choice"] == {"cells": 0, "right": 0, "within_5": 0}
    assert found["by"][0]["algorithm"] == "x"
    assert count_unknown(measured, prediction) == {("bcast", "odd", NO_NAME): 2}
    assert found["unknown"][0]["rows"] == 2

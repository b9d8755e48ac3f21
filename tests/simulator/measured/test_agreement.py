"""How far two files agree on the order of algorithms, counted by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from hopmap.simulator.measured.agreement import agreement_of
from hopmap.simulator.measured.prediction import NO_NAME, Prediction
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

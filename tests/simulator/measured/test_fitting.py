"""Robust fits on logarithms: what was put in comes out, and what is wild does not pull."""

from __future__ import annotations

import numpy as np
import pytest

from hopmap.simulator.measured.calibration import fit

SIZE = np.tile(2.0 ** np.arange(4, 24, 2), 4)
ROUNDS = np.repeat([1.0, 2.0, 3.0, 6.0], 10)
ALGORITHM, SIZES = ROUNDS.astype(np.int64), np.log2(SIZE).astype(np.int64)


def times(values):
    """Seconds of so many rounds of so many bytes."""
    return ROUNDS * (values["late"] + SIZE * values["slow"])


TRUE = {"late": 2e-6, "slow": 1.5e-10}
START = {"late": 1e-5, "slow": 1e-9}


def test_parameters_that_made_the_times_are_found():
    found = fit(START, times, times(TRUE), ALGORITHM, SIZES)
    assert found.parameters == pytest.approx(TRUE, rel=1e-2)
    assert found.predicted == pytest.approx(times(TRUE), rel=1e-2)


def test_an_algorithm_that_the_model_cannot_explain_does_not_pull_the_others():
    measured = np.where(ROUNDS == 6, 3, 1) * times(TRUE)
    found = fit(START, times, measured, ALGORITHM, SIZES)
    assert found.parameters == pytest.approx(TRUE, rel=0.1)
    without = found.without_algorithm[ROUNDS == 6]
    assert without == pytest.approx(times(TRUE)[ROUNDS == 6], rel=0.1)


def test_the_interval_holds_what_is_true_where_algorithms_scatter():
    off = np.exp(np.random.default_rng(7).normal(0, 0.05, 4))
    measured = off[np.searchsorted([1, 2, 3, 6], ROUNDS)] * times(TRUE)
    found = fit(START, times, measured, ALGORITHM, SIZES)
    for key, value in TRUE.items():
        low, high = found.interval[key]
        assert low < value < high < 2 * low


def test_a_size_is_predicted_from_the_others():
    measured = times(TRUE) * np.where(SIZE.max() == SIZE, 2, 1)
    found = fit(START, times, measured, ALGORITHM, SIZES)
    last = SIZE.max() == SIZE
    assert found.without_size[last] == pytest.approx(times(TRUE)[last], rel=0.1)

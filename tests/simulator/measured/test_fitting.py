"""Robust fits on logarithms: what was put in comes out, and what is wild does not pull."""

from __future__ import annotations

import numpy as np
import pytest

from hopmap.simulator.measured.robust_fit import fit

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


def test_nothing_is_predicted_from_no_other_algorithm_or_size():
    one = np.zeros_like(ALGORITHM)
    found = fit(START, times, times(TRUE), one, one)
    assert np.isnan(found.without_algorithm).all()
    assert np.isnan(found.without_size).all()


def test_a_parameter_of_one_algorithm_is_not_predicted_from_the_others():
    def with_setup(values):
        return times(values) + np.where(ROUNDS == 6, values["setup"], 0)

    true = TRUE | {"setup": 5e-6}
    found = fit(START | {"setup": 1e-6}, with_setup, with_setup(true), ALGORITHM, SIZES)
    assert np.isnan(found.without_algorithm).tolist() == (ROUNDS == 6).tolist()


def test_derivatives_are_by_differences_only_where_steps_have_become_small():
    start = {f"k{k}": 1e-6 for k in range(8)}
    sizes = 2.0 ** np.arange(40)

    def many(values):
        share = np.array(list(values.values()))
        return sum(share[k] * (1 + (np.arange(40) % (k + 2)) * sizes**0.25) for k in range(8))

    true = {key: 1e-6 * (1 + k) for k, key in enumerate(start)}
    found = fit(start, many, many(true), np.arange(40) % 5, np.arange(40))
    assert found.predicted == pytest.approx(many(true), rel=1e-2)
    assert found.evaluations <= 3 * (len(start) + 5)


def test_what_hardly_matters_has_a_wide_interval_even_where_all_algorithms_pull_the_same_way():
    def nearly_constant(values):
        return 10 * values["weak"] ** 1e-3 * ROUNDS

    found = fit({"weak": 1.0}, nearly_constant, ROUNDS, ALGORITHM, SIZES)
    low, high = found.interval["weak"]
    assert high > 100 * low

"""Regret: Savage's rule in its relative form."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from hopmap.simulator.ensembles.regret import (
    Standing,
    least_regret,
    percent,
    regrets,
    sentence,
    standings,
)

TIMES = hnp.arrays(
    float, hnp.array_shapes(min_dims=2, max_dims=2, max_side=6), elements=st.floats(0.1, 10)
)


def test_a_case_done_by_hand():
    """Best under most models is not least regret: 1 of 3 models costs it a half."""
    times = [[1.0, 1.0, 3.0], [1.1, 1.1, 2.0], [2.0, 2.0, 2.2]]
    assert regrets(times) == pytest.approx(
        np.array([[0, 0, 0.5], [0.1, 0.1, 0], [1, 1, 0.1]]), abs=1e-12
    )
    found = standings(times)
    assert found[0] == pytest.approx((0.5 / 3, 0.5, 2 / 3, 3))
    assert found[1] == pytest.approx((0.2 / 3, 0.1, 1 / 3, 3))
    assert least_regret(found) == 1
    assert sentence("ABC", found) == (
        "B, never more than 10.0 % behind the best; A is best under 67 % of the models, but loses "
        "up to 50.0 %"
    )


@given(TIMES)
def test_under_every_model_some_mapping_has_no_regret_and_none_less(times):
    found = regrets(times)
    assert (found.min(axis=0) == 0).all()
    assert (found == times / times.min(axis=0) - 1).all()


@given(TIMES, st.floats(0.5, 2))
def test_the_unit_of_time_does_not_matter_nor_does_a_slow_model(times, factor):
    slow = times * np.linspace(factor, 1, times.shape[1])
    assert regrets(slow) == pytest.approx(regrets(times), abs=1e-9)


@given(TIMES)
def test_the_choice_has_the_least_worst_regret(times):
    found = standings(times)
    assert found[least_regret(found)].worst == min(regrets(times).max(axis=1))


def test_of_equals_the_one_of_less_mean_regret_is_taken_then_the_first():
    assert least_regret(standings([[1.0, 2.2, 1.1], [1.1, 2.0, 1.0], [1.1, 2.0, 1.1]])) == 1
    assert least_regret(standings([[1.0, 1.0], [1.0, 1.0]])) == 0


def test_who_was_replayed_under_fewer_models_is_not_chosen():
    """A maximum over fewer models is lower by itself."""
    nan = math.nan
    found = standings([[1.0, nan, nan], [1.2, 1.0, 1.1], [1.1, 1.1, 1.0], [nan, nan, nan]])
    assert [each.models for each in found] == [1, 3, 3, 0]
    assert found[3] == Standing(math.inf, math.inf, 0.0, 0)
    assert least_regret(found) == 2
    assert sentence("ABCD", found).endswith(
        "; A is best under 100 % of its 1 models, but loses up to 0.0 %"
    )


def test_a_run_that_takes_no_time_is_no_regret():
    assert regrets([[0.0, 1.0], [0.0, 2.0]]).tolist() == [[0, 0], [0, 1]]


@pytest.mark.parametrize(
    ("times", "said"),
    [
        ([[1, 2], [1, 2]], "A; nothing is faster under any model, nor slower"),
        ([[1, 2], [1, 3]], "A, under every model as fast as the best"),
        (
            [[1, 1, 1.02], [2, 2, 1]],
            "A, best under 67 % of the models and never more than 2.0 % behind",
        ),
        (  # as often best as the other, which is named first
            [[1.5, 1], [1, 1.02]],
            "B, best under 50 % of the models and never more than 2.0 % behind",
        ),
    ],
)
def test_the_sentence_claims_no_more_than_there_is(times, said):
    assert sentence("AB", standings(times)) == said


def test_small_regrets_are_not_written_as_none():
    assert [percent(value) for value in (0, 0.02, 0.0004)] == ["0.0 %", "2.0 %", "0.04 %"]

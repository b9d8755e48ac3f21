"""Medians, intervals and which mappings differ: by hand, and as often right as is promised."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from hopmap.simulator.uncertainty import (
    LEAST,
    Standing,
    faster,
    faster_over_models,
    least_regret,
    least_repeats,
    median_interval,
    not_significantly_slower,
    percent,
    prediction_interval,
    ratio,
    regrets,
    sentence,
    standings,
)

SEEDS = 20


def test_of_twenty_the_sixth_lowest_and_the_sixth_highest_enclose_the_median():
    # 2 P(fewer than 6 heads of 20) = 0.041; with 7 it would be 0.115.
    interval = median_interval(np.arange(20, 0, -1))
    assert interval == (10.5, 6, 15)


@pytest.mark.parametrize(("count", "place"), [(6, 0), (8, 0), (9, 1), (12, 2), (50, 17)])
def test_the_places_are_those_of_the_tables(count, place):
    # Conover, table of the confidence interval of a median
    assert median_interval(range(count))[1:] == (place, count - 1 - place)


def test_one_more_draw_lies_inside_as_often_as_its_rank_says():
    """Of n + 1 draws the last has any rank, all as likely; n + 1 - 2 k ranks are inside."""
    for count, outside in ((6, 1), (39, 1), (40, 1), (78, 1), (79, 2), (399, 10)):
        interval = prediction_interval(np.arange(count, 0, -1))
        assert interval == ((count + 1) / 2, outside, count + 1 - outside)
        share = (count + 1 - 2 * outside) / (count + 1)
        assert share >= 0.95 or outside == 1
        more = (count + 1 - 2 * (outside + 1)) / (count + 1)
        assert more < 0.95, "narrower would do"


def test_fewer_than_six_enclose_nothing():
    with pytest.raises(ValueError, match=f"5 draws: expected at least {LEAST}"):
        median_interval(range(5))


def test_the_interval_misses_the_median_in_at_most_5_percent():
    drawn = np.random.default_rng(1).exponential(size=(4000, SEEDS))
    intervals = [median_interval(each) for each in drawn]
    missed = np.mean([not low <= np.log(2) <= high for _, low, high in intervals])
    assert 0.03 < missed < 0.05


def runs(*medians, spread=0.01, seed=0, seeds=SEEDS):
    """Makespans of mappings with so long medians, independent."""
    drawn = np.random.default_rng(seed).standard_normal((len(medians), seeds))
    return np.array(medians)[:, None] * np.exp(spread * drawn)


def test_of_two_the_one_that_is_faster_with_fifteen_of_twenty_seeds_is_faster():
    # 2 P(at most 5 heads of 20) = 0.041, at most 6: 0.115
    for wins, told in [(20, True), (15, True), (14, False), (5, True), (6, False), (10, False)]:
        times = np.ones((2, SEEDS))
        times[1] += np.where(np.arange(SEEDS) < wins, 0.1, -0.1)
        assert faster(times)[0, 1] == (told and wins > 10)
        assert faster(times)[1, 0] == (told and wins < 10)


def test_equal_times_speak_against_a_difference():
    times = np.ones((2, SEEDS))
    times[1, :14] = 2
    assert not faster(times).any()
    times[1, 14] = 2
    assert faster(times)[0, 1]


def test_the_same_noise_on_both_tells_what_overlaps_otherwise():
    noise = runs(1.0, spread=0.1)[0]
    times = np.stack([noise, 1.01 * noise])
    one, other = map(median_interval, times)
    assert one.low < other.median < one.high
    assert faster(times).tolist() == [[False, True], [False, False]]
    assert ratio(times[1], times[0]) == pytest.approx((1.01, 1.01, 1.01))


def test_one_that_nobody_is_as_fast_as_wins_and_others_tie():
    assert not_significantly_slower(runs(1.0, 1.2, 1.2)) == [0]
    assert sorted(not_significantly_slower(runs(1.2, 1.0, 1.0, 1.3))) == [1, 2]
    assert not_significantly_slower(np.ones((3, SEEDS))) == [0, 1, 2]


def test_over_models_a_mapping_is_faster_that_saves_enough_under_95_per_cent():
    """Of 39 models the interval goes from the least to the largest: one that is worse decides."""
    times = np.ones((2, 39))
    times[1] = 1 / 0.98  # the first saves 2 %
    assert faster_over_models(times, 0.01).tolist() == [[False, True], [False, False]]
    assert not faster_over_models(times, 0.03).any()
    times[1, 7] = 1.0
    assert not faster_over_models(times, 0.01).any()
    assert faster(times)[0, 1]  # the sign test alone would say so
    many = np.repeat(times, 10, axis=1)[:, : 39 * 8]
    many[1] = np.where(np.arange(many.shape[1]) < 6, 1.0, 1 / 0.98)  # 6 of 312: below 2.5 %
    assert faster_over_models(many, 0.01)[0, 1]
    assert not_significantly_slower(times, faster_over_models(times, 0.01)) == [0, 1]
    gap = ratio(times[1], times[0], models=True)
    assert (gap.low, gap.high) == (1.0, times[1].max())


def test_ten_equal_mappings_are_called_different_in_at_most_5_percent():
    # 45 pairs: without Holm every second case would call some different.
    wrong = [faster(runs(*[1.0] * 10, seed=seed)).any() for seed in range(400)]
    assert np.mean(wrong) <= 0.05


@given(st.lists(st.floats(0.1, 10), min_size=2, max_size=8), st.integers(0, 99))
def test_no_two_are_faster_than_each_other_and_somebody_is_unbeaten(medians, seed):
    times = runs(*medians, spread=0.3, seed=seed)
    found = faster(times)
    assert not (found & found.T).any()
    assert not_significantly_slower(times)
    assert (faster(times[::-1])[::-1, ::-1] == found).all()


@pytest.mark.parametrize("mappings", [2, 3, 5, 8, 40])
def test_fewer_repeats_than_the_least_tell_nothing_apart(mappings):
    least = least_repeats(mappings)

    def told(repeats):
        times = np.ones((mappings, repeats))
        times[0] = 0.1  # faster with every seed
        return faster(times).any()

    assert told(least)
    assert not told(least - 1)


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

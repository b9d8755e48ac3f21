"""Medians, intervals and which mappings differ: by hand, and as often right as is promised."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopmap.simulator.ensembles.comparison import faster, least_repeats, ratio, unbeaten
from hopmap.simulator.ensembles.intervals import LEAST, median_interval

SEEDS = 20


def test_of_twenty_the_sixth_lowest_and_the_sixth_highest_enclose_the_median():
    # 2 P(fewer than 6 heads of 20) = 0.041; with 7 it would be 0.115.
    interval = median_interval(np.arange(20, 0, -1))
    assert interval == (10.5, 6, 15)


@pytest.mark.parametrize(("count", "place"), [(6, 0), (8, 0), (9, 1), (12, 2), (50, 17)])
def test_the_places_are_those_of_the_tables(count, place):
    # Conover, table of the confidence interval of a median
    assert median_interval(range(count))[1:] == (place, count - 1 - place)


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
    assert unbeaten(runs(1.0, 1.2, 1.2)) == [0]
    assert sorted(unbeaten(runs(1.2, 1.0, 1.0, 1.3))) == [1, 2]
    assert unbeaten(np.ones((3, SEEDS))) == [0, 1, 2]


def test_ten_equal_mappings_are_called_different_in_at_most_5_percent():
    # 45 pairs: without Holm every second case would call some different.
    wrong = [faster(runs(*[1.0] * 10, seed=seed)).any() for seed in range(400)]
    assert np.mean(wrong) <= 0.05


@given(st.lists(st.floats(0.1, 10), min_size=2, max_size=8), st.integers(0, 99))
def test_no_two_are_faster_than_each_other_and_somebody_is_unbeaten(medians, seed):
    times = runs(*medians, spread=0.3, seed=seed)
    found = faster(times)
    assert not (found & found.T).any()
    assert unbeaten(times)
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

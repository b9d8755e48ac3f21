"""The pace of a loop, from when its first steps ended: by hand, and over steps drawn at random."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hopmap.simulator.steady.pace import pace_of


def ends(increments, ranks=3, late=0.0):
    """When each rank ended each step; the r-th rank is r * `late` behind the first."""
    return np.cumsum(increments) + late * np.arange(ranks)[:, None]


def test_nothing_is_said_before_eight_increments():
    assert pace_of(ends([1.0] * 8), 100) is None
    assert pace_of(ends([1.0] * 9), 100) is not None


def test_equal_steps_go_on_without_error():
    assert pace_of(ends([0.5] * 12, late=0.25), 100) == (1, 0.5, 0.0)


def test_ranks_may_be_behind_each_other_but_not_fall_behind():
    slower = np.outer([1.0, 1.25], np.arange(1, 13))
    pace = pace_of(slower, 100)
    assert pace.seconds == 1.125
    assert pace.error >= 100 * 0.25  # the gap opens by that much


@pytest.mark.parametrize("period", [2, 3, 5])
def test_alternating_steps_have_the_smallest_period(period):
    steps = np.resize([1.0, 2.0, 4.0, 1.5, 3.0][:period], 12 * period)
    pace = pace_of(ends(steps), 7 * period)
    assert (pace.period, pace.seconds) == (period, steps[:period].sum())
    assert pace.error == pytest.approx(0.0, abs=1e-9)


def test_a_period_is_seen_eight_times_before_it_is_believed():
    assert pace_of(ends([1.0, 2.0] * 8), 100).period == 1
    assert pace_of(ends([1.0, 2.0] * 10), 100).period == 2


def test_what_the_first_quarter_did_is_forgotten():
    settled = [1.0] * 30
    assert pace_of(ends([9.0] * 10 + settled), 100) == (1, 1.0, 0.0)
    assert pace_of(ends([9.0] * 12 + settled), 100).error > 0


def test_a_pace_that_changed_once_may_change_again():
    """Half of the steps seen take 1.1 s: nobody knows which of the two is to come."""
    pace = pace_of(ends([1.0] * 25 + [1.1] * 15), 1000)
    assert pace.error >= 1000 * max(pace.seconds - 1.0, 1.1 - pace.seconds)


def test_steps_that_take_longer_and_longer_do_not_settle():
    for steps in (16, 64, 256):
        increments = 1 + np.arange(2 * steps) / steps
        pace = pace_of(ends(increments[:steps]), steps)
        assert abs(steps * pace.seconds - increments[steps:].sum()) <= 2 * pace.error
        assert pace.error > 0.2 * steps


@given(st.integers(0, 2**32), st.integers(9, 200), st.integers(1, 1000), st.booleans())
def test_the_error_covers_steps_that_vary_by_chance(seed, steps, left, walks):
    """Either each step varies, or where a rank is within its step does."""
    rng = np.random.default_rng(seed)
    noise = 0.01 * rng.standard_normal(steps + left)
    times = np.arange(1, steps + left + 1) + (np.cumsum(noise) if walks else noise)
    pace = pace_of(times[None, :steps], left)
    assume(left % pace.period == 0)  # a run leaves its loop when whole periods are left
    told = times[steps - 1] + left / pace.period * pace.seconds
    assert abs(told - times[-1]) <= pace.error

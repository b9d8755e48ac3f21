"""Sequential halving: its budget, its common models, and when it is exact."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopmap.api.robust.robust import budget, halving, rounds_of
from hopmap.simulator.uncertainty import least_regret, standings

pytestmark = pytest.mark.usefixtures("one_core")

SIZES = st.tuples(st.integers(1, 13), st.integers(1, 30))


def table(candidates, models, seed=0):
    return 1 + np.random.default_rng(seed).random((candidates, models))


def halved(times, replays):
    """Return what halving replays of a table, in order, and what it returns."""
    asked = []

    def replay(candidate, model, _check):
        asked.append((candidate, model))
        return times[candidate, model]

    return asked, halving(*times.shape, replay, replays)


@given(SIZES, st.floats(0, 1.2), st.integers(0, 9))
def test_no_more_is_replayed_than_paid_for_and_nothing_twice(sizes, share, seed):
    candidates, models = sizes
    replays = max(candidates, int(share * candidates * models))
    asked, found = halved(table(*sizes, seed), replays)
    assert len(asked) == len(set(asked)) <= replays
    assert (~np.isnan(found)).sum() == len(asked)


@given(SIZES, st.integers(0, 9))
def test_a_budget_for_everything_is_the_exhaustive_search(sizes, seed):
    times = table(*sizes, seed)
    _, found = halved(times, times.size)
    assert (found == times).all()
    assert least_regret(standings(found)) == least_regret(standings(times))


@given(SIZES, st.integers(0, 9))
def test_the_budget_that_is_usual_gives_the_last_two_every_model(sizes, seed):
    candidates, models = sizes
    asked, found = halved(table(*sizes, seed), budget(*sizes))
    complete = (~np.isnan(found)).all(axis=1).sum()
    assert complete >= min(candidates, 2)
    assert len(asked) <= candidates * models


def test_rounds_halve_the_candidates_and_share_the_budget():
    """12 candidates, 96 replays: 24 a round, so 2, 4, 8 and 12 further models."""
    asked, found = halved(table(12, 40), 96)
    each = sorted((~np.isnan(found)).sum(axis=1))
    assert each == [2] * 6 + [6] * 3 + [14] + [26] * 2
    assert len(asked) == 96
    assert rounds_of(12) == 4


@given(st.integers(2, 13), st.integers(0, 9))
def test_candidates_of_a_round_have_their_models_in_common(candidates, seed):
    _, found = halved(table(candidates, 40, seed), 4 * candidates)
    seen = ~np.isnan(found)
    for row in seen:
        assert (np.diff(row.astype(int)) <= 0).all()  # models are taken in their order
    assert seen[:, 0].all()


def test_the_worst_regret_decides_who_is_dropped_not_the_mean():
    """The first and the last are better in the mean, 0.15 and 0.125, and worse at worst."""
    pair = [[1.3, 1.0], [1.2, 1.2], [1.2, 1.2], [1.0, 1.25]]
    _, found = halved(np.tile(pair, 5), 16)
    assert (~np.isnan(found)).sum(axis=1).tolist() == [2, 6, 6, 2]
    assert least_regret(standings(found)) == 1


def test_a_model_that_one_cannot_be_replayed_under_is_left_out_for_all():
    times = table(4, 8)
    times[2, 3] = math.nan
    asked, found = halved(times, 32)
    assert np.isnan(found[:, 3]).all()
    assert not np.isnan(np.delete(found, 3, axis=1)).any()
    assert (3, 3) not in asked


def test_a_model_that_is_refused_costs_what_was_asked():
    """The second of three candidates refuses the first model, after two replays."""
    times = table(3, 9)
    times[1, 0] = math.nan
    asked, found = halved(times, 3 * 9 - 1)
    assert asked[:3] == [(0, 0), (1, 0), (0, 1)]
    assert len(asked) == 2 + 3 * 8
    assert np.isnan(found[:, 0]).all()
    assert not np.isnan(found[:, 1:]).any()


def test_the_first_round_has_a_model_though_its_share_pays_for_none():
    """8 candidates, 15 replays: a third of them is less than one each."""
    asked, _ = halved(table(8, 4), 15)
    assert asked[:8] == [(candidate, 0) for candidate in range(8)]


def test_what_is_left_over_goes_to_those_that_were_dropped_last():
    """8 candidates, 3 models, 18 replays: rounds take 8, 4 and 2; of the 4 that are left over two
    go to the pair dropped in the second round, too few for the four of the first."""
    times = np.arange(1.0, 9.0)[:, None] * np.ones(3)  # who comes first is faster
    _, found = halved(times, 18)
    assert (~np.isnan(found)).sum(axis=1).tolist() == [3] * 4 + [1] * 4

"""Kendall's tau of metrics and outcomes: the definition, and which mappings count."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopmap.scenarios.studies.correlation import LEAST, agreement, distinct, kendall_tau, relation


@pytest.mark.parametrize(
    ("x", "y", "tau"),
    [
        ([1, 2, 3], [4, 5, 6], 1),
        ([1, 2, 3], [6, 5, 4], -1),
        ([1, 2, 3, 4], [1, 2, 4, 3], (5 - 1) / 6),
        # one tie in x: of 3 pairs 2 agree; sqrt((3 - 1) 3) below the fraction
        ([1, 1, 2], [1, 2, 3], 2 / math.sqrt(6)),
        # Kendall 1945, a tie in each: 4 pairs agree, none disagrees
        ([1, 2, 2, 3], [1, 1, 2, 3], 4 / 5),
        ([1e-9, 2e-9, 3e-9], [3e17, 2e17, 1e17], -1),
    ],
)
def test_tau_of_cases_done_by_hand(x, y, tau):
    assert kendall_tau(x, y).value == pytest.approx(tau, abs=1e-12)


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(-3, 3)), min_size=2, max_size=15))
def test_tau_is_agreeing_less_disagreeing_pairs_over_the_pairs_that_could_agree(points):
    x, y = (list(column) for column in zip(*points, strict=True))
    signs = [(np.sign(a - c), np.sign(b - d)) for (a, b), (c, d) in combinations(points, 2)]
    unlike_x, unlike_y = (sum(int(s[k] != 0) for s in signs) for k in (0, 1))
    tau = kendall_tau(x, y)
    if unlike_x and unlike_y:
        agree = sum(int(a * b) for a, b in signs)
        assert tau.value == pytest.approx(agree / math.sqrt(unlike_x * unlike_y), abs=1e-12)
        assert -1 - 1e-12 <= tau.value <= 1 + 1e-12
        assert kendall_tau(y, x).value == pytest.approx(tau.value, abs=1e-12)
        assert kendall_tau(x, [-v for v in y]).value == pytest.approx(-tau.value, abs=1e-12)
        assert kendall_tau([3 * v + 1 for v in x], y).value == pytest.approx(tau.value)
    else:
        assert not tau.known


@pytest.mark.parametrize("x", [[5, 5, 5], [1], [], [math.nan, 1, math.nan]])
def test_without_an_order_there_is_no_tau_and_nothing_clear(x):
    tau = kendall_tau(x, list(range(len(x))))
    assert not tau.known
    assert not tau.clear


def test_what_differs_by_rounding_alone_ties():
    assert kendall_tau([0.1 + 0.2, 0.3, 0.4], [1, 2, 3]) == kendall_tau([0.3, 0.3, 0.4], [1, 2, 3])


def test_a_long_order_is_clear_and_a_short_one_may_be_chance():
    assert kendall_tau(range(8), range(8)).clear
    assert not kendall_tau(range(3), range(3)).clear  # 2 of 6 orders are as far from 0
    assert kendall_tau(range(3), range(3)).chance == pytest.approx(1 / 3)


def test_a_mapping_that_several_found_counts_once(runs_of):
    runs = runs_of([1.0, 2.0, 2.0], [1, 2, 2])
    runs["node_of"] = [np.array([0, 1]), np.array([1, 0]), np.array([1, 0])]
    assert distinct(runs)["mapper"].tolist() == ["m0", "m1"]


def test_a_relation_compares_every_metric_with_what_was_simulated(case_of, runs_of):
    runs = runs_of([3.0, 1.0, 2.0, 4.0], [30, 10, 20, 40], link_seconds_max=[4, 3, 2, 1])
    found = relation(case_of(runs))
    assert found.taus["hop_bytes", "makespan"].value == pytest.approx(1)
    assert found.taus["link_seconds_max", "makespan"].value == pytest.approx(-1 / 3)
    assert not any(outcome == "energy" for _, outcome in found.taus)
    assert not found.outcomes.known
    assert found.between.value == pytest.approx(1)


def test_the_better_half_is_that_of_fewest_hop_bytes(case_of, runs_of):
    times, hops = [3.0, 2.0, 1.0, 7.0, 8.0, 9.0], [1, 2, 3, 7, 8, 9]
    found = relation(case_of(runs_of(times, hops)))
    assert found.better.value == pytest.approx(-1)
    assert found.taus["hop_bytes", "makespan"].value > 0


def test_energy_is_compared_where_all_runs_have_it(case_of, runs_of):
    energy = [1.0, 2.0, 3.0, 4.0]
    found = relation(case_of(runs_of([4.0, 3.0, 2.0, 1.0], [1, 2, 3, 4], energy=energy)))
    assert found.taus["hop_bytes", "energy"].value == pytest.approx(1)
    assert found.outcomes.value == pytest.approx(-1)


def test_too_few_mappings_and_unreplayed_ones_have_no_relation(case_of, runs_of):
    few = list(range(1, LEAST))
    assert relation(case_of(runs_of([float(t) for t in few], few))) is None
    assert relation(case_of(runs_of([math.nan] * 5, [1, 2, 3, 4, 5]))) is None


def test_orders_in_two_cases_are_compared_mapping_by_mapping(case_of, runs_of):
    first = runs_of([1.0, 2.0, 3.0, 4.0], [1, 2, 3, 4])
    last = runs_of([40.0, 30.0, 20.0, 10.0], [1, 2, 3, 4])
    assert agreement(case_of(first), case_of(last.iloc[::-1])).value == pytest.approx(-1)
    assert agreement(case_of(first), case_of(first.iloc[[2, 0, 3]])).value == pytest.approx(1)

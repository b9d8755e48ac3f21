"""Sentences about a study: they say what the figures say, and turn when the figures turn."""

import numpy as np
import pytest

from hopmap.scenarios.studies.correlation import relation
from hopmap.scenarios.studies.relations import gap, of_variation, overall, percent

MANY = list(range(1, 11))
TIMES = [1 + place / 100 for place in range(10)]


@pytest.fixture
def found(case_of, runs_of):
    return lambda *figures, **columns: relation(case_of(runs_of(*figures, **columns)))


def test_fewer_hop_bytes_and_a_shorter_run(found):
    assert overall([found(TIMES, MANY)])[0].startswith(
        "Do fewer hop-bytes mean a shorter run? Mostly yes: clearly so in 1 of 1 case"
    )


def test_the_reverse_is_said_when_the_figures_are_reversed(found):
    other = found(TIMES[::-1], MANY)
    assert (
        "Rather the reverse: clearly so in 0 of 1 case, clearly the reverse in 1"
        in (overall([other])[0])
    )


def test_what_may_be_chance_is_not_called_a_finding(found):
    shuffled = [4, 9, 1, 6, 10, 2, 8, 3, 7, 5]
    other = found(TIMES, shuffled)
    assert "These runs do not show it: clearly so in 0 of 1 case" in overall([other])[0]


def test_metrics_that_are_all_the_same_cannot_tell_mappings_apart(found):
    (choosing,) = overall([found(TIMES, [0] * 10)])
    assert choosing.endswith("in 0 of 1 case.")


def test_energy_is_split_into_what_bytes_cost_and_the_rest(found):
    energy = {"energy": [2.0] * 9 + [3.0], "energy_transfer": [0.5] * 10}
    text = overall([found(TIMES, MANY, **energy)])[-1]
    assert "25\u00a0% of the energy moves bytes over links" in text
    assert not any("energy" in sentence for sentence in overall([found(TIMES, MANY)]))


def test_choosing_by_hop_bytes_is_counted(found):
    sentences = overall([found(TIMES, MANY), found([1.5, *TIMES[1:]], MANY)])
    choosing = next(text for text in sentences if text.startswith("Choosing"))
    assert "in 1 of 2 cases" in choosing


def test_with_noise_medians_name_no_winner_that_is_not_one(found):
    noise = np.random.default_rng(0).normal(1, 0.05, (4, 20))
    times = noise * [[1.0], [1.0], [2.0], [2.0]]
    tied = found([1.0, 1.01, 2.0, 2.0], MANY[:4], makespans=[*times])
    times = noise[:1] * [[1.5], [1.0], [2.0], [2.0]]
    sure = found([1.5, 1.0, 2.0, 2.0], MANY[:4], makespans=[*times])
    told = next(text for text in overall([tied, sure]) if text.startswith("With noise"))
    assert told.endswith("no practical or significant difference from the fastest in 1 of 2 cases.")
    assert not any("noise" in text for text in overall([found(TIMES, MANY)]))


def test_a_gap_knows_all_mappings_of_fewest_hop_bytes(found):
    measured = gap(found([2.0, 1.0, 1.5, 3.0], [5, 8, 5, 9]))
    assert (measured.least, measured.most, measured.ties) == (0.5, 1.0, 2)
    assert (measured.spread, measured.fastest, measured.mapper) == (2.0, "m1", "m0")
    assert measured.more == pytest.approx(0.6)


def test_what_varies_may_change_the_winner_and_the_order(case_of, runs_of):
    first = case_of(runs_of([1.0, 2.0, 3.0, 4.0], MANY[:4]), "ratio 1:1")
    last = case_of(runs_of([8.0, 6.0, 4.0, 2.0], MANY[:4]), "ratio 10:1")
    assert of_variation([first, last]) == (
        "From ratio 1:1 to ratio 10:1 the shortest run changes by +100.0\u00a0%, by m3 instead of "
        "m0; the order of the mappings by runtime is kept with τ −1.00."
    )
    assert "by m0 throughout" in of_variation([first, first])


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.00001, "0"), (0.0004, "0.04"), (0.0123, "1.2"), (0.1, "10"), (2.734, "273")],
)
def test_percentages_keep_two_digits_at_most(value, text):
    assert percent(value) == f"{text}\u00a0%"


def test_differences_of_a_thousandth_are_never_called_mostly_yes(runs_of, case_of):
    runs = runs_of([1 + place / 10_000 for place in range(10)], list(range(1, 11)))
    answer = overall([relation(case_of(runs))])[0]
    assert "It makes no difference here, where runs differ by 0.09\u00a0% at most" in answer
    assert "Mostly" not in answer

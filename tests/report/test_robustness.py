"""What holds over what varies: regrets over the variants of a scenario."""

from types import SimpleNamespace

import numpy as np
import pytest

from hopmap.report.tables import robustness


def table_of(*cases):
    return robustness(SimpleNamespace(variations=lambda trace: [list(cases)]), "trace")


def shown(table):
    return [[cell.text for cell in row] for row in table["rows"]]


def test_the_mapping_of_least_worst_regret_stands_first(runs_of, case_of):
    one, two = (case_of(runs_of(times, [4, 5, 6])) for times in ([1, 1.25, 2], [4, 2, 2]))
    (found,) = table_of(one, two)
    assert shown(found) == [
        ["m1", "+12.5 %", "+25.0 %", "1"],
        ["m0", "+50.0 %", "+100.0 %", "1"],
        ["m2", "+50.0 %", "+100.0 %", "1"],
    ]


def test_of_a_mapper_one_seed_counts_under_all_variants(runs_of, case_of):
    """The best seed of each variant is another mapping: none of them holds."""
    same = {"mapper": ["a", "a", "b"]}
    one = case_of(runs_of([1, 2, 1.5], [4, 5, 6], **same))
    two = case_of(runs_of([2, 1, 1.5], [4, 5, 6], **same))
    (found,) = table_of(one, two)
    assert shown(found) == [["b", "+50.0 %", "+50.0 %", "0"], ["a", "+50.0 %", "+100.0 %", "1"]]


def test_two_seeds_with_one_mapping_are_one(runs_of, case_of):
    nodes = [np.array([0, 1]), np.array([0, 1]), np.array([1, 0])]
    given = {"mapper": ["a", "a", "b"], "node_of": nodes}
    cases = [case_of(runs_of([1, 1, 2], [4, 4, 6], **given)) for _ in range(2)]
    (found,) = table_of(*cases)
    assert [row[0] for row in shown(found)] == ["a", "b"]


@pytest.mark.parametrize("times", [[1, float("nan"), float("nan")], [float("nan")] * 3])
def test_what_was_not_replayed_under_all_is_left_out(runs_of, case_of, times):
    assert (
        table_of(case_of(runs_of([1, 2, 3], [4, 5, 6])), case_of(runs_of(times, [4, 5, 6]))) == []
    )

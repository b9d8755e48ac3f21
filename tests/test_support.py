"""What other tests rely on to have tested all that they say."""

from collections import Counter
from itertools import combinations, product

import pytest

from support.pairs import all_pairs


def met(cases):
    return {
        (i, case[i], j, case[j]) for case in cases for i, j in combinations(range(len(case)), 2)
    }


@pytest.mark.parametrize("sizes", [(2, 2), (5, 1, 1), (3, 3, 3), (7, 4, 2, 2), (46, 8, 3, 2, 2)])
def test_any_two_values_meet_in_few_cases(sizes):
    factors = [range(size) for size in sizes]
    cases = all_pairs(*factors)
    assert met(cases) == met(product(*factors))
    first, second = sorted(sizes)[-2:]
    assert first * second <= len(cases) <= 1.4 * first * second


def test_values_meet_about_equally_often():
    cases = all_pairs(range(20), range(8), range(3), range(2))
    for few in (2, 3):
        often = Counter((case[0], case[few]) for case in cases)
        assert max(often.values()) - min(often.values()) <= 3


def test_values_that_do_not_fit_never_meet_and_all_others_do():
    def fits(one, other):
        return not (isinstance(one, str) and isinstance(other, int)) or len(one) >= other

    factors = ["a", "bb", "ccc"], [0.5, 1.5], [1, 2, 3]
    cases = all_pairs(*factors, fits=fits)
    assert met(cases) == {key for key in met(product(*factors)) if fits(key[1], key[3])}
    assert (0, "a", 2, 2) not in met(cases)


def test_a_value_that_fits_nothing_is_an_error():
    with pytest.raises(ValueError, match="no value"):
        all_pairs([0, 1], [0, 1], [0, 1], fits=lambda one, other: one != 0)

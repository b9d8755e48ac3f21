"""Rules for partners, where they make sense."""

import pytest

from hopmap.traces.extrapolation.partners import Partner, Place, coordinates


@pytest.mark.parametrize(
    ("rule", "dims"),
    [
        (Partner("vector", values=(2, 0)), (2, 11)),  # as far as the dimension is long
        (Partner("vector", values=(0, -3)), (5, 3)),
        (Partner("bit", 0, (2, 0)), (4, 4)),  # of two bits, the third
        (Partner("bit", 0, (-3, 0), from_top=True), (4, 4)),
        (Partner("bit", 1, (0, 0)), (4, 6)),  # no power of two
        (Partner("transpose"), (2, 3)),
        (Partner("rank", values=(6,)), (2, 3)),
    ],
)
def test_a_rule_says_nothing_where_it_makes_no_sense(rule, dims):
    assert rule.at(Place(dims, coordinates(dims), 1)) is None


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        (Partner("vector", values=(1, -1)), [5, 6, 7, 4, 1, 2, 3, 0]),
        (Partner("bit", 0, (-1, 0), from_top=True), [2, 3, 0, 1, 6, 7, 4, 5]),
        (Partner("mirror"), [7, 6, 5, 4, 3, 2, 1, 0]),
        (Partner("rank", values=(-1,), from_top=True), [6] * 8),
    ],
)
def test_rules_by_hand(rule, told):
    """On 4 x 2 ranks, the first dimension fastest."""
    at = rule.at(Place((4, 2), coordinates((4, 2)), 1))
    assert at.ravel().tolist() == told

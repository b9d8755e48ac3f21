"""The table of other models of the network, by hand."""

import pandas as pd
import pytest
from orders import compared


def test_a_model_is_held_against_the_default_mapping_by_mapping():
    """Two of three pairs are in the same order; the default's best is 20 % behind the other's."""
    times = pd.DataFrame({"default": [1.0, 2.0, 4.0], "other": [1.2, 1.0, 6.0]})
    (row,) = compared(times).itertuples()
    assert row.Index == "other"
    assert row.tau == pytest.approx(1 / 3)
    assert (row.least, row.most) == (0.5, 1.5)
    assert row.regret == pytest.approx(0.2)


def test_what_differs_by_less_than_a_billionth_is_a_tie():
    times = pd.DataFrame({"default": [1.0, 1.0 + 1e-12, 2.0], "other": [2.0, 1.0, 3.0]})
    assert compared(times).loc["other", "tau"] == pytest.approx(2 / 6**0.5)

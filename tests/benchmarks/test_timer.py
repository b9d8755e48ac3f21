"""What the benchmark of TiMEr prints: quotients as in the paper, and gains by the partition."""

import numpy as np
import pytest
from timer import Measured, dose


def test_quotients_are_of_minima_means_and_maxima_over_the_seeds():
    """Section 7.1: each of the nine is one figure after by the same before."""
    coco = np.array([[8.0, 10], [6, 12], [7, 14]])
    cut = np.array([[4.0, 2], [4, 2], [4, 2]])
    seconds = np.array([[1.0, 10], [2, 10], [3, 40]])
    found = Measured(coco, cut, seconds).quotients()
    assert found == pytest.approx(
        np.array([[6 / 10, 7 / 12, 8 / 14], [2, 2, 2], [1 / 10, 2 / 20, 3 / 40]])
    )


@pytest.mark.slow
def test_more_is_gained_from_worse_partitions(compiled, capsys):
    gained = dose()
    assert list(gained.values()) == sorted(gained.values())
    assert gained[0.0] < 10 < gained[1.0]
    assert "shuffled" in capsys.readouterr().out

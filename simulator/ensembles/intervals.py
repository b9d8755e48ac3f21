"""Medians and their intervals by order statistics, which suppose nothing about distributions.

Of n draws, fewer than k lie below the median with the probability that a fair coin thrown n times
shows heads fewer than k times. So the k-th lowest and the k-th highest draw enclose the median
with a confidence that is known (Conover, Practical Nonparametric Statistics, 3rd ed., 3.2).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

CHANCE = 0.05  # how often an interval may miss, and how often chance may call equals different
LEAST = 6  # draws of which two enclose the median so surely


class Interval(NamedTuple):
    """A median and what encloses it with a confidence of 95 % at least."""

    median: float
    low: float
    high: float


def median_interval(values: ArrayLike) -> Interval:
    """Return the median of some draws and the interval of what they are drawn from.

    Parameters
    ----------
    values : array_like of float, shape (n,)

    Raises
    ------
    ValueError
        Fewer than `LEAST`.

    Examples
    --------
    >>> median_interval(range(1, 21))
    Interval(median=10.5, low=6.0, high=15.0)
    """
    from scipy.special import bdtr  # slow to import

    ordered = np.sort(np.asarray(values, dtype=np.float64))
    count = len(ordered)
    if count < LEAST:
        raise ValueError(f"{count} draws: expected at least {LEAST}")
    outside = int(np.searchsorted(2 * bdtr(np.arange(count), count, 0.5), CHANCE, "right"))
    low, high = ordered[outside - 1], ordered[count - outside]
    return Interval(float(np.median(ordered)), float(low), float(high))

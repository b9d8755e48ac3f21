"""The pace of a loop: seconds a step, as the steps so far say, and how far that may be off.

The mean over ranks of when each step ended rises by nearly the same every step, or every few steps.
Increments are looked at one by one, and in means of 2, 4, ... neighbours: of increments that vary
independently these differ the less, by the root of their number, while a pace that changes for
some steps shows in long means. This is the method of batch means (Law, *Simulation Modeling and
Analysis*, 9.5.3), with the range of the means at every length instead of a deviation at one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FEWEST, FEWEST_MEANS = 8, 4  # increments to judge by, of any period; and means of them
LONGEST = 8  # steps of a period
ROUNDING = 1e-9  # of a run: additions, and what is different about the last trip


class Pace(NamedTuple):
    """How a loop goes on.

    Attributes
    ----------
    period : int
        Steps after which all repeats.
    seconds : float
        Of a period.
    error : float
        Seconds by which what is left may take longer or shorter than at this pace.
    """

    period: int
    seconds: float
    error: float


def window(steps: int, period: int = 1) -> int:
    """How many steps to judge by, whole periods, of so many: the first quarter is a transient."""
    least = max(FEWEST, 3 * steps // 4)
    return min(-(-least // period), (steps - 1) // period) * period


def pace_of(ends: NDArray[np.float64], left: int) -> Pace | None:
    """Judge the pace of a loop.

    Parameters
    ----------
    ends : ndarray(float64, shape=(ranks, steps))
        When each rank ended each of the first steps, in seconds.
    left : int
        Steps that are to come.

    Returns
    -------
    Pace or None
        None after too few steps to say.
    """
    steps = ends.shape[1]
    if window(steps) < FEWEST:
        return None
    paces = [
        _pace(ends[:, steps - 1 - window(steps, period) :: period], period, left)
        for period in range(1, LONGEST + 1)
        if window(steps, period) >= FEWEST * period
    ]
    # A longer period has to explain something: chance alone makes some of them look better.
    return min(paces, key=lambda pace: pace.error * (1 if pace.period == 1 else 10))


def _pace(ends: NDArray[np.float64], period: int, left: int) -> Pace:
    """Judge by the ends of periods."""
    mean = ends.mean(axis=0)
    increments = np.diff(mean)
    count, length, widest = len(increments), 1, 0.0
    while count // length >= FEWEST_MEANS:
        means = increments[count % length :].reshape(-1, length).mean(axis=1)
        widest = max(widest, float(np.ptp(means)) * length**0.5)
        length *= 2
    periods = left / period
    changes = 3 * widest / min(count, max(periods, 1)) ** 0.5
    apart = float(np.ptp(ends[:, -1] - ends[:, 0])) / count
    swing = float(np.ptp(ends - mean, axis=1).max())
    return Pace(period, float(increments.mean()), periods * (changes + apart) + 2 * swing)

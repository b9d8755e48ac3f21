"""Which mappings differ: their makespans seed by seed, all of them with the same noise.

Of two mappings the first is faster if it is with so many of the seeds that chance would hardly do
it: the sign test, in which equal times count against a difference. All pairs of a case are tested,
and some of hundreds would pass by chance, so that levels are Holm's: the surest pair has to pass
at 5 % divided by all pairs, the next one by one pair less, and so on until one fails. No pair at
all of those that are equal is then called different in 95 % of cases.

Source: Holm, A simple sequentially rejective multiple test procedure, Scand. J. Statistics 6
(1979).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .intervals import CHANCE, LEAST, Interval, median_interval

Flags = NDArray[np.bool_]


def faster(times: ArrayLike) -> Flags:
    """Return which mappings are faster than which, beyond what noise explains.

    Parameters
    ----------
    times : array_like of float, shape (mappings, seeds)
        Makespans; of one seed all have the same noise.

    Returns
    -------
    ndarray(bool, shape=(mappings, mappings))
        Whether the one of the row is faster than that of the column; of two that are tied neither
        is.
    """
    from scipy.special import bdtr  # slow to import

    rows = np.asarray(times, dtype=np.float64)
    count, seeds = rows.shape
    first, second = np.triu_indices(count, 1)
    wins = (rows[first] < rows[second]).sum(axis=1)
    losses = (rows[first] > rows[second]).sum(axis=1)
    chance = 2 * bdtr(seeds - np.maximum(wins, losses), seeds, 0.5)
    order = np.argsort(chance, kind="stable")
    passed = chance[order] <= CHANCE / np.arange(len(order), 0, -1)
    differ = np.zeros(len(order), dtype=np.bool_)
    differ[order] = np.logical_and.accumulate(passed)
    found = np.zeros((count, count), dtype=np.bool_)
    found[first, second] = differ & (wins > losses)
    found[second, first] = differ & (losses > wins)
    return found


def least_repeats(mappings: int) -> int:
    """Return of how many seeds at least one of so many mappings can be called faster.

    Examples
    --------
    >>> least_repeats(2), least_repeats(8)
    (6, 11)
    """
    pairs = mappings * (mappings - 1) // 2
    return next(seeds for seeds in range(LEAST, 99) if 2.0 ** (1 - seeds) * pairs <= CHANCE)


def unbeaten(times: ArrayLike) -> list[int]:
    """Return the mappings than which none is faster, lowest median first.

    One alone is the winner; several cannot be told apart.
    """
    rows = np.asarray(times, dtype=np.float64)
    beaten = np.asarray(faster(rows).any(axis=0))
    order = np.argsort(np.median(rows, axis=1), kind="stable")
    return [int(place) for place in order if not beaten[place]] or [int(order[0])]


def ratio(times: ArrayLike, reference: ArrayLike) -> Interval:
    """Return the median of the ratio of two mappings' makespans, seed by seed, and its interval."""
    return median_interval(np.asarray(times, float) / np.asarray(reference, float))

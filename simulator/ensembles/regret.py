"""Regret: how much longer a mapping runs than the best one under each of several models.

What is not known (buffers, bandwidths, noise, ...) is a set of models, each replayed with every
mapping. Savage's rule takes the mapping whose worst regret is the least (The theory of statistical
decision, J. American Statistical Association 46, 1951); its relative form, a quotient of costs in
place of a difference, is that of Kouvelis and Yu, Robust discrete optimization, 1997.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

AS_FAST = 1e-9  # of a makespan: models in which mappings differ by less have several best ones


class Standing(NamedTuple):
    """How a mapping fares over models.

    Attributes
    ----------
    mean, worst : float
        Of its regrets, 0.02 is 2 %.
    best : float
        Share of the models in which no mapping is faster.
    models : int
        In how many it was replayed.
    """

    mean: float
    worst: float
    best: float
    models: int


def regrets(times: ArrayLike) -> Floats:
    """Return how much longer every mapping runs than the best one of its model.

    Parameters
    ----------
    times : array_like of float, shape (mappings, models)
        Makespans, NaN where a mapping was not replayed.

    Returns
    -------
    ndarray(float64, shape=(mappings, models))
        T(c, d) / min over c' of T(c', d) - 1, over those that were replayed; NaN as in `times`.

    Examples
    --------
    >>> regrets([[2.0, 3.0], [1.0, 3.3]]).round(3).tolist()
    [[1.0, 0.0], [0.0, 0.1]]
    """
    rows = np.asarray(times, dtype=np.float64)
    least = np.where(np.isnan(rows), np.inf, rows).min(axis=0, initial=np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = rows / least - 1
    found[(least == 0) & (rows == 0)] = 0.0  # nothing takes time: all are alike
    return np.asarray(found, dtype=np.float64)


def standings(times: ArrayLike) -> list[Standing]:
    """Return how every mapping fares; infinitely bad where it was never replayed."""
    return [_standing(row[~np.isnan(row)]) for row in regrets(times)]


def _standing(row: Floats) -> Standing:
    if not len(row):
        return Standing(math.inf, math.inf, 0.0, 0)
    best = float((row <= AS_FAST).mean())
    return Standing(float(row.mean()), float(row.max()), best, len(row))


def least_regret(found: Sequence[Standing]) -> int:
    """Return the mapping of least worst regret; of equals that of the least mean, then the first.

    Mappings that were replayed under fewer models than others do not stand beside these.
    """
    most = max(each.models for each in found)
    places = [place for place, each in enumerate(found) if each.models == most]
    return min(places, key=lambda place: (found[place].worst, found[place].mean, place))


def sentence(names: Sequence[str], found: Sequence[Standing]) -> str:
    """Say which mapping holds, and what the one that is best most often risks.

    Examples
    --------
    >>> sentence("AB", [Standing(0.03, 0.09, 0.61, 100), Standing(0.01, 0.02, 0.39, 100)])[:43]
    'B, never more than 2.0 % behind the best; A'
    """
    chosen = least_regret(found)
    one, name = found[chosen], names[chosen]
    if max(each.worst for each in found) <= AS_FAST:
        return f"{name}; nothing is faster under any model, nor slower"
    if one.worst <= AS_FAST:
        return f"{name}, under every model as fast as the best"
    often = max(range(len(found)), key=lambda place: (found[place].best, place == chosen))
    other = found[often]
    if often == chosen:
        wins = f"{100 * one.best:.0f} % of the models"
        return f"{name}, best under {wins} and never more than {percent(one.worst)} behind"
    its = "the" if other.models == one.models else f"its {other.models}"
    return (
        f"{name}, never more than {percent(one.worst)} behind the best; {names[often]} is best "
        f"under {100 * other.best:.0f} % of {its} models, but loses up to {percent(other.worst)}"
    )


def percent(regret: float) -> str:
    """Write a regret: "2.0 %"; small ones in digits that do not hide them."""
    return f"{100 * regret:.1f} %" if regret >= 0.001 or regret == 0 else f"{100 * regret:.2g} %"

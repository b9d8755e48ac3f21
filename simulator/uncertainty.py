"""What several replays say together: medians, intervals, which mappings differ, and regret.

Intervals are by order statistics, which suppose nothing about distributions. Of n draws, fewer than
k lie below the median with the probability that a fair coin thrown n times shows heads fewer than k
times. So the k-th lowest and the k-th highest draw enclose the median with a confidence that is
known (Conover, Practical Nonparametric Statistics, 3rd ed., 3.2).

Mappings are compared seed by seed, all with the same noise. The first of two is faster if it is
with so many of the seeds that chance would hardly do it: the sign test, in which equal times count
against a difference. All pairs of a case are tested, and some of hundreds would pass by chance, so
that levels are Holm's: the surest pair has to pass at 5 % divided by all pairs, the next one by one
pair less, and so on until one fails. No pair at all of those that are equal is then called
different in 95 % of cases (Holm, A simple sequentially rejective multiple test procedure, Scand. J.
Statistics 6, 1979).

Regret is how much longer a mapping runs than the best one under each of several models of what is
not known (buffers, bandwidths, noise, ...). Savage's rule takes the mapping whose worst regret is
the least (The theory of statistical decision, J. American Statistical Association 46, 1951); its
relative form, a quotient of costs in place of a difference, is that of Kouvelis and Yu, Robust
discrete optimization, 1997.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hopmap.arrays import Bools, Floats
from hopmap.units import show_seconds_to

CHANCE = 0.05  # how often an interval may miss, and how often chance may call equals different
LEAST = 6  # draws of which two enclose the median so surely

RELEVANCE = 0.01  # differences of runtimes below this share make no practical difference
AS_FAST = 1e-9  # of a makespan: models in which mappings differ by less have several best ones


class Interval(NamedTuple):
    """A median and what encloses it with a confidence of 95 % at least."""

    median: float
    low: float
    high: float


def median_interval(values: ArrayLike) -> Interval:
    """Return the median of some draws and the interval of what they are drawn from."""
    from scipy.special import bdtr  # slow to import

    ordered = np.sort(np.asarray(values, dtype=np.float64))
    count = len(ordered)
    if count < LEAST:
        raise ValueError(f"{count} draws: expected at least {LEAST}")
    outside = int(np.searchsorted(2 * bdtr(np.arange(count), count, 0.5), CHANCE, "right"))
    low, high = ordered[outside - 1], ordered[count - outside]
    return Interval(float(np.median(ordered)), float(low), float(high))


def prediction_interval(values: ArrayLike) -> Interval:
    """Return the median of some draws and what encloses one more draw.

    That holds with 95 % from 39 draws on, or else with (n - 1) / (n + 1), between the least and the
    largest of n (Wilks, Determination of sample sizes for setting tolerance limits, 1941).
    """
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    outside = max(1, int(CHANCE / 2 * (len(ordered) + 1)))
    low, high = ordered[outside - 1], ordered[len(ordered) - outside]
    return Interval(float(np.median(ordered)), float(low), float(high))


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Makespans of replays with noise; two mappings are paired, seed by seed."""

    makespans: Floats  # shape (repeats,): seconds
    seed: int  # the first one, of the first replay; the others follow
    noise: Mapping[str, float]  # levels of noise, by their keys ("noise.compute")

    @property
    def interval(self) -> Interval:
        """Median, and its interval of 95 %."""
        return median_interval(self.makespans)

    def __str__(self) -> str:
        median, between = format_interval(self.interval)
        return f"median of {len(self.makespans)} with noise {median}, 95 % interval {between}"

    def to_dict(self) -> dict[str, Any]:
        """Return what ``simulate --json`` prints of it."""
        return {
            **self.interval._asdict(),
            "seed": self.seed,
            "noise": dict(self.noise),
            "makespans": self.makespans.tolist(),
        }


def format_interval(interval: Interval) -> tuple[str, str]:
    """Write seconds as ("1.25 ms", "1.24 to 1.27 ms"), in digits that tell the ends apart."""
    for digits in (3, 4, 5, 6):
        median, low, high = (show_seconds_to(digits, seconds) for seconds in interval)
        if low != high:
            break
    unit = f" {high.rpartition(' ')[2]}"
    return median, f"{low.removesuffix(unit)} to {high}"


def faster(times: ArrayLike) -> Bools:
    """Return which mappings are faster than which, beyond what noise explains.

    Makespans have shape (mappings, seeds); of one seed all have the same noise. Of the result,
    shape (mappings, mappings), each entry says whether the mapping of the row is faster than that
    of the column; of two that are tied neither is.
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
    """Return of how many seeds at least one of so many mappings can be called faster."""
    pairs = mappings * (mappings - 1) // 2
    return next(seeds for seeds in range(LEAST, 99) if 2.0 ** (1 - seeds) * pairs <= CHANCE)


def faster_over_models(times: ArrayLike, relevance: float) -> Bools:
    """Return which mappings are faster than which over models of what is not known.

    Makespans have shape (mappings, models). A mapping is faster if it saves a share of `relevance`
    at least, at both ends of what encloses 95 % of the models: as `advise` has it.
    """
    rows = np.asarray(times, dtype=np.float64)
    gains = 1 - rows[:, None, :] / rows[None, :, :]
    lows = [[prediction_interval(pair).low for pair in row] for row in gains]
    return np.array(lows) >= max(relevance, AS_FAST)


def not_significantly_slower(times: ArrayLike, faster_than: Bools | None = None) -> list[int]:
    """Return the mappings than which none is faster, lowest median first.

    `faster_than` is what `faster_over_models` found; `faster` when left out. One alone is the
    winner; several are tied.
    """
    rows = np.asarray(times, dtype=np.float64)
    found = faster(rows) if faster_than is None else faster_than
    beaten = np.asarray(found.any(axis=0))
    order = np.argsort(np.median(rows, axis=1), kind="stable")
    return [int(place) for place in order if not beaten[place]] or [int(order[0])]


def ratio(times: ArrayLike, reference: ArrayLike, *, models: bool = False) -> Interval:
    """Return the median of the ratio of two mappings' makespans, seed by seed, and its interval.

    Over `models` the interval is that of 95 % of them, and else that of the median.
    """
    pairs = np.asarray(times, float) / np.asarray(reference, float)
    return prediction_interval(pairs) if models else median_interval(pairs)


class Standing(NamedTuple):
    """How a mapping fares over models."""

    # mean, worst: of its regrets, 0.02 is 2 %
    mean: float
    worst: float
    best: float  # share of the models in which no mapping is faster
    models: int  # in how many it was replayed


def regrets(times: ArrayLike) -> Floats:
    """Return how much longer every mapping runs than the best one of its model.

    That is T(c, d) / min over c' of T(c', d) - 1, of makespans of shape (mappings, models), over
    those that were replayed; NaN where one was not.
    """
    rows = np.asarray(times, dtype=np.float64)
    least = np.where(np.isnan(rows), np.inf, rows).min(axis=0, initial=np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = rows / least - 1
    found[(least == 0) & (rows == 0)] = 0.0  # nothing takes time: all are equal
    return np.asarray(found, dtype=np.float64)


def standings(times: ArrayLike) -> list[Standing]:
    """Return how every mapping fares; infinitely bad where it was never replayed."""
    return [_standing(row[~np.isnan(row)]) for row in regrets(times)]


def _standing(row: Floats) -> Standing:
    if not len(row):
        return Standing(math.inf, math.inf, 0.0, 0)
    best = float((row <= AS_FAST).mean())
    return Standing(float(row.mean()), float(row.max()), best, len(row))


def least_regret(standings: Sequence[Standing]) -> int:
    """Return the mapping of least worst regret; of equals the one of least mean, then the first.

    Mappings that were replayed under fewer models than others do not compete with these.
    """
    most = max(each.models for each in standings)
    places = [place for place, each in enumerate(standings) if each.models == most]
    return min(places, key=lambda place: (standings[place].worst, standings[place].mean, place))


def sentence(names: Sequence[str], standings: Sequence[Standing]) -> str:
    """Say which mapping holds, and what the one that is best most often risks."""
    chosen = least_regret(standings)
    one, name = standings[chosen], names[chosen]
    if max(each.worst for each in standings) <= AS_FAST:
        return f"{name}; nothing is faster under any model, nor slower"
    if one.worst <= AS_FAST:
        return f"{name}, under every model as fast as the best"
    often = max(range(len(standings)), key=lambda place: (standings[place].best, place == chosen))
    other = standings[often]
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

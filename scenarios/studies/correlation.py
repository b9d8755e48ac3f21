"""Does the order of mappings by a metric tell their order by runtime, or by energy? Kendall's tau.

Of all pairs of mappings that differ in both figures, tau-b compares those that both put in the same
order with those that they do not: +1 is the same order, 0 none, -1 the reverse; pairs that tie in
one figure lower it. What counts is distinct mappings: seeds and mappers that find the same one are
one. Source: Kendall, The treatment of ties in ranking problems, Biometrika 33 (1945).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from hopmap.arrays import Floats
from hopmap.scenarios.results.study import Case
from hopmap.units import MISSING

LEAST = 4  # mappings that make an order worth comparing
DIGITS = 9  # figures that agree to so many are the same
CHANCE = 0.05  # a tau that chance would give as often as this says nothing

# What a metric is called; the thesis' IeNPC is the first four.
METRICS: Mapping[str, str] = {
    "hop_bytes": "hop-bytes",
    "hop_messages": "hop-messages",
    "bytes_congestion_max": "busiest link, bytes",
    "messages_congestion_max": "busiest link, messages",
    "link_seconds_total": "link time, sum",
    "link_seconds_max": "link time, busiest link",
    "replayed_hop_bytes": "hop-bytes with collectives",
    "replayed_congestion_max": "busiest link with collectives",
}
OUTCOMES: Mapping[str, str] = {"makespan": "simulated runtime", "energy": "energy"}


class Tau(NamedTuple):
    """Kendall's tau-b and how often chance alone would be as far from 0; NaN if undefined."""

    value: float
    chance: float

    @property
    def known(self) -> bool:
        """Whether there is one: no figure is the same for all."""
        return math.isfinite(self.value)

    @property
    def clear(self) -> bool:
        """Whether it is unlikely to be chance."""
        return self.known and self.chance < CHANCE


def format_tau(value: float) -> str:
    """Write a tau: "+0.42"."""
    return MISSING if value != value else f"{value:+.2f}".replace("-", "−")


def kendall_tau(x: ArrayLike, y: ArrayLike) -> Tau:
    """Compare two orders of the same things, by two figures of each, shape (n,).

    Pairs in which one is NaN are left out. The result is NaN for fewer than two things, or where x
    or y is the same for all.

    Examples
    --------
    >>> round(kendall_tau([1, 2, 3, 4], [10, 20, 40, 30]).value, 3)
    0.667
    """
    a, b = _round(x), _round(y)
    known = np.isfinite(a) & np.isfinite(b)
    a, b = a[known], b[known]
    if len(a) < 2 or (a == a[0]).all() or (b == b[0]).all():
        return Tau(math.nan, math.nan)
    return _of_orders(*(np.unique(each, return_inverse=True)[1].tobytes() for each in (a, b)))


@lru_cache(maxsize=10_000)
def _of_orders(a: bytes, b: bytes) -> Tau:
    """Compare two orders of ranks; thousands of cases have few orders, and few mappings each."""
    from scipy.stats import kendalltau  # slow to import

    result = kendalltau(np.frombuffer(a, np.int64), np.frombuffer(b, np.int64), variant="b")
    return Tau(float(result.statistic), float(result.pvalue))


def distinct(runs: pd.DataFrame) -> pd.DataFrame:
    """Keep one run of every mapping, the first."""
    keys = [np.asarray(node_of, dtype=np.int64).tobytes() for node_of in runs["node_of"]]
    return runs[~pd.Series(keys, index=runs.index).duplicated()]


class Relation(NamedTuple):
    """How metrics and outcomes go together over the mappings of a case."""

    case: Case
    runs: pd.DataFrame  # One of every distinct mapping.
    # By metric and outcome; outcomes that were not simulated are missing.
    taus: Mapping[tuple[str, str], Tau]
    between: Tau  # Of hop-bytes and the busiest link's bytes.
    outcomes: Tau  # Of runtime and energy.
    better: Tau  # Of hop-bytes and runtime, over the half with the fewest hop-bytes.


@lru_cache(maxsize=4096)
def relation(case: Case) -> Relation | None:
    """Compare the orders of a case's mappings; None if it was not replayed or has too few."""
    runs = distinct(case.runs[case.runs["makespan"].notna()])
    if len(runs) < LEAST:
        return None
    outcomes = [name for name in OUTCOMES if runs[name].notna().all()]
    taus = {
        (metric, outcome): kendall_tau(runs[metric], runs[outcome])
        for outcome in outcomes
        for metric in METRICS
    }
    better = runs[runs["hop_bytes"] <= runs["hop_bytes"].median()]
    return Relation(
        case,
        runs,
        taus,
        kendall_tau(runs["hop_bytes"], runs["bytes_congestion_max"]),
        kendall_tau(runs["makespan"], runs["energy"].astype(float)),
        kendall_tau(better["hop_bytes"], better["makespan"]),
    )


def relations(cases: Sequence[Case]) -> list[Relation]:
    """Return the relations of all cases that have one."""
    return [found for case in cases if (found := relation(case)) is not None]


def agreement(first: Case, last: Case) -> Tau:
    """Compare the runtimes of the same mappings in two cases."""
    columns = ["node_of", "makespan"]
    tables = []
    for case in (first, last):
        runs = distinct(case.runs[columns])
        keys = [np.asarray(node_of, dtype=np.int64).tobytes() for node_of in runs["node_of"]]
        tables.append(pd.Series(runs["makespan"].to_numpy(), index=keys))
    both = pd.concat(tables, axis=1, join="inner")
    return kendall_tau(both[0], both[1])


def _round(values: ArrayLike) -> Floats:
    """Round to DIGITS significant digits, so that what differs by rounding alone ties."""
    array = np.asarray(values, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = 10.0 ** (DIGITS - 1 - np.floor(np.log10(np.abs(array))))
        rounded = np.round(array * scale) / scale
    return np.where((array == 0) | ~np.isfinite(array), array, rounded)

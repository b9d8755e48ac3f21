"""Parameters of links and end points from measured ping-pongs, by the closed form of the model.

Half a round trip of S bytes between nodes that are h links apart takes, alone in the network with
cut-through (docs/explanations/network-and-routing.md),

    T = o + c (E + h t) + S / B        c = 1 below the eager limit, else 3: request, grant, data
    T = o + c m + S / M                within a node, h = 0

with o = overhead.send + overhead.recv, E = injection.latency + ejection.latency, t = link.latency,
m = memory.latency. For a fixed eager limit this is linear in o, E, t, 1/B, m and 1/M, none of them
negative: least squares of relative errors, reweighted by Tukey's biweight from a fit of least
absolute errors, so that a few wild values have no weight; if they are many, that fit it stays. The
eager limit is the size at which a break is worth its two parameters (Bayes' criterion, with errors
as Laplace distributes them).

Terms that the sizes and hops at hand only see as a sum keep the proportions that the model's
defaults have, as far as none is negative: equations of that, of next to no weight, are among the
measured ones. No ping-pong tells overhead.send from overhead.recv, injection from ejection, which
server of a path is the slowest, or a gap: `Fit.proportioned` and the command say so.

Sources: Holland and Welsch, Robust regression using iteratively reweighted least-squares, Comm. in
Statistics A6 (1977), for the reweighting and its constants; Schwarz, Estimating the dimension of a
model, Annals of Statistics 6 (1978). Cost: some dozens of fits, each linear in the measurements.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from hopmap.arrays import Bools, Floats, Ints
from hopmap.topologies.families.grid import DEFAULT_LINK

from .parameters import Parameters

TERMS = ("overhead", "ends", "link", "memory", "byte", "memory_byte")
# Seconds of the delays, where only their sum is known: in proportion to the model's defaults.
USUAL = np.array(
    [
        Parameters.overhead_send + Parameters.overhead_recv,
        Parameters.injection_latency + Parameters.ejection_latency,
        DEFAULT_LINK.latency,
        Parameters.memory_latency,
    ]
)
HABIT = 1e-5  # weight of these proportions against a measurement
BREAKS = 32  # breaks at a time
ROUNDS, SETTLED = 60, 1e-10
EXACT = 1e-7  # mean relative error below which a fit is as good as any
WILD = 0.1  # weight below which a measurement is wild
FOLDS = 24  # fits for predictions of what was left out
MOST_WILD = 0.25  # of the measurements; beyond, the fit is of least absolute errors
TUKEY = 4.685  # residuals in scales beyond which there is no weight


@dataclass(frozen=True, eq=False)
class PingPong:
    """Measurements, one entry each."""

    size: Ints  # bytes of a message
    time: Floats  # seconds of half a round trip
    hops: Ints  # links between the two ranks' nodes; 0 where it is one node


class Solution(NamedTuple):
    """Terms that fit measurements."""

    limit: int | None  # eager limit, None without a break
    table: Floats  # see `table_of`
    terms: Floats  # seconds and seconds a byte, one of each of `TERMS`
    weight: Floats  # 1 for what fits, 0 for what is left out as wild
    free: Ints  # terms of which only a sum is known
    unknowns: int  # what the measurements have to tell, the eager limit counted


def solve(data: PingPong) -> Solution:
    """Fit the terms and the eager limit."""
    sizes = np.unique(data.size)
    # Two sizes at least on either side of a break; of many sizes the nearest to the best are tried.
    limits = sizes[2:-1].tolist()
    step = -(-len(limits) // BREAKS) or 1
    best = _trial(data, None)
    places = range(0, len(limits), step)
    while True:
        trials = [(_trial(data, limits[k]), k) for k in places]
        better = min(trials, key=lambda trial: trial[0].criterion, default=None)
        if better is not None and better[0].criterion < best.criterion - 1e-9:
            best, centre = better
        if step == 1 or best.limit is None:
            break
        low, high = max(centre - step, 0), min(centre + step + 1, len(limits))
        step = -(-step // BREAKS)
        places = range(low, high, step)
    limit, table, habit, terms, unknowns, _ = best
    robust, weight = _biweight(table / data.time[:, None], habit, terms)
    wild = int((weight < WILD).sum())
    if wild <= MOST_WILD * len(weight) and len(weight) - wild > unknowns:
        terms = robust
    else:
        # Not single values, but the model is apart from what was measured, or too few others are
        # left to tell which is wild: all of it counts.
        weight = np.ones(len(weight))
    return Solution(limit, table, terms, weight, _free(table), unknowns)


def predict_left_out(data: PingPong) -> Floats:
    """Return seconds of each measurement by a fit to the other sizes; NaN if they do not tell.

    Beyond `FOLDS` sizes several are left out together.
    """
    sizes = np.unique(data.size, return_inverse=True)[1] % FOLDS
    predicted = np.full(len(data.size), np.nan)
    for fold in np.unique(sizes):
        out = sizes == fold
        rest = solve(PingPong(data.size[~out], data.time[~out], data.hops[~out]))
        left = table_of(PingPong(data.size[out], data.time[out], data.hops[out]), rest.limit)
        predicted[out] = np.where(_determined(rest.table, left), left @ rest.terms, np.nan)
    return predicted


def _determined(table: Floats, left: Floats) -> Bools:
    """Whether rows are combinations of a table's rows: a fit to the table then predicts them."""
    length = np.linalg.norm(table, axis=0)
    length[length == 0] = 1.0
    _, values, rows = np.linalg.svd(table / length, full_matrices=False)
    basis = rows[values > values[0] * 1e-9]
    scaled = left / length
    beyond = np.linalg.norm(scaled - scaled @ basis.T @ basis, axis=1)
    determined: Bools = beyond <= 1e-6 * np.linalg.norm(scaled, axis=1)
    return determined


class _Trial(NamedTuple):
    """A fit with one eager limit, None for no break."""

    limit: int | None
    table: Floats
    habit: Floats
    terms: Floats
    unknowns: int
    criterion: float


def _trial(data: PingPong, limit: int | None) -> _Trial:
    """Fit of least absolute errors, and Bayes' criterion for it."""
    table, count = table_of(data, limit), len(data.size)
    relative = table / data.time[:, None]
    habit = _habit(_free(table), float(data.time.min()))
    terms = _absolute(relative, habit)
    error = max(float(np.abs(relative @ terms - 1).mean()), EXACT)
    unknown = int(np.linalg.matrix_rank(_normalise(table))) + (limit is not None)
    criterion = float(2 * count * np.log(error) + unknown * np.log(count))
    return _Trial(limit, table, habit, terms, unknown, criterion)


def table_of(data: PingPong, limit: int | None) -> Floats:
    """Return what each of `TERMS` counts in every measurement, shape (measurements, terms)."""
    late = np.zeros(len(data.size), dtype=np.bool_) if limit is None else data.size >= limit
    crossings = np.where(late, 3.0, 1.0)
    away = data.hops > 0
    return np.stack(
        (
            np.ones(len(data.size)),
            crossings * away,
            crossings * data.hops,
            crossings * ~away,
            data.size * away,
            data.size * ~away,
        ),
        axis=1,
    ).astype(np.float64)


def _normalise(table: Floats) -> Floats:
    """Columns scaled to the same length; columns of zeros are left out."""
    seen = table[:, table.any(axis=0)]
    normalised: Floats = seen / np.linalg.norm(seen, axis=0)
    return normalised


def _free(table: Floats) -> Ints:
    """Return terms that can grow at the cost of others without a change of any measurement."""
    _, values, rows = np.linalg.svd(_normalise(table))
    rank = int((values > values[0] * 1e-9).sum())
    free = np.abs(rows[rank:]).max(axis=0, initial=0.0) > 1e-6
    found: Ints = np.flatnonzero(table.any(axis=0))[free]
    return found


def _absolute(relative: Floats, habit: Floats) -> Floats:
    """Terms of least absolute errors of ``relative @ terms = 1``, none negative."""
    terms = _fit_weighted(relative, habit, np.ones(len(relative)))
    for _ in range(ROUNDS):
        error = np.abs(relative @ terms - 1)
        floor = max(float(np.median(error)) * 1e-3, EXACT)
        before, terms = terms, _fit_weighted(relative, habit, 1 / np.maximum(error, floor))
        if np.allclose(terms, before, rtol=SETTLED, atol=0):
            break
    return terms


def _biweight(relative: Floats, habit: Floats, terms: Floats) -> tuple[Floats, Floats]:
    """Terms, and the weight of each measurement, by Tukey's biweight from these terms."""
    weight = np.ones(len(relative))
    for _ in range(ROUNDS):
        error = relative @ terms - 1
        scale = max(float(np.median(np.abs(error))) / 0.6745, EXACT)
        weight = np.maximum(1 - (error / (TUKEY * scale)) ** 2, 0) ** 2
        before, terms = terms, _fit_weighted(relative, habit, weight)
        if np.allclose(terms, before, rtol=SETTLED, atol=0):
            break
    return terms, weight


def _habit(free: Ints, shortest: float) -> Floats:
    """Equations of the free delays' proportions, in times of the shortest measurement."""
    free = free[free < len(USUAL)]
    rows = np.zeros((max(len(free) - 1, 0), len(TERMS)))
    for row, (one, other) in zip(rows, pairwise(free.tolist()), strict=True):
        row[[one, other]] = 1 / USUAL[one], -1 / USUAL[other]
    habit: Floats = rows * (HABIT * USUAL.sum() / shortest)
    return habit


def _fit_weighted(relative: Floats, habit: Floats, weight: Floats) -> Floats:
    """Weighted least squares of ``relative @ terms = 1`` and of the habit, no term negative."""
    from scipy.optimize import nnls

    root = np.sqrt(weight / weight.mean())
    rows = np.concatenate((relative * root[:, None], habit))
    length = np.linalg.norm(rows, axis=0)
    length[length == 0] = 1.0
    terms, _ = nnls(rows / length, np.concatenate((root, np.zeros(len(habit)))))
    return np.asarray(terms / length, dtype=np.float64)

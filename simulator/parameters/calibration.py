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

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from hopmap.arrays import Bools, Floats, Ints
from hopmap.topologies.families.grid import DEFAULT_LINK

from .keys import ParameterError
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
WORDS = {
    "overhead": "overheads",
    "ends": "latency of injection and ejection",
    "link": "latency of links",
    "memory": "latency of memory",
}
WILD = 0.1  # weight below which a measurement is wild
MOST_WILD = 0.25  # of the measurements; beyond, the fit is of least absolute errors
TUKEY = 4.685  # residuals in scales beyond which there is no weight


@dataclass(frozen=True, eq=False)
class PingPong:
    """Measurements, one entry each."""

    size: Ints  # bytes of a message
    time: Floats  # seconds of half a round trip
    hops: Ints  # links between the two ranks' nodes; 0 where it is one node


@dataclass(frozen=True, eq=False)
class Fit:
    """Parameters, and how far they are from what was measured."""

    measured: PingPong
    parameters: Mapping[str, float]  # by key, as `parameters_from` and ``link.*`` take them
    predicted: Floats  # seconds by the model, of each measurement
    weight: Floats  # 1 for what fits, 0 for what is left out as wild
    # largest eager and smallest rendezvous size; None if no break is seen
    break_between: tuple[int, int] | None
    proportioned: tuple[str, ...]  # terms that only their sum is known of

    @property
    def errors(self) -> list[float]:
        """Relative errors of the measurements that are not left out as wild."""
        relative = np.abs(self.predicted / self.measured.time - 1)
        errors: list[float] = relative[self.weight >= WILD].tolist()
        return errors

    @property
    def notes(self) -> list[str]:
        """How good the fit is, and what these measurements cannot tell."""
        error = self.errors
        wild = len(self.weight) - len(error)
        notes = [
            f"error {100 * median(error):.2g} % (median), {100 * max(error):.2g} % at most; "
            f"{wild} of {len(self.weight)} measurements left out as wild"
        ]
        if self.break_between is None:
            notes.append("eager limit: no break seen; set beyond the largest size")
        else:
            low, high = self.break_between
            notes.append(
                f"eager limit: a break between {low:,} and {high:,} bytes; set to the upper"
            )
        if self.proportioned:
            terms = ", ".join(WORDS[term] for term in self.proportioned)
            notes.append(f"known as a sum only, shared out as the defaults are: {terms}")
        notes.append("no ping-pong tells sending from receiving, injection from ejection: halves")
        if "link.bandwidth" in self.parameters:
            notes.append("nor which of injection, links and ejection is the slowest: all the same")
        return [*notes, "gap, gap_per_byte, control_bytes: left at 0"]

    def to_dict(self) -> dict[str, Any]:
        """Return what ``calibrate --json`` prints of a ping-pong."""
        data = self.measured
        columns = (data.size, data.hops, data.time, self.predicted, self.weight)
        names = ("size", "hops", "time", "fitted", "weight")
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return {
            "parameters": self.parameters,
            "break_between": self.break_between,
            "proportioned": self.proportioned,
            "median_error": median(self.errors),
            "notes": self.notes,
            "measurements": [dict(zip(names, row, strict=True)) for row in rows],
        }


def calibrate(data: PingPong, name: str = "ping-pong") -> Fit:
    """Fit the model's parameters to ping-pongs; errors begin with the name, that of the file."""
    _check(data, name)
    sizes = np.unique(data.size)
    count = len(data.size)
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
    limit, table, habit, terms, _ = best
    free = _free(table)
    if (free >= len(USUAL)).any():
        raise ParameterError(
            f"{name}: too few sizes for a bandwidth: expected at least 3 within a node, if there "
            f"are any, and 3 between nodes"
        )
    robust, weight = _biweight(table / data.time[:, None], habit, terms)
    if (weight < WILD).mean() <= MOST_WILD:
        terms = robust
    else:
        # Not single values, but the model is apart from what was measured: all of it counts.
        weight = np.ones(count)
    seen = np.array([column.any() for column in table.T])
    if (terms[4:] <= 0)[seen[4:]].any():
        raise ParameterError(f"{name}: times do not grow with the size: expected a bandwidth")
    below = int(sizes[sizes < limit].max()) if limit is not None else int(sizes.max())
    return Fit(
        measured=data,
        parameters=_parameters(terms, seen, below + 1 if limit is None else limit),
        predicted=table @ terms,
        weight=weight,
        break_between=None if limit is None else (below, limit),
        proportioned=tuple(TERMS[k] for k in free.tolist()),
    )


class _Trial(NamedTuple):
    """A fit with one eager limit, None for no break."""

    limit: int | None
    table: Floats
    habit: Floats
    terms: Floats
    criterion: float


def _trial(data: PingPong, limit: int | None) -> _Trial:
    """Fit of least absolute errors, and Bayes' criterion for it."""
    table, count = _table(data, limit), len(data.size)
    relative = table / data.time[:, None]
    habit = _habit(_free(table), float(data.time.min()))
    terms = _absolute(relative, habit)
    error = max(float(np.abs(relative @ terms - 1).mean()), EXACT)
    unknown = int(np.linalg.matrix_rank(_normalise(table))) + (limit is not None)
    criterion = float(2 * count * np.log(error) + unknown * np.log(count))
    return _Trial(limit, table, habit, terms, criterion)


def _check(data: PingPong, name: str) -> None:
    bad = np.flatnonzero(~(np.isfinite(data.time) & (data.time > 0)))
    if bad.size:
        raise ParameterError(
            f"{name}: time {data.time[bad[0]]} s of {data.size[bad[0]]} bytes: expected more than 0"
        )
    if (data.size < 0).any() or (data.hops < 0).any():
        raise ParameterError(f"{name}: a negative size or number of hops: expected 0 or more")
    if len(np.unique(data.size)) < 3:
        raise ParameterError(
            f"{name}: {len(np.unique(data.size))} sizes: expected at least 3 different ones"
        )


def _table(data: PingPong, limit: int | None) -> Floats:
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


def _parameters(terms: Floats, seen: Bools, eager_limit: int) -> dict[str, float]:
    """Parameters by key, of the terms that were seen."""
    overhead, ends, link, memory, byte, memory_byte = terms.tolist()
    found: dict[str, float] = {"overhead.send": overhead / 2, "overhead.recv": overhead / 2}
    if seen[4]:
        for end in ("injection", "ejection"):
            found |= {f"{end}.latency": ends / 2, f"{end}.bandwidth": 1 / byte}
        found |= {"link.latency": link, "link.bandwidth": 1 / byte}
    if seen[5]:
        found |= {"memory.latency": memory, "memory.bandwidth": 1 / memory_byte}
    return found | {"eager_limit": eager_limit}

"""A handful of parameters fitted to measured collectives, robustly, on logarithms.

The sum over all calls of rho(log(predicted / measured)) is made small: rho is Huber's first,
quadratic up to `SCALE` and linear beyond, then Cauchy's, under which what the model cannot explain
pulls the less the further it is. Gauss and Newton's steps with Levenberg and Marquardt's damping on
the logarithms of the parameters; derivatives by differences, one run of all calls for each
parameter.

Intervals are of a jackknife over the algorithms: each is left out once, and the fit redone with the
derivatives at the end. So is what is predicted for an algorithm, or a size, from all the others
(cross-validation). Both are of first order; they cost no simulation.

Sources: Huber, Robust Statistics (1981), 7; Holland and Welsch, Robust regression using iteratively
reweighted least-squares (1977), for Cauchy's weights; the jackknife over groups as in Efron, The
Jackknife, the Bootstrap and Other Resampling Plans (1982), 3. Cost: some five times (parameters +
2) runs of all calls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hopmap.arrays import Bools, Floats, Ints
from hopmap.progress import Progress, silent
from hopmap.simulator.parameters.keys import ParameterError
from hopmap.simulator.parameters.parameters import key_of
from hopmap.simulator.parameters.settings import Settings, Value, configure, known_keys, normalise
from hopmap.topologies import Topology

from .errors import LARGE, Error, Group, by_algorithm, error_of
from .files import Measured, MeasuredError
from .names import lookup
from .prediction import Prediction, not_simulated, predict

SCALE = 0.05  # error beyond which a residual counts linearly
STEP = 0.05  # of the logarithm of a parameter, for differences
ROUNDS, SETTLED = 12, 2e-3
FARTHEST = 1.0  # of the logarithm of a parameter in one step
UNEXPLAINED = 0.25  # residual (of logarithms) beyond which a row is not explained


@dataclass(frozen=True, eq=False)
class Fit:
    """Parameters, and how far they are from what was measured."""

    parameters: Mapping[str, float]
    # of 95 %, by leaving out one algorithm after the other
    interval: Mapping[str, tuple[float, float]]
    predicted: Floats  # seconds of each call with these parameters
    # seconds of each call, predicted from the calls of all other algorithms, and of
    # all other sizes
    without_algorithm: Floats
    without_size: Floats
    evaluations: int  # how often all calls were simulated


def fit(
    start: Mapping[str, float],
    times: Callable[[Mapping[str, float]], Floats],
    measured: Floats,
    algorithm: Ints,
    size: Ints,
    *,
    roughly: bool = False,
) -> Fit:
    """Fit parameters, from values above 0 on, to measured times in seconds.

    `times` returns the times of all calls by values of the parameters; `algorithm` and `size` are
    the group of each call, to leave out together. Huber's rule is enough for a rough fit.
    """
    keys = tuple(start)
    at, target = np.log(np.array(list(start.values()))), np.log(measured)
    count = 0

    def residual(x: Floats) -> Floats:
        nonlocal count
        count += 1
        values = dict(zip(keys, np.exp(x).tolist(), strict=True))
        return np.asarray(np.log(times(values)) - target)

    error = residual(at)
    slopes = _slopes(residual, at, error)
    for loss, weight in ((_huber, _huber_weight), (_cauchy, _weight))[: 1 if roughly else 2]:
        damping = 1e-2
        for _ in range(ROUNDS):
            step = _newton(slopes, error, weight(error), damping)
            trial = residual(at + step)
            gained = loss(error) - loss(trial)
            if gained > 0:
                at, error, damping = at + step, trial, damping / 10
            else:
                damping = max(damping, 1e-3) * 10
            if np.abs(step).max() < STEP / 5 or 0 < gained < SETTLED * loss(error):
                break
            if gained > 0:
                slopes = _slopes(residual, at, error)
    return Fit(
        parameters=dict(zip(keys, np.exp(at).tolist(), strict=True)),
        interval=_intervals(keys, at, slopes, error, algorithm),
        predicted=np.exp(error + target),
        without_algorithm=np.exp(_cross_residual(slopes, error, algorithm) + target),
        without_size=np.exp(_cross_residual(slopes, error, size) + target),
        evaluations=count,
    )


def _slopes(residual: Callable[[Floats], Floats], at: Floats, error: Floats) -> Floats:
    """Return derivatives of the residuals, shape (calls, parameters)."""
    columns = []
    for place in range(len(at)):
        shifted = at.copy()
        shifted[place] += STEP
        columns.append((residual(shifted) - error) / STEP)
    return np.stack(columns, axis=1) if columns else np.zeros((len(error), 0))


def loss_of(predicted: Floats, measured: Floats) -> float:
    """Return the mean of Huber's rho; infinite if a call has no time."""
    loss = _huber(np.log(predicted / measured))
    return loss if np.isfinite(loss) else np.inf


def _huber_weight(error: Floats) -> Floats:
    return np.asarray(np.minimum(1.0, SCALE / np.maximum(np.abs(error), 1e-12)))


def _huber(error: Floats) -> float:
    size = np.abs(error)
    return float(np.where(size < SCALE, size**2 / 2, SCALE * (size - SCALE / 2)).mean())


def _weight(error: Floats) -> Floats:
    return np.asarray(1 / (1 + (error / SCALE) ** 2))


def _cauchy(error: Floats) -> float:
    return float(np.log1p((error / SCALE) ** 2).mean())


def _newton(slopes: Floats, error: Floats, weight: Floats, damping: float) -> Floats:
    """Step that makes the weighted squares small, by no more than `FARTHEST`."""
    square = slopes.T @ (slopes * weight[:, None])
    scale = np.maximum(np.diag(square), 1e-9 * max(float(np.trace(square)), 1e-300))
    step = np.linalg.lstsq(
        square + damping * np.diag(scale), -slopes.T @ (weight * error), rcond=None
    )[0]
    return np.asarray(np.clip(step, -FARTHEST, FARTHEST))


def _leave_out(slopes: Floats, error: Floats, group: Ints) -> list[Floats]:
    """Return steps away from the fit when each group is left out, one after the other."""
    steps = []
    for one in np.unique(group):
        rest = group != one
        step = np.zeros(slopes.shape[1])
        for _ in range(3 if rest.any() else 0):
            now = error[rest] + slopes[rest] @ step
            step = step + _newton(slopes[rest], now, _weight(now), 1e-6)
        steps.append(step)
    return steps


def _cross_residual(slopes: Floats, error: Floats, group: Ints) -> Floats:
    """Residual of every call by a fit to the other groups."""
    changed = error.copy()
    for one, step in zip(np.unique(group), _leave_out(slopes, error, group), strict=True):
        mine = group == one
        changed[mine] += slopes[mine] @ step
    return changed


def _intervals(
    keys: Sequence[str], at: Floats, slopes: Floats, error: Floats, group: Ints
) -> dict[str, tuple[float, float]]:
    """Intervals of the jackknife: 1.96 standard errors on the logarithm."""
    steps = np.array(_leave_out(slopes, error, group)).reshape(-1, len(keys))
    count = len(steps)
    spread = np.sqrt((count - 1) / max(count, 1) * ((steps - steps.mean(axis=0)) ** 2).sum(axis=0))
    low, high = np.exp(at - 1.96 * spread), np.exp(at + 1.96 * spread)
    return {k: (a, b) for k, a, b in zip(keys, low.tolist(), high.tolist(), strict=True)}


USUAL = (
    "link.bandwidth",
    "overhead.send",
    "overhead.recv",
    "overhead.per_byte",
    "overhead.control",
    "overhead.put_latency",
    "gap",
    "collective.copy_per_byte",
    "collective.reduce_per_byte",
    "collective.put_setup",
    "collective.fresh_memory_per_byte",
)
LIMITS = (8192, 16384, 32768, 65536, 131072)  # eager limits that are tried, where none is set
LEAST = 3  # calls for every parameter
MOST = 240  # calls that are fitted to: of every algorithm as evenly over its sizes as can be
# Where to begin with what is 0 by default.
FIRST: Mapping[str, float] = {"s": 1e-6, "s/byte": 1e-10, "bytes/s": 1e10}


@dataclass(frozen=True, eq=False)
class CollectiveFit:
    """A fit to measured collectives."""

    measured: Measured  # all calls that can be simulated
    predicted: Floats  # seconds of each with the parameters found; NaN of what is too large
    fitted: Measured  # the calls of the fit
    fit: Fit  # its entries are the calls of `fitted`
    settings: Mapping[str, Value]  # all parameters: the inputs, overridden by what was fitted

    @property
    def parameters(self) -> Mapping[str, float]:
        """What was fitted, by key."""
        return self.fit.parameters

    def to_dict(self) -> dict[str, Any]:
        """Return what ``calibrate --json`` prints of collectives."""
        return {
            "parameters": dict(self.parameters),
            "interval": {key: list(pair) for key, pair in self.fit.interval.items()},
            "calls": len(self.measured),
            "error": {name: error._asdict() for name, error in self.errors().items()},
            "by": [
                {"collective": group.collective, "algorithm": group.algorithm, "sizes": group.sizes}
                | group.error._asdict()
                for group in self.by_algorithm()
            ],
            "unexplained": [
                {"collective": c, "algorithm": a, "buffer_bytes": size, "ratio": ratio}
                for c, a, size, ratio in self.list_unexplained()
            ],
        }

    def errors(self) -> dict[str, Error]:
        """Errors of all calls, of large ones, and as predicted from other calls alone."""
        large, time = self.measured.size >= LARGE, self.measured.time
        return {
            "all sizes": error_of(self.predicted, time),
            "1 MiB and above": error_of(self.predicted[large], time[large]),
            "by other algorithms": error_of(self.fit.without_algorithm, self.fitted.time),
            "by other sizes": error_of(self.fit.without_size, self.fitted.time),
        }

    def by_algorithm(self) -> list[Group]:
        """Errors by algorithm and class of sizes."""
        prediction = Prediction(self.predicted, ("",) * len(self.measured))
        return by_algorithm(self.measured, prediction)

    def list_unexplained(self) -> list[tuple[str, str, int, float]]:
        """Return calls that are farther off than `UNEXPLAINED`: names, bytes, ratio to measured."""
        ratio = self.predicted / self.measured.time
        far = np.flatnonzero(np.abs(np.log(ratio)) > UNEXPLAINED)
        table = self.measured
        return [
            (table.collective[k], table.algorithm[k], int(table.size[k]), float(ratio[k]))
            for k in far[np.argsort(-np.abs(np.log(ratio[far])), kind="stable")].tolist()
        ]


def fit_collectives(
    measured: Measured,
    networks: Sequence[Topology],
    settings: Mapping[str, Value],
    keys: Sequence[str] = (),
    *,
    ranks: int = 0,
    progress: Progress = silent,
) -> CollectiveFit:
    """Fit parameters to those calls whose algorithm has a public definition.

    Each file has its network. `settings` are the parameters that differ from their defaults, and
    where to begin; `keys` is what to fit, when left out of `USUAL` what these calls depend on.
    Calls of more than `ranks` ranks are left out; 0 for any number.
    """
    usual, keys = not keys, tuple(keys or USUAL)
    chosen = np.array(
        [
            not not_simulated(measured, k, lookup(c, a), networks[measured.file[k]], ranks)
            for k, (c, a) in enumerate(zip(measured.collective, measured.algorithm, strict=True))
        ]
    )
    table = measured.part(chosen)
    _expect_enough(measured, len(table), "by algorithms that are known", keys)
    start = {key: _start(key, settings, networks[0]) for key in keys}
    runs = 0

    def times(values: Mapping[str, float]) -> Floats:
        nonlocal runs
        runs += 1
        point: Settings = tuple({**settings, **values}.items())
        made = [configure(network, point) for network in networks]

        def shown(done: int, total: int | None, _text: str = "", /) -> object:
            return progress(done, total, f"run {runs} of all calls")

        return predict(calls, *zip(*made, strict=True), progress=shown).time

    calls = table
    first = times(start)
    there = np.isfinite(first)
    _expect_enough(measured, int(there.sum()), "that can be simulated", keys)
    sample = _sample(table, there)
    calls = fitted = table.part(sample)
    if usual:  # leave out what these calls do not tell
        doubled = {key: times({**start, key: 2 * start[key]}) for key in keys}
        sensitive = [key for key, each in doubled.items() if (each != first[sample]).any()]
        start = {key: start[key] for key in sensitive}
    algorithms = [f"{c} {a}" for c, a in zip(fitted.collective, fitted.algorithm, strict=True)]
    groups = (
        np.unique(algorithms, return_inverse=True)[1],
        np.unique(fitted.size, return_inverse=True)[1],
    )
    fixed = dict(normalise(tuple(settings.items())))
    if "eager_limit" not in fixed:
        nearly = fit(start, times, fitted.time, *groups, roughly=True).parameters
        fixed["eager_limit"] = min(
            LIMITS, key=lambda limit: loss_of(times({**nearly, "eager_limit": limit}), fitted.time)
        )
        settings, start = fixed, dict(nearly)
    found = fit(start, times, fitted.time, *groups)
    calls = table
    predicted = times(found.parameters)
    return CollectiveFit(table, predicted, fitted, found, {**fixed, **found.parameters})


def _expect_enough(measured: Measured, calls: int, which: str, keys: Sequence[str]) -> None:
    if calls < LEAST * len(keys):
        raise MeasuredError(
            f"{', '.join(measured.files)}: {calls} calls {which}: "
            f"expected at least {LEAST * len(keys)} for {len(keys)} parameters"
        )


def _sample(table: Measured, there: Bools) -> Ints:
    """Choose calls to fit to among those that can be simulated: every so many of each algorithm."""
    names = np.array([f"{c} {a}" for c, a in zip(table.collective, table.algorithm, strict=True)])
    rows = np.flatnonzero(there)
    rows = rows[np.lexsort((table.size[rows], names[rows], table.file[rows]))]
    return np.sort(rows[:: -(-len(rows) // MOST)])


def _start(key: str, settings: Mapping[str, Value], network: Topology) -> float:
    """Return the value to begin with: what is set, else the default, else a usual size."""
    network, parameters = configure(network, tuple(settings.items()))
    if key.startswith("link."):
        if key not in (keys := known_keys([network])):
            raise ParameterError(f"--fit {key}: expected one of {', '.join(keys)}")
        *_, kind, quantity = key.split(".")
        of = next((k for k in network.kinds if k.name == kind), network.kinds[0])
        value, unit = getattr(of, quantity), {"bandwidth": "bytes/s", "latency": "s"}[quantity]
    else:
        entry = key_of(key)
        if entry.unit not in FIRST:
            raise ParameterError(f"--fit {key}: expected one in {', '.join(FIRST)}")
        value, unit = getattr(parameters, entry.field), entry.unit
    return float(value) or FIRST[unit]

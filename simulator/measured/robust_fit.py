"""A handful of parameters fitted to measured collectives, robustly, on logarithms.

The sum over all calls of rho(log(predicted / measured)) is made small: rho is Huber's first,
quadratic up to `SCALE` and linear beyond, then Cauchy's, under which what the model cannot explain
pulls the less the further it is. Gauss and Newton's steps with Levenberg and Marquardt's damping on
the logarithms of the parameters. Derivatives are by differences, one run of all calls for each
parameter, at the start and wherever steps have become small; between these by Broyden's secants.

Intervals are of a jackknife over the algorithms: each is left out once, and the fit redone with the
derivatives at the end. So is what is predicted for an algorithm, or a size, from all the others
(cross-validation). Both are of first order; they cost no simulation.

Sources: Huber, Robust Statistics (1981), 7; Holland and Welsch, Robust regression using iteratively
reweighted least-squares (1977), for Cauchy's weights; the jackknife over groups as in Efron, The
Jackknife, the Bootstrap and Other Resampling Plans (1982), 3; Broyden, A class of methods for
solving nonlinear simultaneous equations (1965), in the LM method: Madsen, Nielsen and Tingleff,
Methods for non-linear least squares problems (2004), 3.5. Cost: some three times (parameters + 5)
runs of all calls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hopmap.arrays import Floats, Ints

SCALE = 0.05  # error beyond which a residual counts linearly
STEP = 0.05  # of the logarithm of a parameter, for differences
ROUNDS, SETTLED = 12, 2e-3
FARTHEST = 1.0  # of the logarithm of a parameter in one step


@dataclass(frozen=True, eq=False)
class Fit:
    """Parameters, and how far they are from what was measured."""

    parameters: Mapping[str, float]
    # of 95 %, by leaving out one algorithm after the other
    interval: Mapping[str, tuple[float, float]]
    predicted: Floats  # seconds of each call with these parameters
    # seconds of each call, predicted from the calls of all other algorithms, and of
    # all other sizes; NaN where there is no other, or none depends on a parameter of the call
    without_algorithm: Floats
    without_size: Floats
    slopes: Floats  # of the logarithms of times over those of parameters, (calls, parameters)
    evaluations: int  # how often all calls were simulated


def fit(
    start: Mapping[str, float],
    times: Callable[[Mapping[str, float]], Floats],
    measured: Floats,
    algorithm: Ints,
    size: Ints,
    *,
    slopes: Floats | None = None,
    roughly: bool = False,
) -> Fit:
    """Fit parameters, from values above 0 on, to measured times in seconds.

    `times` returns the times of all calls by values of the parameters; `algorithm` and `size` are
    the group of each call, to leave out together. Huber's rule is enough for a rough fit.
    `slopes` are derivatives at the start, or near it, if they are known.
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
    exact = slopes is None
    slopes = _slopes(residual, at, error) if slopes is None else slopes
    for loss, weight in ((_huber, _huber_weight), (_cauchy, _weight))[: 1 if roughly else 2]:
        damping = 1e-2
        for _ in range(ROUNDS):
            step = _newton(slopes, error, weight(error), damping)
            trial = residual(at + step)
            gained = loss(error) - loss(trial)
            small = np.abs(step).max() < STEP / 5 or 0 < gained < SETTLED * loss(error)
            if gained > 0:
                missed = trial - error - slopes @ step
                at, error, damping = at + step, trial, damping / 10
            if small and exact:
                break  # derivatives a small step away are as good
            if gained > 0:
                slopes, exact = slopes + np.outer(missed, step) / (step @ step), False
            elif exact:
                damping = max(damping, 1e-3) * 10
            if not exact and (small or gained <= 0):
                slopes, exact = _slopes(residual, at, error), True
    if not exact:
        slopes = _slopes(residual, at, error)
    return Fit(
        parameters=dict(zip(keys, np.exp(at).tolist(), strict=True)),
        interval=_intervals(keys, at, slopes, error, algorithm),
        predicted=np.exp(error + target),
        without_algorithm=np.exp(_cross_residual(slopes, error, algorithm) + target),
        without_size=np.exp(_cross_residual(slopes, error, size) + target),
        slopes=slopes,
        evaluations=count,
    )


def derivatives(
    start: Mapping[str, float], times: Callable[[Mapping[str, float]], Floats]
) -> Floats:
    """Return what `fit` takes as slopes, shape (calls, parameters): 0 where nothing changes."""
    keys = tuple(start)

    def logarithm(x: Floats) -> Floats:
        return np.asarray(np.log(times(dict(zip(keys, np.exp(x).tolist(), strict=True)))))

    at = np.log(np.array(list(start.values())))
    return _slopes(logarithm, at, logarithm(at))  # with the same rounding, or no slope would be 0


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
    """Residual of every call by a fit to the other groups; NaN where these do not tell."""
    changed = error.copy()
    for one, step in zip(np.unique(group), _leave_out(slopes, error, group), strict=True):
        mine = group == one
        changed[mine] += slopes[mine] @ step
        unknown = ~slopes[~mine].any(axis=0)
        changed[mine & (mine.all() | (slopes[:, unknown] != 0).any(axis=1))] = np.nan
    return changed


def _intervals(
    keys: Sequence[str], at: Floats, slopes: Floats, error: Floats, group: Ints
) -> dict[str, tuple[float, float]]:
    """Intervals of the jackknife: 1.96 standard errors on the logarithm."""
    steps = np.array(_leave_out(slopes, error, group)).reshape(-1, len(keys))
    count = len(steps)
    # Around the fit and not their mean: what nothing holds goes as far as a step may, every time.
    spread = np.sqrt((count - 1) / max(count, 1) * (steps**2).sum(axis=0))
    low, high = np.exp(at - 1.96 * spread), np.exp(at + 1.96 * spread)
    return {k: (a, b) for k, a, b in zip(keys, low.tolist(), high.tolist(), strict=True)}

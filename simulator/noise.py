"""Noise: random pauses, and late starts of ranks; all engines draw the same numbers.

What is drawn is a quantile, from a table of as many as `model.QUANTILES` that are equally likely,
by the hash of seed, task and number of the pause on that task (0 is its start): not by when
it happens, so that neither the order of events nor the mapping changes any draw.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from hopmap.arrays import Floats, Ints

from .model import QUANTILES, mix_hash
from .parameters.keys import ParameterError
from .parameters.parameters import Parameters
from .programs.program import Program

USUAL: Mapping[str, Any] = {
    # Ticks of an operating system, 1,000 a second, take 0.5 to 1.5 % of computation: Tsafrir, The
    # context-switch overhead inflicted by hardware interrupts, Experimental Computer Science 2007.
    "noise_compute": 0.01,
    # Assumed: overheads vary by a tenth, and no barrier leaves ranks closer than about a message.
    "noise_overhead": 0.1,
    "noise_start": 1e-6,
}
"""Levels of an ensemble for which none are set."""

OF_COMPUTATION, OF_OVERHEAD = 0, QUANTILES  # where each kind begins in `Noise.factors`
_APART = 0x9E3779B9  # between seeds and tasks: what one has, the other has not


class Noise(NamedTuple):
    """The noise of a run."""

    noisy: bool  # whether pauses are drawn
    # shape (2 * QUANTILES,): quantiles of the factors on computation, then of those on overheads,
    # each with mean 1
    factors: Floats
    stream: Ints  # shape (tasks,): what the draws of each task are hashed with
    # shape (ranks,): when each rank starts, in seconds: when its job does, and by how much it is
    # late
    delay: Floats


def noise_of(parameters: Parameters, program: Program) -> Noise:
    """Return what the noise of parameters is on a program."""
    deviations = parameters.noise_compute, parameters.noise_overhead
    shape = parameters.noise_distribution
    stream = _hashes(parameters.noise_seed + _APART, np.arange(program.tasks))
    delay = program.begins()
    if parameters.noise_start:
        quantile = _hashes(stream[program.main()], np.zeros(program.ranks, np.int64)) % QUANTILES
        delay = delay + parameters.noise_start * quantiles("gamma", 1.0)[quantile]
    return Noise(
        noisy=max(deviations) > 0,
        factors=np.concatenate([quantiles(shape, each) for each in deviations]),
        stream=stream,
        delay=delay,
    )


def levels(parameters: Parameters) -> dict[str, float]:
    """Return the levels of noise by key, "noise.compute"."""
    return {name.replace("_", "."): getattr(parameters, name) for name in USUAL}


def without_noise(parameters: Parameters) -> Parameters:
    """Return parameters without noise, seed and distribution as they are."""
    silent: dict[str, Any] = dict.fromkeys(USUAL, 0.0)
    return replace(parameters, **silent)


def with_noise(parameters: Parameters) -> Parameters:
    """Return parameters with the usual noise if they have none."""
    return parameters if any(levels(parameters).values()) else replace(parameters, **USUAL)


def expect_no_noise(parameters: Parameters, user: str) -> None:
    """Raise `ParameterError` if there is noise, of which what is asked for knows nothing."""
    for key, level in levels(parameters).items():
        if level:
            raise ParameterError(f"{key} {level:g}: {user} without noise: expected 0")


@lru_cache(maxsize=16)
def quantiles(distribution: str, deviation: float) -> Floats:
    """Quantiles of a distribution of mean 1, in the middle of parts that are equally likely.

    Their mean is 1, their shape (QUANTILES,). The deviation is the standard deviation of
    "lognormal" or "gamma"; that of the quantiles is less, of lognormal ones by 0.02 % if it is 0.1
    and by 4 % if it is 2, since the ends of the tails are not among them. Gamma with 1 is
    exponential.
    """
    if deviation == 0:
        return np.ones(QUANTILES)
    from scipy import special  # slow to import, and needed for noise only

    share = (np.arange(QUANTILES) + 0.5) / QUANTILES
    if distribution == "gamma":
        values = special.gammaincinv(deviation**-2, share)
    else:
        values = np.exp(np.sqrt(np.log1p(deviation**2)) * special.ndtri(share))
    return np.asarray(values / values.mean(), dtype=np.float64)


def _hashes(above: int | Ints, number: Ints) -> Ints:
    """Return `model.mix_hash` of many."""
    found: Ints = mix_hash(above, number)  # type: ignore[arg-type, assignment]
    return found

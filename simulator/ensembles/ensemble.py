"""An ensemble: the makespans of one run, replayed with the noise of several seeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopmap.units import show_seconds_to

from .intervals import Interval, median_interval


@dataclass(frozen=True, eq=False)
class Ensemble:
    """What replays with noise took; those of two mappings are paired, seed by seed.

    Attributes
    ----------
    makespans : ndarray(float64, shape=(repeats,))
        Seconds.
    seed : int
        The first one, of the first replay; the others follow.
    noise : mapping of str to float
        Levels of noise, by their keys ("noise.compute").
    """

    makespans: NDArray[np.float64]
    seed: int
    noise: Mapping[str, float]

    @property
    def interval(self) -> Interval:
        """Median, and its interval of 95 %."""
        return median_interval(self.makespans)

    def __str__(self) -> str:
        median, between = shown(self.interval)
        return f"median of {len(self.makespans)} with noise {median}, 95 % interval {between}"

    def to_dict(self) -> dict[str, Any]:
        """Return what ``simulate --json`` prints of it."""
        return {
            **self.interval._asdict(),
            "seed": self.seed,
            "noise": dict(self.noise),
            "makespans": self.makespans.tolist(),
        }


def shown(interval: Interval) -> tuple[str, str]:
    """Write seconds as ("1.25 ms", "1.24 to 1.27 ms"), in digits that tell the ends apart."""
    for digits in (3, 4, 5, 6):
        median, low, high = (show_seconds_to(digits, seconds) for seconds in interval)
        if low != high:
            break
    unit = f" {high.rpartition(' ')[2]}"
    return median, f"{low.removesuffix(unit)} to {high}"

"""An ensemble: the makespans of one run, replayed with the noise of several seeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopmap.units import show_seconds

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
        median, low, high = shown(self.interval)
        return f"median of {len(self.makespans)} with noise {median}, 95 % interval {low} to {high}"

    def to_dict(self) -> dict[str, Any]:
        """Return what ``simulate --json`` prints of it."""
        return {
            **self.interval._asdict(),
            "seed": self.seed,
            "noise": dict(self.noise),
            "makespans": self.makespans.tolist(),
        }


def shown(interval: Interval) -> list[str]:
    """Write seconds with as many digits as tell the ends of an interval apart, up to six."""
    for digits in (3, 4, 5, 6):
        words = [show_seconds(seconds, digits) for seconds in interval]
        if words[1] != words[2]:
            break
    return words

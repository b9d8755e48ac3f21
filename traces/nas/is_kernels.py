"""Compiled loop of the NAS IS generator."""

from __future__ import annotations

import numpy as np

from hopmap.arrays import Ints
from hopmap.compilation import njit

MASK = (1 << 46) - 1


@njit
def count_keys(keys: int, seed: int, multiplier: int, shift: int, counts: Ints) -> None:
    """Add to `counts` how many of the first keys are in each bucket.

    A key is the sum of four numbers x <- multiplier * x mod 2^46, its bucket their sum's leading
    bits. Four numbers are formed side by side, from the one before them.
    """
    mask = np.uint64(MASK)
    one = np.uint64(multiplier)
    two = (one * one) & mask
    three = (two * one) & mask
    four = (three * one) & mask
    x = np.uint64(seed)
    by = np.uint64(shift)
    for _ in range(keys):
        last = (four * x) & mask
        total = ((one * x) & mask) + ((two * x) & mask) + ((three * x) & mask) + last
        counts[total >> by] += 1
        x = last

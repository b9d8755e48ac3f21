"""Compiled random numbers with a state of their own: xorshift64*.

Source: Vigna, An experimental exploration of Marsaglia's xorshift generators, scrambled, ACM TOMS
42 (2016). The state is a uint64, never zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hopmap.compilation import subroutine


@subroutine
def following(state: np.uint64) -> np.uint64:
    """Return the next state."""
    state ^= state >> np.uint64(12)
    state ^= state << np.uint64(25)
    state ^= state >> np.uint64(27)
    return state


@subroutine
def below(state: np.uint64, bound: int) -> Any:
    """Return the state's number, 0..bound-1; bound below 2^32."""
    mixed = (state * np.uint64(2685821657736338717)) >> np.uint64(32)
    return np.int64((mixed * np.uint64(bound)) >> np.uint64(32))

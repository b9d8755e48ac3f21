"""Short names of numpy's arrays, by what is in them; and what numpy lacks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Table = NDArray[np.void]  # of records
Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]
Ints8 = NDArray[np.int8]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Words = NDArray[np.uint64]  # states of random numbers, bits of labels


def equals_before(keys: Ints) -> Ints:
    """Return how many earlier elements each of `keys` (n,) equals, shape (n,); O(n log n)."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    turn = np.empty(len(keys), dtype=np.int64)
    turn[order] = np.arange(len(keys)) - np.searchsorted(ordered, ordered)
    return turn

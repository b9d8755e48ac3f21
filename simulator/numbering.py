"""Numbers from 0 for the keys that occur, in their order, without sorting where keys are small."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

ROOM = 1 << 20  # keys below this, or below twice as many as there are, are marked in a table


def numbered(keys: Ints) -> tuple[Ints, Ints]:
    """Return the different keys, rising, and the place there of each of the given ones.

    As ``numpy.unique(keys, return_inverse=True)``, but linear where keys are 0 or more and small.

    Examples
    --------
    >>> numbered(np.array([7, 3, 7]))
    (array([3, 7]), array([1, 0, 1]))
    """
    if len(keys) and keys.min() >= 0 and (top := int(keys.max())) < max(ROOM, 2 * len(keys)):
        occurs = np.zeros(top + 1, dtype=np.bool_)
        occurs[keys] = True
        number = np.cumsum(occurs, dtype=np.int64) - 1
        return np.flatnonzero(occurs).astype(np.int64), number[keys]
    found, place = np.unique(keys, return_inverse=True)
    return found.astype(np.int64), place.reshape(-1).astype(np.int64)

"""Which call completes which request, where a tool lists requests by number or address.

A number or address is used again, so that what a call of MPI_Wait means is the latest request that
was begun under it. Tools do not always say whether MPI_Test found its request complete: then the
last call that asked, before the number is used again, is taken for the one that did.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


class Part(IntEnum):
    """What an entry does with a request."""

    BEGIN = 0
    INIT = 1  # makes a persistent request
    START = 2  # begins a persistent request
    END = 3
    ASK = 4  # may end it
    FORGET = 5  # frees or cancels it


def completions(rank: Ints, key: Ints, part: Ints) -> tuple[Ints, Ints]:
    """Pair what begins a request with what ends it.

    Parameters
    ----------
    rank, key, part : ndarray(int64, shape=(entries,))
        Entries in the order in which each rank made them.

    Returns
    -------
    made : ndarray(int64, shape=(entries,))
        Of a BEGIN, itself; of a START, the INIT; -1 of others, and of a START without one.
    ended : ndarray(int64, shape=(entries,))
        Of a BEGIN or START, the entry that ends it, or -1; of what ends one, which.
    """
    count = len(rank)
    made, ended = np.full(count, -1, dtype=np.int64), np.full(count, -1, dtype=np.int64)
    order = np.lexsort((np.arange(count), key, rank))
    part, places = part[order], np.arange(count)
    fresh = np.ones(count, dtype=np.bool_)
    fresh[1:] = (key[order][1:] != key[order][:-1]) | (rank[order][1:] != rank[order][:-1])
    first = np.maximum.accumulate(np.where(fresh, places, 0))

    def latest(which: NDArray[np.bool_]) -> Ints:
        found = np.maximum.accumulate(np.where(which, places, -1))
        return np.where(found >= first, found, -1)

    starts = part == Part.START
    begins = starts | (part == Part.BEGIN)
    init = latest(part == Part.INIT)
    made[order[begins]] = order[begins]
    made[order[starts]] = np.where(init[starts] >= 0, order[init[starts]], -1)
    begun = latest(begins)
    asks = np.flatnonzero((part == Part.ASK) & (begun >= 0))
    ends = np.flatnonzero((part == Part.END) & (begun >= 0))[::-1]
    by = np.full(count, -1, dtype=np.int64)
    by[begun[asks]] = asks  # the last one stays
    by[begun[ends]] = ends  # the first one stays, and is sure
    done = np.flatnonzero(by >= 0)
    ended[order[done]] = order[by[done]]
    ended[order[by[done]]] = order[done]
    return made, ended

"""Compiled: the order in which a dict of Python before 3.6 lists its keys."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hopmap.compilation import njit, subroutine


@njit
def listed_by_hash(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Positions of the keys as a dict would list them that got them in this order.

    Keys are distinct and >= 0, and their own hashes. A dict lists its table of 8, 16, ... places,
    of which up to two thirds are taken, from the front. Source: CPython 3.5, Objects/dictobject.c.
    """
    size = 8
    table = np.full(size, -1)
    for k in range(len(keys)):
        if k == (2 * size + 1) // 3:
            kept = table[table >= 0]
            enough = 2 * k + size // 2
            while size <= enough:
                size *= 2
            table = np.full(size, -1)
            for j in kept:
                table[_free_place(table, keys, j)] = j
        table[_free_place(table, keys, k)] = k
    return table[table >= 0]


@subroutine
def _free_place(table: NDArray[np.int64], keys: NDArray[np.int64], k: int) -> int:
    """First free place of the table on the walk that the key's hash begins."""
    mask = len(table) - 1
    rest = keys[k]
    place = rest & mask
    while table[place] >= 0:
        place = (5 * place + rest + 1) & mask
        rest >>= 5
    return int(place)


@njit
def list_partners(
    indptr: NDArray[np.int64], partner: NDArray[np.int64], order: NDArray[np.int64]
) -> None:
    """Fill `order`: the place of each partner in the list of its rank, row by row."""
    for row in range(len(indptr) - 1):
        begin, end = indptr[row], indptr[row + 1]
        listed = listed_by_hash(partner[begin:end])
        for i in range(len(listed)):
            order[begin + listed[i]] = i

"""Compiled sorting, grouping, random numbers and a power.

numba's own sorts take a second to compile. Random numbers have a state of their own, a uint64 that
is never zero: xorshift64*. Source: Vigna, An experimental exploration of Marsaglia's xorshift
generators, scrambled, ACM TOMS 42 (2016).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopmap.arrays import Ints
from hopmap.compilation import subroutine


@subroutine
def sort_by(key: Ints, items: Ints, spare: Ints) -> None:
    """Sort items by their keys in place, equal ones as they are, by merging runs."""
    n = len(items)
    width = 1
    while width < n:
        for lo in range(0, n - width, 2 * width):
            mid, hi = lo + width, min(lo + 2 * width, n)
            if key[items[mid - 1]] <= key[items[mid]]:
                continue
            for i in range(lo, mid):
                spare[i] = items[i]
            left, right = lo, mid
            for i in range(lo, hi):
                if left == mid:
                    break
                if right < hi and key[items[right]] < key[spare[left]]:
                    items[i] = items[right]
                    right += 1
                else:
                    items[i] = spare[left]
                    left += 1
        width *= 2


@subroutine
def grouped(block: NDArray[Any], blocks: int) -> tuple[Ints, Ints]:
    """Vertices of every block b, in order: ``members[starts[b]:starts[b + 1]]``."""
    starts = np.zeros(blocks + 1, dtype=np.int64)
    for b in block:
        starts[b + 1] += 1
    for b in range(blocks):
        starts[b + 1] += starts[b]
    members = np.empty(len(block), dtype=np.int64)
    fill = starts.copy()
    for u in range(len(block)):
        members[fill[block[u]]] = u
        fill[block[u]] += 1
    return starts, members


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


@subroutine
def eighth_power(x: float) -> float:
    """x^8 by squarings alone: the same bits on every machine."""
    x *= x
    x *= x
    return x * x

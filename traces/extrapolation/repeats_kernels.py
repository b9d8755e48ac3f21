"""Compiled search for tandem repeats: stretches of a word that follow one another unchanged."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hopmap.arrays import Bools, Ints
from hopmap.compilation import njit, subroutine

Hashes = NDArray[np.uint64]

_BASE = 0x9E3779B97F4A7C15  # odd, so that powers of it never vanish
TRIES = 16  # next places of the same symbols at which a period is looked for
WORTH = 4  # of what is listed, that a loop has to save


@njit
def sums_of(hashes: Hashes) -> tuple[Hashes, Hashes]:
    """Return sums of a rolling hash before each symbol, and powers of its base."""
    base = np.uint64(_BASE)
    sums = np.zeros(len(hashes) + 1, dtype=np.uint64)
    powers = np.ones(len(hashes) + 1, dtype=np.uint64)
    for at in range(len(hashes)):
        sums[at + 1] = sums[at] * base + hashes[at]
        powers[at + 1] = powers[at] * base
    return sums, powers


@njit
def next_places(word: Ints, symbols: int) -> Ints:
    """Where the symbol at each place comes next; the word's length where it does not."""
    size = len(word)
    latest = np.full(symbols, size, dtype=np.int64)
    after = np.empty(size, dtype=np.int64)
    for at in range(size - 1, -1, -1):
        after[at] = latest[word[at]]
        latest[word[at]] = at
    return after


@subroutine
def longest_cut(begin: int, end: int, period: int, clean: Bools, level: Ints) -> tuple[int, int]:
    """First place and number of the most iterations of a period that a run may have."""
    best, first = 0, begin
    for shift in range(period):
        cuts = 0
        for place in range(begin + shift, end + 1, period):
            if clean[place] and (cuts == 0 or level[place] == level[place - period]):
                cuts += 1
            else:
                cuts = 1 if clean[place] else 0
            if cuts - 1 > best:
                best, first = cuts - 1, place - period * (cuts - 1)
    return first, best


@njit
def tandem_repeats(
    word: Ints,
    after: Ints,
    sums: Hashes,
    powers: Hashes,
    clean: Bools,
    level: Ints,
    start: Ints,
    longest: int,
) -> tuple[int, Ints]:
    """Find runs of equal stretches from left to right, none of a period above `longest`.

    A period is the distance to one of the `TRIES` next places of a symbol, see `next_places` for
    `after` and `sums_of` for `sums` and `powers`. An iteration may begin or end before a symbol
    that is `clean` (n + 1,); begins and ends have one `level` (n + 1,). `start` (n + 1,) is what
    length the symbols before stand for: a run has to save `WORTH` of it.

    Returned are how many runs there are, and their first places, periods and iterations, as rows of
    (n // 2 + 1, 3).
    """
    size = len(word)
    runs = np.empty((size // 2 + 1, 3), dtype=np.int64)
    found, free, at = 0, 0, 0
    rejected, until = 0, 0  # a period that came to nothing, and where its run ends
    while at < size:
        next_place, tries, taken = after[at], 0, False
        while next_place < size and next_place - at <= longest and tries < TRIES:
            period = next_place - at
            behind = next_place + period
            tries += 1
            same = behind <= size and not (period == rejected and behind <= until)
            if same:
                same = (
                    sums[next_place] - sums[at] * powers[period]
                    == sums[behind] - sums[next_place] * powers[period]
                )
            if same:
                begin, end = at, next_place
                while begin > free and word[begin - 1] == word[begin - 1 + period]:
                    begin -= 1
                while end < size and word[end] == word[end - period]:
                    end += 1
                first, iterations = longest_cut(begin, end, period, clean, level)
                saved = (
                    (iterations - 1) * (start[first + period] - start[first])
                    if iterations > 1
                    else 0
                )
                if iterations > 1 and saved >= WORTH:
                    runs[found, 0], runs[found, 1], runs[found, 2] = first, period, iterations
                    found += 1
                    free = first + period * iterations
                    taken = True
                    break
                rejected, until = period, end
            next_place = after[next_place]
        at = max(free, at + 1) if not taken else max(free, at)
    return found, runs

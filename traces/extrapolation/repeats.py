"""Loops of a word: its tandem repeats, inner ones first, short periods before long ones.

A period that is found becomes one symbol, its run one place of the word, and the search begins
again, so that loops within loops are found as what repeats among symbols. A pass looks for periods
up to a power of two, at the distances to the next few places where half as many symbols come as
here; what repeats at none of these is not found. Its cost is a sort of what is left of the word,
and there are about log2 of the longest period of them for each level of nesting.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Hashes = NDArray[np.uint64]

TRIES = 16  # next places of the same symbols at which a period is looked for
WORTH = 4  # of what is listed, that a loop has to save


class Reduced(NamedTuple):
    """A word with its runs in one symbol each.

    Attributes
    ----------
    hashes : ndarray(uint64, shape=(n,))
    start : ndarray(int64, shape=(n + 1,))
        Place in the whole word at which each symbol begins, and its end.
    loops : ndarray(int64, shape=(loops, 3))
        First place, length of a trip and trips, in places of the whole word, inner loops first.
        Those within a trip but the first of another are listed as well.
    """

    hashes: Hashes
    start: Ints
    loops: Ints


def mixed(values: NDArray[np.generic]) -> Hashes:
    """Scatter whole numbers over 64 bits, one to one (the finisher of splitmix64)."""
    x = values.astype(np.int64).view(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    found: Hashes = x ^ (x >> np.uint64(31))
    return found


def reduced(
    hashes: Hashes, apart: NDArray[np.bool_], clean: NDArray[np.bool_], level: Ints
) -> Reduced:
    """Find the loops of a word.

    Parameters
    ----------
    hashes : ndarray(uint64, shape=(n,))
        What the symbols are.
    apart : ndarray(bool, shape=(n,))
        Symbols that no loop may hold.
    clean, level : ndarray(bool and int64, shape=(n + 1,))
        Whether a trip may begin or end before a symbol; begins and ends of a run have one level.
    """
    from .repeats_kernels import sums_of, tandem_repeats

    start = np.arange(len(hashes) + 1)
    _, word = np.unique(hashes, return_inverse=True)
    symbols = int(word.max(initial=-1)) + 1
    word = np.where(apart, symbols + np.arange(len(word)), word)
    symbols += len(word)
    known: dict[int, int] = {}
    loops = [np.zeros((0, 3), dtype=np.int64)]
    longest = 1
    while longest < len(word):
        sums, powers = sums_of(mixed(word))
        after = _next_places(word, symbols, sums, powers, longest // 2)
        found, runs = tandem_repeats(
            word, after, sums, powers, clean, level, start, longest, TRIES, WORTH
        )
        if not found:
            longest *= 2
            continue
        first, period, trips = runs[:found].T
        loops.append(np.stack((start[first], start[first + period] - start[first], trips), axis=1))
        # What a loop is, from what its trips and they are.
        sums, powers = sums_of(hashes)
        body = sums[first + period] - sums[first] * powers[period]
        made = mixed(mixed(body.view(np.int64)) + mixed(trips) + mixed(-period))
        number = np.empty(found, dtype=np.int64)
        for place, each in enumerate(made.tolist()):
            number[place] = known.setdefault(each, symbols + len(known))
        hashes, word = hashes.copy(), word.copy()
        hashes[first], word[first] = made, number
        inside = np.zeros(len(word) + 2, dtype=np.int64)
        np.add.at(inside, first + 1, 1)
        np.add.at(inside, first + period * trips, -1)
        kept = np.cumsum(inside)[:-1] == 0
        start, clean, level = start[kept], clean[kept], level[kept]
        hashes, word = hashes[kept[:-1]], word[kept[:-1]]
        word, symbols, known = _numbered(word, known)
        longest = 1
    return Reduced(hashes, start, np.concatenate(loops))


def _next_places(word: Ints, symbols: int, sums: Hashes, powers: Hashes, gram: int) -> Ints:
    """Where each place's next `gram` symbols come again; the word's length where they do not."""
    from .repeats_kernels import following

    if gram < 2:
        return following(word, symbols)
    grams = sums[gram:] - sums[:-gram] * powers[gram]
    known, code = np.unique(grams, return_inverse=True)
    code = np.append(code, len(known) + np.arange(gram - 1))  # there are fewer symbols left
    return following(code, len(known) + gram - 1)


def _numbered(word: Ints, known: dict[int, int]) -> tuple[Ints, int, dict[int, int]]:
    """Count the symbols that are left from 0 on, known loops among them."""
    left, word = np.unique(word, return_inverse=True)
    place = {int(symbol): at for at, symbol in enumerate(left.tolist())}
    symbols = len(left)
    return word, symbols, {h: place[k] for h, k in known.items() if k in place}

"""Strips: what mappers by strips share, the numbering of a grid that is cut into strips.

Every dimension but the last of `order` is cut into strips, the wider ones first, so that the grid
becomes columns along the last. The numbers fill column after column, each slice by slice, a slice
row-major. Whether strips are taken upwards or downwards changes from one to the next, in every
dimension, so that a column begins beside the end of the one before.

Source: Lehr 2019, section 6.1.2, listings 6.1 and 6.2. O(d^2) a rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from .grid import Coordinates


class Cut(NamedTuple):
    """How a dimension is cut: `wide` strips of width + 1, then `narrow` ones of width."""

    width: int
    wide: int
    narrow: int


def cut(size: int, target: int) -> Cut:
    """As many strips of at least `target` as fit, those that get one more first; O(1)."""
    strips = max(1, size // max(1, target))
    return Cut(size // strips, size % strips, strips - size % strips)


def last_longest(dims: Sequence[int]) -> list[int]:
    """Dimensions in their order, but the longest (the first of several) moved last."""
    longest = max(range(len(dims)), key=lambda d: dims[d])
    return [d for d in range(len(dims)) if d != longest] + [longest]


def root(radicand: float, degree: int) -> int:
    """Integer part of a root; powers are compared, so that it is right for exact ones."""
    low = int(radicand ** (1 / degree))
    return low + 1 if (low + 1) ** degree <= radicand * (1 + 1e-12) else low


def strip_coordinates(
    rank: int, dims: Sequence[int], order: Sequence[int], cuts: Sequence[Cut]
) -> list[int]:
    """Coordinates of one rank; order[i] is cut by cuts[i], the last into single slices."""
    coordinates = [0] * len(dims)
    widths, flipped, flip = [], [], False
    row = prod(dims)  # ranks in the part of the grid that is left
    for d, (width, wide, _) in zip(order, cuts, strict=True):
        size = dims[d]
        row //= size
        height = rank // row
        if flip:
            height = size - 1 - height
        border = wide * (width + 1)  # here the narrow strips begin
        if height < border:
            strip, taken = height // (width + 1), width + 1
            first = strip * taken
        else:
            strip, taken = wide + (height - border) // width, width
            first = border + (strip - wide) * width
        rank -= row * (size - first - taken if flip else first)
        row *= taken
        coordinates[d] = first
        widths.append(taken)
        flipped.append(flip)
        flip ^= strip % 2 == 1
    for i, d in enumerate(order):
        place = rank // prod(widths[i + 1 :]) % widths[i]
        coordinates[d] += widths[i] - 1 - place if flipped[i] else place
    return coordinates


def strip_all(dims: Sequence[int], order: Sequence[int], cuts: Sequence[Cut]) -> Coordinates:
    """Coordinates of all ranks: the same for a vector of ranks, strips looked up in tables."""
    rank = np.arange(prod(dims))
    coordinates = np.zeros((len(rank), len(dims)), dtype=np.int64)
    row = np.full(len(rank), len(rank))
    flip = np.zeros(len(rank), dtype=bool)
    widths, flipped = [], []
    for d, (width, wide, narrow) in zip(order, cuts, strict=True):
        size = dims[d]
        taken = np.repeat((width + 1, width), (wide, narrow))
        first = np.cumsum(taken) - taken
        strip_at = np.repeat(np.arange(len(taken)), taken)
        row //= size
        height = rank // row
        strip = strip_at[np.where(flip, size - 1 - height, height)]
        before = np.where(flip, (size - first - taken)[strip], first[strip])
        rank = rank - row * before
        row *= taken[strip]
        coordinates[:, d] = first[strip]
        widths.append(taken[strip])
        flipped.append(flip)
        flip = flip ^ (strip % 2 == 1)
    later = np.ones_like(rank)
    for i in reversed(range(len(dims))):
        place = rank // later % widths[i]
        coordinates[:, order[i]] += np.where(flipped[i], widths[i] - 1 - place, place)
        later *= widths[i]
    return coordinates

"""Grids of ranks at several rank counts: as square as possible, x fastest."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Dims = tuple[int, ...]

MOST_DIMENSIONS = 3


@lru_cache
def balanced(ranks: int, dimensions: int) -> Dims | None:
    """Ranks in each dimension, ascending, as close to each other as they can be; at least 2.

    That is what MPI_Dims_create gives, in the other order.
    """
    return min(_products(ranks, dimensions, 2), key=lambda dims: (dims[-1], -dims[0]), default=None)


def _products(ranks: int, dimensions: int, least: int) -> Iterator[Dims]:
    if dimensions == 1:
        if ranks >= least:
            yield (ranks,)
        return
    for first in range(least, int(ranks ** (1 / dimensions) + 1e-9) + 1):
        if ranks % first == 0:
            for rest in _products(ranks // first, dimensions - 1, first):
                yield (first, *rest)


def families(ranks: list[int]) -> Iterator[tuple[Dims, ...]]:
    """Grids of one family at all these rank counts: of 1 to 3 dimensions, longest last or first."""
    for dimensions in range(1, MOST_DIMENSIONS + 1):
        grids = [balanced(count, dimensions) for count in ranks]
        if None in grids:
            continue
        ascending = tuple(grid for grid in grids if grid)
        yield ascending
        descending = tuple(grid[::-1] for grid in ascending)
        if descending != ascending:
            yield descending


def coordinates(dims: Dims) -> Ints:
    """Coordinates of all ranks, x first; shape (ranks, dimensions)."""
    at = np.unravel_index(np.arange(int(np.prod(dims))), dims[::-1])
    return np.stack(at[::-1], axis=1).astype(np.int64)


def numbered(coords: Ints, dims: Dims) -> Ints:
    """Rank at coordinates, shape (..., dimensions)."""
    stride = np.concatenate(([1], np.cumprod(dims)[:-1]))
    rank: Ints = (coords * stride).sum(axis=-1)
    return rank


def places(coords: Ints, dims: Dims, split: tuple[int, ...]) -> Ints:
    """Where ranks are along the dimensions of `split`: at the low end, inside, or at the high end.

    Returns
    -------
    ndarray(int64, shape=(ranks,))
        A number for each of the 3^len(split) places.
    """
    place = np.zeros(len(coords), dtype=np.int64)
    for axis in split:
        end = (coords[:, axis] > 0).astype(np.int64) + (coords[:, axis] == dims[axis] - 1)
        place = 3 * place + end
    return place


def place_name(place: int, split: tuple[int, ...]) -> str:
    """Say where that is."""
    words = []
    for axis in reversed(split):
        place, end = divmod(place, 3)
        words.append(f"{('low end', 'inside', 'high end')[end]} of {'xyz'[axis]}")
    return ", ".join(reversed(words)) or "any place"

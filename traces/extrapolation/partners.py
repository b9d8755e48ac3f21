"""Grids of ranks at several rank counts, and partners as functions of a rank's coordinates in one.

Grids are as square as possible, x fastest. Partners are vectors that wrap around (stencils,
pipelines, tori), single bits of a coordinate (butterflies, recursive doubling and halving), the
transpose, the mirror, one rank for all. Wu and Mueller, "ScalaExtrap", PPoPP 2011, take the first
of these; bits and the transpose are what CG adds.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np

from hopmap.arrays import Ints

Dims = tuple[int, ...]

MOST_DIMENSIONS = 3


@lru_cache
def balance_grid(ranks: int, dimensions: int) -> Dims | None:
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
        grids = [balance_grid(count, dimensions) for count in ranks]
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


def rank_at(coords: Ints, dims: Dims) -> Ints:
    """Rank at coordinates, shape (..., dimensions)."""
    stride = np.concatenate(([1], np.cumprod(dims)[:-1]))
    rank: Ints = (coords * stride).sum(axis=-1)
    return rank


def places(coords: Ints, dims: Dims, split: tuple[int, ...]) -> Ints:
    """Where ranks are along the dimensions of `split`: at the low end, inside, or at the high end.

    Returned is a number for each of the 3^len(split) places, (ranks,).
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


class Place(NamedTuple):
    """Ranks of one size whose steps are compared, and how often each takes the step."""

    dims: Dims  # the grid
    coords: Ints  # (ranks, dimensions): of these ranks
    # Times that the step is taken: iterations of a loop that grows with the grid, else 1
    iterations: int

    @property
    def ranks(self) -> int:
        """Processes of this size."""
        return int(np.prod(self.dims))

    @property
    def t(self) -> Ints:
        """Iterations, counted from 0; shape (iterations,)."""
        return np.arange(self.iterations, dtype=np.int64)


class Partner(NamedTuple):
    """A rule for partners."""

    kind: str  # "vector", "bit", "transpose", "mirror", "rank", "none"
    axis: int = 0  # of a bit
    # The vector; of a bit, the first iteration's, and what each iteration adds; of a rank, that
    values: tuple[int, ...] = ()
    # Whether the bit is counted from that of the dimension's length; the rank from the last
    from_top: bool = False

    def __str__(self) -> str:
        """Say it: "the rank at +1,0", "rank 0"."""
        if self.kind == "vector":
            return f"the rank at {','.join(f'{step:+}' for step in self.values)}"
        if self.kind == "rank":
            return "the last rank" if self.from_top else f"rank {self.values[0]}"
        return f"bit {self.values[0]} of {'xyz'[self.axis]}" if self.kind == "bit" else self.kind

    def at(self, place: Place) -> Ints | None:
        """World ranks, shape (ranks, iterations); None where the rule makes no sense."""
        dims, coords = np.array(place.dims), place.coords
        shape = (len(coords), place.iterations)
        if self.kind == "none":
            return np.full(shape, -1, dtype=np.int64)
        if self.kind == "rank":
            rank = self.values[0] + (place.ranks - 1 if self.from_top else 0)
            return np.full(shape, rank) if 0 <= rank < place.ranks else None
        if self.kind == "bit":
            length = place.dims[self.axis]
            if length & (length - 1):
                return None
            bit = self.values[0] + self.values[1] * place.t
            bit = bit + (length.bit_length() - 1 if self.from_top else 0)
            if bit.min() < 0 or bit.max() >= length.bit_length() - 1:
                return None
            to = np.repeat(coords[:, None, :], place.iterations, axis=1)
            to[:, :, self.axis] ^= 1 << bit
            return rank_at(to, place.dims)
        if self.kind == "transpose":
            if len(set(place.dims)) > 1:
                return None
            to = coords[:, ::-1]
        elif self.kind == "mirror":
            to = dims - 1 - coords
        else:
            if (np.abs(self.values) >= dims).any():
                return None
            to = (coords + self.values) % dims
        return np.repeat(rank_at(to, place.dims)[:, None], place.iterations, axis=1)


def candidates(peers: Ints, place: Place) -> Iterator[Partner]:
    """Rules that the first rank's partners could follow; `peers` is (ranks, iterations)."""
    first, dims = int(peers[0, 0]), place.dims
    if first < 0:
        yield Partner("none")
        return
    me = place.coords[0]
    strides = np.concatenate(([1], np.cumprod(dims)[:-1]))
    to = first // strides % dims
    for wrap in product((0, 1), repeat=len(dims)):
        vector = (to - me) % dims - np.array(wrap) * dims
        if (2 * np.abs(vector) <= np.array(dims)).all():
            yield Partner("vector", values=tuple(int(v) for v in vector))
    differs = np.flatnonzero(to != me)
    if len(differs) == 1:
        axis = int(differs[0])
        mask, top = int(to[axis] ^ me[axis]), dims[axis].bit_length() - 1
        if mask & (mask - 1) == 0:
            bit = mask.bit_length() - 1
            for step in (-1, 0, 1) if place.iterations > 1 else (0,):
                yield Partner("bit", axis, (bit, step))
                yield Partner("bit", axis, (bit - top, step), from_top=True)
    yield Partner("transpose")
    yield Partner("mirror")
    yield Partner("rank", values=(first,))
    yield Partner("rank", values=(first - place.ranks + 1,), from_top=True)


def root_rules(peers: list[Ints], places: list[Place]) -> list[Partner]:
    """Rules that the root of a collective follows, the same rank for all: a number, or the last.

    At one size rank 0 stays rank 0, and the last rank may be either.
    """
    roots = [np.unique(peer) for peer in peers]
    if any(len(each) != 1 for each in roots):
        return find_rules(peers, places)
    first, ranks = int(roots[0][0]), places[0].ranks
    if first < 0:
        return [Partner("none")]
    rules = [Partner("rank", values=(first,))]
    if first == ranks - 1:
        rules.append(Partner("rank", values=(0,), from_top=True))
    return [
        rule
        for rule in rules
        if all(
            (at := rule.at(place)) is not None and (at == root).all()
            for place, root in zip(places, roots, strict=True)
        )
    ]


def find_rules(peers: list[Ints], places: list[Place]) -> list[Partner]:
    """Rules that all ranks of all sizes follow; of one size, rules of the simplest kind.

    `peers` has an array (ranks, iterations) for each size.
    """
    found = []
    for rule in dict.fromkeys(candidates(peers[0], places[0])):
        predicted = [rule.at(place) for place in places]
        if all(
            is_ is not None and np.array_equal(is_, was)
            for is_, was in zip(predicted, peers, strict=True)
        ):
            found.append(rule)
    if len(places) == 1:
        return [rule for rule in found if rule.kind == found[0].kind]
    return found

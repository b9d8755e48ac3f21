"""Synthetic traffic: the patterns with which textbooks load a network, one rank a node.

A rank's address is its coordinates, x first, each in binary: patterns move the coordinates
(transpose, tornado, neighbour) or the bits of the address (complement, bit reversal, shuffle).
Source: Dally and Towles, Principles and Practices of Interconnection Networks, 2004, section 3.2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from hopmap.arrays import Ints
from hopmap.errors import expect_between, expect_one_of
from hopmap.traces.formats.tables import MOST_DIMENSIONS
from hopmap.traces.trace import TraceError
from hopmap.traces.traffic import MOST_MESSAGE, MOST_RANKS, Traffic

MOST_UNIFORM = 2**12  # of which all pairs fit into memory


class Pattern(NamedTuple):
    """Who sends to whom."""

    # Coordinates of the targets from the sources' coordinates, both of shape (ranks, dimensions),
    # and the dims; None where everyone sends to everyone
    target: Callable[[Ints, Ints], Ints] | None
    summary: str  # one line
    equal: bool = False  # whether all dimensions must be of one size
    binary: bool = False  # whether all sizes must be powers of two


def synthetic_traffic(pattern: str, dims: Sequence[int], *, size: int = 1) -> Traffic:
    """Traffic of a pattern on a box of ranks, numbered with x fastest as the nodes of a box are.

    `pattern` is a name in `PATTERNS`, `dims` are ranks per dimension, x first. There is one message
    of `size` bytes from every rank to its target, itself perhaps; of uniform traffic, one to every
    rank, itself too.

        >>> synthetic_traffic("tornado", (8,)).dst.tolist()
        [3, 4, 5, 6, 7, 0, 1, 2]
    """
    expect_one_of(TraceError, "pattern", pattern, PATTERNS)
    entry, text = PATTERNS[pattern], "x".join(str(d) for d in dims)
    if not dims or min(dims) < 1:
        raise TraceError(f"{pattern}: sizes {text}: expected whole numbers of at least 1")
    if len(dims) > MOST_DIMENSIONS:
        raise TraceError(f"{pattern}: {len(dims)} dimensions: expected at most {MOST_DIMENSIONS}")
    expect_between(TraceError, f"{pattern}: {size} bytes a message", size, 0, MOST_MESSAGE)
    if entry.equal and len(set(dims)) > 1:
        raise TraceError(f"{pattern}: sizes {text}: expected equal ones")
    if entry.binary and any(d & (d - 1) for d in dims):
        raise TraceError(f"{pattern}: sizes {text}: expected powers of two")
    shape = np.array(dims, dtype=np.int64)
    strides = np.concatenate(([1], np.cumprod(shape[:-1])))
    ranks = math.prod(int(d) for d in dims)
    most = MOST_UNIFORM if entry.target is None else MOST_RANKS
    if ranks > most:
        raise TraceError(f"{pattern}: {ranks} ranks: expected at most {most}")
    source = np.arange(ranks)
    if entry.target is None:
        target = np.tile(source, ranks)
        source = np.repeat(source, ranks)
    else:
        target = entry.target(source[:, None] // strides % shape, shape) @ strides
    messages = np.ones(len(source), dtype=np.int64)
    metadata = {"benchmark": pattern, "dims": [int(d) for d in dims]}
    return Traffic.from_pairs(ranks, source, target, messages, messages * size, metadata)


def _tornado(coords: Ints, dims: Ints) -> Ints:
    there = coords.copy()
    there[:, 0] += (dims[0] + 1) // 2 - 1
    return there % dims


def _bit_reversal(coords: Ints, dims: Ints) -> Ints:
    bits = _bits(dims)
    return _bits_moved(coords, bits, bits[::-1])


def _shuffle(coords: Ints, dims: Ints) -> Ints:
    bits = _bits(dims)
    return _bits_moved(coords, bits, bits[1:] + bits[:1])


def _bits(dims: Ints) -> list[tuple[int, int]]:
    """Dimension and place of an address's bits, from the highest of x down."""
    widths = [int(d).bit_length() - 1 for d in dims]
    return [(k, b) for k, width in enumerate(widths) for b in reversed(range(width))]


def _bits_moved(
    coords: Ints, bits: Sequence[tuple[int, int]], taken: Sequence[tuple[int, int]]
) -> Ints:
    """Set each of these bits to the one that is taken in its place."""
    there = np.zeros_like(coords)
    for (k, b), (from_k, from_b) in zip(bits, taken, strict=True):
        there[:, k] |= (coords[:, from_k] >> from_b & 1) << b
    return there


PATTERNS: Mapping[str, Pattern] = {
    "uniform": Pattern(None, "every rank to every rank, itself too"),
    "transpose": Pattern(
        lambda at, _: np.roll(at, -1, axis=1), "(x, y, z) to (y, z, x)", equal=True
    ),
    "tornado": Pattern(_tornado, "almost half-way round in x: x + ceil(k / 2) - 1"),
    "complement": Pattern(
        lambda at, dims: dims - 1 - at, "(x, y) to (k - 1 - x, k - 1 - y): all bits turned over"
    ),
    "neighbour": Pattern(
        lambda at, dims: (at + 1) % dims, "(x, y) to (x + 1, y + 1), around the edges"
    ),
    "bit_reversal": Pattern(_bit_reversal, "bits of the address in reverse order", binary=True),
    "shuffle": Pattern(_shuffle, "address rotated left by one bit", binary=True),
}

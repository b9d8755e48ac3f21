"""Snake: a numbering of strips in which each rank is a neighbour of the one before.

Dimension by dimension: the others have been numbered by a path of N cells, and this one is cut into
strips. A strip is filled along the path, cell by cell, each cell a row across the strip, to and
fro; strips follow the path forwards and backwards by turns. A row ends beside the next one, and a
strip has to end on the side of the next strip:

- N odd: it does, as the last row runs like the first.
- N even, width odd: the last two rows are filled together, crosswise, two ranks at a time.
- N even, width even: that ends one cell before the path's end. So the next strip of even width
  begins there, crosswise as well, and then ends as it should.
- The last strip may end anywhere. Where N is even and the even strips are odd in number, those of
  odd width come first, so that the one without a partner is the last.

So the numbering is a path through the grid (in one dimension the path is the dimension; the others
follow by induction), and consecutive ranks, however many, are connected: nodes of any sizes.

Source: this project; the strips are Lehr's (2019, chapter 6). O(d) a rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from hopmap.arrays import Ints

from .grid import Coordinates


class Cut(NamedTuple):
    """How a dimension is cut: `wide` strips of width + 1, then `narrow` ones of width."""

    width: int
    wide: int
    narrow: int


def along_snake(
    rank: Ints, dims: Sequence[int], order: Sequence[int], cuts: Sequence[Cut]
) -> Coordinates:
    """Coordinates of ranks; order[i] is cut by cuts[i], the last into single slices."""
    coordinates = np.zeros((len(rank), len(dims)), dtype=np.int64)
    path = prod(dims)
    for d, cut in zip(order[:-1], cuts, strict=False):
        path //= dims[d]
        height, rank = _step(rank, path, cut)
        coordinates[:, d] = dims[d] - 1 - height if narrow_first(cut, path) else height
    coordinates[:, order[-1]] = rank
    return coordinates


def _step(rank: Ints, path: int, cut: Cut) -> tuple[Ints, Ints]:
    """Heights of ranks in the dimension that is cut, and their cells of the path."""
    (width_first, count), (width_then, others) = kinds(cut, path)
    border = count * width_first * path  # where the strips of the other width begin
    late = rank >= border
    width = np.where(late, width_then, width_first)
    rank = np.where(late, rank - border, rank)
    nth, rank = np.divmod(rank, width * path)  # strip of this width
    strip = np.where(late, count + nth, nth)
    first = np.where(late, count * width_first, 0) + nth * width
    cell, height = np.divmod(rank, width)
    to_and_fro = cell
    if path % 2 == 0:
        partner = (width % 2 == 0) & (nth % 2 == 1)
        to_and_fro = cell + partner
        ends = ~partner & (cell >= path - 2) & (strip < count + others - 1)
        begins = partner & (cell < 2)
    height = np.where(to_and_fro % 2 == 1, width - 1 - height, height)
    if path % 2 == 0:
        for crosswise, start, turned in ((ends, path - 2, 0), (begins, 0, 1)):
            across, second = np.divmod(rank[crosswise] - start * width[crosswise], 2)
            height[crosswise] = across
            cell[crosswise] = start + (second + across + turned) % 2
    return height + first, np.where(strip % 2 == 1, path - 1 - cell, cell)


def narrow_first(cut: Cut, path: int) -> bool:
    """Whether the narrower strips come first: the wider ones are even and one has no partner."""
    return path % 2 == 0 and cut.width % 2 == 1 and cut.wide % 2 == 1 and cut.narrow > 0


def kinds(cut: Cut, path: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Width and number of the strips that come first, and of the others."""
    wider, narrower = (cut.width + 1, cut.wide), (cut.width, cut.narrow)
    return (narrower, wider) if narrow_first(cut, path) else (wider, narrower)

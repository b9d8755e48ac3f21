"""Grids cut into strips: `squarest_strips`, and `stencil_strips` for any stencil.

Every dimension but the last of `order` is cut into strips, the wider ones first, so that the grid
becomes columns along the last. The numbers fill column after column, each slice by slice, a slice
row-major. Whether strips are taken upwards or downwards changes from one to the next, in every
dimension, so that a column begins next to the end of the one before. Source: Lehr 2019, section
6.1.2, listings 6.1 and 6.2. O(d^2) a rank.

The snake, ours, numbers the same strips so that each rank is a neighbour of the one before.
Dimension by dimension: the others have been numbered by a path of N cells, and this one is cut into
strips. A strip is filled along the path, cell by cell, each cell a row across the strip, to and
fro; strips follow the path forwards and backwards by turns. A row ends next to the next one, and a
strip has to end on the side of the next strip:

- N odd: it does, as the last row runs like the first.
- N even, width odd: the last two rows are filled together, crosswise, two ranks at a time.
- N even, width even: that ends one cell before the path's end. So the next strip of even width
  begins there, crosswise as well, and then ends as it should.
- The last strip may end anywhere. Where N is even and the number of even strips is odd, strips of
  odd width come first, so that the one without a partner is the last.

So the numbering is a path through the grid (in one dimension the path is the dimension; the others
follow by induction), and consecutive ranks, however many, are connected: nodes of any sizes. O(d) a
rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Literal, NamedTuple

import numpy as np

from hopmap.arrays import Ints
from hopmap.mappers.mapper import mapper
from hopmap.topologies import Mapping, Topology
from hopmap.traces import Traffic

from .grid import (
    Coordinates,
    Vectors,
    Weight,
    Weights,
    cartesian,
    crossing,
    node_sizes,
    on_grid,
    place,
)

Carry = Literal["wider", "narrower"]
Path = Literal["rows", "snake"]


class Cut(NamedTuple):
    """How a dimension is cut: `wide` strips of width + 1, then `narrow` ones of width."""

    width: int
    wide: int
    narrow: int


@mapper("squarest_strips", source="Lehr 2019, chapter 6", needs=on_grid)
def squarest_strips(
    traffic: Traffic, topology: Topology, *, carry: Carry = "wider", path: Path = "rows"
) -> Mapping:
    """Cartesian grid: columns as square as a node's ranks, filled up and down.

    With n dimensions left, a strip should be as wide as the n-th root of p / (the widths so far), p
    being the ranks of the largest node; as many strips as have at least that width share a
    dimension evenly. The longest dimension is not cut: along it the columns run.

    Source: Lehr 2019, chapter 6, connected version. The strips of a dimension come in two widths,
    one apart, and the text does not say which one counts for the next root. Its figures (64 and
    1,522 on 12 x 11 x 8 ranks and 33 nodes) follow with the wider; the narrower is ours, and there
    gives 56 and 1,522. Nodes of one size come out connected with the wider, as do in any case those
    with more ranks than a slice of a column; others can fall apart. With ``path=snake``, ours,
    nodes of any sizes are connected, each of them (`along_snake`); on that grid it gives 64 and
    1,526, or 56 and 1,524 with the narrower.

    - `carry`: which width of a dimension's strips counts for the next dimension.
    - `path`: slices row by row as published, or ranks so that each is a neighbour of the one
      before.
    """
    grid = cartesian(traffic, "squarest_strips", weighs=False)
    size = max(node_sizes(topology, traffic.ranks))
    return place(grid, squarest_strips_all(grid.dims, size, carry, path), topology)


def squarest_strips_all(
    dims: Sequence[int], size: int, carry: Carry = "wider", path: Path = "rows"
) -> Coordinates:
    """Coordinates of all ranks."""
    filled = along_snake if path == "snake" else in_strips
    return filled(np.arange(prod(dims)), dims, *squarest_cuts(dims, size, carry))


def squarest_cuts(dims: Sequence[int], size: int, carry: Carry) -> tuple[list[int], list[Cut]]:
    """Order of the dimensions and how each is cut."""
    order, cuts, section = last_longest(dims), [], 1
    for left, d in zip(range(len(dims), 1, -1), order, strict=False):
        cuts.append(cut(dims[d], root(size / section, left)))
        section *= cuts[-1].width + (carry == "wider" and cuts[-1].wide > 0)
    return order, [*cuts, Cut(1, 0, dims[order[-1]])]


@mapper("stencil_strips", source="Hunold, von Kirchbach, Lehr, Schulz, Traeff 2020", needs=on_grid)
def stencil_strips(traffic: Traffic, topology: Topology, *, weight: Weight = "messages") -> Mapping:
    """Cartesian grid: columns of the stencil's proportions, filled up and down.

    The wider the stencil reaches in a dimension, the wider a strip should be there: its root is
    taken of alpha times the ranks that are left, alpha being the stencil's extent in that dimension
    over the geometric mean of its extents. Steps, roots (of degree d throughout) and roundings
    follow the authors' library mpicartreorderlib: what is left is divided by the narrower width,
    without its fraction. Node sizes are averaged. Where the stencil does not go, strips are one
    rank wide. With weight=bytes, ours, what crosses a cut takes the place of the extent: bytes
    times reach, summed over the vectors; a box of these proportions has the least bytes across its
    sides.

    Source: Hunold, von Kirchbach, Lehr, Schulz, Traeff, Efficient process-to-node mapping
    algorithms for stencil computations, IEEE Cluster 2020, arXiv 2005.09521. O(d^2 + d vectors) a
    rank.
    """
    grid = cartesian(traffic, "stencil_strips", weighs=weight == "bytes")
    sizes = node_sizes(topology, traffic.ranks)
    size = traffic.ranks // len(sizes)
    return place(
        grid, stencil_strips_all(grid.dims, size, grid.stencil, grid.weights(weight)), topology
    )


def stencil_strips_all(
    dims: Sequence[int], size: int, stencil: Vectors, weights: Weights = None
) -> Coordinates:
    """Coordinates of all ranks."""
    return in_strips(np.arange(prod(dims)), dims, *stencil_cuts(dims, size, stencil, weights))


def stencil_cuts(
    dims: Sequence[int], size: int, stencil: Vectors, weights: Weights = None
) -> tuple[list[int], list[Cut]]:
    """Order of the dimensions and how each is cut."""
    order, cuts, left = last_longest(dims), [], size
    alpha = distortion(stencil, len(dims), weights)
    for d in order[:-1]:
        cuts.append(cut(dims[d], root(left * alpha[d], len(dims))))
        left //= cuts[-1].width
    return order, [*cuts, Cut(1, 0, dims[order[-1]])]


def distortion(stencil: Vectors, dimensions: int, weights: Weights = None) -> list[float]:
    """Extent of the stencil in every dimension over the geometric mean of those that are not 0."""
    reach = [[0, *(vector[d] for vector in stencil)] for d in range(dimensions)]
    extents = [max(values) - min(values) for values in reach]
    if weights is not None:
        extents = crossing(stencil, weights, dimensions)
    used = [extent for extent in extents if extent]
    mean = prod(used) ** (1 / len(used)) if used else 1.0
    return [extent / mean for extent in extents]


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


def in_strips(
    rank: Ints, dims: Sequence[int], order: Sequence[int], cuts: Sequence[Cut]
) -> Coordinates:
    """Coordinates of ranks; order[i] is cut by cuts[i], the last into single slices."""
    coordinates = np.zeros((len(rank), len(dims)), dtype=np.int64)
    row = np.full(len(rank), prod(dims))  # ranks in the part of the grid that is left
    flip = np.zeros(len(rank), dtype=bool)
    widths, flipped = [], []
    for d, (width, wide, _) in zip(order, cuts, strict=True):
        size, border = dims[d], wide * (width + 1)  # where the narrow strips begin
        row //= size
        height = rank // row
        height = np.where(flip, size - 1 - height, height)
        narrow = height >= border
        taken = np.where(narrow, width, width + 1)
        strip = np.where(narrow, wide + (height - border) // width, height // (width + 1))
        first = np.where(narrow, border + (strip - wide) * width, strip * taken)
        rank = rank - row * np.where(flip, size - first - taken, first)
        row *= taken
        coordinates[:, d] = first
        widths.append(taken)
        flipped.append(flip)
        flip = flip ^ (strip % 2 == 1)
    later = np.ones_like(rank)
    for i in reversed(range(len(dims))):
        place = rank // later % widths[i]
        coordinates[:, order[i]] += np.where(flipped[i], widths[i] - 1 - place, place)
        later *= widths[i]
    return coordinates


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

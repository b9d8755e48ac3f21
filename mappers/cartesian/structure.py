"""Structure: coordinates of ranks whose traffic is a product or a lattice, in any numbering.

See `cartesian_product` and `lattice`. In both what comes out is checked: all cells are different
and fill a box, and most pairs are steps of the stencil. Weights play no role, except that where all
pairs have no structure, the heavier ones may (see `grid.find_structures`). Parts that are not
connected, as members of an ensemble, are boxes next to each other.
"""

from __future__ import annotations

import numpy as np

from hopmap.arrays import Ints

from .cartesian_product import product_cells
from .cells import Cells, as_lists, is_whole, label_parts, prime_factors
from .lattice import lattice_cells

LARGEST, DEGREES = 512, 64  # most neighbours where structure is looked for; different numbers
PARTS, LEAST = 64, 4  # most parts that are not connected; least ranks of each


def find_structure(ranks: int, src: Ints, dst: Ints) -> Cells | None:
    """Coordinates of ranks in products or lattices; None where none is found.

    - `src`, `dst`, shape (pairs,): undirected pairs, each once, without loops.
    """
    if ranks < LEAST or len(src) == 0:
        return None
    pairs = as_lists(ranks, src, dst)
    degree = np.unique(np.diff(pairs.indptr))
    if degree[-1] > LARGEST or len(degree) > DEGREES:
        return None
    return product_cells(pairs) or lattice_cells(pairs) or _side_by_side(ranks, src, dst)


def _side_by_side(ranks: int, src: Ints, dst: Ints) -> Cells | None:
    """Coordinates where the parts are boxes that differ in one side at most, next to each other."""
    part = label_parts(ranks, src, dst)
    size = np.bincount(part)
    if not 1 < len(size) <= PARTS or size.min() < LEAST:
        return None
    found = []
    for k, count in enumerate(size.tolist()):
        number = np.cumsum(part == k) - 1
        here = part[src] == k
        cells = find_structure(count, number[src[here]], number[dst[here]])
        if cells is None or not is_whole(cells):
            return None
        found.append(cells)
    if len({len(cells.dims) for cells in found}) > 1:
        return None
    sides = np.array([(*cells.dims, 1) for cells in found])
    differs = np.flatnonzero(np.ptp(sides, axis=0))
    if len(differs) > 1:
        return None
    axis = int(differs[0]) if len(differs) else -1  # members that are equal get one more dimension
    coords = np.zeros((ranks, sides.shape[1]), dtype=np.int64)
    for k, begin in enumerate(np.cumsum(sides[:, axis]) - sides[:, axis]):
        coords[part == k, :-1] = found[k].coords
        coords[part == k, axis] += begin
    if not len(differs):  # a box of boxes, of which any may be next to any
        places = np.unravel_index(coords[:, -1], prime_factors(len(size)))
        coords = np.column_stack((coords[:, :-1], *places))
    dims = coords.max(axis=0) + 1
    longest = np.argsort(-dims, kind="stable")[: np.count_nonzero(dims > 1)]
    return Cells(tuple(dims[longest].tolist()), coords[:, longest])

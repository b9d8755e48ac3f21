"""Structure: coordinates of ranks whose traffic is a product or a lattice, in any numbering.

See `cartesian_product` and `lattice`. In both what comes out is checked: all cells are different
and fill a box, and most pairs are steps of the stencil. Weights play no role, except that where all
pairs have no structure, the heavier ones may (see `grid.find_structures`).
"""

from __future__ import annotations

import numpy as np

from hopmap.arrays import Ints

from .cartesian_product import product_cells
from .cells import Cells, as_lists
from .lattice import lattice_cells

LARGEST, DEGREES = 512, 64  # most neighbours where structure is looked for; different numbers


def find_structure(ranks: int, src: Ints, dst: Ints) -> Cells | None:
    """Coordinates of ranks in a product or a lattice; None where none is found.

    - `src`, `dst`, shape (pairs,): undirected pairs, each once, without loops.
    """
    if ranks < 4 or len(src) == 0:
        return None
    pairs = as_lists(ranks, src, dst)
    degree = np.unique(np.diff(pairs.indptr))
    if degree[-1] > LARGEST or len(degree) > DEGREES:
        return None
    return product_cells(pairs) or lattice_cells(pairs)

"""Coordinates of ranks whose traffic is a Cartesian product of any graphs.

Paths, rings, cliques, hypercubes: stencils of faces, rows and columns of a process grid, tensor,
pipeline and data parallel groups. A product has classes of parallel edges, which squares and
triangles tell (Feder, Product graph representations, J. Graph Theory 16, 1992; Imrich and Peterin,
Recognizing Cartesian products in linear time, Discrete Mathematics 307, 2007). Without the edges of
one factor what is connected has one coordinate there, or cells of a lattice. O(sum of squared
degrees); Imrich and Peterin's is O(pairs), and not needed for degrees of stencils.
"""

from __future__ import annotations

import numpy as np

from hopmap.arrays import Ints

from .cells import Cells, Pairs, as_lists, is_whole, label_parts
from .lattice import lattice_cells

FACTORS = 12


def product_cells(pairs: Pairs) -> Cells | None:
    """Coordinates of the factors of a Cartesian product; None if there are not two at least."""
    from .product_kernels import parallel_edges

    ranks = len(pairs.indptr) - 1
    order = _breadth_first(pairs)
    if len(order) < ranks:
        return None
    root = parallel_edges(pairs.indptr, pairs.peer, pairs.edge, order, FACTORS)
    classes, factor = np.unique(root, return_inverse=True)
    if not 1 < len(classes) <= FACTORS:
        return None
    coords = np.empty((ranks, len(classes)), dtype=np.int64)
    for k in range(len(classes)):
        within = factor != k
        coords[:, k] = label_parts(ranks, pairs.src[within], pairs.dst[within])
    dims = coords.max(axis=0) + 1
    if np.prod(dims.astype(np.float64)) != ranks or len(np.unique(coords, axis=0)) < ranks:
        return None
    found = []
    for k, length in enumerate(dims.tolist()):
        inside = factor == k
        ends = np.sort([coords[pairs.src[inside], k], coords[pairs.dst[inside], k]], axis=0)
        found.append(_cells_of(length, *np.unique(ends, axis=1)).coords[coords[:, k]])
    coords = np.concatenate(found, axis=1)
    dims = coords.max(axis=0) + 1
    longest = np.argsort(-dims, kind="stable")
    return Cells(tuple(dims[longest].tolist()), coords[:, longest])


def _breadth_first(pairs: Pairs) -> Ints:
    """Ranks that the first can reach, breadth first."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order

    ranks = len(pairs.indptr) - 1
    ones = np.ones(len(pairs.peer), dtype=np.int8)
    graph = csr_array((ones, pairs.peer, pairs.indptr), shape=(ranks, ranks))
    found = breadth_first_order(graph, 0, return_predecessors=False)
    return np.asarray(found, dtype=np.int64)


def _cells_of(length: int, src: Ints, dst: Ints) -> Cells:
    """Coordinates in a factor: in a lattice, as a honeycomb is, or along a line."""
    if len(src) > length:  # no path and no ring
        cells = lattice_cells(as_lists(length, src, dst))
        if cells is not None and is_whole(cells):
            return cells
    return Cells((length,), _line_up(length, src, dst)[:, None])


def _line_up(length: int, src: Ints, dst: Ints) -> Ints:
    """Place of every vertex of a factor: along a path or a ring, else by Cuthill and McKee."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    ends, others = np.concatenate((src, dst)), np.concatenate((dst, src))
    graph = csr_array((np.ones(len(ends)), (ends, others)), shape=(length, length))
    degree = np.diff(graph.indptr)
    if degree.max() > 2:
        order = reverse_cuthill_mckee(graph, symmetric_mode=True)
    else:
        line: list[int] = []
        last, here = -1, int(degree.argmin())
        while here >= 0 and len(line) < length:
            line.append(here)
            peers = graph.indices[graph.indptr[here] : graph.indptr[here + 1]].tolist()
            last, here = here, next((p for p in peers if p != last), -1)
        order = np.array(line)
    place = np.empty(length, dtype=np.int64)
    place[order] = np.arange(length)
    return place

"""Stencil strips: squarest strips for any stencil.

The wider the stencil reaches in a dimension, the wider a strip should be there: its root is taken
of alpha times the ranks that are left, alpha being the stencil's extent in that dimension over the
geometric mean of its extents. Steps, roots (of degree d throughout) and roundings are those of the
authors' library mpicartreorderlib: what is left is divided by the narrower width, without its
fraction. Node sizes are averaged. Where the stencil does not go, strips are one rank wide. With
weight=bytes, ours, what crosses a cut takes the place of the extent: bytes times reach, summed over
the vectors; a box of these proportions has the least bytes across its sides.

Source: Hunold, von Kirchbach, Lehr, Schulz, Traeff, Efficient process-to-node mapping algorithms
for stencil computations, IEEE Cluster 2020, arXiv 2005.09521. O(d^2 + d vectors) a rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from hopmap.mappers.mapper import mapper
from hopmap.topologies import Mapping, Topology
from hopmap.traces import Traffic

from .grid import Coordinates, Weight, cartesian, crossing, node_sizes, on_grid, placed
from .strips import Cut, cut, last_longest, root, strip_all, strip_coordinates

Vectors = Sequence[Sequence[int]]
Weights = Sequence[int] | None


@mapper("stencil_strips", source="Hunold, von Kirchbach, Lehr, Schulz, Traeff 2020", needs=on_grid)
def stencil_strips(traffic: Traffic, topology: Topology, *, weight: Weight = "messages") -> Mapping:
    """Cartesian grid: columns of the stencil's proportions, filled up and down.

    Parameters
    ----------
    traffic, topology
        See `map_ranks`.
    weight : {"messages", "bytes"}
        What a vector of the stencil counts: one as published, or its bytes.
    """
    grid = cartesian(traffic, "stencil_strips", weighs=weight == "bytes")
    sizes = node_sizes(topology, traffic.ranks)
    size = traffic.ranks // len(sizes)
    return placed(
        grid, stencil_strips_all(grid.dims, size, grid.stencil, grid.weights(weight)), topology
    )


def stencil_strips_coordinates(
    rank: int, dims: Sequence[int], size: int, stencil: Vectors, weights: Weights = None
) -> list[int]:
    """Coordinates of one rank."""
    return strip_coordinates(rank, dims, *stencil_cuts(dims, size, stencil, weights))


def stencil_strips_all(
    dims: Sequence[int], size: int, stencil: Vectors, weights: Weights = None
) -> Coordinates:
    """Coordinates of all ranks."""
    return strip_all(dims, *stencil_cuts(dims, size, stencil, weights))


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

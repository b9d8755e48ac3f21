"""Hyperplane: the grid is cut in two where no node is cut, across dimensions of little traffic.

A cut leaves a multiple of the node size p on both sides and is as near to the middle as that
allows. Dimensions are tried by the sum of cos^2 of the angles between them and the stencil's
vectors, the smallest first, then by their size; as p divides the grid, one of them can be cut. A
part of at most 2 p ranks is filled row-major, the first of these dimensions slowest.

The smaller part is on the side of the grid's nearer border: the upper one where the middle of what
is cut lies in the upper half of the whole grid. Nodes of several sizes are taken as their mean,
lowered until it divides the grid. Both as in the authors' library mpicartreorderlib, whose
coordinates these are. With weight=bytes, ours, angles are weighted by the bytes of their vectors.

Source: Hunold, von Kirchbach, Lehr, Schulz, Traeff, Efficient process-to-node mapping algorithms
for stencil computations, IEEE Cluster 2020, arXiv 2005.09521. The library walks from the middle to
the cut; a greatest common divisor gives it at once: O(d log d log n) a rank, all ranks in O(d n) as
for the k-d tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod

import numpy as np

from hopmap.mappers.mapper import mapper
from hopmap.topologies import Mapping, Topology
from hopmap.traces import Traffic

from .grid import (
    Coordinates,
    Weight,
    all_row_major,
    cartesian,
    node_sizes,
    on_grid,
    placed,
    row_major,
)

Vectors = Sequence[Sequence[int]]
Weights = Sequence[int] | None


@mapper("hyperplane", source="Hunold, von Kirchbach, Lehr, Schulz, Traeff 2020", needs=on_grid)
def hyperplane(traffic: Traffic, topology: Topology, *, weight: Weight = "messages") -> Mapping:
    """Cartesian grid: cut in two between nodes, across dimensions of little traffic.

    Parameters
    ----------
    traffic, topology
        See `map_ranks`.
    weight : {"messages", "bytes"}
        What a vector of the stencil counts: one as published, or its bytes.
    """
    grid = cartesian(traffic, "hyperplane", weighs=weight == "bytes")
    size = dividing_mean(node_sizes(topology, traffic.ranks))
    return placed(
        grid, hyperplane_all(grid.dims, size, grid.stencil, grid.weights(weight)), topology
    )


def dividing_mean(sizes: Sequence[int]) -> int:
    """Largest node size up to the mean that divides the number of ranks."""
    ranks = sum(sizes)
    return next(size for size in range(ranks // len(sizes), 0, -1) if ranks % size == 0)


def angles(stencil: Vectors, dimensions: int, weights: Weights = None) -> list[int]:
    """Sum of cos^2 of the angles between the vectors and each dimension, in steps of 2^-32.

    Equal sums are equal so in any order of additions and in `hopmap_cart.h`: six times 1/6 is 1.
    Weights count by their share.
    """
    each = [1] * len(stencil) if weights is None else weights
    total = 1 if weights is None else max(sum(weights), 1)
    lengths = [sum(x * x for x in vector) for vector in stencil]
    sums = [
        sum(w * v[d] * v[d] / n for v, w, n in zip(stencil, each, lengths, strict=True) if n)
        for d in range(dimensions)
    ]
    return [int(found / total * 2**32 + 0.5) for found in sums]


def preferred(dims: Sequence[int], angle: Sequence[int]) -> list[int]:
    """Dimensions in the order in which they should be cut."""
    return sorted(range(len(dims)), key=lambda d: (angle[d], -dims[d]))


def split(
    dims: Sequence[int],
    corner: Sequence[int],
    whole: Sequence[int],
    size: int,
    order: Sequence[int],
) -> tuple[int, int]:
    """Dimension to cut and the size of the lower part, for a part of the whole at that corner."""
    for d in order:
        step = size // gcd(size, prod(dims) // dims[d])  # cuts come in multiples of this
        if 2 * step <= dims[d]:
            smaller = dims[d] // 2 // step * step
            upper = corner[d] + dims[d] // 2 >= whole[d] // 2
            return d, dims[d] - smaller if upper else smaller
    raise AssertionError("the node size does not divide the grid")


def hyperplane_coordinates(
    rank: int, dims: Sequence[int], size: int, stencil: Vectors, weights: Weights = None
) -> list[int]:
    """Coordinates of one rank."""
    rest, corner, angle = list(dims), [0] * len(dims), angles(stencil, len(dims), weights)
    while prod(rest) > 2 * size:
        d, lower = split(rest, corner, dims, size, preferred(rest, angle))
        below = prod(rest) // rest[d] * lower
        if rank < below:
            rest[d] = lower
        else:
            rest[d] -= lower
            corner[d] += lower
            rank -= below
    order = preferred(rest, angle)
    for d, place in zip(order, row_major(rank, [rest[d] for d in order]), strict=True):
        corner[d] += place
    return corner


def hyperplane_all(
    dims: Sequence[int], size: int, stencil: Vectors, weights: Weights = None
) -> Coordinates:
    """Coordinates of all ranks."""
    whole, angle = tuple(dims), angles(stencil, len(dims), weights)
    done: dict[tuple[object, ...], Coordinates] = {}

    def numbered(dims: tuple[int, ...], corner: tuple[int, ...]) -> Coordinates:
        # Parts of one shape that lie in the same halves of the grid are cut alike.
        sides = tuple(
            -1 if c + d <= w // 2 else min(c, w // 2)
            for c, d, w in zip(corner, dims, whole, strict=True)
        )
        if (dims, sides) not in done:
            order = preferred(dims, angle)
            if prod(dims) <= 2 * size:
                found = np.empty((prod(dims), len(dims)), dtype=np.int64)
                found[:, order] = all_row_major([dims[d] for d in order])
            else:
                d, lower = split(dims, corner, whole, size, order)
                above_corner = (*corner[:d], corner[d] + lower, *corner[d + 1 :])
                below = numbered((*dims[:d], lower, *dims[d + 1 :]), corner)
                above = numbered((*dims[:d], dims[d] - lower, *dims[d + 1 :]), above_corner).copy()
                above[:, d] += lower
                found = np.concatenate((below, above))
            done[dims, sides] = found
        return done[dims, sides]

    return numbered(whole, (0,) * len(whole))

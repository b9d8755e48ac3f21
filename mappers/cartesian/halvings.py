"""Grids cut in two, again and again: `kd_tree`, `skewed_kd_tree` and `hyperplane`.

The first part of the numbers gets the lower part of the grid. In the k-d trees, which halve, the
half that a rank is in depends on its number alone, so that nodes of any sizes do, and levels of
nodes within nodes (node, socket, core) as long as each holds consecutive numbers. O(d log n) a
rank; all ranks in O(d n), as parts of one shape are numbered the same and the cuts meet few shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import gcd, prod

import numpy as np

from hopmap.mappers.mapper import mapper
from hopmap.topologies import Mapping, Topology
from hopmap.traces import Traffic

from .grid import (
    Coordinates,
    Vectors,
    Weight,
    Weights,
    all_row_major,
    cartesian,
    crossing,
    node_sizes,
    on_grid,
    place,
)

# The dimension in which a grid of these dims is split.
Splitter = Callable[[Sequence[int]], int]


@mapper("kd_tree", source="Lehr 2019, chapter 5", needs=on_grid)
def kd_tree(traffic: Traffic, topology: Topology) -> Mapping:
    """Cartesian grid: halves across the longest dimension, again and again.

    Source: Lehr 2019, chapter 5, listing 5.1. Its bounds are in
    `benchmarks/cartesian/cartesian_bounds.py`.
    """
    grid = cartesian(traffic, "kd_tree", weighs=False)
    return place(grid, kd_tree_all(grid.dims), topology)


def longest(dims: Sequence[int]) -> int:
    """Longest dimension, the first of several."""
    return max(range(len(dims)), key=lambda d: dims[d])


def kd_tree_all(dims: Sequence[int], split: Splitter = longest) -> Coordinates:
    """Coordinates of all ranks."""
    done: dict[tuple[int, ...], Coordinates] = {}

    def number(dims: tuple[int, ...]) -> Coordinates:
        if dims not in done:
            if prod(dims) == 1:
                return np.zeros((1, len(dims)), dtype=np.int64)
            k = split(dims)
            half = dims[k] // 2
            left = number((*dims[:k], half, *dims[k + 1 :]))
            right = number((*dims[:k], dims[k] - half, *dims[k + 1 :])).copy()
            right[:, k] += half
            done[dims] = np.concatenate((left, right))
        return done[dims]

    return number(tuple(dims))


@mapper("skewed_kd_tree", source="Lehr 2019, section 5.4", needs=on_grid)
def skewed_kd_tree(traffic: Traffic, topology: Topology, *, weight: Weight = "messages") -> Mapping:
    """Cartesian grid: halves across long dimensions that the stencil rarely goes along.

    The grid is halved across the dimension of the largest size / factor, the factor being the
    number of the stencil's vectors that have a part in it; dimensions without any go first. With
    weight=bytes, ours, the factor is what crosses a cut: bytes times reach, summed over the
    vectors. Source: Lehr 2019, section 5.4, listing 5.2.
    """
    grid = cartesian(traffic, "skewed_kd_tree", weighs=weight == "bytes")
    return place(grid, skewed_kd_tree_all(grid.dims, grid.stencil, grid.weights(weight)), topology)


def skewed_kd_tree_all(
    dims: Sequence[int], stencil: Vectors, weights: Weights = None
) -> Coordinates:
    """Coordinates of all ranks."""
    return kd_tree_all(dims, skewed_longest(stencil, len(dims), weights))


def skewed_longest(stencil: Vectors, dimensions: int, weights: Weights = None) -> Splitter:
    """Chooser of the dimension to split, for a stencil (listing 5.2)."""
    factors = [sum(vector[d] != 0 for vector in stencil) for d in range(dimensions)]
    if weights is not None:
        factors = crossing(stencil, weights, dimensions)

    def weigh(size: int, factor: int) -> float:
        if size <= 1:
            return -1.0
        return size / factor if factor else float("inf")

    return lambda dims: max(range(dimensions), key=lambda d: weigh(dims[d], factors[d]))


@mapper("hyperplane", source="Hunold, von Kirchbach, Lehr, Schulz, Traeff 2020", needs=on_grid)
def hyperplane(traffic: Traffic, topology: Topology, *, weight: Weight = "messages") -> Mapping:
    """Cartesian grid: cut in two between nodes, across dimensions of little traffic.

    A cut leaves a multiple of the node size p on both sides and is as near to the middle as that
    allows. Dimensions are tried by the sum of cos^2 of the angles between them and the stencil's
    vectors, the smallest first, then by their size; as p divides the grid, one of them can be cut.
    A part of at most 2 p ranks is filled row-major, the first of these dimensions slowest.

    The smaller part is on the side of the grid's nearer border: the upper one where the middle of
    what is cut lies in the upper half of the whole grid. Nodes of several sizes are taken as their
    mean, lowered until it divides the grid. Both as in the authors' library mpicartreorderlib,
    whose coordinates these are. With weight=bytes, ours, angles are weighted by the bytes of their
    vectors.

    Source: Hunold, von Kirchbach, Lehr, Schulz, Traeff, Efficient process-to-node mapping
    algorithms for stencil computations, IEEE Cluster 2020, arXiv 2005.09521. The library walks from
    the middle to the cut; a greatest common divisor gives it at once: O(d log d log n) a rank.
    """
    grid = cartesian(traffic, "hyperplane", weighs=weight == "bytes")
    size = dividing_mean(node_sizes(topology, traffic.ranks))
    return place(
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


def sort_dims(dims: Sequence[int], angle: Sequence[int]) -> list[int]:
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


def hyperplane_all(
    dims: Sequence[int], size: int, stencil: Vectors, weights: Weights = None
) -> Coordinates:
    """Coordinates of all ranks."""
    whole, angle = tuple(dims), angles(stencil, len(dims), weights)
    done: dict[tuple[object, ...], Coordinates] = {}

    def number(dims: tuple[int, ...], corner: tuple[int, ...]) -> Coordinates:
        # Parts of one shape that lie in the same halves of the grid are cut the same way.
        sides = tuple(
            -1 if c + d <= w // 2 else min(c, w // 2)
            for c, d, w in zip(corner, dims, whole, strict=True)
        )
        if (dims, sides) not in done:
            order = sort_dims(dims, angle)
            if prod(dims) <= 2 * size:
                found = np.empty((prod(dims), len(dims)), dtype=np.int64)
                found[:, order] = all_row_major([dims[d] for d in order])
            else:
                d, lower = split(dims, corner, whole, size, order)
                above_corner = (*corner[:d], corner[d] + lower, *corner[d + 1 :])
                below = number((*dims[:d], lower, *dims[d + 1 :]), corner)
                above = number((*dims[:d], dims[d] - lower, *dims[d + 1 :]), above_corner).copy()
                above[:, d] += lower
                found = np.concatenate((below, above))
            done[dims, sides] = found
        return done[dims, sides]

    return number(whole, (0,) * len(whole))

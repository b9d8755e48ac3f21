"""k-d tree: the grid is halved across its longest dimension, and so on down to single ranks.

The first half of the numbers gets the lower half of the grid. Which half a rank is in depends on
its number alone, so that nodes of any sizes do, and levels of nodes within nodes (node, socket,
core) as long as each holds consecutive numbers.

Source: Lehr 2019, chapter 5, listing 5.1. O(d log n) a rank; all ranks in O(d n), as subgrids of
one shape are numbered alike and the halvings meet few shapes. Its bounds are in
`benchmarks/models/cartesian_bounds.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from hopmap.mappers.mapper import mapper
from hopmap.topologies import Mapping, Topology
from hopmap.traces import Traffic

from .grid import Coordinates, cartesian, on_grid, placed

# The dimension in which a grid of these dims is split.
Splitter = Callable[[Sequence[int]], int]


@mapper("kd_tree", source="Lehr 2019, chapter 5", needs=on_grid)
def kd_tree(traffic: Traffic, topology: Topology) -> Mapping:
    """Cartesian grid: halves across the longest dimension, again and again."""
    grid = cartesian(traffic, "kd_tree", weighs=False)
    return placed(grid, kd_tree_all(grid.dims), topology)


def longest(dims: Sequence[int]) -> int:
    """Longest dimension, the first of several."""
    return max(range(len(dims)), key=lambda d: dims[d])


def kd_tree_coordinates(rank: int, dims: Sequence[int], split: Splitter = longest) -> list[int]:
    """Coordinates of one rank (listing 5.1)."""
    rest, coordinates, elements = list(dims), [0] * len(dims), prod(dims)
    while elements > 1:
        k = split(rest)
        left_size = elements // rest[k] * (rest[k] // 2)
        if rank < left_size:
            rest[k] //= 2
            elements = left_size
        else:
            coordinates[k] += rest[k] // 2  # before rest[k] changes: printed the other way round
            rest[k] -= rest[k] // 2
            rank -= left_size
            elements -= left_size
    return coordinates


def kd_tree_all(dims: Sequence[int], split: Splitter = longest) -> Coordinates:
    """Coordinates of all ranks."""
    done: dict[tuple[int, ...], Coordinates] = {}

    def numbered(dims: tuple[int, ...]) -> Coordinates:
        if dims not in done:
            if prod(dims) == 1:
                return np.zeros((1, len(dims)), dtype=np.int64)
            k = split(dims)
            half = dims[k] // 2
            left = numbered((*dims[:k], half, *dims[k + 1 :]))
            right = numbered((*dims[:k], dims[k] - half, *dims[k + 1 :])).copy()
            right[:, k] += half
            done[dims] = np.concatenate((left, right))
        return done[dims]

    return numbered(tuple(dims))

"""Skewed k-d tree: the k-d tree with dimensions weighted by how rarely the stencil goes along them.

The grid is halved across the dimension of the largest size / factor, the factor being the number of
the stencil's vectors that have a part in it; dimensions without any go first. With weight=bytes,
ours, the factor is what crosses a cut: bytes times reach, summed over the vectors.

Source: Lehr 2019, section 5.4, listing 5.2. Cost as `kd_tree.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from hopmap.mappers.mapper import mapper
from hopmap.topologies import Mapping, Topology
from hopmap.traces import Traffic

from .grid import Coordinates, Weight, cartesian, crossing, on_grid, placed
from .kd_tree import Splitter, kd_tree_all, kd_tree_coordinates

Vectors = Sequence[Sequence[int]]
Weights = Sequence[int] | None


@mapper("skewed_kd_tree", source="Lehr 2019, section 5.4", needs=on_grid)
def skewed_kd_tree(traffic: Traffic, topology: Topology, *, weight: Weight = "messages") -> Mapping:
    """Cartesian grid: halves across long dimensions that the stencil rarely goes along.

    Parameters
    ----------
    traffic, topology
        See `map_ranks`.
    weight : {"messages", "bytes"}
        What a vector of the stencil counts: one as published, or its bytes.
    """
    grid = cartesian(traffic, "skewed_kd_tree", weighs=weight == "bytes")
    return placed(grid, skewed_kd_tree_all(grid.dims, grid.stencil, grid.weights(weight)), topology)


def skewed_kd_tree_coordinates(
    rank: int, dims: Sequence[int], stencil: Vectors, weights: Weights = None
) -> list[int]:
    """Coordinates of one rank."""
    return kd_tree_coordinates(rank, dims, skewed_longest(stencil, len(dims), weights))


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

    def weighted(size: int, factor: int) -> float:
        if size <= 1:
            return -1.0
        return size / factor if factor else float("inf")

    return lambda dims: max(range(dimensions), key=lambda d: weighted(dims[d], factors[d]))

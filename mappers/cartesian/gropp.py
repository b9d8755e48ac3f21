"""Gropp: every node takes a box of ranks, all boxes of one shape, found by prime factors.

The prime factors of the node size go, the largest first, to a dimension that still divides by
them: to that in which the box is shortest so far. Then the nodes are row-major in the grid of
boxes, and the ranks within a box. As node sizes divide the grid, there is always such a box; it may
be a long one, where factors are large.

Source: Gropp, Using node information to implement MPI Cartesian topologies, EuroMPI 2018, section
2; Lehr 2019, chapter 4. O(d log n) for the shape, then O(d) a rank. Nodes of one size only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from hopmap.mappers.mapper import mapper
from hopmap.topologies import Mapping, MappingError, Topology
from hopmap.traces import Traffic

from .grid import Coordinates, all_row_major, cartesian, node_sizes, placed, row_major


def alike(name: str, traffic: Traffic, topology: Topology) -> None:
    """Raise `MappingError` unless a Cartesian grid is on nodes of one size."""
    cartesian(traffic, name)
    equal_size(node_sizes(topology, traffic.ranks), name)


@mapper("gropp", source="Gropp 2018; Lehr 2019, chapter 4", needs=alike)
def gropp(traffic: Traffic, topology: Topology) -> Mapping:
    """Cartesian grid: a box of one shape for every node, by prime factors."""
    grid = cartesian(traffic, "gropp", weighs=False)
    size = equal_size(node_sizes(topology, traffic.ranks), "gropp")
    return placed(grid, gropp_all(grid.dims, size), topology)


def equal_size(sizes: Sequence[int], mapper: str) -> int:
    """Size of all nodes; `MappingError` if there is more than one."""
    if len(set(sizes)) > 1:
        raise MappingError(
            f"mapper {mapper}: nodes with {min(sizes)} and {max(sizes)} ranks: it factorises one "
            "node size: expected as many on every node"
        )
    return sizes[0]


def box_shape(dims: Sequence[int], size: int) -> list[int]:
    """Ranks of a node in every dimension."""
    box = [1] * len(dims)
    for factor in prime_factors(size):
        fitting = [d for d in range(len(dims)) if dims[d] // box[d] % factor == 0]
        box[min(fitting, key=lambda d: box[d])] *= factor
    return box


def prime_factors(number: int) -> list[int]:
    """Prime factors, the largest first."""

    def ascending(rest: int) -> Iterator[int]:
        factor = 2
        while factor * factor <= rest:
            if rest % factor:
                factor += 1
            else:
                yield factor
                rest //= factor
        if rest > 1:
            yield rest

    return list(ascending(number))[::-1]


def gropp_coordinates(rank: int, dims: Sequence[int], size: int) -> list[int]:
    """Coordinates of one rank."""
    box = box_shape(dims, size)
    node, core = divmod(rank, size)
    nodes = [whole // part for whole, part in zip(dims, box, strict=True)]
    corner, inside = row_major(node, nodes), row_major(core, box)
    return [c * b + i for c, b, i in zip(corner, box, inside, strict=True)]


def gropp_all(dims: Sequence[int], size: int) -> Coordinates:
    """Coordinates of all ranks."""
    box = box_shape(dims, size)
    nodes = [whole // part for whole, part in zip(dims, box, strict=True)]
    corners = all_row_major(nodes) * np.array(box)
    ranks: Coordinates = corners[:, None] + all_row_major(box)
    return ranks.reshape(-1, len(dims))

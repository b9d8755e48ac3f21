"""Boxes of ranks: `row_major` lines, `gropp` boxes of one shape, `factorisation` boxes in boxes.

`gropp` and `factorisation` are for nodes of one size only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np

from hopmap.mappers.mapper import mapper
from hopmap.topologies import Mapping, MappingError, Topology, hierarchy
from hopmap.traces import Traffic

from .cells import prime_factors
from .grid import (
    Coordinates,
    all_row_major,
    cartesian,
    crossing,
    node_sizes,
    on_grid,
    place,
)


@mapper("row_major", source="Lehr 2019, section 7.1.3", needs=on_grid)
def row_major_mapper(traffic: Traffic, topology: Topology) -> Mapping:
    """Cartesian grid: ranks in MPI's order, the last dimension fastest.

    What MPI_Cart_create does today, with or without reordering: a node of n cores gets n
    consecutive ranks. Source: Lehr 2019, section 7.1.3; Gropp 2018, table 1, found no MPI library
    that does otherwise. O(d) a rank.
    """
    grid = cartesian(traffic, "row_major")
    return place(grid, all_row_major(grid.dims), topology)


def require_equal_nodes(name: str, traffic: Traffic, topology: Topology) -> None:
    """Raise `MappingError` unless a Cartesian grid is on nodes of one size."""
    cartesian(traffic, name)
    equal_size(node_sizes(topology, traffic.ranks), name)


@mapper("gropp", source="Gropp 2018; Lehr 2019, chapter 4", needs=require_equal_nodes)
def gropp(traffic: Traffic, topology: Topology) -> Mapping:
    """Cartesian grid: a box of one shape for every node, by prime factors.

    The prime factors of the node size go, the largest first, to a dimension that still divides by
    them: to that in which the box is shortest so far. Then the nodes are row-major in the grid of
    boxes, and the ranks within a box. As node sizes divide the grid, there is always such a box; it
    may be a long one, where factors are large.

    Source: Gropp, Using node information to implement MPI Cartesian topologies, EuroMPI 2018,
    section 2; Lehr 2019, chapter 4. O(d log n) for the shape, then O(d) a rank.
    """
    grid = cartesian(traffic, "gropp", weighs=False)
    size = equal_size(node_sizes(topology, traffic.ranks), "gropp")
    return place(grid, gropp_all(grid.dims, size), topology)


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


def gropp_all(dims: Sequence[int], size: int) -> Coordinates:
    """Coordinates of all ranks."""
    box = box_shape(dims, size)
    nodes = [whole // part for whole, part in zip(dims, box, strict=True)]
    return factorise_all([nodes, box])


@mapper("factorisation", source="Niethammer, Rabenseifner 2019", needs=on_grid)
def factorisation(traffic: Traffic, topology: Topology) -> Mapping:
    """Cartesian grid: boxes within boxes, by factors for every level of the machine.

    Level by level from the coarsest, the number of its parts (nodes, then sockets, then cores) is
    written as a product of one factor a dimension, that of the smallest sum of weight times factor:
    a dimension's weight is what crosses one more cut there. Where sums are equal the factors that
    differ least are taken, then the first. Then the weights are multiplied by the factors, and the
    next level follows.

    Source: Niethammer and Rabenseifner, An MPI interface for application and hardware aware
    Cartesian topology optimization, EuroMPI 2019 (MPIX_Dims_ml_create). They choose the dimensions
    of the grid as well; here the dimensions are fixed, so that factors must divide what is left of
    them. As the levels' product divides the grid, they always do. O(d^2 divisors^(d-1)) for the
    factors, then O(d levels) a rank.
    """
    grid = cartesian(traffic, "factorisation")
    sizes = node_sizes(topology, traffic.ranks)
    size = equal_size(sizes, "factorisation")
    inner = hierarchy(topology) or ()
    full = prod(inner) == len(sizes)
    levels = [*(inner[::-1] if full else [len(sizes)]), size]
    weights = crossing(grid.stencil, grid.sizes, len(grid.dims))
    return place(grid, factorise_all(level_factors(grid.dims, levels, weights)), topology)


def level_factors(
    dims: Sequence[int], levels: Sequence[int], across: Sequence[int]
) -> list[list[int]]:
    """Factors of each level in every dimension, the coarsest level first.

    - `dims`: ranks per dimension.
    - `levels`: parts of the machine, parts of each part, ...; their product is that of the dims.
    - `across`: what crosses a cut across each dimension, a rank.
    """
    rest, chosen = list(dims), []
    # A cut across d is prod(dims) / dims[d] ranks large. In whole numbers ties stay ties.
    weights = [prod(dims) // dims[d] * across[d] for d in range(len(dims))]
    for parts in levels:
        factors = min(
            products(parts, rest),
            key=lambda f: (
                sum(w * x for w, x in zip(weights, f, strict=True)),
                max(f) - min(f),
            ),
        )
        chosen.append(factors)
        rest = [r // f for r, f in zip(rest, factors, strict=True)]
        weights = [w * f for w, f in zip(weights, factors, strict=True)]
    return chosen


def products(number: int, dims: Sequence[int]) -> Iterator[list[int]]:
    """Ways to write a number as a product of divisors of the dims, in order."""
    if len(dims) == 1:
        if dims[0] % number == 0:
            yield [number]
        return
    for factor in range(1, min(number, dims[0]) + 1):
        if number % factor == 0 and dims[0] % factor == 0:
            for others in products(number // factor, dims[1:]):
                yield [factor, *others]


def factorise_all(factors: Sequence[Sequence[int]]) -> Coordinates:
    """Coordinates of all ranks: their parts on all levels, each row-major."""
    coordinates = np.zeros((1, len(factors[0])), dtype=np.int64)
    for box in factors:
        coordinates = (coordinates[:, None] * np.array(box) + all_row_major(box)).reshape(
            -1, len(box)
        )
    return coordinates

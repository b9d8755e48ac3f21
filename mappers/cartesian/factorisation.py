"""Multi-level factorisation: boxes within boxes, one for every level of the machine.

Level by level from the coarsest, the number of its parts (nodes, then sockets, then cores) is
written as a product of one factor a dimension, that of the smallest sum of weight times factor: a
dimension's weight is what crosses one more cut there. Where sums are equal the factors that differ
least are taken, then the first. Then the weights are multiplied by the factors, and the next level
follows.

Source: Niethammer and Rabenseifner, An MPI interface for application and hardware aware Cartesian
topology optimization, EuroMPI 2019 (MPIX_Dims_ml_create). They choose the dimensions of the grid as
well; here these are given, so that factors must divide what is left of them. As the levels'
product divides the grid, they always do. O(d^2 divisors^(d-1)) for the factors, then O(d levels) a
rank. Nodes of one size only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np

from hopmap.mappers.mapper import mapper
from hopmap.topologies import Mapping, Topology, hierarchy
from hopmap.traces import Traffic

from .grid import (
    Coordinates,
    all_row_major,
    cartesian,
    crossing,
    node_sizes,
    on_grid,
    placed,
    row_major,
)
from .gropp import equal_size


@mapper("factorisation", source="Niethammer, Rabenseifner 2019", needs=on_grid)
def factorisation(traffic: Traffic, topology: Topology) -> Mapping:
    """Cartesian grid: boxes within boxes, by factors for every level of the machine."""
    grid = cartesian(traffic, "factorisation")
    sizes = node_sizes(topology, traffic.ranks)
    size = equal_size(sizes, "factorisation")
    inner = hierarchy(topology) or ()
    full = prod(inner) == len(sizes)
    levels = [*(inner[::-1] if full else [len(sizes)]), size]
    weights = crossing(grid.stencil, grid.sizes, len(grid.dims))
    return placed(grid, factorised_all(level_factors(grid.dims, levels, weights)), topology)


def level_factors(
    dims: Sequence[int], levels: Sequence[int], across: Sequence[int]
) -> list[list[int]]:
    """Factors of each level in every dimension, the coarsest level first.

    Parameters
    ----------
    dims : sequence of int
        Ranks per dimension.
    levels : sequence of int
        Parts of the machine, parts of each part, ...; their product is that of the dims.
    across : sequence of int
        What crosses a cut across each dimension, a rank.
    """
    rest, chosen = list(dims), []
    # A cut across d is prod(dims) / dims[d] ranks large. In whole numbers ties stay ties.
    weights = [prod(dims) // dims[d] * across[d] for d in range(len(dims))]
    for parts in levels:
        factors = min(
            _products(parts, rest),
            key=lambda f: (
                sum(w * x for w, x in zip(weights, f, strict=True)),
                max(f) - min(f),
            ),
        )
        chosen.append(factors)
        rest = [r // f for r, f in zip(rest, factors, strict=True)]
        weights = [w * f for w, f in zip(weights, factors, strict=True)]
    return chosen


def _products(number: int, dims: Sequence[int]) -> Iterator[list[int]]:
    """Ways to write a number as a product of divisors of the dims, in order."""
    if len(dims) == 1:
        if dims[0] % number == 0:
            yield [number]
        return
    for factor in range(1, min(number, dims[0]) + 1):
        if number % factor == 0 and dims[0] % factor == 0:
            for others in _products(number // factor, dims[1:]):
                yield [factor, *others]


def factorised_coordinates(rank: int, factors: Sequence[Sequence[int]]) -> list[int]:
    """Coordinates of one rank: its parts on all levels, each row-major."""
    coordinates = [0] * len(factors[0])
    size = prod(map(prod, factors))
    for box in factors:
        size //= prod(box)
        part, rank = divmod(rank, size)
        coordinates = [
            c * f + place
            for c, f, place in zip(coordinates, box, row_major(part, box), strict=True)
        ]
    return coordinates


def factorised_all(factors: Sequence[Sequence[int]]) -> Coordinates:
    """Coordinates of all ranks."""
    coordinates = np.zeros((1, len(factors[0])), dtype=np.int64)
    for box in factors:
        coordinates = (coordinates[:, None] * np.array(box) + all_row_major(box)).reshape(
            -1, len(box)
        )
    return coordinates

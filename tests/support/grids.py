"""Cartesian grids on nodes, for tests of their mappers.

Coordinates of one rank, as the header in C and the theses have them; the package has all at once.
"""

from math import prod

import numpy as np
from hypothesis import strategies as st

from hopmap.mappers import map_ranks
from hopmap.mappers.cartesian.boxes import box_shape
from hopmap.mappers.cartesian.halvings import angles, longest, skewed_longest, sort_dims, split
from hopmap.mappers.cartesian.strips import along_snake, in_strips, squarest_cuts, stencil_cuts
from hopmap.topologies import topology_from_spec
from hopmap.traces import stencil_traffic


def nodes_on_grid(dims, spec, mapper, stencil="star"):
    """Node of every cell, shape dims."""
    traffic = stencil_traffic(dims, stencil)
    return map_ranks(traffic, topology_from_spec(spec), mapper).reshape(dims)


@st.composite
def stencils_on_nodes(draw, longest=9, most_dimensions=4):
    """Dims, a node size that divides the grid, and a stencil."""
    dims = draw(st.lists(st.integers(1, longest), min_size=1, max_size=most_dimensions))
    ranks = prod(dims)
    size = draw(st.sampled_from([size for size in range(1, ranks + 1) if ranks % size == 0]))
    vector = st.tuples(*[st.integers(-2, 2)] * len(dims))
    return tuple(dims), size, draw(st.lists(vector, min_size=1, max_size=6))


def row_major(number, dims):
    """Coordinates of a row-major number, the last dimension varying fastest; O(d)."""
    coordinates = []
    for size in reversed(dims):
        number, coordinate = divmod(number, size)
        coordinates.append(coordinate)
    return coordinates[::-1]


def factorised_coordinates(rank, factors):
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


def gropp_coordinates(rank, dims, size):
    """Coordinates of one rank."""
    box = box_shape(dims, size)
    nodes = [whole // part for whole, part in zip(dims, box, strict=True)]
    return factorised_coordinates(rank, [nodes, box])


def kd_tree_coordinates(rank, dims, split=longest):
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


def skewed_kd_tree_coordinates(rank, dims, stencil):
    """Coordinates of one rank."""
    return kd_tree_coordinates(rank, dims, skewed_longest(stencil, len(dims)))


def squarest_strips_coordinates(rank, dims, size, carry="wider", path="rows"):
    """Coordinates of one rank."""
    filled = along_snake if path == "snake" else in_strips
    (found,) = filled(np.array([rank]), dims, *squarest_cuts(dims, size, carry)).tolist()
    return list(found)


def stencil_strips_coordinates(rank, dims, size, stencil):
    """Coordinates of one rank."""
    cuts = stencil_cuts(dims, size, stencil)
    (found,) = in_strips(np.array([rank]), dims, *cuts).tolist()
    return list(found)


def hyperplane_coordinates(rank, dims, size, stencil):
    """Coordinates of one rank."""
    rest, corner, angle = list(dims), [0] * len(dims), angles(stencil, len(dims))
    while prod(rest) > 2 * size:
        d, lower = split(rest, corner, dims, size, sort_dims(rest, angle))
        below = prod(rest) // rest[d] * lower
        if rank < below:
            rest[d] = lower
        else:
            rest[d] -= lower
            corner[d] += lower
            rank -= below
    order = sort_dims(rest, angle)
    for d, place in zip(order, row_major(rank, [rest[d] for d in order]), strict=True):
        corner[d] += place
    return corner

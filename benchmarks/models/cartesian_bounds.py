"""Worst-case bounds of the k-d tree and of squarest strips, for stars of 2 n points.

A bound is a ratio: messages that leave the worst node, over those of a node whose p ranks fill a
perfect hypercube, 2 n p^((n-1)/n). The k-d tree's are proven; those of strips are computed.

Source: Lehr, Efficient process mapping for Cartesian topologies, Diplomarbeit TU Wien 2019,
sections 5.3 and 6.3. Tables 6.1 to 6.3 follow to their four digits, all 195 cells, from the text
read so: the ceiling is taken of what is under the root and the floor of the root (printed: the
ceiling of the root); the last extent is 2 p / (product) - 1, not rounded (printed: a ceiling + 1);
the first dimension is the stretched one; and the last is shortened only where 1 is left of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from hopmap.mappers.cartesian.strips import root


def cube_edges(size: float, dimensions: int) -> float:
    """Messages that leave a hypercube of so many ranks: 2 n p^((n-1)/n)."""
    return 2 * dimensions * float(size ** ((dimensions - 1) / dimensions))


def surface(sides: Sequence[float]) -> float:
    """Messages that leave a box: twice the sum of the products of all sides but one."""
    return 2 * sum(prod(sides[:i]) * prod(sides[i + 1 :]) for i in range(len(sides)))


def kd_tree_bound(dimensions: int) -> float:
    """Bound of the k-d tree where nodes' boxes are limited by no dimension of the grid.

    (4 n - 2) / (n 2^((n-1)/n)), section 5.3.3: 2.12 in two dimensions, 2.09 in three, towards 2.
    """
    n = dimensions
    return (4 * n - 2) / (n * 2 ** ((n - 1) / n))


def kd_tree_bound_of(sides: Sequence[float]) -> float:
    """Bound of the k-d tree for a node in two halves that each span a box of these sides.

    Section 5.3.2; it grows with the skew of the sides.
    """
    return 2 * surface(sides) / cube_edges(prod(sides), len(sides))


def strip_extents(size: int, dimensions: int) -> list[float]:
    """Sides s' of the box that a node's ranks span in the worst case (section 6.3)."""
    sides: list[float] = []
    taken = 1
    for left in range(dimensions, 1, -1):
        width = 2 * root(-(-size // taken), left) - 1
        sides.append(width)
        taken *= width
    return [*sides, 2 * size / taken - 1]


def strips_bound(size: int, dimensions: int) -> float:
    """Ratio of squarest strips for a node within one column (table 6.1)."""
    return surface(strip_extents(size, dimensions)) / cube_edges(size, dimensions)


def stretched_strips_bound(size: int, dimensions: int, *, periodic: bool) -> float:
    """Ratio of squarest strips for a node that lies in two columns (tables 6.2 and 6.3).

    Parameters
    ----------
    size : int
        Ranks of the node.
    dimensions : int
        At least 2.
    periodic : bool
        Whether there are messages across the border at which the columns meet (table 6.3).
    """
    first, *middle, last = strip_extents(size, dimensions)
    sides = [2 * first, *middle, last - 1 if last >= 2 else last]
    at_border = 0 if periodic else prod(sides[:-1])
    return (surface(sides) - at_border) / cube_edges(size, dimensions)

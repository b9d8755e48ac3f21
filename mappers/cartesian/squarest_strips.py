"""Squarest strips: columns whose section is as square as the largest node's box of ranks would be.

With n dimensions left, a strip should be as wide as the n-th root of p / (the widths so far), p
being the ranks of the largest node; as many strips as have at least that width share a dimension
evenly. The longest dimension is not cut: along it the columns run (`strips.py`).

Source: Lehr 2019, chapter 6, connected version. The strips of a dimension come in two widths, one
apart, and the text does not say which one counts for the next root. Its figures (64 and 1,522 on
12 x 11 x 8 ranks and 33 nodes) follow with the wider, ``carry=wider``; ``carry=narrower`` is ours,
and there gives 56 and 1,522. Nodes of one size come out connected with the wider, as do in any
case those with more ranks than a slice of a column; others can fall apart. With ``path=snake``,
ours, nodes of any sizes are connected, each of them (`snake.py`); on that grid it gives 64 and
1,526, or 56 and 1,524 with the narrower. O(d^2) a rank, vectorised for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from hopmap.mappers.mapper import mapper
from hopmap.topologies import Mapping, Topology
from hopmap.traces import Traffic

from .grid import Coordinates, cartesian, node_sizes, on_grid, placed
from .snake import snake_all, snake_coordinates
from .strips import Cut, cut, last_longest, root, strip_all, strip_coordinates

Carry = Literal["wider", "narrower"]
Path = Literal["rows", "snake"]


@mapper("squarest_strips", source="Lehr 2019, chapter 6", needs=on_grid)
def squarest_strips(
    traffic: Traffic,
    topology: Topology,
    *,
    carry: Carry = "wider",
    path: Path = "rows",
) -> Mapping:
    """Cartesian grid: columns as square as a node's ranks, filled up and down.

    Parameters
    ----------
    traffic, topology
        See `map_ranks`.
    carry : {"wider", "narrower"}
        Which width of a dimension's strips counts for the next dimension.
    path : {"rows", "snake"}
        Slices row by row as published, or ranks so that each is a neighbour of the one before.
    """
    grid = cartesian(traffic, "squarest_strips", weighs=False)
    size = max(node_sizes(topology, traffic.ranks))
    return placed(grid, squarest_strips_all(grid.dims, size, carry, path), topology)


def squarest_strips_coordinates(
    rank: int, dims: Sequence[int], size: int, carry: Carry = "wider", path: Path = "rows"
) -> list[int]:
    """Coordinates of one rank."""
    number = snake_coordinates if path == "snake" else strip_coordinates
    return number(rank, dims, *squarest_cuts(dims, size, carry))


def squarest_strips_all(
    dims: Sequence[int], size: int, carry: Carry = "wider", path: Path = "rows"
) -> Coordinates:
    """Coordinates of all ranks."""
    number = snake_all if path == "snake" else strip_all
    return number(dims, *squarest_cuts(dims, size, carry))


def squarest_cuts(dims: Sequence[int], size: int, carry: Carry) -> tuple[list[int], list[Cut]]:
    """Order of the dimensions and how each is cut."""
    order, cuts, section = last_longest(dims), [], 1
    for left, d in zip(range(len(dims), 1, -1), order, strict=False):
        cuts.append(cut(dims[d], root(size / section, left)))
        section *= cuts[-1].width + (carry == "wider" and cuts[-1].wide > 0)
    return order, [*cuts, Cut(1, 0, dims[order[-1]])]

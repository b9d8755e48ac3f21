"""What all mappers of Cartesian grids make of a traffic that is one: starts for `auto`."""

from __future__ import annotations

from collections.abc import Iterator

from hopmap.topologies import Mapping, MappingError, Topology
from hopmap.traces import Traffic

from .grid import Grid, cartesian
from .grid_portfolio import PUBLISHED


def known_grid(traffic: Traffic) -> Grid | None:
    """Grid of the traffic; None where it is not one."""
    try:
        return cartesian(traffic, "auto")
    except MappingError:
        return None


def cartesian_orders(grid: Grid, topology: Topology) -> Iterator[tuple[str, Mapping]]:
    """Map a grid by all mappers that take it; they get nothing but its metadata."""
    metadata = {
        "dims": grid.dims,
        "stencil": grid.stencil,
        "stencil_bytes": grid.sizes,
        "periodic": grid.periodic,
    }
    bare = Traffic.from_pairs(len(grid.cells), [], [], [], [], metadata)
    for name, mapper in PUBLISHED.items():
        try:
            yield name, mapper(bare, topology)[grid.cells]
        except MappingError:
            continue

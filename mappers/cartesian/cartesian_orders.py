"""What all mappers of Cartesian grids make of a traffic that is one: starts for `auto`."""

from __future__ import annotations

from collections.abc import Iterator

from hopmap.topologies import Mapping, MappingError, Topology
from hopmap.traces import Traffic

from .grid import cartesian
from .grid_portfolio import PUBLISHED


def cartesian_orders(traffic: Traffic, topology: Topology) -> Iterator[tuple[str, Mapping]]:
    """Map a grid by all mappers that take it; other traffic by none.

    The grid is looked for once, and the mappers get nothing but its metadata.
    """
    try:
        grid = cartesian(traffic, "auto")
    except MappingError:
        return
    metadata = {
        "dims": grid.dims,
        "stencil": grid.stencil,
        "stencil_bytes": grid.sizes,
        "periodic": grid.periodic,
    }
    bare = Traffic.from_pairs(traffic.ranks, [], [], [], [], metadata)
    for name, mapper in PUBLISHED.items():
        try:
            yield name, mapper(bare, topology)[grid.cells]
        except MappingError:
            continue

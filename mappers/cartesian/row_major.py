"""Row-major: what MPI_Cart_create does today, with or without reordering.

The last dimension varies fastest, so that a node of n cores gets n consecutive ranks. Source: Lehr
2019, section 7.1.3; Gropp 2018, table 1, found no MPI library that does otherwise. O(d) a rank.
"""

from __future__ import annotations

from hopmap.mappers.mapper import mapper
from hopmap.topologies import Mapping, Topology
from hopmap.traces import Traffic

from .grid import all_row_major, cartesian, on_grid, placed


@mapper("row_major", source="Lehr 2019, section 7.1.3", needs=on_grid)
def row_major_mapper(traffic: Traffic, topology: Topology) -> Mapping:
    """Cartesian grid: ranks in MPI's order, the last dimension fastest."""
    grid = cartesian(traffic, "row_major")
    return placed(grid, all_row_major(grid.dims), topology)

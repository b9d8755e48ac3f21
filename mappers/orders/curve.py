"""Ranks along a curve through a box of nodes: what all curve mappers share.

A curve is an order of the nodes, here always a sort by the curve's digits, so that any box works:
the curve runs through the enclosing cube (a power of two a side, where it needs one) and the points
outside the box are skipped. For Hilbert's curve on a box of powers of two that is the compact
Hilbert index of Hamilton and Rau-Chaplin (2008). Axes of one node are left out first, so that
8x8x1 is an 8x8 box.

Every node takes as many ranks as it has slots, one after the other, before the curve goes on.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hopmap.topologies import Mapping, MappingError, Topology
from hopmap.traces import Traffic


def along(order: NDArray[np.int64], traffic: Traffic, topology: Topology) -> Mapping:
    """Place rank after rank on the nodes in this order."""
    return np.repeat(order, topology.slots[order])[: traffic.ranks].astype(np.int64)


def coordinates(topology: Topology, curve: str) -> list[NDArray[np.int64]]:
    """Coordinates of all nodes, one array per axis of more than one node, x first.

    Raises
    ------
    MappingError
        The topology is not a box of nodes.
    """
    if not topology.dims:
        raise MappingError(
            f"mapper {curve}: {topology.spec} has no coordinates for a curve to run through: "
            "expected a mesh, a torus or a HAEC Box"
        )
    return [
        topology.coords[:, axis].astype(np.int64)
        for axis, nodes in enumerate(topology.dims)
        if nodes > 1
    ]


def on_box(name: str, _: Traffic, topology: Topology) -> None:
    """Raise `MappingError` unless the topology is a box of nodes."""
    coordinates(topology, name)


def levels(axes: Sequence[NDArray[np.int64]]) -> range:
    """Bit numbers of the enclosing cube's coordinates, highest first."""
    bits = max((int(axis.max()).bit_length() for axis in axes), default=0)
    return range(bits - 1, -1, -1)


def order_by(digits: Sequence[NDArray[np.int64]], topology: Topology) -> NDArray[np.int64]:
    """Nodes sorted by their digits, the first array being the most significant."""
    if not digits:
        return np.arange(topology.nodes)
    return np.lexsort(tuple(digits)[::-1])

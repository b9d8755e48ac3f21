"""Scan: one continuous path that turns round at the end of every row, plane, ...

Source: HAEC thesis, section 3.3 (Mokbel, Aref, Kamel: Performance of multi-dimensional
space-filling curves, 2002). O(nodes). On any box, where neighbours on the path are neighbours in
the box.
"""

from __future__ import annotations

import numpy as np

from hopmap.mappers.mapper import mapper
from hopmap.topologies import Mapping, Topology
from hopmap.traces import Traffic

from .curve import along, coordinates, on_box, order_by


@mapper("scan", source="HAEC thesis, section 3.3", presets={"thesis": {}}, needs=on_box)
def scan(traffic: Traffic, topology: Topology) -> Mapping:
    """Rows to and fro (boustrophedon), continuous on any box."""
    digits: list[np.ndarray[tuple[int], np.dtype[np.int64]]] = []
    behind = np.zeros(topology.nodes, dtype=np.int64)  # rows, planes, ... before this node's
    for axis in reversed(coordinates(topology, "scan")):
        nodes = int(axis.max()) + 1
        digit = np.where(behind % 2 == 0, axis, nodes - 1 - axis)
        digits.append(digit)
        behind = behind * nodes + digit
    return along(order_by(digits, topology), traffic, topology)

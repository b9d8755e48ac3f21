"""Peano, as the field calls the Z order of Morton (1966): coordinate bits interleaved.

Bit j of x, y, z, ... is bit d*j, d*j + 1, d*j + 2, ... of the position on the curve.

Source: HAEC thesis, section 3.3 (Mokbel, Aref, Kamel: Performance of multi-dimensional
space-filling curves, 2002). O(nodes log nodes). On any box, skipping what is outside.
"""

from __future__ import annotations

from hopmap.mappers.mapper import mapper
from hopmap.topologies import Mapping, Topology
from hopmap.traces import Traffic

from .curve import along, coordinates, levels, on_box, order_by


@mapper("peano", source="HAEC thesis, section 3.3", presets={"thesis": {}}, needs=on_box)
def peano(traffic: Traffic, topology: Topology) -> Mapping:
    """Z order (Morton): the bits of the coordinates interleaved."""
    axes = coordinates(topology, "peano")
    digits = [axis >> level & 1 for level in levels(axes) for axis in reversed(axes)]
    return along(order_by(digits, topology), traffic, topology)

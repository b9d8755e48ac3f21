"""Gray: interleaved coordinate bits, ordered so that one bit changes from point to point.

The position r has the Gray code g = r xor (r >> 1); its bits are dealt to x first and then to the
other axes from the last to the second (x, z, y), lowest bits first; each coordinate is the
Gray-decoded value of its bits.

Source: HAEC thesis, section 3.3 (Faloutsos: Gray codes for partial match and range queries, 1988);
the order of the axes is the thesis'. O(nodes log nodes). On any box, skipping what is outside.
"""

from __future__ import annotations

import numpy as np

from hopmap.mappers.mapper import mapper
from hopmap.topologies import Mapping, Topology
from hopmap.traces import Traffic

from .curve import along, coordinates, levels, on_box, order_by


@mapper("gray", source="HAEC thesis, section 3.3", presets={"thesis": {}}, needs=on_box)
def gray(traffic: Traffic, topology: Topology) -> Mapping:
    """Gray-code order: one bit of the interleaved coordinates changes a step."""
    axes = coordinates(topology, "gray")
    coded = [axis ^ axis >> 1 for axis in axes]
    digits = []
    bit = np.zeros(topology.nodes, dtype=np.int64)
    for level in levels(axes):
        # From the highest bit of g down: y, z, ..., x; decoding r is a running xor.
        for code in (*coded[1:], *coded[:1]):
            bit = bit ^ code >> level & 1
            digits.append(bit)
    return along(order_by(digits, topology), traffic, topology)

"""Sweep: nodes in the order of their numbers, on a box x fastest, then y, then z.

Source: HAEC thesis, section 3.3 (Mokbel, Aref, Kamel: Performance of multi-dimensional
space-filling curves, 2002). O(ranks). On any topology.
"""

from __future__ import annotations

import numpy as np

from hopmap.mappers.mapper import mapper
from hopmap.topologies import Mapping, Topology
from hopmap.traces import Traffic

from .curve import along


@mapper("sweep", source="HAEC thesis, section 3.3", presets={"thesis": {}})
def sweep(traffic: Traffic, topology: Topology) -> Mapping:
    """Nodes in order: x fastest, then y, then z."""
    return along(np.arange(topology.nodes), traffic, topology)

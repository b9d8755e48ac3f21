"""Identity: rank r on the r-th slot, as launchers place ranks when nobody asks.

Source: the baseline of Schulz, Traeff and von Kirchbach, Better process mapping and sparse
quadratic assignment, section 4: as good as the numbering of the ranks. O(ranks). On a box it is
`sweep`; under a job whose hosts are listed the slots are in the list's order.
"""

from __future__ import annotations

import numpy as np

from hopmap.mappers.mapper import mapper
from hopmap.topologies import Mapping, Topology
from hopmap.traces import Traffic

from .curve import along


@mapper("identity", source="Schulz, Traeff, von Kirchbach 2017")
def identity(traffic: Traffic, topology: Topology) -> Mapping:
    """Rank r on the r-th slot."""
    order = topology.order
    return along(order if order.size else np.arange(topology.nodes), traffic, topology)

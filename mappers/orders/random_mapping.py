"""Random: ranks on slots drawn without order or preference.

Source: HAEC thesis, section 3.1 (the baseline of every mapping paper). O(slots).
"""

from __future__ import annotations

import numpy as np

from hopmap.mappers.mapper import mapper
from hopmap.topologies import Mapping, Topology
from hopmap.traces import Traffic


@mapper("random", source="HAEC thesis, section 3.1")
def random_mapping(
    traffic: Traffic,
    topology: Topology,
    *,
    rng: np.random.Generator,
) -> Mapping:
    """Every rank on a slot drawn at random."""
    slots = np.repeat(np.arange(topology.nodes), topology.slots)
    return rng.permutation(slots)[: traffic.ranks].astype(np.int64)

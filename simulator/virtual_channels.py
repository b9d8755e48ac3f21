"""Which virtual channels the packets of a run take, so that none ever waits for itself."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hopmap.simulator.parameters.keys import ParameterError
from hopmap.simulator.parameters.parameters import Parameters
from hopmap.topologies import Topology
from hopmap.topologies.virtual_channels import channel_classes, waiting_cycle

Ints = NDArray[np.int64]
SHOWN = 6  # links of a ring that an error names


def no_rings(topology: Topology, indptr: Ints, servers: Ints, parameters: Parameters) -> Ints:
    """Return the class of virtual channels of every server of some paths; none without buffers.

    Parameters
    ----------
    indptr, servers : ndarray(int64)
        Paths as `RunPlan` has them: injection, links, ejection.

    Raises
    ------
    ParameterError
        With so few virtual channels, buffers that these paths hold and wait for form a ring.
    """
    if not parameters.network_buffer:
        return np.empty(0, dtype=np.int64)
    inside = servers < topology.links
    starts = np.concatenate(([0], np.cumsum(inside)))[indptr]
    links = servers[inside]
    wanted = channel_classes(topology, starts, links)
    most = parameters.network_virtual_channels
    taken = np.minimum(wanted, most - 1)
    ring = waiting_cycle(starts, links * most + taken)
    if len(ring):
        named = [int(link) for link in ring[:SHOWN] // most]
        ends = [topology.vertex_name(int(topology.link_from[link])) for link in named]
        raise ParameterError(
            f"network.virtual_channels {most}: on {topology.spec} packets can wait for each other "
            f"in a ring of {len(ring)} links, {' -> '.join(ends)} -> ...: expected "
            f"{int(wanted.max()) + 1} at least, or network.buffer 0"
        )
    classes = np.zeros(len(servers), dtype=np.int64)
    classes[inside] = taken
    return classes

"""Which virtual channels the packets of a run take, so that none ever waits for itself."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.simulator.parameters.keys import ParameterError
from hopmap.simulator.parameters.parameters import Parameters
from hopmap.topologies import Topology
from hopmap.topologies.tree_kernels import TreeRouter

from .routing.routes import ADAPTIVE, PAR, SPRAYING, Routes

Ints = NDArray[np.int64]
ANY = -1  # instead of a class: any virtual channel
SHOWN = 6  # links of a ring that an error names


class Channels(NamedTuple):
    """Virtual channels of packets whose routes are chosen on the way.

    Attributes
    ----------
    classes : ndarray(int16, shape=(destinations, places))
        See `classes_by_place`.
    escapes : int
        The first channels, one for each class, which take packets on the topology's own route from
        wherever they are; the others take them any minimal way (Duato, 1993). 0 where every minimal
        way is free of rings, and where packets have a class.
    detour, direct : int
        First class of packets on their way to an intermediate node, and of those to their target.
    lanes : int
        Virtual channels of each class.
    """

    classes: NDArray[np.int16]
    escapes: int
    detour: int
    direct: int
    lanes: int


def channels_of(topology: Topology, routes: Routes, parameters: Parameters) -> Channels:
    """Return the virtual channels of packets whose routes are chosen on the way.

    Raises
    ------
    ParameterError
        Fewer than keep packets from waiting for each other in a ring.
    """
    if not parameters.network_buffer:
        return Channels(np.zeros((1, 1), dtype=np.int16), 0, 0, 0, 1)
    from hopmap.topologies.next_hops import NO_WAY
    from hopmap.topologies.switch_kernels import FatTreeRouter
    from hopmap.topologies.virtual_channels import classes_by_place

    most = parameters.network_virtual_channels
    algorithm, spec = parameters.network_routing, topology.spec
    if (routes.hops.port == NO_WAY).any():
        raise ParameterError(
            f"network.routing {algorithm}: on {spec} some switches have no way to every node that "
            f"packets could escape by: expected network.buffer 0"
        )
    classes = classes_by_place(topology, routes.hops)
    number = int(classes.max(initial=0)) + 1
    if routes.algorithm in (ADAPTIVE, SPRAYING):
        tree = isinstance(topology.router, FatTreeRouter | TreeRouter)
        escapes = 0 if tree else number
        channels, needed, lanes = Channels(classes, escapes, 0, 0, 1), escapes + 1, 1
    else:
        detour = int(routes.algorithm == PAR)
        direct = detour + (1 if routes.groups else number)
        needed = direct + number
        lanes = most // needed
        channels = Channels(classes, 0, detour, direct, lanes)
    if most < needed:
        raise ParameterError(
            f"network.virtual_channels {most}: with network.routing {algorithm} on {spec} packets "
            f"could wait for each other in a ring: expected {needed} at least, or network.buffer 0"
        )
    return channels


def no_rings(
    topology: Topology, indptr: Ints, servers: Ints, parameters: Parameters
) -> tuple[Ints, int]:
    """Return the classes of virtual channels that some paths take, and the channels of a class.

    The number of classes is the network's, so that a run does not depend on whether others pass
    elsewhere.

    Parameters
    ----------
    indptr, servers : ndarray(int64)
        Paths as `RunPlan` has them: injection, links, ejection.

    Returns
    -------
    ndarray(int64)
        Class of every entry of `servers`; none without buffers. `ANY` on links from and to nodes
        that forward nothing: no packet waits for these buffers that holds another.
    int
        Virtual channels of each class.

    Raises
    ------
    ParameterError
        With so few virtual channels, buffers that these paths hold and wait for form a ring.
    """
    if not parameters.network_buffer:
        return np.empty(0, dtype=np.int64), 1
    from hopmap.topologies.next_hops import links_of_leaves
    from hopmap.topologies.virtual_channels import channel_classes, class_count, waiting_cycle

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
    classes = np.full(len(servers), ANY, dtype=np.int64)
    classes[inside] = np.where(np.isin(links, links_of_leaves(topology)), ANY, taken)
    number = max(class_count(topology), int(taken.max(initial=0)) + 1)
    return classes, most // min(number, most)

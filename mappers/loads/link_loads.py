"""Link loads of a mapping, ready for compiled searches: what each rank sends, and the assignment.

The congestion of a mapping, `max_link_load`, is what the busiest directed link carries in bytes, as
in ``evaluate`` (HAEC thesis, section 2.6). It does not look at bandwidths, which are assumptions
until somebody sets them; a simulated time does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hopmap.mappers.exchanges.assignment import assignment_of
from hopmap.mappers.objectives import cost_model, with_free_slots
from hopmap.topologies import Mapping, Topology
from hopmap.topologies.table_kernels import RouteRouter
from hopmap.traces import Traffic

if TYPE_CHECKING:
    from hopmap.mappers.exchanges.annealing_kernels import Assignment
    from hopmap.topologies import Router

    from .link_loads_kernels import LinkLoads

LISTED = 256  # nodes up to which all routes are listed: kernels are compiled once for all networks


def loads_and_assignment(
    traffic: Traffic, topology: Topology, initial: Mapping, rng: np.random.Generator
) -> tuple[LinkLoads, Assignment]:
    """Lay out what searches over link loads work on; O(pairs * hops + ranks + links)."""
    from .link_loads_kernels import LinkLoads

    directed = traffic.without_self()
    model = cost_model(directed, topology, "hop_bytes")
    slots = len(model.indptr) - 1
    source = np.repeat(np.arange(slots), np.diff(model.indptr))
    key = directed.src.astype(np.int64) * slots + directed.dst
    order = np.argsort(key)
    key, volume = np.append(key[order], -1), np.append(directed.bytes[order], 0)

    def bytes_of(wanted: np.ndarray) -> np.ndarray:
        at = np.searchsorted(key[:-1], wanted)
        return np.where(key[at] == wanted, volume[at], 0).astype(np.int64)

    links = topology.links
    load = topology.loads(initial[directed.src], initial[directed.dst], directed.bytes)
    if len(topology.carried):
        load += topology.carried
    loads = LinkLoads(
        router=_routes_of(topology),
        indptr=model.indptr,
        peer=model.peer,
        sent=bytes_of(source * slots + model.peer),
        got=bytes_of(model.peer * slots + source),
        load=load,
        change=np.zeros(links, dtype=np.int64),
        touched=np.zeros(links, dtype=np.int64),
        marked=np.zeros(links, dtype=np.bool_),
    )
    return loads, assignment_of(model, topology, with_free_slots(initial, topology), rng)


def _routes_of(topology: Topology) -> Router:
    """Return a router with all routes listed, or of many nodes their own."""
    if topology.nodes > LISTED:
        return topology.router
    ends = np.indices((topology.nodes, topology.nodes)).reshape(2, -1)
    starts, links = topology.routes(*ends)
    return RouteRouter(topology.nodes, starts, links, topology.link_from, topology.link_to)


def load_bound(traffic: Traffic, topology: Topology) -> int:
    """Highest load that no mapping can undercut: what other jobs have on a link stays there.

    Where every node takes one rank, the heaviest pair takes one route besides, and what a rank
    sends or gets shares the links of its node.
    """
    bound = int(topology.carried.max(initial=0))
    if topology.slots.max(initial=0) > 1:
        return bound
    directed = traffic.without_self()
    bound = max(bound, int(directed.bytes.max(initial=0)))
    for ranks, ends in ((directed.src, topology.link_from), (directed.dst, topology.link_to)):
        volume = np.zeros(traffic.ranks, dtype=np.int64)
        np.add.at(volume, ranks, directed.bytes)
        ports = int(np.bincount(ends[ends < topology.nodes], minlength=1).max())
        bound = max(bound, -(-int(volume.max(initial=0)) // max(ports, 1)))
    return bound

"""Next hops by destination, as tables: for packets whose way is chosen as they go.

What forwards packets is a *place*: every switch, and every node but those that have one link, to a
switch, and so never forward anything; such a node is at home at its switch, any other at itself. A
place's *ports* are its links to other places, in the order of their numbers.

The tables say of every destination and every place which port the topology's own route takes, and
how many links between places are left on it. A port is *minimal* if one less is left behind it. So
minimal ways are as long as the routes that the topology itself has, and those are among them. The
tables take 2 bytes for each destination and place, and as many for each home.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.arrays import Ints, Ints32
from hopmap.compilation import njit

from .graph_kernels import DetourRouter
from .routing import Router, next_link
from .switch_kernels import DragonflyPlusRouter, DragonflyRouter
from .table_kernels import PartRouter, RouteRouter
from .topology import Topology, TopologyError

MOST_BYTES = 2**29  # of the tables: 8,192 nodes of a torus
MOST_HOPS = 2**16 - 1
NO_WAY = -2


class NextHops(NamedTuple):
    """Tables of next hops."""

    starts: Ints32  # shape (places + 1,): ports of place p are ``links[starts[p]:starts[p + 1]]``
    # links, ends: shape (ports,): link of every port, and the place where it ends
    links: Ints32
    ends: Ints32
    place: Ints32  # shape (vertices,): place of every vertex, -1 where it is none
    region: Ints32  # shape (places,): group of a place in dragonflies; else the place itself
    # home, up, down: shape (nodes,): place where a node is at home, the link to it and the link
    # back; -1 where it is the place
    home: Ints32
    up: Ints32
    down: Ints32
    row: Ints32  # shape (nodes,): row of a node in `port`, -1 of what is no destination
    # shape (destinations, places): port of the topology's route; -1 at home, NO_WAY where no route
    # comes by
    port: NDArray[np.int16]
    home_row: Ints32  # shape (places,): row of a home in `hops`, -1 of other places
    hops: NDArray[np.uint16]  # shape (homes of destinations, places): links that are left


def next_hops(topology: Topology, destinations: Ints) -> NextHops:
    """Return the tables of some destinations, which are nodes.

    Routes that are listed from node to node (those round failed links are), no routes at all, or
    tables that are too large raise `TopologyError`.
    """
    if isinstance(topology.router, RouteRouter | PartRouter | DetourRouter):
        raise TopologyError(
            f"{topology.spec}: routes are known from node to node alone, and not from switches: "
            f"expected a network of another family, without links that are down, for routes chosen "
            f"on the way"
        )
    place, home, up, down = _places(topology)
    count = int(place.max()) + 1
    targets = np.unique(destinations)
    at_home = np.unique(home[targets])
    need = 2 * (len(targets) + len(at_home)) * count
    if need > MOST_BYTES:
        raise TopologyError(
            f"{topology.spec}: tables of next hops for {len(targets):,} destinations at {count:,} "
            f"nodes and switches take {need / 2**20:,.0f} MiB: expected at most "
            f"{MOST_BYTES // 2**20}, or deterministic routes"
        )
    begin, end = place[topology.link_from], place[topology.link_to]
    inner = np.flatnonzero((begin >= 0) & (end >= 0))
    links = inner[np.argsort(begin[inner], kind="stable")].astype(np.int32)
    starts = np.searchsorted(begin[links], np.arange(count + 1)).astype(np.int32)
    port_of = np.full(topology.links + 1, -1, dtype=np.int16)
    port_of[links] = np.arange(len(links)) - starts[begin[links]]
    vertex = np.flatnonzero(place >= 0)
    port = np.empty((len(targets), count), dtype=np.int16)
    _fill_ports(topology.router, targets, vertex, topology.link_from, home, port_of, port)
    row, home_row = np.full(topology.nodes, -1, np.int32), np.full(count, -1, np.int32)
    row[targets], home_row[at_home] = np.arange(len(targets)), np.arange(len(at_home))
    hops = np.full((len(at_home), count), MOST_HOPS, dtype=np.uint16)
    if not _fill_hops(port, home_row[home[targets]], starts, end[links], hops):
        raise TopologyError(f"{topology.spec}: routes of more than {MOST_HOPS:,} links")
    tables = row, port, home_row, hops
    region = _regions(topology, place)
    return NextHops(starts, links, end[links], place, region, home, up, down, *tables)


def links_of_leaves(topology: Topology) -> Ints32:
    """Links between a node that forwards nothing and its only switch."""
    ends = np.concatenate(_places(topology)[2:])
    return ends[ends >= 0]


def _places(topology: Topology) -> tuple[Ints32, Ints32, Ints32, Ints32]:
    """Return what of every vertex is its place, and of every node its home, and links there."""
    nodes, vertices = topology.nodes, topology.vertices
    leaving = np.bincount(topology.link_from, minlength=vertices)
    coming = np.bincount(topology.link_to, minlength=vertices)
    up, down = np.full((2, vertices), -1, dtype=np.int32)
    up[topology.link_from] = down[topology.link_to] = np.arange(topology.links)
    leaf = (np.arange(vertices) < nodes) & (leaving == 1) & (coming == 1)
    neighbour = np.append(topology.link_to, -1)[up]
    leaf &= neighbour >= nodes
    place = np.where(leaf, -1, np.cumsum(~leaf) - 1).astype(np.int32)
    home = np.where(leaf, place[neighbour], place)
    up[~leaf] = down[~leaf] = -1
    return place, home[:nodes], up[:nodes], down[:nodes]


def _regions(topology: Topology, place: Ints32) -> Ints32:
    """Group of every place of a dragonfly; elsewhere the place itself."""
    router, vertex = topology.router, np.flatnonzero(place >= 0)
    switch = vertex - topology.nodes
    if isinstance(router, DragonflyRouter):
        return (switch // router.routers).astype(np.int32)
    if isinstance(router, DragonflyPlusRouter):
        leaves = len(router.group)
        of_leaf = router.group[np.minimum(switch, leaves - 1)]
        return np.where(switch < leaves, of_leaf, (switch - leaves) // router.spines).astype(
            np.int32
        )
    return np.arange(len(vertex), dtype=np.int32)


def has_groups(hops: NextHops) -> bool:
    """Whether places form groups, as in dragonflies."""
    return bool((hops.region != np.arange(len(hops.region))).any())


@njit
def _fill_ports(
    router: Router,
    targets: Ints,
    vertex: Ints,
    link_from: Ints32,
    home: Ints32,
    port_of: NDArray[np.int16],
    port: NDArray[np.int16],
) -> None:
    """Ask the topology for the link to every target from every place."""
    for row in range(len(targets)):
        target = targets[row]
        for place in range(len(vertex)):
            if place == home[target]:
                port[row, place] = -1
            else:
                # from the target itself: only a fat tree's ECMP asks where a packet is from
                link = next_link(router, vertex[place], target, target)
                # a spine of a Dragonfly+ that no route to the target comes by has none of its own
                leaves = link_from[link] == vertex[place]
                port[row, place] = port_of[link] if leaves else NO_WAY


@njit
def _fill_hops(
    port: NDArray[np.int16], rows: Ints32, starts: Ints32, ends: Ints32, hops: NDArray[np.uint16]
) -> bool:
    """Count the links that are left by home, the fewest of its nodes; False if too many."""
    unknown = -1
    left = np.empty(port.shape[1], dtype=np.int64)
    for row in range(len(rows)):
        for place in range(port.shape[1]):
            known = port[row, place] < 0
            left[place] = (MOST_HOPS if port[row, place] == NO_WAY else 0) if known else unknown
        for place in range(port.shape[1]):
            far, here = 0, place
            while left[here] == unknown:
                far += 1
                here = ends[starts[here] + port[row, here]]
            far += left[here]
            if far > MOST_HOPS:
                return False
            here = place
            while left[here] == unknown:
                left[here] = far
                far -= 1
                here = ends[starts[here] + port[row, here]]
        for place in range(port.shape[1]):
            hops[rows[row], place] = min(hops[rows[row], place], left[place])
    return True

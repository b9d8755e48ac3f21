"""Routes that are chosen on the way, and the virtual channels by which no packet waits for itself.

What a run needs for either: the algorithm, its tables, what draws are of, and classes of channels.

How routers choose, by pure functions that all engines call:

- **adaptive** (minimal): a packet looks at the ports behind which one link less is left, and takes
  the one with the shortest queue: information of that place alone. The port of the topology's own
  route wins ties, and of others the first. On a fat tree that is adaptive routing up, and the one
  way down. Source: Dally and Towles, Principles and Practices of Interconnection Networks, 2004,
  chapter 10; with finite buffers: Duato, A new theory of deadlock-free adaptive routing in wormhole
  networks, IEEE Trans. Parallel and Distributed Systems 4, 1993.
- **spraying**: of the links that a shortest way may take, any, packet by packet. On a fat tree that
  is a random way up. It is ECMP (RFC 2992) with packets in the place of flows; that by pairs of
  nodes is a topology's (``fattree:4x4,routing=ecmp``). Source: Dixit, Prakash, Hu and Kompella, On
  the impact of packet spraying in data center networks, INFOCOM 2013; for trees, Leiserson,
  Fat-trees, IEEE Trans. Computers 34, 1985.
- **valiant**: to a node at random, and from there to the target, deterministically. With any
  pattern, a link carries what it would with uniform traffic, twice. The node is any, source and
  target among them; of a node behind a switch, that switch. On a dragonfly only its group counts,
  which is any except the source's and the target's: as soon as a packet has reached that, it goes
  on to its target. What stays within a group goes minimally. Sources: Valiant and Brebner,
  Universal schemes for parallel communication, STOC 1981; Kim, Dally, Scott and Abts,
  Technology-driven, highly-scalable dragonfly topology, ISCA 2008.
- **ugal_l, ugal_g** (universal globally-adaptive load-balanced): a packet's first router draws an
  intermediate node as Valiant's does, and takes the detour only if its queue, times the links on
  the way, is less than that of the minimal way. With UGAL-L q is the queue at the link that the
  packet would leave this router by. With UGAL-G it is, on a dragonfly, the queue at the first
  global link of either way, wherever its router is; elsewhere the sum of the queues at all links of
  the way, which is what q H estimates, takes the place of the product. There is no threshold.
  Among finite buffers a router decides when the packet is first in its buffer; one hop ahead it
  decides when the packet leaves for it, as BookSim2's lookahead routing does.
  Sources: Singh, Load-balanced routing in interconnection networks, PhD thesis, Stanford 2005; Kim
  et al., ISCA 2008.
- **par** (progressive adaptive): at every router of the source group a packet that still goes
  minimally compares again, as UGAL-L does, since such a router may see the queue of the global link
  itself. Once it has taken the detour, or a global link, it is decided. Source: Jiang, Kim and
  Dally, Indirect adaptive routing on large scale interconnection networks, ISCA 2009.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.arrays import Bools, Ints
from hopmap.simulator.parameters.keys import ROUTING, ParameterError
from hopmap.simulator.parameters.parameters import Parameters
from hopmap.topologies import Topology
from hopmap.topologies.tree_kernels import TreeRouter

if TYPE_CHECKING:
    from hopmap.topologies.next_hops import NextHops


FIXED, ADAPTIVE, SPRAYING, VALIANT, UGAL_L, UGAL_G, PAR = range(len(ROUTING))

ANY = -1  # instead of a class: any virtual channel
SHOWN = 6  # links of a ring that an error names


class Routes(NamedTuple):
    """How packets find their way."""

    algorithm: int  # place in `ROUTING`
    hops: NextHops
    groups: bool  # whether places form groups, as in dragonflies
    crosses: Bools  # shape (links,): links between groups
    # shape (nodes,): nodes of which Valiant's is drawn, nodes of a group behind each other
    drawn: Ints
    # first, size: shape (regions,): of each group in `drawn`, where it begins, and how many it has.
    # Where there are no groups nothing is left out, and both are 0.
    first: Ints
    size: Ints
    longest: int  # servers that a packet comes to at most
    ahead: bool  # whether UGAL decides before the packet leaves for its first router


def routes_of(topology: Topology, targets: Ints, parameters: Parameters) -> Routes | None:
    """Return how packets to some nodes find their way; None where routes are the topology's own."""
    algorithm = ROUTING.index(parameters.network_routing)
    if algorithm == FIXED:
        return None
    from hopmap.topologies.next_hops import NO_WAY, has_groups, next_hops

    hops = next_hops(topology, np.arange(topology.nodes) if algorithm >= VALIANT else targets)
    groups = has_groups(hops)
    if algorithm >= VALIANT and (hops.port == NO_WAY).any():
        raise ParameterError(
            f"network.routing {parameters.network_routing}: {topology.spec} has switches without "
            f"a way to every node: expected adaptive or spraying"
        )
    if algorithm == PAR and not groups:
        raise ParameterError(
            f"network.routing par: {topology.spec} has no groups: expected a dragonfly"
        )
    region = hops.region[hops.home]
    size = np.bincount(region, minlength=len(hops.region)) * groups
    first = np.cumsum(size) - size
    place = hops.place
    begin, end = place[topology.link_from], place[topology.link_to]
    inner = (begin >= 0) & (end >= 0)
    crosses = inner & (hops.region[begin] != hops.region[end]) & groups
    return Routes(
        algorithm=algorithm,
        hops=hops,
        groups=groups,
        crosses=crosses,
        drawn=np.argsort(region, kind="stable"),
        first=first,
        size=size,
        longest=2 * int(hops.hops.max(initial=0)) + 4,
        ahead=(
            parameters.network_routing_decision == "one_hop_ahead"
            and algorithm in (UGAL_L, UGAL_G)
            and parameters.network_buffer > 0
        ),
    )


class Channels(NamedTuple):
    """Virtual channels of packets whose routes are chosen on the way."""

    classes: NDArray[np.int16]  # shape (destinations, places): see `classes_by_place`
    # the first channels, one for each class, which take packets on the topology's own route from
    # wherever they are; the others take them any minimal way (Duato, 1993). 0 where every minimal
    # way is free of rings, and where packets have a class.
    escapes: int
    # detour, direct: first class of packets on their way to an intermediate node, and of those to
    # their target
    detour: int
    direct: int
    lanes: int  # virtual channels of each class


def channels_of(topology: Topology, routes: Routes, parameters: Parameters) -> Channels:
    """Return the virtual channels of packets whose routes are chosen on the way."""
    if not parameters.network_buffer:
        return Channels(np.zeros((1, 1), dtype=np.int16), 0, 0, 0, 1)
    from hopmap.topologies.channel_classes import classes_by_place
    from hopmap.topologies.next_hops import NO_WAY
    from hopmap.topologies.switch_kernels import FatTreeRouter

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

    Paths are as `RunPlan` has them: injection, links, ejection. There is a class of every entry of
    `servers`, none without buffers, and `ANY` on links from and to nodes that forward nothing: no
    packet waits for these buffers that holds another. The number of classes is the network's, so
    that a run does not depend on whether others pass elsewhere.
    """
    if not parameters.network_buffer:
        return np.empty(0, dtype=np.int64), 1
    from hopmap.topologies.channel_classes import channel_classes, class_count, waiting_cycle
    from hopmap.topologies.next_hops import links_of_leaves

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


def intermediate(drawn: int, left: int, low: int, low_size: int, high: int, high_size: int) -> int:
    """Return the number of a node, without the groups whose first numbers are low and high.

    It is drawn at random of those that are left, at least one.
    """
    number = drawn % left
    if number >= low:
        number += low_size
    if number >= high:
        number += high_size
    return number


def goes_minimally(q_m: float, h_m: int, q_nm: float, h_nm: int) -> bool:
    """Whether queue times hops of the minimal way are at most queue times hops of the detour."""
    return q_m * h_m <= q_nm * h_nm


def is_decided(minimally: bool, progressive: bool) -> bool:
    """Whether a packet that has compared its ways does not do so again."""
    return not (minimally and progressive)

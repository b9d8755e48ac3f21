"""The reference engine, routes among finite buffers: which links a packet asks for, and channels.

Where any minimal way will do, a packet asks for all links of such ways at once, by the channels
that are free to all, and for the topology's own next link by the escape channel of its class
besides: a packet that waits can always take that one, and escape channels alone never form a ring
(Duato, 1993; Duato, A necessary and sufficient condition for deadlock-free routing in cut-through
and store-and-forward networks, IEEE Trans. Parallel and Distributed Systems 7, 1996). Elsewhere it
asks for one link, by the channels of a class that rises along its way.
"""

from __future__ import annotations

from hopmap.simulator.routing.routes import ADAPTIVE, PAR, SPRAYING
from hopmap.simulator.virtual_channels import Channels

from .events import HeldPacket, Link
from .routing import EJECTION, Router


class BufferedWays:
    """Finds the way of packets among the links of a network of finite buffers.

    Parameters
    ----------
    links : list of Link
        By server.
    most : int
        Virtual channels of a link.
    ejection : int
        First ejection link.
    """

    def __init__(
        self, routes: Router, channels: Channels, links: list[Link], most: int, ejection: int
    ) -> None:
        self.routes, self.channels, self.links = routes, channels, links
        self.classes: list[list[int]] = channels.classes.tolist()
        self.most, self.ejection = most, ejection
        self.end_of = {
            link: end
            for links_of, ends in zip(routes.links, routes.ends, strict=True)
            for link, end in zip(links_of, ends, strict=True)
        }

    def wishes(self, packet: HeldPacket) -> list[tuple[Link, range]]:
        """Links that a packet may take next, and the channels of each, the best first."""
        routes, here = self.routes, packet.at
        if packet.ahead or here == routes.home[packet.target]:
            number = packet.ahead[-1] if packet.ahead else routes.down[packet.target]
            link = self.links[number if number >= 0 else self.ejection + packet.target]
            return [(link, range(self.most))]
        row, links = routes.row[packet.target], routes.links[here]
        if routes.algorithm not in (ADAPTIVE, SPRAYING):
            number = links[routes.next_port(packet)]
            kind = self.kind(packet, number, here, row)
            lanes = self.channels.lanes
            return [(self.links[number], range(kind * lanes, (kind + 1) * lanes))]
        own = routes.port[row][here]
        open_to_all = range(self.channels.escapes, self.most)
        if routes.algorithm == SPRAYING:
            wished = [(self.links[links[routes.any_port(packet)]], open_to_all)]
        else:
            ports = sorted(routes.minimal_ports(packet), key=lambda port: (port != own, port))
            wished = [(self.links[links[port]], open_to_all) for port in ports]
            wished.sort(key=lambda wish: -sum(wish[0].credits[c] for c in open_to_all))
        if self.channels.escapes:
            kind = self.classes[row][here]
            wished.append((self.links[links[own]], range(kind, kind + 1)))
        return wished

    def kind(self, packet: HeldPacket, link: int, here: int, row: int) -> int:
        """Class of virtual channels of a packet on a link."""
        routes, channels = self.routes, self.channels
        if packet.via >= 0:
            return channels.detour + self.classes[routes.row[packet.via]][here]
        if routes.algorithm == PAR and not packet.decided and not routes.crosses[link]:
            return 0
        return channels.direct + self.classes[row][here]

    def take(self, packet: HeldPacket, link: Link) -> None:
        """Let a packet leave its place by a link, which comes into its path."""
        if packet.ahead:
            packet.ahead.pop()
        elif packet.at == self.routes.home[packet.target]:
            packet.ahead = [EJECTION]
        else:
            packet.at = self.end_of[link.number]
        if link.buffers:
            packet.path.insert(packet.hop, link.server)

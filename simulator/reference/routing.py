"""The reference engine, routes: where packets go next whose ways are chosen as they go.

A packet's path is what it has gone so far, and the ejection behind it; each next link is put in
before that when the packet asks for it.

Among finite buffers, where any minimal way will do, a packet asks for all links of such ways at
once, by the channels that are free to all, and for the topology's own next link by the escape
channel of its class as well. A packet that waits can always take that one, and escape channels
alone never form a ring (Duato, 1993; Duato, A necessary and sufficient condition for deadlock-free
routing in cut-through and store-and-forward networks, IEEE Trans. Parallel and Distributed Systems
7, 1996). Elsewhere it asks for one link, by the channels of a class that rises along its way.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from hopmap.simulator import model
from hopmap.simulator import routes as rules
from hopmap.simulator.routes import ADAPTIVE, PAR, SPRAYING, UGAL_G, VALIANT, Channels, Routes

from .events import HeldPacket, Link, Packet

EJECTION = -1  # where a link is asked for


class Router:
    """Finds the way of packets; `queue` says how much stands before a link, 0 if it is idle."""

    def __init__(self, routes: Routes, seed: int, queue: Callable[[int], float]) -> None:
        hops = routes.hops
        self.algorithm, self.seed, self.queue = routes.algorithm, seed, queue
        self.ahead = routes.ahead
        self.groups, self.crosses = routes.groups, routes.crosses.tolist()
        self.port: list[list[int]] = hops.port.tolist()
        self.hops: list[list[int]] = hops.hops.tolist()
        self.row: list[int] = hops.row.tolist()
        self.home_row: list[int] = hops.home_row.tolist()
        ends = list(pairwise(hops.starts.tolist()))
        self.links: list[list[int]] = [hops.links[a:b].tolist() for a, b in ends]
        self.ends: list[list[int]] = [hops.ends[a:b].tolist() for a, b in ends]
        self.region, self.home = hops.region.tolist(), hops.home.tolist()
        self.up: list[int] = hops.up.tolist()
        self.down: list[int] = hops.down.tolist()
        self.drawn = routes.drawn.tolist()
        self.first, self.size = routes.first.tolist(), routes.size.tolist()

    def begin(self, packet: Packet, source: int, target: int) -> None:
        """Set a packet before its first link."""
        packet.at, packet.target, packet.via = self.home[source], target, -1
        packet.decided = self.algorithm in (ADAPTIVE, SPRAYING)
        packet.ahead = [self.up[source]] if self.up[source] >= 0 else []

    def next_link(self, packet: Packet) -> int:
        """Link that a packet takes next, or EJECTION; it counts as taken."""
        if packet.ahead:
            return packet.ahead.pop()
        if packet.at == self.home[packet.target]:
            packet.ahead = [EJECTION]
            down = self.down[packet.target]
            return down if down >= 0 else packet.ahead.pop()
        return self.take(packet, self.next_port(packet))

    def take(self, packet: Packet, port: int) -> int:
        """Let a packet leave its place by a port; return the link."""
        here = packet.at
        packet.at = self.ends[here][port]
        return self.links[here][port]

    def next_port(self, packet: Packet) -> int:
        """Port by which a packet leaves its place, which is not its target's."""
        here, target = packet.at, packet.target
        if self.algorithm == SPRAYING:
            return self.any_port(packet)
        if self.algorithm == ADAPTIVE:
            ports = self.minimal_ports(packet)
            own = self.port[self.row[target]][here]
            best = own if own >= 0 else ports[0]
            for port in ports:
                wait, least = (self.queue(self.links[here][p]) for p in (port, best))
                if wait < least:
                    best = port
            return best
        if not packet.decided:
            self.decide(packet)
        if packet.via >= 0 and self.region[here] == self.region[self.home[packet.via]]:
            packet.via = -1
        goal = packet.via if packet.via >= 0 else target
        return self.port[self.row[goal]][here]

    def minimal_ports(self, packet: Packet) -> list[int]:
        """Ports of a packet's place behind which one link less is left."""
        here, left = packet.at, self.hops[self.home_row[self.home[packet.target]]]
        ends = self.ends[here]
        return [port for port, end in enumerate(ends) if left[end] + 1 == left[here]]

    def any_port(self, packet: Packet) -> int:
        """Minimal port at random."""
        ports = self.minimal_ports(packet)
        drawn = model.mix_hash(self.draw(packet), packet.at)
        return ports[drawn % len(ports)]

    def draw(self, packet: Packet) -> int:
        """Draw a random number for a packet."""
        return model.mix_hash(model.mix_hash(self.seed, packet.message.number), packet.number)

    def decide(self, packet: Packet) -> None:
        """Choose between the minimal way and a detour, and with it the place to go to first."""
        packet.decided = True
        here, target = packet.at, packet.target
        regions = sorted((self.region[here], self.region[self.home[target]]))
        low, high = ((self.first[region], self.size[region]) for region in regions)
        left = len(self.drawn) - low[1] - high[1]
        if (self.groups and regions[0] == regions[1]) or left < 1:
            return
        number = rules.intermediate(self.draw(packet), left, *low, *high)
        via = self.drawn[number]
        if self.algorithm != VALIANT:
            everywhere = self.algorithm == UGAL_G
            q_m, h_m = self.cost(here, [target], everywhere)
            q_nm, h_nm = self.cost(here, [via, target], everywhere)
            minimally = rules.goes_minimally(q_m, h_m, q_nm, h_nm)
            packet.decided = rules.is_decided(minimally, self.algorithm == PAR)
            if minimally:
                return
        packet.via = via

    def decide_ahead(self, packet: Packet) -> None:
        """Decide, if not yet done, before a packet leaves for its first router."""
        if not (packet.ahead or packet.decided or packet.at == self.home[packet.target]):
            self.decide(packet)

    def cost(self, here: int, goals: list[int], everywhere: bool) -> tuple[float, int]:
        """Queue and hops of a way to the region of all goals but the last, and to that.

        With all queues known the hops are 1: that at the first global link, or the sum of all.
        """
        queue, count = 0.0, 0
        for goal in goals:
            home, last = self.home[goal], goal == goals[-1]
            while here != home and (last or self.region[here] != self.region[home]):
                port = self.port[self.row[goal]][here]
                link = self.links[here][port]
                count += 1
                if everywhere and self.groups and self.crosses[link]:
                    return self.queue(link), 1
                if (everywhere and not self.groups) or (not everywhere and count == 1):
                    queue += self.queue(link)
                here = self.ends[here][port]
        return queue, 1 if everywhere else count


class BufferedWays:
    """Finds the way of packets among the links, by server, of a network of finite buffers.

    Each has `most` virtual channels; `ejection` is the first ejection link.
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

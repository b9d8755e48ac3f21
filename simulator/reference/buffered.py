"""The reference engine, the network of finite buffers: packets go on when there is room for them.

Every link ends in buffers, one for each of its virtual channels, first come first served. The
packet at the head of a buffer asks for its next link. A link that is idle grants one of those that
ask and for which there is room behind it, and takes a credit for that room; the packet's own place
is free once its tail has left, or its first flit, which the link before learns some time later.
Nothing is dropped.
A node's messages stand in a queue of any length before its injection link, in order or in turn, and
a node takes everything that reaches it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hopmap.simulator import model
from hopmap.simulator.routes import ANY

from .events import Buffer, Credit, HeldPacket, Link, Message, Server
from .network import Network, NodeQueue
from .routing import BufferedWays


class BufferedNetwork(Network):
    """Servers, the buffers between them, and the paths over them; see `Network`."""

    packet = HeldPacket

    def prepare(self) -> None:
        """Put buffers behind all links but those that end in a node's memory."""
        plan = self.plan
        parameters = plan.parameters
        self.channels = parameters.network_virtual_channels
        self.lanes = plan.lanes
        self.oldest_first = parameters.network_arbitration == "age"
        self.credit_delay = parameters.network_credit_delay
        self.flit = parameters.network_flit
        self.links = [Link(number, server) for number, server in enumerate(self.servers)]
        self.link_of = dict(zip(self.servers, self.links, strict=True))
        for link in self.links[: plan.injection.stop]:
            first = link.number * self.channels
            link.buffers = [Buffer(first + c, link, c) for c in range(self.channels)]
            link.credits = [parameters.network_buffer] * self.channels
        queues = len(self.links) * self.channels
        self.queues: dict[Server, Buffer] = {}
        for node, server in enumerate(self.servers[s] for s in plan.injection):
            nic, number = self.nics.get(server), queues + node
            self.queues[server] = Buffer(number, None) if nic is None else NodeQueue(number, nic)
        classes = plan.classes.tolist()
        ends = pairwise(plan.indptr.tolist())
        self.classes_of = {
            id(path): classes[a:b] for path, (a, b) in zip(self.paths, ends, strict=True)
        }
        self.capacity = parameters.network_buffer * self.channels
        self.ways = None
        if self.routes is not None and plan.channels is not None:
            self.ways = BufferedWays(
                *(self.routes, plan.channels, self.links, self.channels, plan.injection.stop)
            )
        self.on_credit, self.on_passed = [self.credit], [self.release]

    def enter(self, message: Message, packets: list[Any], data: bool) -> None:
        """Put a message's packets into the queue of its node."""
        classes = self.classes_of.get(id(packets[0].path), [ANY])  # [ANY]: of chosen routes
        for packet in packets:
            packet.arrival = packet.born = self.clock.now
            packet.classes, packet.buffer = classes, None
        queue = self.queues.get(packets[0].path[0])
        if queue is None:
            super().enter(message, packets, data)
            return
        idle = not queue.packets
        queue.packets.extend(packets)
        if isinstance(queue, NodeQueue):
            self.stand_in(queue.nic, message, packets, data)
        if idle:
            self.ask(queue)

    def arrive(self, packet: Any) -> None:
        """Put a packet that has reached the end of a link into its buffer."""
        if packet.buffer is None:
            super().arrive(packet)
            return
        packet.arrival = self.clock.now
        packet.buffer.packets.append(packet)
        if len(packet.buffer.packets) == 1:
            self.ask(packet.buffer)

    def ask(self, buffer: Buffer) -> None:
        """Let the packet at the head of a buffer ask for all links that it may take next."""
        packet = buffer.packets[0]
        packet.wishes = self.wishes(packet)
        for link in dict.fromkeys(link for link, _ in packet.wishes):
            link.asking.append(buffer)
        while (best := self.preferred_link(buffer)) is not None:
            self.grant(best)

    def wishes(self, packet: HeldPacket) -> list[tuple[Link, range]]:
        """Links that a packet may take next, and the virtual channels behind each."""
        if self.ways is not None and packet.hop > 0:
            return self.ways.wishes(packet)
        one = packet.classes[packet.hop]
        taken = range(self.channels)
        if one != ANY:
            taken = range(one * self.lanes, (one + 1) * self.lanes)
        return [(self.link_of[packet.path[packet.hop]], taken)]

    def preferred_link(self, buffer: Buffer) -> Link | None:
        """First of the links that a buffer asks for which is idle and has room behind it."""
        for link, channels in buffer.packets[0].wishes if buffer.packets else ():
            if buffer in link.asking and link.serves is None and room(link, channels) >= 0:
                return link
        return None

    def grant(self, link: Link) -> None:
        """Let an idle link serve one of the packets that ask for it and have room behind it."""
        if link.serves is not None:
            return
        able = [
            (buffer, channel)
            for buffer in link.asking
            if (channel := self.channel(buffer, link)) >= 0
        ]
        if not able:
            return
        buffer, channel = min(able, key=lambda each: self.turn(link, each[0]))
        for wished in dict.fromkeys(link for link, _ in buffer.packets[0].wishes):
            wished.asking.remove(buffer)
        packet = buffer.head()
        if self.ways is not None and packet.hop > 0:
            self.ways.take(packet, link)
        link.serves, link.latest = buffer, buffer.number
        packet.buffer = None
        if link.buffers:
            link.credits[channel] -= 1
            packet.buffer = link.buffers[channel]
        if self.routes is not None and self.routes.ahead:
            self.routes.decide_ahead(packet)
        now, before = self.clock.now, buffer.link
        link.frees = end = self.serve(packet, packet.arrival, now)
        link.callbacks = self.on_passed  # type: ignore[assignment]
        self.clock.schedule_at(link, end, self.plan.order_key(model.PASSED, link.number))
        if before is not None:
            pace = link.server.bandwidth, before.server.bandwidth
            link.frees = model.place_free(now, end, packet.size, self.flit, *pace)
            if link.frees < end:
                self.give_back(buffer, link.frees)

    def channel(self, buffer: Buffer, link: Link) -> int:
        """Virtual channel that the head of a buffer would take behind a link, or -1."""
        found = (room(to, channels) for to, channels in buffer.packets[0].wishes if to is link)
        return next((channel for channel in found if channel >= 0), -1)

    def waits(self) -> dict[int, int]:
        """Buffers whose first packet waits, and the first of those whose room it needs."""
        return {
            buffer.number: link.buffers[channels[0]].number
            for wished in self.links
            for buffer in wished.asking
            for link, channels in buffer.packets[0].wishes[-1:]
            if buffer.link is not None and link.buffers
        }

    def queue(self, link: int) -> float:
        """Places behind a link that are taken, as the link knows."""
        return float(self.capacity - sum(self.links[link].credits))

    def turn(self, link: Link, buffer: Buffer) -> tuple[float, int]:
        """Place of a buffer among those that ask for a link; the lowest is granted."""
        if self.oldest_first:
            packet = buffer.packets[0]
            return packet.born, packet.key
        return (buffer.number <= link.latest, buffer.number)

    def release(self, link: Link) -> None:
        """Free the place of a packet whose tail has left, and let others ask for link and place."""
        buffer = link.serves
        assert buffer is not None
        link.serves = None
        buffer.leave()
        if link.frees == self.clock.now:
            self.give_back(buffer, link.frees)
        if buffer.packets:
            self.ask(buffer)
        self.grant(link)

    def give_back(self, buffer: Buffer, free: float) -> None:
        """Let the link before a buffer, if any, know of a place in it that is free from then on."""
        if buffer.link is None:
            return
        freed = Credit(buffer.link, buffer.channel)
        freed.callbacks = self.on_credit  # type: ignore[assignment]
        at = model.credit_arrival(free, buffer.link.server.latency, self.credit_delay)
        self.clock.schedule_at(freed, at, self.plan.order_key(model.CREDIT, buffer.number))

    def credit(self, freed: Credit) -> None:
        """Note that there is room behind a link."""
        freed.link.credits[freed.channel] += 1
        self.grant(freed.link)


def room(link: Link, channels: range) -> int:
    """Of some channels behind a link the one with most room, the first among equals; or -1."""
    if not link.buffers:
        return 0
    best = max(channels, key=lambda channel: link.credits[channel])
    return best if link.credits[best] > 0 else -1

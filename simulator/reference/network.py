"""The reference engine, the network: packets go from one server to the next."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from hopmap.simulator import model
from hopmap.simulator.link_use import Bins, LinkUse
from hopmap.simulator.result import Servers
from hopmap.simulator.run_plan import RunPlan

from .events import Clock, Message, Packet, Server


class Network:
    """Servers, and the paths over them; `deliver` is called with each event of a message.

    Attributes
    ----------
    controls : int
        Requests and grants sent so far.
    """

    def __init__(
        self, plan: RunPlan, clock: Clock, bins: int, deliver: Callable[[Message], None]
    ) -> None:
        parameters = plan.parameters
        self.plan = plan
        self.clock = clock
        self.cut_through = parameters.switching == "cut_through"
        self.packet_size, self.control_bytes = parameters.packet_size, parameters.control_bytes
        self.servers = [
            Server(*speed)
            for speed in zip(plan.bandwidth.tolist(), plan.latency.tolist(), strict=True)
        ]
        # Links come first; the use of nothing else is kept.
        self.bins = Bins(plan.links, bins)
        for link, server in enumerate(self.servers[: plan.links if bins else 0]):
            server.link = link
        numbers = plan.servers.tolist()
        self.paths: list[list[Server]] = [
            [self.servers[s] for s in numbers[a:b]] for a, b in pairwise(plan.indptr.tolist())
        ]
        self.size = plan.program.size.tolist()
        self.path: list[int] = plan.path.tolist()
        self.back: list[int] = plan.back.tolist()
        self.controls = 0
        self.on_arrive, self.on_deliver = [self.arrive], [deliver]

    def counters(self) -> Servers:
        """Return what the servers counted."""
        servers = self.servers
        return Servers(
            messages=np.array([server.messages for server in servers], dtype=np.int64),
            bytes=np.array([server.bytes for server in servers], dtype=np.int64),
            busy=np.array([server.busy for server in servers]),
            longest_wait=np.array([server.longest_wait for server in servers]),
            waited=np.array([server.waited for server in servers]),
        )

    def use(self) -> LinkUse:
        """Return the use of links over time."""
        busy = np.array(self.bins.busy).reshape(self.plan.links, self.bins.bins)
        return LinkUse(self.bins.width, busy)

    def key(self, kind: int, number: int, packet: int = 0) -> int:
        """Rank of an event, see `model.order_key`."""
        plan = self.plan
        return model.order_key(kind, number, packet, plan.number_bits, plan.packet_bits)

    def transmit(self, message: Message, cargo: int) -> None:
        """Hand a message to its first server, where its packets queue at once."""
        message.cargo = cargo
        row = message.send.row
        size = self.size[row] if cargo == model.DATA else self.control_bytes
        self.controls += cargo != model.DATA
        path = self.paths[self.back[row] if cargo == model.GRANT else self.path[row]]
        count = model.packet_count(size, self.packet_size)
        for number in range(count):
            packet = Packet(
                message,
                model.packet_bytes(size, self.packet_size, number),
                number == count - 1,
                path,
                self.key(model.ARRIVE, message.number, number),
            )
            packet.tail = self.clock.now
            self.arrive(packet)

    def first(self, row: int) -> Server:
        """First server on the path of what a row sends."""
        return self.paths[self.path[row]][0]

    def arrive(self, packet: Packet) -> None:
        """Serve a packet: when it arrives it is known when the server will be done with it."""
        server, now = packet.path[packet.hop], self.clock.now
        start = model.service_start(now, server.free)
        end = model.service_end(start, packet.size, server.bandwidth, packet.tail)
        server.free = end
        server.packets += 1
        server.busy += end - start
        if start > now:
            server.waited += start - now
            server.longest_wait = max(server.longest_wait, start - now)
        if packet.message.cargo == model.DATA:
            server.bytes += packet.size
            if packet.last:
                server.messages += 1
        if server.link >= 0:
            self.bins.add(server.link, start, end)

        tail = model.tail_arrival(end, server.latency)
        packet.hop += 1
        if packet.hop < len(packet.path):
            packet.tail = tail
            packet.callbacks = self.on_arrive  # type: ignore[assignment]
            head = model.head_arrival(start, end, server.latency, self.cut_through)
            self.clock.schedule_at(packet, head, packet.key)
        elif packet.last:
            message = packet.message
            message.callbacks = self.on_deliver
            self.clock.schedule_at(message, tail, self.key(model.DELIVER, message.number))

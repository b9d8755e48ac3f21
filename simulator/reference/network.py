"""The reference engine, the network: packets go from one server to the next.

At a network interface whose queues take turns, control messages of a node stand in one queue, data
in one for each pair of ranks. A queue is served by one rail at a time, so that what stands in it
leaves in order. Among finite buffers the injection link is the only rail.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from hopmap.simulator import model
from hopmap.simulator.link_use import Bins, LinkUse
from hopmap.simulator.result import Servers
from hopmap.simulator.run_plan import RunPlan

from .events import Buffer, Clock, Happening, Message, Packet, Server
from .routing import EJECTION, Router


@dataclass(slots=True, eq=False, repr=False)
class Queue(Happening):
    """Packets of one rank to another, or of control messages; its event is that one was served."""

    nic: Nic
    rank: int  # -1 of control messages
    packets: deque[Packet] = field(default_factory=deque)
    served: bool = False  # a rail serves one of its packets


class Nic:
    """Network interface of a node."""

    def __init__(self, rails: int) -> None:
        self.idle = rails
        self.control = Queue(self, -1)
        # Queues of each rank that wait for a rail, and the ranks that have some, in turn.
        self.waiting: defaultdict[int, deque[Queue]] = defaultdict(deque)
        self.turns: deque[int] = deque()
        self.of_pair: dict[tuple[int, int], Queue] = {}

    def queue(self, rank: int, peer: int) -> Queue:
        """Queue of the messages from one rank to another."""
        if (rank, peer) not in self.of_pair:
            self.of_pair[rank, peer] = Queue(self, rank)
        return self.of_pair[rank, peer]

    def add(self, queue: Queue, packets: list[Packet]) -> None:
        """Put the packets of a message behind those in a queue."""
        waits = bool(queue.packets) or queue.served
        queue.packets.extend(packets)
        if not waits:
            self.enlist(queue)

    def release(self, queue: Queue) -> None:
        """Note that the packet of a queue has been served."""
        queue.served = False
        self.idle += 1
        if queue.packets:
            self.enlist(queue)

    def enlist(self, queue: Queue) -> None:
        """Let a queue wait for its turn."""
        if queue is not self.control:
            if not self.waiting[queue.rank]:
                self.turns.append(queue.rank)
            self.waiting[queue.rank].append(queue)

    def take(self) -> tuple[Packet, Queue] | None:
        """Take the packet whose turn it is from its queue, if a rail is idle."""
        queue = self.control
        if not self.idle:
            return None
        if queue.served or not queue.packets:
            if not self.turns:
                return None
            rank = self.turns.popleft()
            queue = self.waiting[rank].popleft()
            if self.waiting[rank]:
                self.turns.append(rank)
        self.idle -= 1
        queue.served = True
        return queue.packets.popleft(), queue


class NodeQueue(Buffer):
    """A node's queue among finite buffers, if its packets leave as from an interface.

    They stand in any order: which of them comes to the head is known when the link is idle and has
    room behind it.
    """

    __slots__ = ("nic", "served")

    served: Queue

    def __init__(self, number: int, nic: Nic) -> None:
        super().__init__(number, None)
        self.nic = nic

    def head(self) -> Any:
        """Let the packet whose turn it is come to the head, which asked for all of them."""
        taken = self.nic.take()
        assert taken is not None
        packet: Any = taken[0]
        packet.wishes, self.served = self.packets[0].wishes, taken[1]
        self.packets.remove(packet)
        self.packets.appendleft(packet)
        return packet

    def leave(self) -> None:
        """Let the packet go that was served, and its queue wait for the next turn."""
        super().leave()
        self.nic.release(self.served)


class Network:
    """Servers, and the paths over them, of packets of one type.

    `deliver` is called with each event of a message, `sent` with a message of which it is known
    when its last byte will have left the first server. Requests and grants sent so far are
    `controls`.
    """

    packet: type[Packet] = Packet

    def __init__(
        self,
        plan: RunPlan,
        clock: Clock,
        bins: int,
        deliver: Callable[[Message], None],
        sent: Callable[[Message, float], None],
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
        self.overhead_control = parameters.overhead_control
        self.put_latency = parameters.overhead_put_latency
        self.mode = plan.program.mode.tolist()
        self.size = plan.program.size.tolist()
        self.path: list[int] = plan.path.tolist()
        self.back: list[int] = plan.back.tolist()
        self.controls = 0
        self.rank, self.peer = plan.program.rank_of_row().tolist(), plan.program.peer.tolist()
        # By first server of a path that leaves the node.
        injects = plan.injection if parameters.nic == "round_robin" else range(0)
        self.nics = {self.servers[s]: Nic(parameters.nic_rails) for s in injects}
        self.routes = None
        if plan.routes is not None:
            self.routes = Router(plan.routes, parameters.network_routing_seed, self.queue)
        self.path_ends = list(zip(*(nodes.tolist() for nodes in plan.ends()), strict=True))
        self.sent = sent
        self.on_arrive, self.on_deliver = [self.arrive], [deliver]
        self.on_served = [self.serve_next]
        self.prepare()

    def prepare(self) -> None:
        """Set up what derived networks add."""

    def waits(self) -> dict[int, int]:
        """Buffers that wait for each other: none, as they have no end."""
        return {}

    def counters(self) -> Servers:
        """Return what the servers counted."""
        columns = ([getattr(server, name) for server in self.servers] for name in Servers._fields)
        return Servers(*map(np.array, columns))

    def use(self) -> LinkUse:
        """Return the use of links over time."""
        busy = np.array(self.bins.busy).reshape(self.plan.links, self.bins.bins)
        return LinkUse(self.bins.width, busy)

    def transmit(self, message: Message, cargo: int) -> None:
        """Hand a message to its first server."""
        message.cargo = cargo
        row = message.send.row
        data = cargo == model.DATA
        size = self.size[row] if data else self.control_bytes
        self.controls += not data
        forth = cargo in (model.DATA, model.REQUEST)
        number = self.path[row] if forth else self.back[row]
        path = self.paths[number]
        routes = self.routes if len(path) > 1 else None
        count = model.packet_count(size, self.packet_size)
        packets = [
            self.packet(
                message,
                part,
                model.packet_bytes(size, self.packet_size, part),
                part == count - 1,
                path if routes is None else [path[0], path[-1]],
                self.plan.order_key(model.ARRIVE, message.number, part),
            )
            for part in range(count)
        ]
        message.under_way = count
        for packet in packets:
            packet.tail = self.clock.now
            if routes is not None:
                routes.begin(packet, *self.path_ends[number])
        self.enter(message, packets, data)

    def enter(self, message: Message, packets: list[Packet], data: bool) -> None:
        """Let the packets of a message come to their first server."""
        nic = self.nics.get(packets[0].path[0])
        if nic is not None:
            self.stand_in(nic, message, packets, data)
            self.inject(nic)
            return
        for packet in packets:
            self.arrive(packet)

    def stand_in(self, nic: Nic, message: Message, packets: list[Packet], data: bool) -> None:
        """Put a message's packets into their queue of a network interface."""
        row = message.send.row
        queue = nic.queue(self.rank[row], self.peer[row]) if data else nic.control
        nic.add(queue, packets)

    def inject(self, nic: Nic) -> None:
        """Let an idle rail serve the packet whose turn it is."""
        taken = nic.take()
        if taken is not None:
            packet, queue = taken
            end = self.serve(packet, packet.tail, self.clock.now)
            queue.callbacks = self.on_served  # type: ignore[assignment]
            key = self.plan.order_key(model.SERVED, packet.message.number, packet.number)
            self.clock.schedule_at(queue, end, key)

    def serve_next(self, queue: Queue) -> None:
        """Let a rail that is done with a packet take the next one."""
        queue.nic.release(queue)
        self.inject(queue.nic)

    def arrive(self, packet: Packet) -> None:
        """Serve a packet: when it arrives it is known when the server will be done with it."""
        now = self.clock.now
        if self.routes is not None and packet.hop > 0:
            self.extend(packet, self.routes.next_link(packet))
        self.serve(packet, now, model.service_start(now, packet.path[packet.hop].free))

    def extend(self, packet: Packet, link: int) -> None:
        """Put the link that a packet takes next into its path."""
        if link != EJECTION:
            packet.path.insert(packet.hop, self.servers[link])

    def queue(self, link: int) -> float:
        """Seconds until a link is idle."""
        return max(0.0, self.servers[link].free - self.clock.now)

    def serve(self, packet: Packet, arrival: float, start: float) -> float:
        """Serve a packet from a time on; return when that is over."""
        server, message = packet.path[packet.hop], packet.message
        end = model.service_end(start, packet.size, server.bandwidth, packet.tail)
        server.free = end
        server.packets += 1
        server.busy += end - start
        if start > arrival:
            server.waited += start - arrival
            server.longest_wait = max(server.longest_wait, start - arrival)
        if message.cargo == model.DATA:
            server.bytes += packet.size
            if packet.last:
                server.messages += 1
                if packet.hop == 0:
                    self.sent(message, end)
        if server.link >= 0:
            self.bins.add(server.link, start, end)

        tail = model.tail_arrival(end, server.latency)
        packet.hop += 1
        if packet.hop < len(packet.path):
            packet.tail = tail
            packet.callbacks = self.on_arrive  # type: ignore[assignment]
            head = model.head_arrival(start, end, server.latency, self.cut_through)
            self.clock.schedule_at(packet, head, packet.key)
        else:
            self.end(packet, tail)
        return end

    def end(self, packet: Packet, tail: float) -> None:
        """Deliver a message when the last one of its packets to come has reached the target."""
        message = packet.message
        message.under_way -= 1
        if message.under_way > 0:
            return
        message.callbacks = self.on_deliver
        kind = message.cargo, self.mode[message.send.row]
        at = model.notice_time(tail, *kind, self.overhead_control, self.put_latency)
        self.clock.schedule_at(message, at, self.plan.order_key(model.DELIVER, message.number))

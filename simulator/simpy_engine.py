"""The reference engine: SimPy's event queue, and the rules of `model.py` as callbacks.

SimPy orders events by (time, priority, insertion). Every event gets its `order_key` as priority,
so that insertion never decides. Strands are generators that yield whenever they have to wait;
packets are events that schedule themselves at one server after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from heapq import heappush
from itertools import pairwise
from math import nan

import numpy as np
import simpy

from . import model
from .deadlock import deadlock
from .plan import Plan
from .program import Op
from .result import Outcome, Servers

Progress = Callable[[int, int], None]
PROGRESS_EVERY = 1 << 12  # messages

SENDS = frozenset(map(int, (Op.SEND, Op.ISEND)))
RECEIVES = frozenset(map(int, (Op.RECV, Op.IRECV)))
BLOCKING = frozenset(map(int, (Op.SEND, Op.RECV, Op.WAIT)))


class Clock(simpy.Environment):
    """SimPy's environment with absolute times: ``now + (at - now)`` need not be `at`."""

    def schedule_at(self, event: simpy.Event, at: float, key: int) -> None:
        """Schedule an event at a time; among those of one instant, the lowest key comes first."""
        heappush(self._queue, (at, key, next(self._eid), event))  # type: ignore[misc]


class Happening(simpy.Event):
    """An event of ours: it has always succeeded, and can be scheduled again."""

    __slots__ = ("callbacks",)
    _ok = True


class Packet(Happening):
    """A packet on its way; `last` of its message, `tail` the arrival of its end."""

    __slots__ = ("cargo", "hop", "key", "last", "message", "path", "size", "tail")

    def __init__(
        self, message: int, cargo: int, size: int, last: bool, path: list[Server], key: int
    ) -> None:
        self.message = message
        self.cargo = cargo
        self.size = size
        self.last = last
        self.path = path
        self.key = key
        self.hop = 0
        self.tail = 0.0


class Message(Happening):
    """A message, or control message, that is delivered, or has been sent."""

    __slots__ = ("cargo", "message")

    def __init__(self, message: int, cargo: int) -> None:
        self.message = message
        self.cargo = cargo


class Strand(Happening):
    """A strand that goes on."""

    __slots__ = (
        "begun_by",
        "communicate",
        "compute",
        "finish",
        "key",
        "row",
        "since",
        "steps",
        "wait",
    )

    def __init__(self, key: int) -> None:
        self.key = key
        self.steps: Generator[None, None, None]
        self.begun_by = -1  # row of its START
        self.row = -1  # where it stands while it waits
        self.since = 0.0
        self.finish = self.compute = self.communicate = self.wait = 0.0


class Server:
    """A link, or the injection, ejection or memory of a node."""

    __slots__ = (
        "bandwidth",
        "busy",
        "bytes",
        "free",
        "latency",
        "longest_wait",
        "messages",
        "packets",
        "waited",
    )

    def __init__(self, bandwidth: float, latency: float) -> None:
        self.bandwidth = bandwidth
        self.latency = latency
        self.free = 0.0
        self.messages = self.bytes = self.packets = 0
        self.busy = self.longest_wait = self.waited = 0.0


def run(plan: Plan, record_messages: bool = False, progress: Progress | None = None) -> Outcome:
    """Replay a plan.

    Raises
    ------
    DeadlockError
        Nothing is left to happen and some strand has not finished.
    """
    return _Replay(plan, record_messages, progress).outcome()


class _Replay:
    """State of one run. Lists, not arrays: Python reads them several times faster."""

    def __init__(self, plan: Plan, record_messages: bool, progress: Progress | None) -> None:
        parameters, program = plan.parameters, plan.program
        self.plan = plan
        self.clock = Clock()
        self.progress = progress
        self.cut_through = parameters.switching == "cut_through"
        self.overhead_send, self.overhead_recv = parameters.overhead_send, parameters.overhead_recv
        self.gap, self.gap_per_byte = parameters.gap, parameters.gap_per_byte
        self.packet_size, self.control_bytes = parameters.packet_size, parameters.control_bytes

        self.servers = [
            Server(*speed)
            for speed in zip(plan.bandwidth.tolist(), plan.latency.tolist(), strict=True)
        ]
        numbers = plan.servers.tolist()
        self.paths = [
            [self.servers[s] for s in numbers[a:b]] for a, b in pairwise(plan.indptr.tolist())
        ]
        self.kind, self.target = program.kind.tolist(), program.target.tolist()
        self.compute, self.message = plan.compute.tolist(), plan.message.tolist()
        self.size = plan.size.tolist()
        self.eager = [model.is_eager(size, parameters.eager_limit) for size in self.size]
        self.path, self.back = plan.path.tolist(), plan.back.tolist()
        self.send, self.receive = plan.send.tolist(), plan.receive.tolist()
        self.requested = [False] * plan.messages  # a rendezvous' request has arrived
        self.posted = [False] * plan.messages  # its receive is there
        self.source = program.rank_of_row()[plan.send].tolist()
        self.free = [0.0] * program.ranks  # when the end point of a rank is free
        self.done = [False] * program.operations  # what a row began is complete
        self.waiting: dict[int, Strand] = {}  # by row
        self.controls = self.arrived = 0
        self.record = record_messages
        self.sent = [nan] * (plan.messages if record_messages else 0)
        self.delivered = self.sent.copy()

        self.strands = [Strand(self.key(model.RESUME, s)) for s in range(program.strands)]
        rows = pairwise(program.offsets.tolist())
        for strand, (begin, end) in zip(self.strands, rows, strict=True):
            strand.steps = self.steps(strand, begin, end)
        # One list per kind of event; SimPy calls each entry with the event.
        self.on_arrive, self.on_deliver = [self.arrive], [self.deliver]
        self.on_sent, self.on_resume = [self.send_complete], [self.resume]
        self.on_leave = [self.leave]

    def outcome(self) -> Outcome:
        main = [self.strands[s] for s in self.plan.program.main()]
        for strand in main:
            self.wake(strand, 0.0)
        self.clock.run()
        stuck = [(s, strand.row) for s, strand in enumerate(self.strands) if strand.row >= 0]
        if stuck:
            raise deadlock(self.plan, self.clock.now, stuck)
        return Outcome(
            finish=np.array([strand.finish for strand in main]),
            compute=np.array([strand.compute for strand in main]),
            communicate=np.array([strand.communicate for strand in main]),
            wait=np.array([strand.wait for strand in main]),
            servers=Servers(
                messages=np.array([server.messages for server in self.servers], dtype=np.int64),
                bytes=np.array([server.bytes for server in self.servers], dtype=np.int64),
                busy=np.array([server.busy for server in self.servers]),
                longest_wait=np.array([server.longest_wait for server in self.servers]),
                waited=np.array([server.waited for server in self.servers]),
            ),
            events=sum(server.packets for server in self.servers),
            controls=self.controls,
            sent=np.array(self.sent),
            delivered=np.array(self.delivered),
        )

    def key(self, kind: int, number: int, packet: int = 0) -> int:
        plan = self.plan
        return model.order_key(kind, number, packet, plan.number_bits, plan.packet_bits)

    # Strands

    def wake(self, strand: Strand, at: float) -> None:
        strand.callbacks = self.on_resume  # type: ignore[assignment]
        self.clock.schedule_at(strand, at, strand.key)

    def resume(self, strand: Strand) -> None:
        next(strand.steps, None)

    def steps(self, strand: Strand, begin: int, end: int) -> Generator[None, None, None]:
        """Execute a strand; it yields to wait for its next `resume`."""
        clock = self.clock
        for row in range(begin, end):
            pause = self.compute[row]
            if pause > 0:
                strand.compute += pause
                self.wake(strand, clock.now + pause)
                yield
            kind = self.kind[row]
            if kind in SENDS:
                if self.overhead_send > 0:
                    strand.communicate += self.overhead_send
                    self.wake(strand, clock.now + self.overhead_send)
                    yield
                self.post_send(self.message[row])
            elif kind in RECEIVES:
                self.post_receive(self.message[row])
            elif kind == Op.START:
                started = self.strands[self.target[row]]
                started.begun_by = row
                self.wake(started, clock.now)
            if kind in BLOCKING:
                awaited = self.target[row] if kind == Op.WAIT else row
                overhead = self.overhead_of(awaited)
                strand.communicate += overhead
                if not self.done[awaited]:
                    strand.row, strand.since = row, clock.now
                    self.waiting[awaited] = strand
                    yield
                elif overhead > 0:
                    self.wake(strand, clock.now + overhead)
                    yield
        strand.row = -1
        strand.finish = clock.now
        if strand.begun_by >= 0:
            self.complete(strand.begun_by)

    def overhead_of(self, row: int) -> float:
        """Seconds that a strand is busy once what it waited for is complete."""
        return self.overhead_recv if self.kind[row] in RECEIVES else 0.0

    def complete(self, row: int) -> None:
        """Note that what the row began is complete; a strand that waits for it goes on."""
        self.done[row] = True
        strand = self.waiting.pop(row, None)
        if strand is not None:
            now = self.clock.now
            strand.wait += now - strand.since
            self.wake(strand, now + self.overhead_of(row))

    # Messages

    def post_send(self, message: int) -> None:
        if self.record:
            self.sent[message] = self.clock.now
        if self.eager[message]:
            self.done[self.send[message]] = True
            self.depart(Message(message, model.DATA))
        else:
            self.controls += 1
            self.transmit(message, model.REQUEST)

    def post_receive(self, message: int) -> None:
        if message < 0:
            return  # nobody sends it
        self.posted[message] = True
        if self.requested[message]:
            self.grant(message)

    def grant(self, message: int) -> None:
        self.controls += 1
        self.transmit(message, model.GRANT)

    def deliver(self, event: Message) -> None:
        message = event.message
        if event.cargo == model.DATA:
            if self.record:
                self.delivered[message] = self.clock.now
            if self.receive[message] >= 0:
                self.complete(self.receive[message])
            self.arrived += 1
            if self.progress is not None and self.arrived % PROGRESS_EVERY == 0:
                self.progress(self.arrived, self.plan.messages)
        elif event.cargo == model.REQUEST:
            self.requested[message] = True
            if self.posted[message]:
                self.grant(message)
        else:
            self.depart(event)

    def depart(self, event: Message) -> None:
        """Let a message's data pass the end point of its rank."""
        message, now = event.message, self.clock.now
        rank = self.source[message]
        at = model.leave_time(now, self.free[rank], self.size[message], self.gap_per_byte)
        self.free[rank] = at + self.gap
        if at > now:
            event.callbacks = self.on_leave  # type: ignore[assignment]
            self.clock.schedule_at(event, at, self.key(model.LEAVE, message))
        else:
            self.leave(event)

    def leave(self, event: Message) -> None:
        message = event.message
        self.transmit(message, model.DATA)
        if not self.eager[message]:
            event.callbacks = self.on_sent  # type: ignore[assignment]
            first = self.paths[self.path[message]][0]
            self.clock.schedule_at(event, first.free, self.key(model.SENT, message))

    def send_complete(self, event: Message) -> None:
        self.complete(self.send[event.message])

    # Packets

    def transmit(self, message: int, cargo: int) -> None:
        """Hand a message to its first server, where its packets queue at once."""
        size = self.size[message] if cargo == model.DATA else self.control_bytes
        path = self.paths[self.back[message] if cargo == model.GRANT else self.path[message]]
        count = model.packet_count(size, self.packet_size)
        for number in range(count):
            packet = Packet(
                message,
                cargo,
                model.packet_bytes(size, self.packet_size, number),
                number == count - 1,
                path,
                self.key(model.ARRIVE, message, number),
            )
            packet.tail = self.clock.now
            self.arrive(packet)

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
        if packet.cargo == model.DATA:
            server.bytes += packet.size
            if packet.last:
                server.messages += 1

        tail = model.tail_arrival(end, server.latency)
        packet.hop += 1
        if packet.hop < len(packet.path):
            packet.tail = tail
            packet.callbacks = self.on_arrive  # type: ignore[assignment]
            head = model.head_arrival(start, end, server.latency, self.cut_through)
            self.clock.schedule_at(packet, head, packet.key)
        elif packet.last:
            arrival = Message(packet.message, packet.cargo)
            arrival.callbacks = self.on_deliver  # type: ignore[assignment]
            self.clock.schedule_at(arrival, tail, self.key(model.DELIVER, packet.message))

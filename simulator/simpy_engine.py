"""The reference engine: SimPy's event queue, and the rules of `model.py` as callbacks.

SimPy orders events by (time, priority, insertion). Every event gets its `order_key` as priority,
so that insertion never decides. Strands are generators that yield whenever they have to wait;
packets are events that schedule themselves at one server after the other.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
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
BEGINNING = frozenset(map(int, (Op.ISEND, Op.IRECV, Op.START)))
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

    __slots__ = ("hop", "key", "last", "message", "path", "size", "tail")

    def __init__(
        self, message: Message, size: int, last: bool, path: list[Server], key: int
    ) -> None:
        self.message = message
        self.size = size
        self.last = last
        self.path = path
        self.key = key
        self.hop = 0
        self.tail = 0.0


class Begun:
    """What a row began when it last ran; `place` counts within the channel."""

    __slots__ = ("done", "place", "row", "strand")

    def __init__(self, row: int, place: int = 0) -> None:
        self.row = row
        self.place = place
        self.done = False
        self.strand: Strand | None = None  # that waits for it


class Sent(Happening):
    """A rendezvous message has left, so that its sender may go on."""

    __slots__ = ("send",)

    def __init__(self, send: Begun) -> None:
        self.send = send


class Message(Happening):
    """A message; its event is that it, or its request or grant, has arrived."""

    __slots__ = ("cargo", "eager", "number", "receive", "send", "there")

    def __init__(self, number: int, send: Begun, eager: bool) -> None:
        self.number = number
        self.send = send
        self.eager = eager
        self.receive: Begun | None = None
        self.there = False  # it, if eager, or its request has arrived
        self.cargo = model.DATA


class Strand(Happening):
    """A strand that goes on."""

    __slots__ = (
        "awaited",
        "begun_by",
        "communicate",
        "compute",
        "finish",
        "key",
        "message",
        "row",
        "since",
        "steps",
        "wait",
    )

    def __init__(self, key: int, message: int) -> None:
        self.key = key
        self.message = message  # number of the next one that it sends
        self.steps: Generator[None, None, None]
        self.begun_by: Begun | None = None  # its START
        self.row = -1  # where it stands while it waits
        self.awaited: Begun
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
        self.compute, self.size = plan.compute.tolist(), program.size.tolist()
        self.eager_limit = parameters.eager_limit
        self.channel, self.path, self.back = (
            column.tolist() for column in (plan.channel, plan.path, plan.back)
        )
        self.rank = program.rank_of_row().tolist()
        self.free = [0.0] * program.ranks  # when the end point of a rank is free
        self.begun: dict[int, Begun] = {}  # by row, the latest that can be waited for
        self.trips = [0] * program.operations  # of REPEATs, since their loop was entered
        # By channel, messages that found no receive, or receives that found no message; and how
        # many of each there were.
        self.unmatched: defaultdict[int, deque[Message | Begun]] = defaultdict(deque)
        self.sends: Counter[int] = Counter()
        self.receives: Counter[int] = Counter()
        self.controls = self.arrived = 0
        self.record = record_messages
        self.sent = [nan] * (plan.messages if record_messages else 0)
        self.delivered = self.sent.copy()

        self.strands = [
            Strand(self.key(model.RESUME, s), first) for s, first in enumerate(plan.first.tolist())
        ]
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
        stuck = [
            (s, strand.row, strand.awaited.place)
            for s, strand in enumerate(self.strands)
            if strand.row >= 0
        ]
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
        clock, row = self.clock, begin
        while row < end:
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
                begun = self.post_send(strand, row)
            elif kind in RECEIVES:
                begun = self.post_receive(row)
            elif kind == Op.START:
                begun = Begun(row)
                started = self.strands[self.target[row]]
                started.begun_by = begun
                self.wake(started, clock.now)
            elif kind == Op.WAIT:
                begun = self.begun[self.target[row]]
            elif kind == Op.REPEAT:
                self.trips[row] += 1
                if self.trips[row] < self.size[row]:
                    row = self.target[row]
                    continue
                self.trips[row] = 0
            if kind in BEGINNING:
                self.begun[row] = begun
            elif kind in BLOCKING:
                overhead = self.overhead_of(begun)
                strand.communicate += overhead
                if not begun.done:
                    strand.row, strand.since = row, clock.now
                    strand.awaited, begun.strand = begun, strand
                    yield
                elif overhead > 0:
                    self.wake(strand, clock.now + overhead)
                    yield
            row += 1
        strand.row = -1
        strand.finish = clock.now
        if strand.begun_by is not None:
            self.complete(strand.begun_by)

    def overhead_of(self, begun: Begun) -> float:
        """Seconds that a strand is busy once what it waited for is complete."""
        return self.overhead_recv if self.kind[begun.row] in RECEIVES else 0.0

    def complete(self, begun: Begun) -> None:
        """Note that what a row began is complete; a strand that waits for it goes on."""
        begun.done = True
        strand, begun.strand = begun.strand, None
        if strand is not None:
            now = self.clock.now
            strand.wait += now - strand.since
            self.wake(strand, now + self.overhead_of(begun))

    # Messages

    def post_send(self, strand: Strand, row: int) -> Begun:
        channel = self.channel[row]
        send = Begun(row, self.sends[channel])
        self.sends[channel] += 1
        eager = model.is_eager(self.size[row], self.eager_limit)
        message = Message(strand.message, send, eager)
        strand.message += 1
        if self.record:
            self.sent[message.number] = self.clock.now
        unmatched = self.unmatched[channel]
        if unmatched and isinstance(receive := unmatched[0], Begun):
            message.receive = receive
            unmatched.popleft()
        else:
            unmatched.append(message)
        send.done = eager
        if eager:
            self.depart(message)
        else:
            self.transmit(message, model.REQUEST)
        return send

    def post_receive(self, row: int) -> Begun:
        channel = self.channel[row]
        receive = Begun(row, self.receives[channel])
        self.receives[channel] += 1
        unmatched = self.unmatched[channel]
        if not unmatched or isinstance(unmatched[0], Begun):
            unmatched.append(receive)
            return receive
        message = unmatched.popleft()
        assert isinstance(message, Message)
        message.receive = receive
        if message.there:
            if message.eager:
                receive.done = True
            else:
                self.transmit(message, model.GRANT)
        return receive

    def deliver(self, message: Message) -> None:
        if message.cargo == model.DATA:
            if self.record:
                self.delivered[message.number] = self.clock.now
            self.arrived += 1
            if self.progress is not None and self.arrived % PROGRESS_EVERY == 0:
                self.progress(self.arrived, self.plan.messages)
        if message.cargo == model.GRANT:
            self.depart(message)
        elif message.receive is None:
            message.there = True
        elif message.cargo == model.DATA:
            self.complete(message.receive)
        else:
            self.transmit(message, model.GRANT)

    def depart(self, message: Message) -> None:
        """Let a message's data pass the end point of its rank."""
        row, now = message.send.row, self.clock.now
        rank = self.rank[row]
        at = model.leave_time(now, self.free[rank], self.size[row], self.gap_per_byte)
        self.free[rank] = at + self.gap
        if at > now:
            message.callbacks = self.on_leave  # type: ignore[assignment]
            self.clock.schedule_at(message, at, self.key(model.LEAVE, message.number))
        else:
            self.leave(message)

    def leave(self, message: Message) -> None:
        """Hand a message's data to the network."""
        self.transmit(message, model.DATA)
        if not message.eager:
            sent = Sent(message.send)
            sent.callbacks = self.on_sent  # type: ignore[assignment]
            first = self.paths[self.path[sent.send.row]][0]
            self.clock.schedule_at(sent, first.free, self.key(model.SENT, message.number))

    def send_complete(self, sent: Sent) -> None:
        self.complete(sent.send)

    # Packets

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

        tail = model.tail_arrival(end, server.latency)
        packet.hop += 1
        if packet.hop < len(packet.path):
            packet.tail = tail
            packet.callbacks = self.on_arrive  # type: ignore[assignment]
            head = model.head_arrival(start, end, server.latency, self.cut_through)
            self.clock.schedule_at(packet, head, packet.key)
        elif packet.last:
            message = packet.message
            message.callbacks = self.on_deliver  # type: ignore[assignment]
            self.clock.schedule_at(message, tail, self.key(model.DELIVER, message.number))

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


class Clock(simpy.Environment):
    """SimPy's environment with absolute times: ``now + (at - now)`` need not be `at`."""

    def schedule_at(self, event: simpy.Event, at: float, key: int) -> None:
        """Schedule an event at a time; among those of one instant, the lowest key comes first."""
        heappush(self._queue, (at, key, next(self._eid), event))  # type: ignore[misc]


class Happening(simpy.Event):
    """An event that can be scheduled again once it has happened."""

    _ok = True
    callbacks = None  # type: ignore[assignment]


class Packet(Happening):
    """A packet on its way; `last` of its message, `tail` the arrival of its end."""

    def __init__(
        self, message: int, cargo: int, size: int, last: bool, path: list[int], key: int
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

    def __init__(self, message: int, cargo: int) -> None:
        self.message = message
        self.cargo = cargo


class Strand(Happening):
    """A strand that goes on."""

    def __init__(self, number: int, steps: Generator[None, None, None]) -> None:
        self.number = number
        self.steps = steps
        self.begun_by = -1  # row of its START
        self.row = -1  # that it stands at, while it waits
        self.since = 0.0


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
        self.plan = plan
        self.clock = Clock()
        self.progress = progress
        parameters, program = plan.parameters, plan.program
        self.cut_through = parameters.switching == "cut_through"
        self.overhead_send, self.overhead_recv = parameters.overhead_send, parameters.overhead_recv

        servers = plan.servers.tolist()
        ends = plan.indptr.tolist()
        self.paths = [servers[a:b] for a, b in pairwise(ends)]
        self.bandwidth, self.latency = plan.bandwidth.tolist(), plan.latency.tolist()
        count = len(self.bandwidth)
        self.free = [0.0] * count
        self.messages, self.bytes = [0] * count, [0] * count
        self.busy, self.waited, self.longest = [0.0] * count, [0.0] * count, [0.0] * count
        self.events = self.controls = self.arrived = 0

        self.kind, self.target = program.kind.tolist(), program.target.tolist()
        self.compute, self.message = plan.compute.tolist(), plan.message.tolist()
        self.size = plan.size.tolist()
        limit = parameters.eager_limit
        self.eager = [model.is_eager(size, limit) for size in self.size]
        self.packet_size, self.control_bytes = parameters.packet_size, parameters.control_bytes
        self.path, self.back = plan.path.tolist(), plan.back.tolist()
        self.send, self.receive = plan.send.tolist(), plan.receive.tolist()
        self.requested = [False] * plan.messages  # a rendezvous' request has arrived
        self.posted = [False] * plan.messages  # its receive is there
        self.done = [False] * program.operations  # what a row began is complete
        self.waiting: dict[int, Strand] = {}  # by row
        empty = plan.messages if record_messages else 0
        self.record = record_messages
        self.sent, self.delivered = [nan] * empty, [nan] * empty

        rows = program.offsets.tolist()
        self.time_computing = [0.0] * program.strands
        self.time_overhead = [0.0] * program.strands
        self.time_waiting = [0.0] * program.strands
        self.finish = [0.0] * program.strands
        self.strands = [
            Strand(s, self.steps(s, rows[s], rows[s + 1])) for s in range(program.strands)
        ]
        # One list per kind of event; SimPy calls each entry with the event.
        self.on_arrive, self.on_deliver = [self.arrive], [self.deliver]
        self.on_sent, self.on_resume = [self.send_complete], [self.resume]

    def outcome(self) -> Outcome:
        main = self.plan.program.main()
        for s in main.tolist():
            self.wake(self.strands[s], 0.0)
        self.clock.run()
        stuck = [(s, strand.row) for s, strand in enumerate(self.strands) if strand.row >= 0]
        if stuck:
            raise deadlock(self.plan, self.clock.now, stuck)
        return Outcome(
            finish=np.array(self.finish)[main],
            compute=np.array(self.time_computing)[main],
            communicate=np.array(self.time_overhead)[main],
            wait=np.array(self.time_waiting)[main],
            servers=Servers(
                np.array(self.messages, dtype=np.int64),
                np.array(self.bytes, dtype=np.int64),
                np.array(self.busy),
                np.array(self.longest),
                np.array(self.waited),
            ),
            events=self.events,
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
        self.clock.schedule_at(strand, at, self.key(model.RESUME, strand.number))

    def resume(self, strand: Strand) -> None:
        next(strand.steps, None)

    def steps(self, number: int, begin: int, end: int) -> Generator[None, None, None]:
        """Execute a strand; it yields to wait for its next `resume`."""
        clock, strand = self.clock, self.strands[number]
        for row in range(begin, end):
            pause = self.compute[row]
            if pause > 0:
                self.time_computing[number] += pause
                self.wake(strand, clock.now + pause)
                yield
            kind = self.kind[row]
            if kind == Op.FINISH:
                break
            if kind in (Op.SEND, Op.ISEND):
                if self.overhead_send > 0:
                    self.time_overhead[number] += self.overhead_send
                    self.wake(strand, clock.now + self.overhead_send)
                    yield
                self.post_send(self.message[row])
            elif kind in (Op.RECV, Op.IRECV):
                self.post_receive(self.message[row])
            elif kind == Op.START:
                started = self.strands[self.target[row]]
                started.begun_by = row
                self.wake(started, clock.now)
            if kind in (Op.SEND, Op.RECV, Op.WAIT):
                awaited = self.target[row] if kind == Op.WAIT else row
                overhead = self.overhead_of(awaited)
                self.time_overhead[number] += overhead
                if not self.done[awaited]:
                    strand.row, strand.since = row, clock.now
                    self.waiting[awaited] = strand
                    yield
                elif overhead > 0:
                    self.wake(strand, clock.now + overhead)
                    yield
        self.finish[number] = clock.now
        strand.row = -1
        if strand.begun_by >= 0:
            self.complete(strand.begun_by)

    def overhead_of(self, row: int) -> float:
        """Seconds that a strand is busy once what it waited for is complete."""
        return self.overhead_recv if self.kind[row] in (Op.RECV, Op.IRECV) else 0.0

    def complete(self, row: int) -> None:
        """Note that what the row began is complete; a strand that waits for it goes on."""
        self.done[row] = True
        strand = self.waiting.pop(row, None)
        if strand is not None:
            now = self.clock.now
            self.time_waiting[strand.number] += now - strand.since
            self.wake(strand, now + self.overhead_of(row))

    # Messages

    def post_send(self, message: int) -> None:
        if self.record:
            self.sent[message] = self.clock.now
        if self.eager[message]:
            self.done[self.send[message]] = True
            self.transmit(message, model.DATA)
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
            self.transmit(message, model.DATA)
            event.callbacks = self.on_sent  # type: ignore[assignment]
            left = self.free[self.paths[self.path[message]][0]]
            self.clock.schedule_at(event, left, self.key(model.SENT, message))

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
        """Serve a packet: on arrival it is known when the server is done with it."""
        clock, server, size = self.clock, packet.path[packet.hop], packet.size
        now = clock.now
        start = model.service_start(now, self.free[server])
        end = model.service_end(start, size, self.bandwidth[server], packet.tail)
        self.free[server] = end
        self.events += 1
        self.busy[server] += end - start
        queued = start - now
        if queued > 0:
            self.waited[server] += queued
            if queued > self.longest[server]:
                self.longest[server] = queued
        if packet.cargo == model.DATA:
            self.bytes[server] += size
            if packet.last:
                self.messages[server] += 1

        latency = self.latency[server]
        tail = model.tail_arrival(end, latency)
        packet.hop += 1
        if packet.hop < len(packet.path):
            packet.tail = tail
            packet.callbacks = self.on_arrive  # type: ignore[assignment]
            head = model.head_arrival(start, end, latency, self.cut_through)
            clock.schedule_at(packet, head, packet.key)
        elif packet.last:
            arrival = Message(packet.message, packet.cargo)
            arrival.callbacks = self.on_deliver  # type: ignore[assignment]
            clock.schedule_at(arrival, tail, self.key(model.DELIVER, packet.message))

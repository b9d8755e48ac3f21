"""A replay as SimPy's documentation would have it: a Resource for every link, a process a packet.

The peer of `replay.py`: what one writes first, request, timeout and release at every hop, instead
of the reference engine, which knows a packet's service when it arrives and needs no Resource. The
model is the same one (store-and-forward, everything eager), and so is the makespan, as long as the
order of packets that arrive at one moment, here that of insertion, does not matter.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator
from typing import Any

import simpy

from hopmap.simulator.programs.program import Op
from hopmap.simulator.run_plan import Plan

Steps = Generator[simpy.Event, Any, None]


class Replay:
    """Events of one run; messages of a channel meet its receives in order."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.program = plan, plan.program
        self.env = simpy.Environment()
        self.links = [simpy.Resource(self.env) for _ in plan.bandwidth]
        self.bandwidth, self.latency = plan.bandwidth.tolist(), plan.latency.tolist()
        self.hops = 0
        self.came: dict[int, list[simpy.Event]] = defaultdict(list)
        self.sent: dict[int, int] = defaultdict(int)
        self.taken: dict[int, int] = defaultdict(int)

    def run(self) -> float:
        """Replay; return the makespan."""
        for rank in range(self.program.ranks):
            self.env.process(self._rank(rank))
        self.env.run()
        return float(self.env.now)

    def _nth(self, channel: int, place: int) -> simpy.Event:
        """Delivery of the message in a place of a channel."""
        came = self.came[channel]
        while len(came) <= place:
            came.append(self.env.event())
        return came[place]

    def _rank(self, rank: int) -> Steps:
        env, program, parameters = self.env, self.program, self.plan.parameters
        begun: dict[int, simpy.Event | None] = {}
        for row in range(program.offsets[rank], program.offsets[rank + 1]):
            kind, channel = program.kind[row], self.plan.channel[row]
            if self.plan.compute[row]:
                yield env.timeout(self.plan.compute[row])
            awaited = None
            if kind in (Op.SEND, Op.ISEND):
                yield env.timeout(parameters.overhead_send)
                delivery = self._nth(channel, self.sent[channel])
                self.sent[channel] += 1
                env.process(self._message(row, delivery))
                begun[row] = None  # eager: done
            elif kind in (Op.RECV, Op.IRECV):
                begun[row] = self._nth(channel, self.taken[channel])
                self.taken[channel] += 1
                awaited = begun[row] if kind == Op.RECV else None
            elif kind == Op.WAIT:
                awaited = begun[int(program.target[row])]
            if awaited is not None:
                yield awaited
                yield env.timeout(parameters.overhead_recv)

    def _message(self, row: int, delivery: simpy.Event) -> Steps:
        plan, size = self.plan, int(self.program.size[row])
        begin, end = plan.indptr[plan.path[row]], plan.indptr[plan.path[row] + 1]
        path, whole = plan.servers[begin:end].tolist(), plan.parameters.packet_size
        pieces = [min(whole, size - at) for at in range(0, size, whole)] or [0]
        yield self.env.all_of([self.env.process(self._packet(path, piece)) for piece in pieces])
        delivery.succeed()

    def _packet(self, path: list[int], size: int) -> Steps:
        for link in path:
            with self.links[link].request() as turn:
                yield turn
                yield self.env.timeout(size / self.bandwidth[link])
            self.hops += 1
            yield self.env.timeout(self.latency[link])

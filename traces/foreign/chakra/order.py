"""The order in which a rank does its nodes: a sequence of computation, begins and waits.

A rank has two lanes, one for nodes of the CPU and one for all others; a lane does one node at a
time. Communication takes no lane. It begins as soon as what it waits for is done, and is completed
when both lanes have nothing left to do without it: of the nodes that are ready, a lane takes the
one with the lowest number. This is the order of a rank that never waits, so that a network that
takes longer than the computation shifts all that follows, of both lanes.

Collectives of one communicator begin in an order that depends on the nodes' numbers and
dependencies alone, so that it is the same on all ranks: the lowest number first of all nodes that
nothing holds back.

Data dependencies order the nodes. Control dependencies say who called whom; they order the nodes
of a rank without data dependencies.

Source: mlcommons/chakra, src/feeder/et_feeder.cpp: data dependencies decide, the lowest number
first; astra-sim, workload/HardwareResource.cc: one node of the CPU and one of the GPU at a time.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import NamedTuple

from hopmap.traces.trace import TraceError

from .nodes import COMMUNICATION, Node, NodeType

CPU, GPU = 0, 1


class Step(NamedTuple):
    """Where a rank begins or completes a communication, with the computation before it."""

    time: float  # seconds of computation since the rank began
    node: int  # place among the rank's nodes
    ends: bool  # whether it is completed


class Order(NamedTuple):
    """What a rank does, and how far that is not what the nodes say."""

    steps: list[Step]
    seconds: float  # of computation
    overlapping: int  # computations of one lane during which the other one works
    held_back: int  # communications that wait for others


def is_communication(node: Node) -> bool:
    """Whether a node is sent over the network; what the CPU does for one is computation."""
    return node.type in COMMUNICATION and not node.on_cpu


def uses_data(nodes: Sequence[Node]) -> bool:
    """Whether data dependencies order a rank's nodes; if it has none, control dependencies do."""
    return any(node.data for node in nodes)


def order_of(nodes: Sequence[Node], groups: Sequence[int], where: object) -> Order:
    """Order the nodes of a rank; `groups` is the communicator of each, -1 of what has none."""
    place = {node.number: at for at, node in enumerate(nodes)}
    by_data = uses_data(nodes)
    before = [
        [place[other] for other in (node.data if by_data else node.control) if other in place]
        for node in nodes
    ]
    after: list[list[int]] = [[] for _ in nodes]
    for at, others in enumerate(before):
        for other in others:
            after[other].append(at)
    turn = _turns(nodes, before, after, groups, where)
    return _Rank(nodes, before, after, turn).run()


def _turns(
    nodes: Sequence[Node],
    before: Sequence[Sequence[int]],
    after: Sequence[Sequence[int]],
    groups: Sequence[int],
    where: object,
) -> list[int]:
    """Find the collective of the same communicator that begins before each node, or -1."""
    waits = [len(others) for others in before]
    ready = [(node.number, at) for at, node in enumerate(nodes) if not waits[at]]
    heapq.heapify(ready)
    latest: dict[int, int] = {}
    previous = [-1] * len(nodes)
    done = 0
    while ready:
        _, at = heapq.heappop(ready)
        done += 1
        if groups[at] >= 0 and nodes[at].type == NodeType.COLLECTIVE:
            previous[at] = latest.get(groups[at], -1)
            latest[groups[at]] = at
        for other in after[at]:
            waits[other] -= 1
            if not waits[other]:
                heapq.heappush(ready, (nodes[other].number, other))
    if done < len(nodes):
        odd = next(at for at, many in enumerate(waits) if many)
        raise TraceError(
            f"{where}: node {nodes[odd].number} waits for itself, over others: expected "
            "dependencies without a circle"
        )
    return previous


class _Rank:
    """One rank at work, on a network that takes no time until a lane has nothing else to do."""

    def __init__(
        self,
        nodes: Sequence[Node],
        before: Sequence[Sequence[int]],
        after: Sequence[Sequence[int]],
        turn: Sequence[int],
    ) -> None:
        self.nodes, self.after, self.turn = nodes, after, turn
        self.waits = [len(others) for others in before]
        self.lanes: tuple[list[tuple[int, int]], ...] = ([], [])  # ready nodes
        self.busy: list[tuple[float, int] | None] = [None, None]  # until when, with which
        self.open: list[int] = []  # communications that have begun, in this order
        self.begun: set[int] = set()
        self.behind: dict[int, list[int]] = {}  # collectives that are ready, by the one before
        self.now = 0.0
        self.steps: list[Step] = []
        self.overlapping = self.held_back = 0
        self.waiters = [0] * len(nodes)  # communications that a node waits for
        for at, others in enumerate(before):
            self.waiters[at] = sum(is_communication(nodes[other]) for other in others)

    def run(self) -> Order:
        for at in range(len(self.nodes)):
            if not self.waits[at]:
                self.release(at)
        next_open = 0
        while True:
            while any(self.busy[lane] is None and self.lanes[lane] for lane in (CPU, GPU)):
                self.start(CPU)
                self.start(GPU)
            working = [each for each in self.busy if each is not None]
            if working:
                self.now, at = min(working)
                self.busy[self.busy.index((self.now, at))] = None
                self.finish(at)
                continue
            while next_open < len(self.open) and not self.after[self.open[next_open]]:
                next_open += 1  # nothing waits for it: it is completed at the end
            if next_open == len(self.open):
                break
            at = self.open[next_open]
            next_open += 1
            self.steps.append(Step(self.now, at, True))
            self.finish(at)
        ended = {step.node for step in self.steps if step.ends}
        self.steps += [Step(self.now, at, True) for at in self.open if at not in ended]
        return Order(self.steps, self.now, self.overlapping, self.held_back)

    def start(self, lane: int) -> None:
        """Give a lane that is free its next node; what takes no time is done at once."""
        while self.busy[lane] is None and self.lanes[lane]:
            _, at = heapq.heappop(self.lanes[lane])
            seconds = self.nodes[at].seconds
            if seconds:
                self.busy[lane] = (self.now + seconds, at)
                self.overlapping += self.busy[1 - lane] is not None
            else:
                self.finish(at)

    def release(self, at: int) -> None:
        """Take a node whose dependencies are done."""
        node = self.nodes[at]
        if not is_communication(node):
            heapq.heappush(self.lanes[CPU if node.on_cpu else GPU], (node.number, at))
        elif self.turn[at] >= 0 and self.turn[at] not in self.begun:
            self.behind.setdefault(self.turn[at], []).append(at)
        else:
            self.begin(at)

    def begin(self, first: int) -> None:
        """Begin a communication, and collectives that wait for their turn behind it."""
        beginning = [first]
        while beginning:
            at = beginning.pop()
            self.steps.append(Step(self.now, at, False))
            self.open.append(at)
            self.begun.add(at)
            self.held_back += self.waiters[at] > 0
            beginning += self.behind.pop(at, ())

    def finish(self, at: int) -> None:
        """Release what waits for a node that is done."""
        for other in self.after[at]:
            self.waits[other] -= 1
            if not self.waits[other]:
                self.release(other)

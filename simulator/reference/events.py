"""What the reference engine schedules: tasks, messages and packets, as events of SimPy.

SimPy orders events by (time, priority, insertion). Every event gets its `order_key` as priority,
so that insertion never decides.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from dataclasses import dataclass, field
from heapq import heappush

import simpy

from hopmap.simulator import model


class Clock(simpy.Environment):
    """SimPy's environment with absolute times: ``now + (at - now)`` need not be `at`."""

    def schedule_at(self, event: simpy.Event, at: float, key: int) -> None:
        """Schedule an event at a time; among events of one instant, the lowest key comes first."""
        heappush(self._queue, (at, key, next(self._eid), event))  # type: ignore[misc]


class Happening(simpy.Event):
    """An event of ours: it has always succeeded, and can be scheduled again."""

    __slots__ = ("callbacks",)
    _ok = True


@dataclass(slots=True, eq=False, repr=False)
class Packet(Happening):
    """A packet on its way."""

    message: Message
    number: int
    size: int
    last: bool  # of its message
    path: list[Server]
    key: int
    hop: int = 0
    tail: float = 0.0  # arrival of its end
    # Where its way is chosen as it goes, see `routing.py`: what is ahead of it on any way,
    # the place that it is at or comes to, its target node, the node to go to first or -1, and
    # whether that is decided.
    ahead: list[int] = field(init=False)
    at: int = field(init=False)
    target: int = field(init=False)
    via: int = field(init=False)
    decided: bool = field(init=False)


@dataclass(slots=True, eq=False, repr=False)
class HeldPacket(Packet):
    """A packet among finite buffers."""

    arrival: float = field(init=False)  # when it came to its buffer
    born: float = field(init=False)  # when it entered the network
    buffer: Buffer | None = field(init=False)  # that it is in or comes to
    classes: list[int] = field(init=False)  # of virtual channels, of its path
    # links that it asks for at the head of a buffer, each with the virtual channels that it may
    # take there; what comes first, it would rather have
    wishes: list[tuple[Link, range]] = field(init=False)


@dataclass(slots=True, eq=False, repr=False)
class Begun:
    """What a row began when it last ran."""

    row: int
    place: int = 0  # within the channel
    done: bool = False
    task: Task | None = None  # that waits for it


@dataclass(slots=True, eq=False, repr=False)
class Sent(Happening):
    """A large message has left, so that its sender may go on."""

    send: Begun


@dataclass(slots=True, eq=False, repr=False)
class Message(Happening):
    """A message; its event is that it, or a control message of it, has arrived."""

    number: int
    send: Begun
    completion: int  # of the send, see `model.completion`
    receive: Begun | None = None
    there: bool = False  # it or its request has arrived
    cargo: int = model.DATA
    under_way: int = 0  # of its packets


@dataclass(slots=True, eq=False, repr=False)
class Task(Happening):
    """A task that goes on."""

    key: int
    message: int  # number of the next one that it sends
    entry: int  # where the operation that it is at is recorded
    stream: int  # of its draws, see `noise.py`, and the number of the next one
    pauses: int = 1
    overhead: float = 0.0  # once what it waits for is complete
    steps: Generator[None, None, None] = field(init=False)
    begun_by: Begun | None = None  # its START
    row: int = -1  # where it stands while it waits
    awaited: Begun = field(init=False)
    since: float = 0.0
    finish: float = 0.0
    compute: float = 0.0
    communicate: float = 0.0
    wait: float = 0.0


@dataclass(slots=True, eq=False, repr=False)
class Server:
    """A link, or the injection, ejection or memory of a node."""

    bandwidth: float
    latency: float
    link: int = -1  # its number, of one whose use over time is kept
    free: float = 0.0
    messages: int = 0
    bytes: int = 0
    packets: int = 0
    busy: float = 0.0
    longest_wait: float = 0.0
    waited: float = 0.0


@dataclass(slots=True, eq=False, repr=False)
class Buffer:
    """Of one virtual channel at the end of a link, or a node's queue."""

    number: int
    link: Link | None  # that fills it; None of a node's queue
    channel: int = 0
    packets: deque[HeldPacket] = field(default_factory=deque)

    def head(self) -> HeldPacket:
        """Packet that a link is to serve."""
        return self.packets[0]

    def leave(self) -> None:
        """Let the packet go that a link has served."""
        self.packets.popleft()


@dataclass(slots=True, eq=False, repr=False)
class Link(Happening):
    """A server and who asks for it; its event is that the tail of a packet has left its buffer."""

    number: int
    server: Server
    buffers: list[Buffer] = field(default_factory=list)  # behind it; none where all is taken
    credits: list[int] = field(default_factory=list)
    asking: list[Buffer] = field(default_factory=list)
    serves: Buffer | None = None
    latest: int = -1  # number of the buffer granted last
    frees: float = 0.0  # when the place of the packet that it serves is free


@dataclass(slots=True, eq=False, repr=False)
class Credit(Happening):
    """There is room again behind a link."""

    link: Link
    channel: int

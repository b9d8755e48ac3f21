"""What the reference engine schedules: tasks, messages and packets, as events of SimPy.

SimPy orders events by (time, priority, insertion). Every event gets its `order_key` as priority,
so that insertion never decides.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from heapq import heappush

import simpy

from hopmap.simulator import model


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
    """A packet on its way; `last` of its message, `tail` the arrival of its end.

    Where its way is chosen as it goes: the place that it is at or comes to, what is `ahead` of it
    whatever is chosen, its target node, the node to go `via` or -1, and whether it has
    `decided`. See `routing.py`.
    """

    __slots__ = (
        "ahead",
        "at",
        "decided",
        "hop",
        "key",
        "last",
        "message",
        "number",
        "path",
        "size",
        "tail",
        "target",
        "via",
    )

    ahead: list[int]
    at: int
    decided: bool
    target: int
    via: int

    def __init__(
        self, message: Message, number: int, size: int, last: bool, path: list[Server], key: int
    ) -> None:
        self.number = number
        self.message = message
        self.size = size
        self.last = last
        self.path = path
        self.key = key
        self.hop = 0
        self.tail = 0.0


class HeldPacket(Packet):
    """A packet among finite buffers.

    It has the classes of virtual channels of its path, when it entered the network, the buffer that
    it is in or comes to, if any, and when it came there. At the head of one it `wishes` for links,
    each with the virtual channels that it may take there; what comes first, it would rather have.
    """

    __slots__ = ("arrival", "born", "buffer", "classes", "wishes")

    arrival: float
    born: float
    buffer: Buffer | None
    classes: list[int]
    wishes: list[tuple[Link, range]]


class Begun:
    """What a row began when it last ran; `place` counts within the channel."""

    __slots__ = ("done", "place", "row", "task")

    def __init__(self, row: int, place: int = 0) -> None:
        self.row = row
        self.place = place
        self.done = False
        self.task: Task | None = None  # that waits for it


class Sent(Happening):
    """A large message has left, so that its sender may go on."""

    __slots__ = ("send",)

    def __init__(self, send: Begun) -> None:
        self.send = send


class Message(Happening):
    """A message; its event is that it, or a control message of it, has arrived."""

    __slots__ = ("cargo", "completion", "number", "receive", "send", "there", "under_way")

    def __init__(self, number: int, send: Begun, completion: int) -> None:
        self.number = number
        self.send = send
        self.completion = completion  # of the send, see `model.completion`
        self.receive: Begun | None = None
        self.there = False  # it or its request has arrived
        self.cargo = model.DATA
        self.under_way = 0  # of its packets


class Task(Happening):
    """A task that goes on."""

    __slots__ = (
        "awaited",
        "begun_by",
        "communicate",
        "compute",
        "entry",
        "finish",
        "key",
        "message",
        "overhead",
        "pauses",
        "row",
        "since",
        "steps",
        "stream",
        "wait",
    )

    def __init__(self, key: int, message: int, entry: int, stream: int) -> None:
        self.key = key
        self.stream = stream  # of its draws, see `noise.py`, and the number of the next one
        self.pauses = 1
        self.overhead = 0.0  # once what it waits for is complete
        self.message = message  # number of the next one that it sends
        self.entry = entry  # where the operation that it is at is recorded
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
        "link",
        "longest_wait",
        "messages",
        "packets",
        "waited",
    )

    def __init__(self, bandwidth: float, latency: float) -> None:
        self.bandwidth = bandwidth
        self.latency = latency
        self.link = -1  # its number, of one whose use over time is kept
        self.free = 0.0
        self.messages = self.bytes = self.packets = 0
        self.busy = self.longest_wait = self.waited = 0.0


class Buffer:
    """Of one virtual channel at the end of a link, or a node's queue; `number` is its own."""

    __slots__ = ("channel", "link", "number", "packets")

    def __init__(self, number: int, link: Link | None, channel: int = 0) -> None:
        self.number = number
        self.link = link  # that fills it; None of a node's queue
        self.channel = channel
        self.packets: deque[HeldPacket] = deque()

    def head(self) -> HeldPacket:
        """Packet that a link is to serve."""
        return self.packets[0]

    def leave(self) -> None:
        """Let the packet go that a link has served."""
        self.packets.popleft()


class Link(Happening):
    """A server and who asks for it; its event is that the tail of a packet has left its buffer."""

    __slots__ = ("asking", "buffers", "credits", "frees", "latest", "number", "server", "serves")

    def __init__(self, number: int, server: Server) -> None:
        self.number = number
        self.server = server
        self.buffers: list[Buffer] = []  # behind it; none behind what takes everything
        self.credits: list[int] = []
        self.asking: list[Buffer] = []
        self.serves: Buffer | None = None
        self.latest = -1  # number of the buffer granted last
        self.frees = 0.0  # when the place of the packet that it serves is free


class Credit(Happening):
    """There is room again behind a link."""

    __slots__ = ("channel", "link")

    def __init__(self, link: Link, channel: int) -> None:
        self.link = link
        self.channel = channel

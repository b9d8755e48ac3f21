"""The reference engine, a node's network interface whose queues take turns.

Control messages of a node stand in one queue, data in one for each pair of ranks. A queue is served
by one rail at a time, so that what stands in it leaves in order. Among finite buffers the injection
link is the only rail.
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import Any

from .events import Buffer, Happening, Packet


class Queue(Happening):
    """Packets of one rank to another, or of control messages; its event is that one was served."""

    __slots__ = ("nic", "packets", "rank", "served")

    def __init__(self, nic: Nic, rank: int) -> None:
        self.nic = nic
        self.rank = rank  # -1 of control messages
        self.packets: deque[Packet] = deque()
        self.served = False  # a rail serves one of its packets


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
    """A node's queue among finite buffers, if its packets leave as those of an interface do.

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

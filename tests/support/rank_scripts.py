"""What each rank of a collective does, in order: written like the source's C, and read off ours.

A script is a list of (word, partner or -1, bytes): "post" a receive, "send" (begin to), "take" and
"sent" (wait for the receive, for the send), "copy", "reduce".
"""

from __future__ import annotations

from itertools import groupby
from typing import Any

import numpy as np

Event = tuple[str, int, int]


class Script(list[Event]):
    """The calls of one rank, by the names that the source has for them."""

    def irecv(self, peer: int, size: int) -> Event:
        self.append(("post", peer, size))
        return ("take", peer, size)

    def isend(self, peer: int, size: int) -> Event:
        self.append(("send", peer, size))
        return ("sent", peer, size)

    def wait(self, *requests: Event | None) -> None:
        self.extend(request for request in requests if request)

    def recv(self, peer: int, size: int) -> None:
        self.wait(self.irecv(peer, size))

    def send(self, peer: int, size: int) -> None:
        self.wait(self.isend(peer, size))

    def sendrecv(self, to: int, size: int, source: int, received: int) -> None:
        request = self.irecv(source, received)
        self.wait(self.isend(to, size), request)

    def copy(self, size: int) -> None:
        self.append(("copy", -1, size))

    def reduce(self, size: int) -> None:
        self.append(("reduce", -1, size))


KINDS = {"take": "wait", "sent": "wait", "copy": "work", "reduce": "work"}


def settled(script: list[Event]) -> list[Event]:
    """Sort what stands beside each other and has no order: waits, and work, which is summed up."""
    result: list[Event] = []
    for kind, group in groupby(
        (e for e in script if e[2] or KINDS.get(e[0]) != "work"), key=lambda e: KINDS.get(e[0])
    ):
        events = list(group)
        if kind == "work":
            sums = {word: sum(e[2] for e in events if e[0] == word) for word in ("copy", "reduce")}
            events = [(word, -1, size) for word, size in sums.items() if size]
        result.extend(sorted(events) if kind == "wait" else events)
    return result


def scripts(schedule: Any, members: int) -> list[list[Event]]:
    """Read off a schedule what each member does."""
    rows: list[list[tuple[tuple[int, int, int], Event]]] = [[] for _ in range(members)]
    columns = (column.tolist() for column in schedule[:6])
    for k, (sent, src, dst, size, posted, taken) in enumerate(zip(*columns, strict=True)):
        rows[dst].append(((posted, 0, k), ("post", src, size)))
        rows[src].append(((sent, 1, k), ("send", dst, size)))
        rows[dst].append(((taken, 2, k), ("take", src, size)))
        rows[src].append(((sent, 3, k), ("sent", dst, size)))
    for k, (step, member, copied, reduced) in enumerate(
        zip(*(column.tolist() for column in schedule.work[:4]), strict=True)
    ):
        rows[member].append(((step, 4, k), ("copy", -1, copied)))
        rows[member].append(((step, 5, k), ("reduce", -1, reduced)))
    return [settled([event for _, event in sorted(mine)]) for mine in rows]


def assert_same_scripts(schedule: Any, expected: list[Script], *about: object) -> None:
    """Compare rank by rank, saying what differs first, and what the call is about."""
    for rank, (ours, theirs) in enumerate(
        zip(scripts(schedule, len(expected)), map(settled, expected), strict=True)
    ):
        assert ours == theirs, f"rank {rank} of {len(expected)} {about}"


def blocks_of(members: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Blocks whose sizes tell which they are, and any sum of them which it has."""
    return 2 ** np.arange(members)

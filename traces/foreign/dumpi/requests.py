"""Waits, tests, starts and frees of a rank: DUMPI tells what each of them found complete."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hopmap.traces.foreign.requests import Entries, Part, entries

from .rank import Rank

Ints = NDArray[np.int64]


def requests_of(rank: Rank) -> list[Entries]:
    """List what waits, tests, starts and frees name: one entry a request."""
    parts: list[Entries] = []

    def note(which: Ints, key: Ints, part: Part, status: Ints | int = -1) -> None:
        parts.append(entries(which, key, part, status=status))

    def many(which: Ints, at: Ints | int) -> tuple[Ints, Ints, Ints]:
        """Call, turn and place of each number in arrays."""
        length = rank.get(which, at)
        call, turn = np.repeat(which, length), np.arange(int(length.sum()))
        turn -= np.repeat(np.cumsum(length) - length, length)
        return (
            call,
            turn,
            rank.calls[call, 3] + np.repeat(np.broadcast_to(at, len(which)), length) + 1 + turn,
        )

    for name, part in (
        ("Wait", Part.END),
        ("Start", Part.START),
        ("Request_free", Part.FORGET),
        ("Cancel", Part.FORGET),
    ):
        which = rank.of(name)
        note(which, rank.get(which, 0), part, rank.status_at(which, 1) if name == "Wait" else -1)
    which = rank.of("Test")
    which = which[rank.get(which, 1) != 0]
    note(which, rank.get(which, 0), Part.END, rank.status_at(which, 2))
    for name in ("Waitall", "Testall", "Startall"):
        which = rank.of(name)
        length = rank.get(which, 1)
        if name == "Testall":
            which, length = (column[rank.get(which, length + 2) != 0] for column in (which, length))
        call, turn, place = many(which, 1)
        first = np.repeat(rank.status_at(which, length + 2 + (name == "Testall")), length)
        several = np.where(first >= 0, first + 4 * turn, -1) if name != "Startall" else -1
        note(call, rank.values[place], Part.START if name == "Startall" else Part.END, several)
    for name in ("Waitany", "Testany"):
        which = rank.of(name)
        length = rank.get(which, 1)
        index = rank.get(which, length + 2)
        found = (index >= 0) & (index < length)
        if name == "Testany":
            found &= rank.get(which, length + 3) != 0
        which, index, length = which[found], index[found], length[found]
        note(
            which,
            rank.get(which, 2 + index),
            Part.END,
            rank.status_at(which, length + 3 + (name == "Testany")),
        )
    for name in ("Waitsome", "Testsome"):
        which = rank.of(name)
        length = rank.get(which, 1)
        call, turn, place = many(which, length + 3)
        index, limit = rank.values[place], rank.get(call, 1)
        outs = rank.get(call, rank.get(call, 1) + 3)
        first = rank.status_at(call, limit + 4 + outs)
        good = (index >= 0) & (index < limit)
        call, index, first, turn = call[good], index[good], first[good], turn[good]
        note(call, rank.get(call, 2 + index), Part.END, np.where(first >= 0, first + 4 * turn, -1))
    return parts

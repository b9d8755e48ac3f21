"""Messages of a rank, from the calls that name a partner and those that complete requests.

A number or address is used again, so that what a call of MPI_Wait means is the latest request that
was begun under it. Tools do not always say whether MPI_Test found its request complete. Then the
last call that asked, before the number is used again, is assumed to have completed it.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from hopmap.arrays import Bools, Floats, Ints
from hopmap.traces.matching import Messages, pair_up

from .trace_builder import Acts, Calls, acts_of


class Part(IntEnum):
    """What an entry does with a request."""

    BEGIN = 0
    INIT = 1  # makes a persistent request
    START = 2  # begins a persistent request
    END = 3
    ASK = 4  # may end it
    FORGET = 5  # frees or cancels it


class Entries(NamedTuple):
    """What calls of a rank do with requests, one entry per call and request."""

    call: Ints
    key: Ints  # number or address of the request
    part: Ints  # `Part`
    row: Ints  # of a BEGIN or INIT, the send or receive that it stands for
    status: Ints  # of an END or ASK, where its status stands, or -1


class Listed:
    """Sends and receives of a rank as its calls list them, and what is done with their requests."""

    def __init__(self) -> None:
        none = np.zeros(0, dtype=np.int64)
        self._rows: list[tuple[Ints, ...]] = [(none,) * 8]
        self._requests = [Entries(*(none,) * 5)]
        self._count = 0

    def add(
        self,
        call: Ints,
        named: tuple[Any, Any, Any, Any],
        sends: bool,
        *,
        status: Any = -1,
        request: Ints | None = None,
        part: Part = Part.BEGIN,
    ) -> None:
        """Note calls that name a partner.

        `named` are partner, tag, communicator and bytes, (calls,) each. `status` is where the
        status of a call that blocks stands, or -1. `request` is the number or address of what
        `part` is done with; calls that block have none.
        """
        columns = (sends, *named, request is None, status)
        wide = (np.broadcast_to(np.asarray(each, np.int64), len(call)) for each in columns)
        self._rows.append((call, *wide))
        if request is not None:
            self.note(call, request, part, self._count + np.arange(len(call)))
        self._count += len(call)

    def note(self, call: Ints, key: Ints, part: Any, row: Any = -1, status: Any = -1) -> None:
        """Note what calls do with requests; see `Entries`. Numbers stand for all calls."""
        columns = (np.asarray(each, np.int64) for each in (part, row, status))
        wide = (np.broadcast_to(each, len(call)) for each in columns)
        self._requests.append(Entries(call, key, *wide))

    def messages(self) -> tuple[Messages, Ints]:
        """List messages in the order in which they were begun, with partners as they are named.

        The second column is where the status of the call that completes each stands, or -1.
        """
        call, sends, peer, tag, comm, size, blocks, status_place = (
            np.concatenate(column) for column in zip(*self._rows, strict=True)
        )
        kept = np.flatnonzero(blocks)
        whole = Entries(*map(np.concatenate, zip(*self._requests, strict=True)))
        order = np.argsort(whole.call, kind="stable")
        whole = Entries(*(column[order] for column in whole))
        made, ended = completions(whole.key, whole.part)
        starts = (whole.part == Part.START) & (made >= 0)
        begins = np.flatnonzero((whole.part == Part.BEGIN) | starts)
        by = ended[begins]
        row = np.concatenate((kept, whole.row[made[begins]]))
        begun = np.concatenate((call[kept], whole.call[begins]))
        done = np.concatenate((call[kept], np.where(by >= 0, whole.call[by], -1)))
        status = np.concatenate((status_place[kept], np.where(by >= 0, whole.status[by], -1)))
        order = np.argsort(begun, kind="stable")
        row = row[order]
        named = (column[row] for column in (peer, tag, comm, size))
        return Messages(begun[order], done[order], sends[row] > 0, *named), status[order]


def completions(key: Ints, part: Ints) -> tuple[Ints, Ints]:
    """Pair what begins a request with what ends it, of entries in the order a rank made them.

    Returned are two columns (entries,). Of a BEGIN, `made` is itself; of a START, the INIT; -1 of
    others, and of a START without one. `ended` is the entry that ends a BEGIN or START, or -1; of
    what ends one, which.
    """
    count = len(key)
    made, ended = np.full(count, -1, dtype=np.int64), np.full(count, -1, dtype=np.int64)
    order = np.argsort(key, kind="stable")
    part, places = part[order], np.arange(count)
    fresh = np.ones(count, dtype=np.bool_)
    fresh[1:] = key[order][1:] != key[order][:-1]
    first = np.maximum.accumulate(np.where(fresh, places, 0))

    def latest(which: Bools) -> Ints:
        found = np.maximum.accumulate(np.where(which, places, -1))
        return np.where(found >= first, found, -1)

    starts = part == Part.START
    begins = starts | (part == Part.BEGIN)
    init = latest(part == Part.INIT)
    made[order[begins]] = order[begins]
    made[order[starts]] = np.where(init[starts] >= 0, order[init[starts]], -1)
    begun = latest(begins)
    asks = np.flatnonzero((part == Part.ASK) & (begun >= 0))
    ends = np.flatnonzero((part == Part.END) & (begun >= 0))[::-1]
    by = np.full(count, -1, dtype=np.int64)
    by[begun[asks]] = asks  # the last one stays
    by[begun[ends]] = ends  # the first one stays, and is sure
    done = np.flatnonzero(by >= 0)
    ended[order[done]] = order[by[done]]
    ended[order[by[done]]] = order[done]
    return made, ended


def settle(
    tables: Sequence[Messages], calls: Calls, when: Floats
) -> tuple[tuple[Acts, Acts], dict[str, int]]:
    """Put the messages of all ranks together, and find what their receives took.

    `tables` are by rank, and count calls from the rank's first. By `when` (calls,), in seconds,
    sends are offered to receives that leave something open; how many of these there are is returned
    as in `Trace.ignored`, behind what `acts_of` returns.
    """
    rows = [
        table._replace(
            call=table.call + first, done=np.where(table.done >= 0, table.done + first, -1)
        )
        for table, first in zip(tables, calls.offsets.tolist(), strict=False)
    ]
    messages = Messages(*map(np.concatenate, zip(*rows, strict=True)))
    messages, guessed, untold = pair_up(messages, calls.ranks()[messages.call], when[messages.call])
    return acts_of(messages), {
        "MPI_ANY_SOURCE or MPI_ANY_TAG (matched with senders in order of time), in": guessed,
        "receives that no message fits, left out, in": untold,
    }

"""Sends and receives of a rank; statuses say what a receive that left something open took."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopmap.traces.foreign.requests import Entries, Part, begun_and_done, entries
from hopmap.traces.matching import ANY, Messages

from .handles import numbers_of, world_of
from .rank import Rank
from .requests import requests_of

Ints = NDArray[np.int64]

_PLAIN = (0, 1, 2, 3, 4)  # places of count, type, partner, tag and communicator


def messages_of(
    rank: Rank, own: int, number: dict[int, int], members: list[Ints], first: int
) -> tuple[Messages, int]:
    """List sends and receives of one rank, with world ranks of their partners; count cancelled."""
    rows, parts = _named(rank)
    columns: Any = (np.concatenate(column) for column in zip(*rows, strict=True))
    call, sends, peer, tag, comm, size, blocking, status = columns
    row, call, done, status = begun_and_done(call, blocking, status, [*parts, *requests_of(rank)])
    sends, peer, tag, comm, size = (column[row] for column in (sends, peer, tag, comm, size))
    told = ~sends & (status >= 0) & (peer >= ANY)
    place = np.where(told, status, 0)
    cancelled = np.zeros(len(call), dtype=np.bool_)
    if told.any():
        source, label = rank.values[place + 1], rank.values[place + 3]
        cancelled = told & (rank.values[place + 2] != 0)
        told &= source >= 0
        peer = np.where(told & (peer == ANY), source, peer)
        tag = np.where(told & (tag == ANY), label, tag)
    real = ((peer >= 0) | (~sends & (peer == ANY))) & ~cancelled
    table = Messages(
        call + first, np.where(done >= 0, done + first, -1), sends, peer, tag, comm, size
    )
    table = Messages(*(column[real] for column in table))
    world = numbers_of(rank, table.comm, number)
    peer = world_of(rank, table.peer, world, members, own)
    return table._replace(peer=peer, comm=world), int(cancelled.sum())


def _named(rank: Rank) -> tuple[list[tuple[Any, ...]], list[Entries]]:
    """List the calls that name a partner, and the requests that they make."""
    rows: list[tuple[Any, ...]] = []  # call, sends, peer, tag, comm, size, blocking, status
    parts: list[Entries] = []
    made = 0

    def add(
        which: Ints,
        at: tuple[int, int, int, int, int],
        sends: bool,
        blocking: bool,
        status: Ints | int = -1,
    ) -> Ints:
        nonlocal made
        peer, tag, comm = (rank.get(which, k) for k in at[2:])
        size = rank.bytes(which, at[0], at[1])
        places = np.broadcast_to(np.asarray(status, np.int64), len(which))
        flags = np.full(len(which), sends), np.full(len(which), blocking)
        rows.append((which, flags[0], peer, tag, comm, size, flags[1], places))
        made += len(which)
        return np.arange(made - len(which), made)

    def request(name: str, sends: bool, part: Part) -> None:
        which = rank.of(name)
        row = add(which, _PLAIN, sends, False)
        parts.append(entries(which, rank.get(which, 5), part, row))

    for prefix in ("", "b", "s", "r"):
        add(rank.of(f"{prefix}send".capitalize()), _PLAIN, True, True)
        request(f"I{prefix}send", True, Part.BEGIN)
        request(f"{prefix}send_init".capitalize(), True, Part.INIT)
    which = rank.of("Recv")
    add(which, _PLAIN, False, True, rank.status_at(which, 5))
    request("Irecv", False, Part.BEGIN)
    request("Recv_init", False, Part.INIT)
    which = rank.of("Sendrecv")
    add(which, (0, 1, 2, 3, 8), True, True)
    add(which, (4, 5, 6, 7, 8), False, True, rank.status_at(which, 9))
    which = rank.of("Sendrecv_replace")
    add(which, (0, 1, 2, 3, 6), True, True)
    add(which, (0, 1, 4, 5, 6), False, True, rank.status_at(which, 7))
    return rows, parts

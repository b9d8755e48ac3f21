"""Sends and receives of one rank, and the requests that waits and tests name by address."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopmap.traces.foreign.requests import Entries, Part, begun_and_done, entries
from hopmap.traces.matching import ANY, Messages

from .handles import numbers_of
from .lines import Lines, Rank
from .members import Key
from .signatures import SIGNATURES

Ints = NDArray[np.int64]

_SENDS = ("Send", "Bsend", "Ssend", "Rsend", "Isend", "Ibsend", "Issend", "Irsend")
_PART = {
    **dict.fromkeys(("MPI_Start", "MPI_Startall"), Part.START),
    **dict.fromkeys(("MPI_Wait", "MPI_Waitall"), Part.END),
    **{f"MPI_{a}{b}": Part.ASK for a in ("Wait", "Test") for b in ("any", "some")},
    **dict.fromkeys(("MPI_Test", "MPI_Testall"), Part.ASK),
    **dict.fromkeys(("MPI_Request_free", "MPI_Cancel"), Part.FORGET),
}


def messages_of(rank: Rank, numbers: dict[Key, int], first: int, anyone: int) -> Messages:
    """List sends and receives of one rank, partners as ranks in communicators."""
    rows: list[tuple[Any, ...]] = []  # call, sends, peer, tag, comm, size, blocking
    parts: list[Entries] = []
    begun = 0

    def add(lines: Lines, sends: bool, peer: str, tag: str, size: Ints, blocking: bool) -> Ints:
        nonlocal begun
        comm, to = numbers_of(lines, numbers), lines.get(peer)
        count = len(lines.calls)
        rows.append(
            (
                lines.calls,
                np.full(count, sends),
                to,
                lines.get(tag),
                comm,
                size,
                np.full(count, blocking),
            )
        )
        begun += count
        return np.arange(begun - count, begun)

    for function in rank.names:
        short = function.removeprefix("MPI_")
        persistent = short.endswith("_init") and function in SIGNATURES
        if function in _PART or function not in SIGNATURES:
            continue
        lines = Lines(rank, function)
        if short in ("Sendrecv", "Sendrecv_replace"):
            size = lines.sizes("count", "type")
            add(lines, True, "peer", "tag", size, True)
            if short == "Sendrecv":
                size = lines.sizes("rcount", "rtype")
            add(lines, False, "source", "rtag", size, True)
        elif short.removesuffix("_init").capitalize() in (*_SENDS, "Recv", "Irecv"):
            out = "send" in short.lower()
            at_once = not persistent and not short.startswith("I")
            at = add(lines, out, "peer", "tag", lines.sizes("count", "type"), at_once)
            if not at_once:
                how = Part.INIT if persistent else Part.BEGIN
                parts.append(entries(lines.calls, lines.get("request"), how, at))
    if not rows:
        none = np.zeros(0, dtype=np.int64)
        return Messages(none, none, none > 0, none, none, none, none)
    call, sends, peer, tag, comm, size, blocking = (
        np.concatenate(column) for column in zip(*rows, strict=True)
    )
    none = np.full(len(call), -1)
    row, call, done, _ = begun_and_done(call, blocking, none, [*parts, _asked(rank, parts)])
    sends, peer, tag, comm, size = (column[row] for column in (sends, peer, tag, comm, size))
    open_ = ~sends & (peer == anyone)
    real = (peer >= 0) | open_  # others are MPI_PROC_NULL
    peer = np.where(open_, ANY, peer)
    table = (call + first, np.where(done >= 0, done + first, -1), sends, peer, tag, comm, size)
    return Messages(*(column[real] for column in table))


def _asked(rank: Rank, begun: list[Entries]) -> Entries:
    """List what waits, tests, starts and frees name: one entry a request."""
    keys = np.concatenate([np.zeros(0, dtype=np.int64), *(each.key for each in begun)])
    lists = []
    for function, how in _PART.items():
        lines = Lines(rank, function)
        many = any(name == "number" for name, _ in SIGNATURES[function])
        count = lines.get("number") if many else np.ones(len(lines.calls), dtype=np.int64)
        bad = np.flatnonzero((count < 0) | (count > max(len(rank.rows), 1 << 16)))
        if bad.size:
            raise lines.wrong(int(bad[0]))
        call, base = np.repeat(lines.calls, count), np.repeat(lines.get("request"), count)
        turn = np.arange(len(call)) - np.repeat(np.cumsum(count) - count, count)
        lists.append((call, base, turn, np.full(len(call), how)))
    # A request takes 8 bytes in Open MPI's C, 4 in Fortran: what meets more of them is right.
    call, base, turn, part = (np.concatenate(column) for column in zip(*lists, strict=True))
    hits = {step: int(np.isin(base + step * turn, keys).sum()) for step in (8, 4)}
    step = max(hits, key=hits.__getitem__)
    none = np.full(len(call), -1)
    return Entries(call, base + step * turn, part, none, none)

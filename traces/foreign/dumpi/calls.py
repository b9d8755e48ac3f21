"""Messages and collectives of a rank, and the bytes of each.

Statuses say what a receive that left something open took; waits, tests, starts and frees, what each
of them found complete.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopmap.traces.foreign.requests import Entries, Part, begun_and_done, entries
from hopmap.traces.foreign.trace_builder import Acts, acts, collective_bytes
from hopmap.traces.matching import ANY, Messages
from hopmap.traces.trace import Collective, Kind, TraceError

from .communicators import numbers_of, world_of
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


# What a collective's own bytes are, where its root and communicator stand, and its sort.
_SIMPLE: dict[str, tuple[int, int, int, Collective]] = {
    "Bcast": (0, 2, 3, Collective.BCAST),
    "Reduce": (0, 3, 4, Collective.REDUCE),
    "Allreduce": (0, -1, 3, Collective.ALLREDUCE),
    "Scan": (0, -1, 3, Collective.SCAN),
    "Exscan": (0, -1, 3, Collective.EXSCAN),
    "Gather": (1, 3, 4, Collective.GATHER),
    "Scatter": (1, 3, 4, Collective.SCATTER),
    "Allgather": (0, -1, 4, Collective.ALLGATHER),
    "Alltoall": (0, -1, 4, Collective.ALLTOALL),
    "Barrier": (-1, -1, 0, Collective.BARRIER),
    "Comm_dup": (-1, -1, 0, Collective.CREATE_HANDLE),
    "Comm_create": (-1, -1, 0, Collective.CREATE_HANDLE),
    "Comm_split": (-1, -1, 0, Collective.CREATE_HANDLE),
    "Cart_create": (-1, -1, 0, Collective.CREATE_HANDLE),
    "Cart_sub": (-1, -1, 1, Collective.CREATE_HANDLE),
    "Graph_create": (-1, -1, 1, Collective.CREATE_HANDLE),
}


def collectives_of(
    rank: Rank, own: int, number: dict[int, int], members: list[Ints], first: int
) -> Acts:
    """List collectives of one rank."""
    parts = []
    size_of = np.array([len(each) or 1 for each in members])
    place_of = np.array([int((each == own).argmax()) if len(each) else 0 for each in members])

    def add(
        which: Ints,
        comm: Ints | int,
        root: Ints | None,
        operation: Collective,
        part: Ints,
        total: Ints,
    ) -> None:
        if not len(which):
            return
        handle = (
            np.full(len(which), 2) if isinstance(comm, int) and comm < 0 else rank.get(which, comm)
        )
        numbers = numbers_of(rank, handle, number)
        size, place = size_of[numbers], place_of[numbers]
        roots = np.full(len(which), -1) if root is None else root
        if root is not None and ((root < 0) | (root >= size)).any():
            odd = root[(root < 0) | (root >= size)][0]
            what = operation.name.lower()
            raise TraceError(f"{rank.file}: {what} with root {odd}: expected a member")
        sent, received = collective_bytes(
            *(rank.file, np.full(len(which), int(operation)), size, place, roots == place),
            *(part, total),
        )
        peer = world_of(rank, roots, numbers, members, own)
        about = {"comm": numbers, "operation": int(operation), "size": sent, "received": received}
        parts.append(acts(which + first, Kind.COLLECTIVE_END, peer=peer, **about))

    for name, (count, root, comm, operation) in _SIMPLE.items():
        which = rank.of(name)
        part = (
            rank.bytes(which, count, count + 1)
            if count >= 0
            else np.zeros(len(which), dtype=np.int64)
        )
        add(which, comm, rank.get(which, root) if root >= 0 else None, operation, part, part)
    which = rank.of("Gatherv")
    there = rank.get(which, 0) == rank.get(which, 4)
    total = np.zeros(len(which), dtype=np.int64)
    if there.any():
        sums, length = rank.sums(which[there], 6)
        total[there] = rank.blocks(which[there], sums, 8 + 2 * length)
    add(which, 5, rank.get(which, 4), Collective.GATHERV, rank.bytes(which, 2, 3), total)
    which = rank.of("Scatterv")
    there = rank.get(which, 0) == rank.get(which, 5)
    total = np.zeros(len(which), dtype=np.int64)
    if there.any():
        total[there] = rank.blocks(which[there], rank.sums(which[there], 7)[0], 2)
    add(which, 6, rank.get(which, 5), Collective.SCATTERV, rank.bytes(which, 3, 4), total)
    which = rank.of("Allgatherv")
    sums, length = rank.sums(which, 3)
    total = rank.blocks(which, sums, 5 + 2 * length)
    add(which, 6 + 2 * length, None, Collective.ALLGATHERV, rank.bytes(which, 1, 2), total)
    which = rank.of("Alltoallv")
    sums, length = rank.sums(which, 1)
    behind = 1 + 2 * (length + 1)
    gets = rank.blocks(which, rank.sums(which, behind + 1)[0], behind + 3 + 2 * length)
    add(
        which,
        behind + 4 + 2 * length,
        None,
        Collective.ALLTOALLV,
        rank.blocks(which, sums, behind),
        gets,
    )
    which = rank.of("Alltoallw")
    sums, length = rank.sums(which, 1)
    gets = rank.sums(which, 1 + 3 * (length + 1))[0]
    add(which, 1 + 6 * (length + 1), None, Collective.ALLTOALLW, sums, gets)
    which = rank.of("Reduce_scatter")
    sums, length = rank.sums(which, 1)
    place = place_of[numbers_of(rank, rank.get(which, length + 4), number)]
    add(
        which,
        length + 4,
        None,
        Collective.REDUCE_SCATTER,
        rank.bytes(which, 2 + np.minimum(place, np.maximum(length - 1, 0)), length + 2),
        rank.blocks(which, sums, length + 2),
    )
    for name, operation in (
        ("Init", Collective.CREATE_HANDLE),
        ("Init_thread", Collective.CREATE_HANDLE),
        ("Finalize", Collective.DESTROY_HANDLE),
    ):
        which = rank.of(name)
        none = np.zeros(len(which), dtype=np.int64)
        add(which, -1, None, operation, none, none)
    empty = acts(np.zeros(0, dtype=np.int64), 0)
    return Acts(*map(np.concatenate, zip(empty, *parts, strict=True)))

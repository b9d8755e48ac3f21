"""Collectives of a rank, and the bytes of each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hopmap.traces.foreign.collective_bytes import account
from hopmap.traces.foreign.trace_builder import Acts, acts
from hopmap.traces.trace import Collective, Kind, TraceError

from .handles import numbers_of, world_of
from .rank import Rank

Ints = NDArray[np.int64]

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
        sent, received = account(
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

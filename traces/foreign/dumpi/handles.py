"""Communicators by the handles that a rank's calls name."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hopmap.traces.trace import TraceError

from .communicators import FUNCTIONS, Made
from .rank import Rank

Ints = NDArray[np.int64]


def made_by(rank: Rank) -> list[Made]:
    """List calls that make communicators and groups, in order."""
    made = []
    edges = np.append(np.sort(rank.calls[:, 3]), len(rank.values))
    for name in FUNCTIONS:
        for call in rank.of(name).tolist():
            first = int(rank.calls[call, 3])
            behind = int(edges[np.searchsorted(edges, first, side="right")])
            made.append((call, Made(name, rank.values[first:behind].tolist())))
    return [each for _, each in sorted(made, key=lambda pair: pair[0])]


def numbers_of(rank: Rank, comm: Ints, number: dict[int, int]) -> Ints:
    """Communicators by their numbers in the trace."""
    handles, inverse = np.unique(comm, return_inverse=True)
    for handle in handles.tolist():
        if handle not in number:
            raise TraceError(
                f"{rank.file}: communicator {handle}: its members cannot be told: expected one "
                "made by MPI_Comm_dup, _split, _create, MPI_Cart_create, _sub or MPI_Graph_create"
            )
    known = np.array([number[handle] for handle in handles.tolist()], dtype=np.int64)
    return known[inverse.reshape(-1)] if len(known) else comm


def world_of(rank: Rank, peer: Ints, comm: Ints, members: list[Ints], own: int) -> Ints:
    """World ranks of partners; below 0 they stay."""
    world = peer.copy()
    for number in np.unique(comm).tolist():
        mine = np.flatnonzero((comm == number) & (peer >= 0))
        inside = members[number] if number != 1 else np.array([own])
        if len(mine) and peer[mine].max() >= len(inside):
            raise TraceError(
                f"{rank.file}: partner {peer[mine].max()}: expected one below {len(inside)}"
            )
        world[mine] = inside[peer[mine]]
    return world

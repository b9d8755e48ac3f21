"""Tables of calls that several NAS programs are made of: messages, collectives, the beginning."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hopmap.traces.calls import Call, calls

Row = tuple[Call, int, int, int]


def listed(rows: list[Row]) -> NDArray[np.void]:
    """Make a table of calls given as (call, peer, tag, size); the oldest request is waited for."""
    columns = np.array(rows, dtype=np.int64).reshape(-1, 4)
    call, peer, tag, size = columns.T
    waits = call == Call.WAIT
    request = np.where(waits, np.cumsum(waits) - 1 - np.cumsum(call == Call.IRECV), -1)
    return calls(
        call.astype(np.uint8), len(columns), peer=peer, tag=tag, size=size, request=request
    )


def everyone(call: Call, ranks: int, size: int = 0, comm: int = 0) -> NDArray[np.void]:
    """One collective in which each rank sends `size` bytes to each, or reduces them for all."""
    return calls(call, size=size * ranks, received=size * ranks, comm=comm)


def bcast(rank: int, ranks: int, size: int, comm: int = 0) -> NDArray[np.void]:
    """One broadcast from rank 0."""
    sent = size * ranks if rank == 0 else 0
    return calls(Call.BCAST, peer=0, size=sent, received=size, comm=comm)


def reduce(rank: int, ranks: int, size: int, comm: int = 0) -> NDArray[np.void]:
    """One reduction to rank 0."""
    received = size * ranks if rank == 0 else 0
    return calls(Call.REDUCE, peer=0, size=size, received=received, comm=comm)


def begin(
    rank: int, ranks: int, bcasts: Sequence[int], *before_them: NDArray[np.void]
) -> list[NDArray[np.void]]:
    """How most programs begin: MPI_Init, rank and size, and their input by broadcasts."""
    return [
        everyone(Call.INIT, ranks),
        calls(Call.COMM_RANK),
        calls(Call.COMM_SIZE),
        *before_them,
        *[bcast(rank, ranks, size) for size in bcasts],
    ]


def after(seconds: float, table: NDArray[np.void]) -> NDArray[np.void]:
    """Put computation before the first call."""
    table = table.copy()
    table["before"][:1] += seconds
    return table

"""The program of one collective call: an operation, an algorithm, the bytes of a buffer."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopmap.simulator.collectives.algorithms import ALGORITHMS
from hopmap.simulator.collectives.naming import named
from hopmap.simulator.collectives.schedules import cut
from hopmap.simulator.collectives.selection import enough, suited
from hopmap.simulator.programs.assembly import local_work
from hopmap.simulator.programs.from_collectives import template_of
from hopmap.simulator.programs.program import Op, Program
from hopmap.simulator.programs.send_modes import SendMode
from hopmap.traces import Collective

ELEMENT = 4  # bytes of an element in the measured calls, an int
WHOLE = ("bcast", "reduce", "allreduce")


def moved(operation: str, size: int, members: int) -> NDArray[np.int64]:
    """Return what a call moves, as algorithms take it, of a buffer of so many bytes in all.

    It is what broadcasts and reductions to all or one carry; what gathers collect from all; what
    scatters, exchanges and scattered reductions share out. Exchanges send equal blocks of
    ``size // members`` bytes.

    Returns
    -------
    ndarray(int64)
        Bytes: of the buffer, shape (1,), for `WHOLE`; of each pair, shape (members, members), for
        alltoall; of each member's block, shape (members,), for all others.
    """
    if operation in WHOLE:
        return np.array([size], dtype=np.int64)
    if operation == "alltoall":
        return np.full((members, members), size // members, dtype=np.int64)
    return cut(size, members)


def call_program(
    operation: str, algorithm: str, members: int, size: int, *, puts: bool = False
) -> Program:
    """Lower one call on all ranks, rank 0 the root.

    Parameters
    ----------
    operation : str
        A key of `ALGORITHMS`.
    algorithm : str
        With its options, as `named` reads them.
    size : int
        Bytes of the whole buffer, see `moved`.
    puts : bool
        Whether messages go into memory that is there, and wait for no receive, even if the
        algorithm does not say so itself.

    Raises
    ------
    AlgorithmError
        An unknown algorithm or option, or one that is not for so many members.
    """
    volume = moved(operation, size, members)
    name, schedule_of = named(algorithm, ALGORITHMS[operation])
    instead = suited(operation, enough(operation, name, members, size // ELEMENT), members)
    if instead != name and not name.startswith(("bine", "torus")):  # that is Open MPI's rule
        name, schedule_of = instead, ALGORITHMS[operation][instead]
    template = template_of(schedule_of(members, 0, volume))
    ready = puts or template.puts
    rows = np.arange(len(template.member)) + template.member  # a FINISH behind every rank's
    count = len(rows) + members

    def column(values: NDArray[np.int64] | int, otherwise: int, kind: type) -> NDArray[Any]:
        filled: NDArray[Any] = np.full(count, otherwise, dtype=kind)
        filled[rows] = values
        return filled

    target = np.where(template.target < 0, -1, rows[template.target])
    ends = np.cumsum(np.bincount(template.member, minlength=members) + 1)
    return Program(
        name=f"{operation} by {algorithm}",
        offsets=np.concatenate(([0], ends)).astype(np.int64),
        rank_of=np.arange(members, dtype=np.int32),
        kind=column(template.kind, Op.FINISH, np.uint8),
        compute=np.zeros(count),
        peer=column(template.peer, -1, np.int32),
        tag=column(template.message, -1, np.int32),
        context=column(1, -1, np.int32),
        size=column(template.size, 0, np.int64),
        target=column(target, -1, np.int64),
        mode=np.full(count, SendMode.READY if ready else SendMode.STANDARD, dtype=np.uint8),
        work=local_work(template.worked, rows),
        collectives={1: np.full(len(rows), Collective[operation.upper()], dtype=np.uint8)},
        algorithms={operation: algorithm},
        chosen={operation: {name: 1}},
    )

"""Actions of SimGrid's time-independent traces, and the numbers that stand in them.

Source: SimGrid, src/smpi/internals/smpi_replay.cpp and smpi_datatype.cpp.
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from hopmap.traces.foreign.text import Fields

Ints = NDArray[np.int64]

# Bytes of types by number; what is not listed has none that are known.
TYPES = (
    *(8, 4, 1, 2, 8, 4, 1, 8, 1, 1, 2, 4, 8, 8, 16, 4, 1, 1, 2, 4, 8, 1, 2, 4, 8, 8, 16, 32),
    *(8, 8, 8, 16, 16, 8, 8, 8, 16, 16, 4, 4, 8, 16, 8, 16),
)
# Regions, and the action that each stands for.
REGIONS = {
    "init": "MPI_Init",
    "finalize": "MPI_Finalize",
    "send": "MPI_Send",
    "isend": "MPI_Isend",
    "recv": "MPI_Recv",
    "irecv": "MPI_Irecv",
    "wait": "MPI_Wait",
    "waitall": "MPI_Waitall",
    "test": "MPI_Test",
    "sendrecv": "MPI_Sendrecv",
    "barrier": "MPI_Barrier",
    "bcast": "MPI_Bcast",
    "reduce": "MPI_Reduce",
    "allreduce": "MPI_Allreduce",
    "alltoall": "MPI_Alltoall",
    "alltoallv": "MPI_Alltoallv",
    "gather": "MPI_Gather",
    "gatherv": "MPI_Gatherv",
    "scatter": "MPI_Scatter",
    "scatterv": "MPI_Scatterv",
    "allgather": "MPI_Allgather",
    "allgatherv": "MPI_Allgatherv",
    "reducescatter": "MPI_Reduce_scatter",
    "scan": "MPI_Scan",
    "exscan": "MPI_Exscan",
}
SILENT = ("compute", "sleep", "location", "comm_size", "comm_split", "comm_dup")
_WORDS = "|".join((*REGIONS, *SILENT))
LINE = re.compile(rf"\s*\d+\s+({_WORDS})(\s|$)".encode(), re.IGNORECASE)


def reals(fields: Fields, lines: Ints, at: int, word: str) -> NDArray[np.float64]:
    """Numbers with points and exponents."""
    if (fields.counts[lines] <= at).any():
        raise fields.wrong(int(lines[np.argmin(fields.counts[lines])]), f"a number behind {word}")
    values = fields.reals(lines, at)
    bad = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if bad.size:
        raise fields.wrong(int(lines[bad[0]]), f"a number >= 0 behind {word}")
    return values


def whole_at(fields: Fields, lines: Ints, at: int, what: str) -> Ints:
    """Whole numbers, each line's argument at a place; reals without a fraction are some, too."""
    from hopmap.traces.foreign.text_kernels import INTEGER

    if (fields.counts[lines] <= at).any():
        raise fields.wrong(int(lines[np.argmin(fields.counts[lines])]), what)
    place = fields.lines[lines] + at
    values = fields.values[place]
    odd = np.flatnonzero(fields.kinds[place] != INTEGER)
    if odd.size:
        real = fields.reals(lines[odd], at)
        bad = np.flatnonzero(~((np.abs(real) <= 2**53) & (real == np.floor(real))))
        if bad.size:
            raise fields.wrong(int(lines[odd[bad[0]]]), what)
        values[odd] = real.astype(np.int64)
    return values


def widths_of(fields: Fields, lines: Ints, at: int, width: int) -> Ints:
    """Bytes of the types that stand at a place, where there is one."""
    widths = np.full(len(lines), width, dtype=np.int64)
    there = np.flatnonzero(fields.counts[lines] > at)
    if there.size:
        kind = whole_at(fields, lines[there], at, "the number of a type")
        bad = np.flatnonzero((kind < 0) | (kind >= len(TYPES)))
        if bad.size:
            raise fields.wrong(int(lines[there[bad[0]]]), f"a type below {len(TYPES)}")
        widths[there] = np.array(TYPES)[kind]
    return widths


def sizes_of(fields: Fields, lines: Ints, at: int, widths: Ints, what: str) -> Ints:
    """Bytes of buffers, from their numbers of a type."""
    number = whole_at(fields, lines, at, what)
    bad = np.flatnonzero((number < 0) | (number > 2**53 // np.maximum(widths, 1)))
    if bad.size:
        raise fields.wrong(int(lines[bad[0]]), f"{what} >= 0")
    return number * widths

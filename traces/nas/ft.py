"""NAS FT (NPB 3.3-MPI): its collectives, the full program; it has no point-to-point messages.

A spectral solver on an nx x ny x nz grid. Every 3-D FFT transposes the grid: on up to nz ranks, a
slab each, by one all-to-all exchange of all ranks; on more, p1 = nz times p2 ranks with a pencil
each, by one in the ranks' row (p2 in order) and one in their column (p1, every p2-th). There is
one FFT before the clock starts, the same again behind that, and one backwards in each time step.

Source: NPB 3.3-MPI, FT: ft.f (setup, fft, transpose2_global, transpose_x_z_global,
transpose_x_y_global, checksum, verify).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.traces.calls import Call, calls
from hopmap.traces.folded import Parts, Repeat
from hopmap.traces.trace import TraceError

from .skeleton import Benchmark, after, bcast, everyone, log2_of, parameters_of, reduce, steps_of

Table = NDArray[np.void]

# Class: nx, ny, nz and time steps (niter).
CLASSES = {
    "S": (64, 64, 64, 6),
    "W": (128, 128, 32, 6),
    "A": (256, 256, 128, 6),
    "B": (512, 256, 256, 20),
    "C": (512, 512, 512, 20),
    "D": (2048, 1024, 1024, 25),
    "E": (4096, 2048, 2048, 25),
}

# NPB's own count of floating-point operations per grid point (ft.f, "mflops"): constant, and per
# natural logarithm of the number of points; once for the set-up with its FFT, and a time step.
SETUP, FIRST_FFT = 14.8157, 7.19641
STEP, FFT = 5.23518, 7.21113

INPUT_BCASTS = (4, 4, 4, 4, 4)  # setup, in bytes


class FtProblem(NamedTuple):
    """A class on a number of ranks; p1 ranks in a column, p2 in a row, p1 * p2 in all."""

    nx: int
    ny: int
    nz: int
    steps: int
    p1: int
    p2: int


def ft_problem(
    nas_class: str,
    ranks: int,
    steps: int | None = None,
    layout: tuple[int, int] | None = None,
) -> FtProblem:
    """Lay a class out on a power of two of ranks, at most one for each line of the grid.

    Parameters
    ----------
    layout : (int, int), optional
        p1 and p2, as the file inputft.data may say, instead of 1 x ranks or nz x (ranks / nz).
    """
    nx, ny, nz, niter = parameters_of("FT", CLASSES, nas_class)
    log2_of("FT", ranks)
    p1, p2 = layout or ((1, ranks) if ranks <= nz else (nz, ranks // nz))
    if p1 * p2 != ranks:
        raise TraceError(f"FT on {ranks} ranks: layout {p1} x {p2}: expected {ranks} ranks in it")
    if p1 > min(nx, ny) or p2 > min(ny, nz):
        raise TraceError(
            f"FT class {nas_class} on {ranks} ranks: a {p1} x {p2} layout of {nx} x {ny} x {nz} "
            f"points: expected at most {min(nx, ny)} x {min(ny, nz)}"
        )
    return FtProblem(nx, ny, nz, steps_of("FT", steps, niter), p1, p2)


def _communicators(p: FtProblem, ranks: int) -> list[NDArray[np.int32]]:
    """Rows, then columns; those of one rank move nothing and are left out."""
    grid = np.arange(ranks, dtype=np.int32).reshape(p.p1, p.p2)
    return [*(grid if p.p2 > 1 else ()), *(grid.T if p.p1 > 1 else ())]


def _programs(p: FtProblem, ranks: int, seconds: float) -> Iterator[Parts]:
    for rank in range(ranks):
        yield _rank_program(p, rank, ranks, seconds)


def _rank_program(p: FtProblem, rank: int, ranks: int, seconds: float) -> Parts:
    """All calls of one rank, in order."""
    column, row = divmod(rank, p.p2)
    points = p.nx * p.ny * p.nz // ranks
    seconds *= points  # of an operation on each point

    def transposition(comm: int, members: int) -> Table:
        size = 16 * points
        return calls(Call.ALLTOALL, int(members > 1), comm=comm, size=size, received=size)

    in_row = transposition(1 + column, p.p2)
    in_column = transposition(1 + (p.p1 if p.p2 > 1 else 0) + row, p.p1)

    def fft(unit: float, before: float, forwards: bool) -> tuple[list[Table], float]:
        """Transform along x, y and z or back; what is left to compute behind the last call."""
        x, y, z = (unit * log(n) * seconds for n in (p.nx, p.ny, p.nz))
        stages = [(x, in_column), (y, in_row), (z, None)]
        if not forwards:
            stages = [(z, in_row), (y, in_column), (x, None)]
        tables = []
        for work, exchange in stages:
            before += work
            if exchange is not None and len(exchange):
                tables.append(after(before, exchange))
                before = 0.0
        return tables, before

    def time_step(before: float) -> list[Table]:
        """Evolve, transform back, add up the checksum."""
        exchanges, rest = fft(FFT, before + STEP * seconds, forwards=False)
        return [*exchanges, after(rest, reduce(rank, ranks, 16))]

    warm_up, rest = fft(FIRST_FFT, SETUP * seconds, forwards=True)
    # The same once more, with the clock running.
    first, behind_first = fft(FIRST_FFT, SETUP * seconds, forwards=True)
    others: Parts = [Repeat(p.steps - 1, [*time_step(0.0)])] if p.steps > 1 else []
    split = everyone(Call.COMM_SPLIT, ranks)
    return [
        everyone(Call.INIT, ranks),
        calls(Call.COMM_SIZE),
        calls(Call.COMM_RANK),
        *[bcast(rank, ranks, size) for size in INPUT_BCASTS],
        split,
        split,
        *warm_up,
        after(rest, everyone(Call.BARRIER, ranks)),
        *first,
        *time_step(behind_first),
        *others,
        calls(Call.COMM_SIZE, int(rank == 0)),  # verify
        everyone(Call.FINALIZE, ranks),
    ]


def benchmark_of(layout: tuple[int, int] | None) -> Benchmark[FtProblem]:
    """FT in a layout of one's own, see `ft_problem`."""
    problem = partial(ft_problem, layout=layout)
    return Benchmark("ft", __doc__, problem, _programs, communicators=_communicators)


BENCHMARK = benchmark_of(None)

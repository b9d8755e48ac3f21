"""NAS LU (NPB 3.3-MPI): who sends what to whom, in closed form and as the full program.

SSOR on an n^3 grid, split over X x Y ranks in x and y; rank = i + j * X. Every time step sends
planes from the low corner to the high one (lower sweep) and back (upper sweep), then exchanges
faces with all four neighbours. The formulas were checked message for message against recorded runs.

Source: NPB 3.3-MPI, LU: ssor.f, blts.f, buts.f, exchange_1.f to exchange_6.f, pintgr.f. Numbers of
ranks: NPB 3.3.1 and later, setparams.c and proc_grid.f; 3.4, get_active_nprocs of kind 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from math import isqrt
from typing import NamedTuple

import numpy as np

from hopmap.arrays import Ints, Table
from hopmap.traces.calls import Call, calls
from hopmap.traces.folded import Parts, Repeat
from hopmap.traces.trace import TraceError

from .benchmarks import Benchmark, begin, delay, everyone, parameters_of, steps_of

# Class: grid edge n and time steps (itmax).
CLASSES = {
    "S": (12, 50),
    "W": (33, 300),
    "A": (64, 250),
    "B": (102, 250),
    "C": (162, 250),
    "D": (408, 300),
    "E": (1020, 300),
}

# Operations of a time step, NPB's own count (lu.f, "mflops"): a polynomial in n, of n^3 first; and
# how the model shares them out: two triangular sweeps and the right-hand side.
FLOPS = (1984.77, -10923.3, 27770.9, -144010.0)
LOWER, UPPER, RHS = 0.4, 0.4, 0.2

# Tags say where a message comes from as its receiver sees it.
FROM_S, FROM_N, FROM_E, FROM_W = 1, 2, 3, 4

# The ten start-up broadcasts (read_input.f), in bytes.
INPUT_BCASTS = (4, 4, 4, 8, 8, 40, 4, 4, 4, 4)


class LuProblem(NamedTuple):
    """A class on a number of ranks."""

    # Grid edge, time steps
    n: int
    steps: int
    # Ranks in x and in y
    X: int
    Y: int
    # Grid points in x of rank column i, shape (X,), and in y of rank row j, shape (Y,)
    nx: Ints
    ny: Ints


def lu_problem(nas_class: str, ranks: int, steps: int | None = None) -> LuProblem:
    """Lay a class out on X x Y ranks, as square as they allow: X / 2 <= Y <= X.

    Every rank has at least three points in x and y.
    """
    n, itmax = parameters_of("LU", CLASSES, nas_class)
    if ranks < 1:
        raise TraceError(f"LU on {ranks} ranks: expected at least 1")
    X, Y = _layout(ranks)
    if 2 * Y < X:
        below, above = (_next_valid(ranks, step) for step in (-1, 1))
        raise TraceError(
            f"LU on {ranks} ranks: a {X} x {Y} layout: expected sides of at most 2 to 1, as on "
            f"{below} or {above} ranks"
        )
    if n // X < 3:
        raise TraceError(
            f"LU class {nas_class} on {ranks} ranks: a {X} x {Y} layout of {n} x {n} points leaves "
            f"{n // X} points a rank: expected at least 3"
        )
    split = [np.array([n // p + (k < n % p) for k in range(p)], dtype=np.int64) for p in (X, Y)]
    return LuProblem(n, steps_of("LU", steps, itmax), X, Y, split[0], split[1])


def _layout(ranks: int) -> tuple[int, int]:
    """Return X and Y; Y is the largest divisor of the ranks not above their root."""
    Y = next(d for d in range(isqrt(ranks), 0, -1) if ranks % d == 0)
    return ranks // Y, Y


def _next_valid(ranks: int, step: int) -> int:
    """Return the nearest number of ranks in one direction on which LU runs."""
    return next(n for n in count(ranks + step, step) if 2 * _layout(n)[1] >= _layout(n)[0])


def _pairs(p: LuProblem, ranks: int) -> list[Ints]:
    """Traffic of a whole run; time and memory linear in ranks."""
    i = np.arange(ranks) % p.X
    j = np.arange(ranks) // p.X
    nx, ny = p.nx[i], p.ny[j]
    wi, wj = _sweep_width(nx, i, p.X), _sweep_width(ny, j, p.Y)
    sweeps = (p.n - 2) * (p.steps + 1)
    faces = p.steps + 4
    rows: list[tuple[Ints, ...]] = []
    for partner, has, width, face, surface, border in (
        (1, i < p.X - 1, wj, ny, 16 * (ny + 2), _border(j, p.Y)),
        (p.X, j < p.Y - 1, wi, nx, 16 * nx, _border(i, p.X)),
    ):
        low = np.flatnonzero(has)
        high = low + partner
        upwards = sweeps * 40 * width[low] + faces * 80 * face[low] * p.n
        downwards = upwards + surface[low] + border[low] * 8 * p.n
        rows.append((low, high, np.full(len(low), sweeps + faces), upwards))
        rows.append((high, low, sweeps + faces + 1 + border[low], downwards))
    return [np.concatenate(column) for column in zip(*rows, strict=True)]


def _sweep_width(points: Ints, position: Ints, across: int) -> Ints:
    """Points that a sweep's message covers: the grid's outermost points stay at home."""
    return points - _border(position, across)


def _border(position: Ints, across: int) -> Ints:
    """Count the grid borders (0 to 2) that a row or column of ranks lies on."""
    on_border: Ints = np.add(position == 0, position == across - 1, dtype=np.int64)
    return on_border


def _programs(p: LuProblem, ranks: int, seconds: float) -> Iterator[Parts]:
    seconds = seconds * float(np.polyval(FLOPS, p.n)) / p.n**3  # of a point, in a time step
    for rank in range(ranks):
        yield _rank_program(p, rank, rank % p.X, rank // p.X, seconds)


def _rank_program(p: LuProblem, rank: int, i: int, j: int, seconds: float) -> Parts:
    """All calls of one rank, in order; a point takes so many seconds a time step."""
    ranks = p.X * p.Y
    nx, ny, nz = int(p.nx[i]), int(p.ny[j]), p.n
    north = rank - 1 if i > 0 else -1
    south = rank + 1 if i < p.X - 1 else -1
    west = rank - p.X if j > 0 else -1
    east = rank + p.X if j < p.Y - 1 else -1
    along_x = 40 * int(_sweep_width(p.ny, np.arange(p.Y), p.Y)[j])
    along_y = 40 * int(_sweep_width(p.nx, np.arange(p.X), p.X)[i])
    seconds *= nx * ny * nz

    def message(call: Call, peer: int, tag: int, size: int) -> list[Table]:
        return [calls(call, peer=peer, tag=tag, size=size)] if peer >= 0 else []

    def shift(to: int, from_: int, tag: int, size: int, *, chain: bool = False) -> list[Table]:
        """Irecv, send, wait (exchange_3); in a chain from the high end it sends last (4 to 6)."""
        receive = [calls(Call.IRECV)] if from_ >= 0 else []
        send, wait = message(Call.SEND, to, tag, size), message(Call.WAIT, from_, tag, size)
        return receive + (wait + send if chain else send + wait)

    def exchange_3() -> list[Table]:
        x, y = 80 * ny * nz, 80 * nx * nz
        rows = shift(south, north, FROM_N, x) + shift(north, south, FROM_S, x)
        rows += shift(east, west, FROM_W, y) + shift(west, east, FROM_E, y)
        rows[0]["before"] += RHS * seconds
        return rows

    def sweep(share: float, receives: list[Table], sends: list[Table]) -> Parts:
        """Receive two edges, compute a plane, send two edges; for every inner plane."""
        for first in (sends or receives)[:1]:
            first["before"] = share * seconds / max(nz - 2, 1)
        return [Repeat(nz - 2, [*receives, *sends])]

    lower = sweep(
        LOWER,
        message(Call.RECV, north, FROM_N, along_x) + message(Call.RECV, west, FROM_W, along_y),
        message(Call.SEND, south, FROM_N, along_x) + message(Call.SEND, east, FROM_W, along_y),
    )
    upper = sweep(
        UPPER,
        message(Call.RECV, south, FROM_S, along_x) + message(Call.RECV, east, FROM_E, along_y),
        message(Call.SEND, north, FROM_S, along_x) + message(Call.SEND, west, FROM_E, along_y),
    )
    step = lower + upper
    l2norm = [everyone(Call.ALLREDUCE, ranks, 40)]
    maximum = [everyone(Call.ALLREDUCE, ranks, 8)]
    barrier = everyone(Call.BARRIER, ranks)
    read_input = calls(Call.COMM_SIZE, int(rank == 0))
    head = begin(rank, ranks, INPUT_BCASTS, read_input)
    end = everyone(Call.FINALIZE, ranks)
    if ranks == 1:  # no messages to compute between
        rhs = delay(RHS * seconds, l2norm[0])
        untimed = [delay(2 * RHS * seconds, l2norm[0]), barrier, delay(seconds, maximum[0])]
        solved = [rhs, barrier, delay((p.steps - RHS) * seconds, l2norm[0]), rhs]
        return [*head, *untimed, *solved, *maximum, *l2norm, *maximum * 3, end]
    start = [*exchange_3(), *l2norm, barrier]
    surface = shift(west, east, FROM_E, 16 * nx, chain=True)
    surface += shift(north, south, FROM_S, 16 * (ny + 2), chain=True)
    x_edges = shift(north, south, FROM_S, 8 * nz, chain=True) * int(_border(np.array([j]), p.Y)[0])
    y_edges = shift(west, east, FROM_E, 8 * nz, chain=True) * int(_border(np.array([i]), p.X)[0])
    inner_steps: Parts = [Repeat(p.steps - 1, [*step, *exchange_3()])] if p.steps > 1 else []
    return [
        *head,
        *exchange_3(),  # erhs
        *start,  # untimed run of one step
        *step,
        *exchange_3(),
        *maximum,
        *start,  # the timed run
        *inner_steps,
        *step,
        *l2norm,
        *exchange_3(),
        *l2norm,
        *maximum,
        *l2norm,  # error
        *surface,  # pintgr
        *maximum,
        *x_edges,
        *maximum,
        *y_edges,
        *maximum,
        end,
    ]


LU = Benchmark(
    "lu",
    __doc__,
    lu_problem,
    _programs,
    _pairs,
    grid=lambda p: {"dims": [p.X, p.Y], "periodic": [False, False]},
)

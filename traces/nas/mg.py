"""NAS MG (NPB 3.3-MPI): who sends what to whom, in closed form and as the full program.

V-cycles of multigrid on a periodic n^3 grid, split over p1 x p2 x p3 ranks; rank = x + p1 * (y +
p2 * z). On every level a rank exchanges borders with its two neighbours along each axis. Where a
coarse level has fewer points than ranks, some ranks are idle, and the others' neighbours are as
far away as they have to be; on the way back ranks with points give them to those that get some.
With two ranks along an axis both neighbours are one; with one, it is the rank itself.

Source: NPB 3.3-MPI, MG: mg.f (setup, mg3P, comm3, comm3_ex, zran3).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from hopmap.arrays import Bools, Ints, Table
from hopmap.traces.calls import Call
from hopmap.traces.folded import Parts, Repeat
from hopmap.traces.trace import TraceError

from .benchmarks import (
    Benchmark,
    Row,
    begin,
    call_table,
    delay,
    everyone,
    log2_of,
    parameters_of,
    reduce,
    steps_of,
)

# Class: grid edge n and V-cycles (nit).
CLASSES = {
    "S": (32, 4),
    "W": (128, 4),
    "A": (256, 4),
    "B": (256, 20),
    "C": (512, 20),
    "D": (1024, 50),
    "E": (2048, 50),
}

MOST_RANKS = 131072  # globals.h, maxprocs

# Operations per grid point and V-cycle, NPB's own count (mg.f, "mflops"). It is shared out by what
# the comments there say of a result: smoothing, residual; per point of the coarser level,
# restriction, prolongation. Their sum over all levels is 57 per point.
FLOPS_PER_POINT = 58
PSINV, RESID, RPRJ3, INTERP = 16, 15, 24, 20

# The seven start-up broadcasts, in bytes.
INPUT_BCASTS = (4, 4, 4, 4, 4, 32, 4)

# Tags of what goes up and down each axis.
UP, DOWN = (1300, 2300, 3300), (1100, 2100, 3100)

# Twenty times, the best value and who has it, for where the right-hand side is not zero (zran3).
CHARGES = 20


class MgProblem(NamedTuple):
    """A class on a number of ranks; level k (from 0) has 2^(k+1) points per edge."""

    # Grid edge, V-cycles
    n: int
    steps: int
    p: tuple[int, int, int]  # ranks along each axis
    points: Ints  # (levels, 3, ranks): own points along each axis
    alive: Bools  # (levels, ranks): whether a rank has points
    # (levels, 3, ranks): neighbours along each axis
    up: Ints
    down: Ints
    # (levels, 3, ranks): whether a rank gives prolongated points to its neighbours along an axis,
    # or takes them
    gives: Bools
    takes: Bools


def mg_problem(nas_class: str, ranks: int, steps: int | None = None) -> MgProblem:
    """Lay a class out on a power of two of ranks, at most `MOST_RANKS`."""
    n, own = parameters_of("MG", CLASSES, nas_class)
    log_p = log2_of("MG", ranks)
    p1 = 1 << (log_p // 3)
    p2 = 1 << ((log_p - log_p // 3) // 2)
    p = (p1, p2, ranks // (p1 * p2))
    if ranks > MOST_RANKS:
        raise TraceError(f"MG on {ranks} ranks: expected at most {MOST_RANKS}")
    if n < p[2]:
        raise TraceError(
            f"MG class {nas_class} on {ranks} ranks: a {p1} x {p2} x {p[2]} layout of {n}^3 "
            f"points: expected at least one point a rank"
        )
    me = np.arange(ranks)
    at = np.array([me % p1, me // p1 % p2, me // (p1 * p2)])
    across = np.array(p)[:, None]
    stride = np.array([1, p1, p1 * p2])[:, None]
    levels = n.bit_length() - 1
    shape = (levels, 3, ranks)
    points, up, down = (np.zeros(shape, dtype=np.int64) for _ in range(3))
    gives, takes = np.zeros(shape, dtype=np.bool_), np.zeros(shape, dtype=np.bool_)
    far = np.ones((3, ranks), dtype=np.int64)  # how far the neighbours are
    for k in range(levels - 1, -1, -1):
        edge = 2 << k
        mine, next_one = _share(at, edge, across), _share(at + far, edge, across)
        points[k] = mine
        far = np.where((mine == 0) | (next_one == 0), 2 * far, far)
        if k + 1 < levels:
            gives[k + 1] = (next_one == 0) & (mine == 1)
            takes[k + 1] = (next_one == 1) & (mine == 0)
        up[k] = me + stride * ((at + far) % across - at)
        down[k] = me + stride * ((at - far) % across - at)
    alive = points.min(axis=1) > 0
    return MgProblem(n, steps_of("MG", steps, own), p, points, alive, up, down, gives, takes)


def _pairs(p: MgProblem, ranks: int) -> list[Ints]:
    """Traffic of a whole run; time and memory of the order of ranks times levels."""
    me = np.arange(ranks)
    cycles = p.steps + 1
    top = len(p.alive) - 1
    rows: list[tuple[Ints, ...]] = []
    for k in range(top + 1) if ranks > 1 else ():
        times = 3 * cycles + 4 if k == top else 2 * cycles if k == 0 else 3 * cycles
        for axis in range(3):
            face, plane = (_plane(p.points[k], axis, full=whole) for whole in (False, True))
            for peer, planes in ((p.up[k, axis], 2), (p.down[k, axis], 1)):
                for who, count, size in (
                    (p.alive[k], times, face),
                    (p.gives[k, axis], cycles, planes * plane),
                ):
                    src = me[who]
                    messages = np.full(len(src), count)
                    rows.append((src, peer[who], messages, count * size[who]))
    none = np.zeros(0, dtype=np.int64)
    return [np.concatenate(column) for column in zip(*rows, strict=True)] or [none] * 4


def _share(place: Ints, edge: int, across: Ints) -> Ints:
    """Points along each axis of the rank in a place; places outside the grid go on."""
    return (place + 1) * edge // across - place * edge // across


def _plane(points: Ints, axis: int, *, full: bool) -> Ints:
    """Bytes of a plane of points: prolongated ones go with all border points (`full`).

    A border itself goes along y with the border points in x, along z with those in y.
    """
    one, other = (points[b] + 2 * (full or b < axis) for b in range(3) if b != axis)
    size: Ints = 8 * one * other
    return size


def _programs(p: MgProblem, ranks: int, seconds: float) -> Iterator[Parts]:
    # So that a V-cycle and its residual take as many operations as NPB counts.
    seconds = seconds * FLOPS_PER_POINT * p.n**3 / _operations(p)
    for rank in range(ranks):
        yield _rank_program(p, rank, ranks, seconds)


def _operations(p: MgProblem) -> float:
    """Operations of a V-cycle and its residual, as its parts are said to cost."""
    size = 8.0 ** np.arange(1, len(p.alive) + 1)  # points of each level
    smooth, coarse = (RESID + PSINV) * size, (RPRJ3 + INTERP) * size[:-1]
    return float(smooth.sum() - RESID * size[0] + RESID * size[-1] + coarse.sum())


def _rank_program(p: MgProblem, rank: int, ranks: int, seconds: float) -> Parts:
    """All calls of one rank, in order; an operation takes so many seconds."""
    top = len(p.alive) - 1
    cost = seconds * p.points[:, :, rank].prod(axis=1)  # of one operation per point
    borders = [_comm3(p, rank, k) for k in range(top + 1)]
    borders_of = [_comm3_ex(p, rank, k) for k in range(top + 1)]
    norm = [everyone(Call.ALLREDUCE, ranks, 8)] * 2
    barrier = everyone(Call.BARRIER, ranks)
    charge = [everyone(Call.ALLREDUCE, ranks, 8), everyone(Call.ALLREDUCE, ranks, 16)]
    zran3 = [barrier, *charge * CHARGES, barrier, borders[top]]
    start = [*begin(rank, ranks, INPUT_BCASTS, barrier), *zran3, *norm]
    end = [reduce(rank, ranks, 8), everyone(Call.FINALIZE, ranks)]
    if ranks == 1:  # no messages to compute between
        once, whole = RESID * cost[top], seconds * _operations(p)
        initial = [delay(once, norm[0]), norm[1]]
        final = [delay(p.steps * whole, norm[0]), norm[1]]
        again = [delay(whole, barrier), *zran3[1:], barrier]
        return [*start, *initial, *again, *initial, *final, *end]
    resid = delay(RESID * cost[top], borders[top])
    cycle: Parts = [delay(RPRJ3 * cost[k], borders[k]) for k in range(top - 1, -1, -1)]
    cycle.append(delay(PSINV * cost[0], borders[0]))
    for k in range(1, top + 1):
        exchanges = np.concatenate((borders_of[k], delay(RESID * cost[k], borders[k])))
        cycle += [delay(INTERP * cost[k - 1], exchanges), delay(PSINV * cost[k], borders[k])]
    cycle.append(resid)
    initial = [resid, *norm]
    return [
        *start,
        *initial,
        *cycle,
        *zran3,
        barrier,
        *initial,
        Repeat(p.steps, cycle),
        *norm,
        *end,
    ]


def _comm3(p: MgProblem, rank: int, k: int) -> Table:
    """Border exchange: both receives, both sends, both waits, one axis after the other."""
    rows: list[Row] = []
    if len(p.alive[k]) > 1 and p.alive[k, rank]:
        for axis in range(3):
            size = int(_plane(p.points[k, :, rank], axis, full=False))
            rows += _exchange(p, rank, (k, axis), (size, size))
    return call_table(rows)


def _comm3_ex(p: MgProblem, rank: int, k: int) -> Table:
    """Prolongated points: two planes go up an axis, one goes down; a rank gives or takes them."""
    rows: list[Row] = []
    for axis in range(3) if len(p.alive[k]) > 1 else ():
        size = int(_plane(p.points[k, :, rank], axis, full=True))
        takes, gives = bool(p.takes[k, axis, rank]), bool(p.gives[k, axis, rank])
        rows += _exchange(p, rank, (k, axis), (2 * size, size), takes=takes, gives=gives)
    return call_table(rows)


def _exchange(
    p: MgProblem,
    rank: int,
    place: tuple[int, int],
    sizes: tuple[int, int],
    *,
    takes: bool = True,
    gives: bool = True,
) -> list[Row]:
    """Exchange with both neighbours on a level and an axis; `sizes` are bytes up and down."""
    (k, axis), (upwards, downwards) = place, sizes
    up, down = int(p.up[k, axis, rank]), int(p.down[k, axis, rank])
    # Receives from above, then from below: who sends is known when it has come.
    receives: list[Row] = [(Call.IRECV, -1, -1, -1)] * 2
    sends = [(Call.SEND, up, UP[axis], upwards), (Call.SEND, down, DOWN[axis], downwards)]
    waits = [(Call.WAIT, up, DOWN[axis], downwards), (Call.WAIT, down, UP[axis], upwards)]
    return receives * takes + sends * gives + waits * takes


MG = Benchmark(
    "mg",
    __doc__,
    mg_problem,
    _programs,
    _pairs,
    grid=lambda p: {"dims": list(p.p), "periodic": [True, True, True]},
)

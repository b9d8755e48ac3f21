"""NAS SP and BT (NPB 3.3-MPI): multi-partition, who sends what to whom, and the full programs.

The n^3 grid is cut into p^3 cells for p^2 ranks; rank i + p * j has the p cells
((i + c) mod p, (j - c) mod p, c), c = 0..p-1, one in every plane of cells across every axis. Cells
next to each other along an axis so belong to the same two ranks everywhere: each rank has six
partners, two an axis, which are three for p = 2. A time step copies the faces of all cells to the
neighbours, then sweeps along x, y and z: eliminates from cell to cell, substitutes backwards.

Messages go over duplicates of a communicator that was split from MPI_COMM_WORLD, none over
MPI_COMM_WORLD itself: SETUP has the collectives, SOLVE the sweeps, FACES the copies of faces.

Source: NPB 3.3-MPI, SP and BT: make_set.f, define.f, setup_mpi.f, sp.f, bt.f, adi.f, copy_faces.f,
x_solve.f, y_solve.f, z_solve.f, verify.f.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from math import isqrt
from typing import Any, NamedTuple

import numpy as np

from hopmap.arrays import Floats, Ints, Table
from hopmap.traces.calls import Call, calls
from hopmap.traces.folded import Parts, Repeat
from hopmap.traces.safety.memory import require_memory
from hopmap.traces.trace import TraceError

from .benchmarks import Benchmark, bcast, delay, everyone, parameters_of, reduce, steps_of

FACE_BYTES = 80  # of a grid point on a face: two layers of 5 doubles


class Work(NamedTuple):
    """Operations on a grid point in a time step, by part; sweeps have their own along each axis."""

    rhs: float  # right-hand side, after the faces have come
    # In the first half of a sweep: before and after a cell needs what its predecessor sends
    prepare: tuple[float, float, float]
    eliminate: tuple[float, float, float]
    # In the second half: after a cell has what its successor sends; and when it is through, while
    # the next cell's message is on its way
    substitute: tuple[float, float, float]
    finish: tuple[float, float, float]

    def total(self) -> float:
        """Operations of a whole time step on a grid point."""
        return self.rhs + sum(map(sum, self[1:]))


class Solver(NamedTuple):
    """What SP and BT do not have in common."""

    name: str  # "sp" or "bt"
    classes: Mapping[str, tuple[int, int]]  # grid edge n and time steps (niter) of each class
    bcasts: tuple[int, ...]  # bytes of the start-up broadcasts
    # Bytes that a sweep sends for a point between two cells, forwards and backwards
    eliminate: int
    substitute: int
    # Sweeps send whole buffers, of the largest cell's face and one row more where p divides n;
    # otherwise the points inside the grid's border
    padded: bool
    tagged: bool  # messages of sweeps are tagged by direction and cell, otherwise with 0
    # Sweeps wait for a message and the one before it at once, otherwise one after the other
    waitall: bool
    # Floating-point operations of a time step, NPB's own count ("mflops"): of n^3, n^2, n and 1
    operations: tuple[float, float, float, float]
    work: Work  # how the model shares these out


class Layout(NamedTuple):
    """A class on a number of ranks."""

    # Grid edge, time steps, cells in each dimension
    n: int
    steps: int
    p: int
    points: Ints  # (p,): grid points of a cell in one dimension, by its coordinate there
    # (p,): how many of them messages of sweeps cover, if they run across this dimension
    swept: Ints


def multipartition(solver: Solver, nas_class: str, ranks: int, steps: int | None = None) -> Layout:
    """Lay a class out on a square number of ranks, in cells of at least three points an edge."""
    name = solver.name.upper()
    n, niter = parameters_of(name, solver.classes, nas_class)
    p = isqrt(max(ranks, 0))
    if ranks < 1 or p * p != ranks:
        below, above = max(p, 1) ** 2, (max(p, 1) + 1) ** 2
        raise TraceError(
            f"{name} on {ranks} ranks: expected a square number, like {below} or {above}"
        )
    if n // p < 3:
        raise TraceError(
            f"{name} class {nas_class} on {ranks} ranks: cells of {n // p} of {n} points an edge: "
            f"expected at least 3, so at most {(n // 3) ** 2} ranks"
        )
    cell = np.arange(p)
    points = (n // p + (cell < n % p)).astype(np.int64)
    inside = points - (cell == 0) - (cell == p - 1)
    swept = np.full(p, n // p + 1, dtype=np.int64) if solver.padded else inside
    return Layout(n, steps_of(name, steps, niter), p, points, swept)


def partners(p: int, i: Any, j: Any) -> tuple[list[Any], list[Any]]:
    """Successors and predecessors of ranks (i, j) along x, y and z."""
    after_i, before_i, after_j, before_j = (i + 1) % p, (i - 1) % p, (j + 1) % p, (j - 1) % p
    return (
        [after_i + p * j, i + p * after_j, before_i + p * after_j],
        [before_i + p * j, i + p * before_j, after_i + p * before_j],
    )


def messages_to_a_partner(layout: Layout, steps: int) -> int:
    """Of a rank to each of its six partners."""
    # A step before the clock starts, and faces once more for the verification.
    return steps + 2 + (steps + 1) * (layout.p - 1) if layout.p > 1 else 0


def pairs(solver: Solver, layout: Layout, ranks: int) -> list[Ints]:
    """Traffic of a whole run; time and memory linear in ranks."""
    p, steps = layout.p, layout.steps
    j, i = np.divmod(np.arange(ranks, dtype=np.int64), p)
    messages = np.full(ranks, messages_to_a_partner(layout, steps))
    rows: list[tuple[Ints, ...]] = []
    for ends, partner, unit in zip(
        (p - 1, 0), partners(p, i, j), (solver.eliminate, solver.substitute), strict=True
    ):
        for axis in range(3):
            faces = _inner_area(layout.points, i, j, axis, ends)
            swept = _inner_area(layout.swept, i, j, axis, ends)
            volume = (steps + 2) * FACE_BYTES * faces + (steps + 1) * unit * swept
            rows.append((i + p * j, partner[axis], messages, volume))
    return [np.concatenate(column) for column in zip(*rows, strict=True)]


def _inner_area(extent: Ints, i: Ints, j: Ints, axis: int, end: int) -> Ints:
    """Area across an axis of each rank's cells in all, except the one at this end of the axis.

    A cell's extents in the two other dimensions are ``extent`` at its coordinates there.
    """
    p = len(extent)
    t, c = np.ogrid[:p, :p]
    line: Ints  # cells in all, for a sum or difference of a rank's coordinates
    if axis == 1:
        line, at = (extent[(t + c) % p] * extent[c]).sum(axis=1), i
    else:
        line, at = (extent[(t - c) % p] * extent[c]).sum(axis=1), j if axis == 0 else (i + j) % p
    last = ((end - i) % p, (j - end) % p, np.full_like(i, end))[axis]
    across = [extent[(i + last) % p], extent[(j - last) % p], extent[last]]
    del across[axis]
    area: Ints = line[at] - across[0] * across[1]
    return area


SETUP, SOLVE, FACES = 1, 2, 3  # communicators in addition to MPI_COMM_WORLD

# Tags: where a message goes, as its sender sees it, when faces are copied; where it comes from, as
# its receiver sees it, in a sweep of BT.
EAST, WEST, NORTH, SOUTH, BOTTOM, TOP = 2000, 3000, 4000, 5000, 6000, 7000

# What a sweep does between two cells.
AT_ONCE = (Call.ISEND, Call.IRECV, Call.WAITALL, Call.RECEIVED, Call.SENT, Call.WAITALL_END)
IN_TURN = (Call.ISEND, Call.IRECV, Call.WAIT_SENT, Call.WAIT)

# Of a trace: 10 or 11 events of 13 bytes, 4 records of 37; at its peak, 750.
BYTES_PER_MESSAGE = 280


def _benchmark_of(solver: Solver, about: str | None) -> Benchmark[Layout]:
    """Put a solver's benchmark together; `about` describes it.

    Its folded trace takes 12 kB times p a rank, for any number of steps.
    """
    return Benchmark(
        solver.name,
        about,
        partial(multipartition, solver),
        partial(_programs, solver),
        partial(pairs, solver),
        grid=lambda layout: {"dims": [layout.p, layout.p], "periodic": [True, True]},
        communicators=lambda _, ranks: [np.arange(ranks, dtype=np.int32)] * 3,
    )


class Cells(NamedTuple):
    """The cells of a rank."""

    at: Ints  # (3, p): coordinates
    seconds: Floats  # (p,): time of one operation on all points of the cell
    # Successors and predecessors of the rank along x, y, z
    to: list[int]
    from_: list[int]


class Sweep(NamedTuple):
    """One sweep of a rank, half of the solution along an axis."""

    # Partners
    to: int
    from_: int
    # (p,): of the message that each cell sends on, and of the one that it takes; in their order
    tag: Ints
    size: Ints
    # (p,): seconds of computation on each cell before and after it waits
    ahead: Floats
    work: Floats


def _programs(solver: Solver, layout: Layout, ranks: int, operation: float) -> Iterator[Parts]:
    """All calls of each rank, in order; folded or not, there are two time steps in them."""
    messages = 6 * ranks * messages_to_a_partner(layout, 1)
    require_memory(
        BYTES_PER_MESSAGE * messages,
        f"{solver.name.upper()} of {layout.n}^3 points on {ranks} ranks: two time steps of "
        f"{messages:,} messages",
        "take fewer ranks",
    )
    p, c = layout.p, np.arange(layout.p)
    operations = sum(f * layout.n**k for f, k in zip(solver.operations, (3, 2, 1, 0), strict=True))
    per_point = operations / layout.n**3 / solver.work.total()
    for rank in range(ranks):
        j, i = divmod(rank, p)
        at = np.stack([(i + c) % p, (j - c) % p, c])
        seconds = layout.points[at].prod(axis=0) * (per_point * operation)
        cells = Cells(at, seconds, *partners(p, i, j))
        yield _program(solver, layout, rank, cells)


def _program(solver: Solver, layout: Layout, rank: int, cells: Cells) -> Parts:
    ranks, steps = layout.p**2, layout.steps
    duplicate = everyone(Call.COMM_DUP, ranks, comm=SETUP)
    norm = everyone(Call.ALLREDUCE, ranks, 40, comm=SETUP)
    faces, rhs = _copy_faces(layout, cells), solver.work.rhs * cells.seconds.sum()
    step, rest = _time_step(solver, layout, cells, faces, rhs)
    if layout.p > 1:
        # What is left to compute behind the last call of a step comes before the first of the
        # next, and before the first step in place of behind the last.
        step["before"][0] = rest
        loop: Parts = [Repeat(steps, [step])]
        timed = 0.0
    else:
        loop, timed = [], rest * steps
    warm_up = step.copy()
    warm_up["before"][:1] = 0
    return [
        everyone(Call.INIT, ranks),
        calls(Call.COMM_SIZE),
        calls(Call.COMM_RANK),
        everyone(Call.COMM_SPLIT, ranks),
        calls(Call.COMM_SIZE),
        duplicate,
        duplicate,
        *[bcast(rank, ranks, size, comm=SETUP) for size in solver.bcasts],
        warm_up,
        delay(rest, everyone(Call.BARRIER, ranks, comm=SETUP)),
        *loop,
        delay(timed, norm),  # error_norm
        faces,
        delay(rhs, norm),  # rhs_norm
        reduce(rank, ranks, 8, comm=SETUP),
        everyone(Call.BARRIER, ranks),
        everyone(Call.FINALIZE, ranks),
    ]


def _copy_faces(layout: Layout, cells: Cells) -> Table:
    """Post six receives and six sends, wait for all (copy_faces.f)."""
    p, extent = layout.p, layout.points[cells.at]
    if p == 1:
        return calls(Call.IRECV, 0)
    peers, sizes = [], []
    for axis in range(3):
        face = np.delete(extent, axis, axis=0).prod(axis=0)
        for partner, end in ((cells.to, p - 1), (cells.from_, 0)):
            peers.append(partner[axis])
            sizes.append(FACE_BYTES * int(face[cells.at[axis] != end].sum()))
    sent = (EAST, WEST, NORTH, SOUTH, TOP, BOTTOM)
    taken = (WEST, EAST, SOUTH, NORTH, BOTTOM, TOP)
    latest = np.arange(-12, 0)
    return np.concatenate(
        [
            calls(Call.IRECV, 6, comm=FACES),
            calls(Call.ISEND, 6, comm=FACES, peer=peers, tag=sent, size=sizes),
            calls(Call.WAITALL),
            calls(
                Call.RECEIVED, 6, comm=FACES, peer=peers, tag=taken, size=sizes, request=latest[:6]
            ),
            calls(Call.SENT, 6, request=latest[6:]),
            calls(Call.WAITALL_END),
        ]
    )


def _time_step(
    solver: Solver, layout: Layout, cells: Cells, faces: Table, rhs: float
) -> tuple[Table, float]:
    """Faces, then two sweeps along each axis; and the seconds left behind the last call (adi.f)."""
    tables, rest, work = [faces], rhs, solver.work
    form = AT_ONCE if solver.waitall else IN_TURN
    for axis, (forth, back) in enumerate(((WEST, EAST), (SOUTH, NORTH), (BOTTOM, TOP))):
        order = np.argsort(cells.at[axis])
        at, seconds = cells.at[:, order], cells.seconds[order]
        first, second = np.delete(at, axis, axis=0)
        size = layout.swept[first] * layout.swept[second]
        label = first + layout.p * second if solver.tagged else np.zeros_like(first)
        last = seconds[::-1]
        for sweep in (
            Sweep(
                to=cells.to[axis],
                from_=cells.from_[axis],
                tag=label + (forth if solver.tagged else 0),
                size=size * solver.eliminate,
                ahead=work.prepare[axis] * seconds,
                work=work.eliminate[axis] * seconds,
            ),
            Sweep(
                to=cells.from_[axis],
                from_=cells.to[axis],
                tag=(label + (back if solver.tagged else 0))[::-1],
                size=(size * solver.substitute)[::-1],
                ahead=work.finish[axis] * np.concatenate(([0.0], last[:-1])),
                work=work.substitute[axis] * last,
            ),
        ):
            table, rest = _sweep_calls(form, sweep, rest)
            tables.append(table)
        rest += work.finish[axis] * float(last[-1])
    return np.concatenate(tables), rest


def _sweep_calls(form: tuple[Call, ...], sweep: Sweep, rest: float) -> tuple[Table, float]:
    """Compute a cell, send, receive for the next one, wait for both; all along the row of cells.

    `rest` is computed before it begins; what is left when it ends is returned.
    """
    table = calls(Call.ISEND, (len(sweep.size) - 1) * len(form), comm=SOLVE)
    grid = table.reshape(-1, len(form))
    grid["call"] = form
    take, sent = (
        next(at for at, call in enumerate(form) if call in either)
        for either in ((Call.WAIT, Call.RECEIVED), (Call.WAIT_SENT, Call.SENT))
    )
    grid["request"][:, sent] = -2
    grid["peer"][:, 0], grid["peer"][:, take] = sweep.to, sweep.from_
    for column in ("tag", "size"):
        values = getattr(sweep, column)
        grid[column][:, 0], grid[column][:, take] = values[:-1], values[1:]
    # Computation before each send and behind the last wait, and before each wait.
    before = sweep.work.copy()
    before[0] += rest + sweep.ahead[0]
    grid["before"][:, 0] = before[:-1]
    grid["before"][:, 2] = sweep.ahead[1:]
    return table, float(before[-1])


SP_ABOUT = """\
NAS SP (NPB 3.3-MPI): who sends what to whom, in closed form and as the full program.

ADI on an n^3 grid, with scalar pentadiagonal systems along each axis. A sweep sends 22 doubles for
each point between two cells when it eliminates, 10 when it substitutes. Checked message for message
against recorded runs.

Source: NPB 3.3-MPI, SP: sp.f, setup_mpi.f, make_set.f, adi.f, copy_faces.f, x_solve.f to z_solve.f,
verify.f.
"""


SP = Solver(
    name="sp",
    classes={
        "S": (12, 100),
        "W": (36, 400),
        "A": (64, 400),
        "B": (102, 400),
        "C": (162, 400),
        "D": (408, 500),
        "E": (1020, 500),
    },
    bcasts=(4, 8, 12, 4),
    eliminate=22 * 8,
    substitute=10 * 8,
    padded=False,
    tagged=False,
    waitall=True,
    operations=(881.174, -4683.91, 11484.5, -19272.4),
    # Counted in the loops of rhs.f, txinvr.f and add.f; lhsx.f; x_solve.f; ninvr.f, pinvr.f and
    # tzetar.f: 874 in all, against 881 in the formula.
    work=Work(
        rhs=444 + 27 + 5,
        prepare=(22, 22, 22),
        eliminate=(67, 67, 67),
        substitute=(30, 30, 30),
        finish=(7, 7, 27),
    ),
)

SP_BENCHMARK = _benchmark_of(SP, SP_ABOUT)

BT_ABOUT = """\
NAS BT (NPB 3.3-MPI): who sends what to whom, in closed form and as the full program.

ADI on an n^3 grid, with systems of 5x5 blocks along each axis. A sweep sends a block and a vector
for each point between two cells when it eliminates, a vector when it substitutes, always in buffers
for n div p + 1 points an edge. Checked message for message against recorded runs.

Source: NPB 3.3-MPI, BT: bt.f, setup_mpi.f, make_set.f, adi.f, copy_faces.f, x_solve.f to z_solve.f,
verify.f.
"""


BT = Solver(
    name="bt",
    classes={
        "S": (12, 60),
        "W": (24, 200),
        "A": (64, 200),
        "B": (102, 200),
        "C": (162, 200),
        "D": (408, 250),
        "E": (1020, 250),
    },
    bcasts=(4, 8, 12, 4, 4, 4),
    eliminate=(5 * 5 + 5) * 8,
    substitute=5 * 8,
    padded=True,
    tagged=True,
    waitall=False,
    operations=(3478.8, -17655.7, 28023.7, 0.0),
    # Counted in the loops of rhs.f and add.f; x_solve.f and solve_subs.f: 3,565 in all, against
    # 3,479 in the formula.
    work=Work(
        rhs=440 + 5,
        prepare=(0, 0, 0),
        eliminate=(990, 990, 990),
        substitute=(50, 50, 50),
        finish=(0, 0, 0),
    ),
)

BT_BENCHMARK = _benchmark_of(BT, BT_ABOUT)

"""Multi-partition: how NAS SP and BT lay a grid out on ranks, and their traffic in closed form.

The n^3 grid is cut into p^3 cells for p^2 ranks; rank i + p * j has the p cells
((i + c) mod p, (j - c) mod p, c), c = 0..p-1, one in every plane of cells across every axis. Cells
next to each other along an axis so belong to the same two ranks everywhere: each rank has six
partners, two an axis, which are three for p = 2. A time step copies the faces of all cells to the
neighbours, then sweeps along x, y and z: eliminates from cell to cell, substitutes backwards.

Source: NPB 3.3-MPI, SP and BT: make_set.f, define.f, copy_faces.f, x_solve.f, y_solve.f, z_solve.f.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isqrt
from typing import Any, NamedTuple

import numpy as np

from hopmap.traces.trace import TraceError

from .skeleton import Ints, parameters_of, steps_of

FACE_BYTES = 80  # of a grid point on a face: two layers of 5 doubles


class Work(NamedTuple):
    """Operations on a grid point in a time step, by part; sweeps have their own along x, y and z.

    Attributes
    ----------
    rhs : float
        Right-hand side, after the faces have come.
    prepare, eliminate : tuple of 3 float
        In the first half of a sweep: before and after a cell needs what its predecessor sends.
    substitute, finish : tuple of 3 float
        In the second half: after a cell has what its successor sends; and when it is through,
        while the next cell's message is on its way.
    """

    rhs: float
    prepare: tuple[float, float, float]
    eliminate: tuple[float, float, float]
    substitute: tuple[float, float, float]
    finish: tuple[float, float, float]

    def total(self) -> float:
        """Operations of a whole time step on a grid point."""
        return self.rhs + sum(map(sum, self[1:]))


class Solver(NamedTuple):
    """What SP and BT do not have in common.

    Attributes
    ----------
    name : str
        "sp" or "bt".
    classes : mapping of str to (int, int)
        Grid edge n and time steps (niter) of each class.
    bcasts : tuple of int
        Bytes of the start-up broadcasts.
    eliminate, substitute : int
        Bytes that a sweep sends for a point between two cells, forwards and backwards.
    padded : bool
        Sweeps send whole buffers, of the largest cell's face and one row more where p divides n;
        otherwise the points inside the grid's border.
    tagged : bool
        Messages of sweeps are tagged by direction and cell, otherwise with 0.
    waitall : bool
        Sweeps wait for a message and the one before it at once, otherwise one after the other.
    operations : callable
        Floating-point operations of a time step, from n: the benchmark's own count.
    work : Work
        How the model shares these out.
    """

    name: str
    classes: Mapping[str, tuple[int, int]]
    bcasts: tuple[int, ...]
    eliminate: int
    substitute: int
    padded: bool
    tagged: bool
    waitall: bool
    operations: Callable[[int], float]
    work: Work


class Layout(NamedTuple):
    """A class on a number of ranks.

    Attributes
    ----------
    n, steps, p : int
        Grid edge, time steps, cells in each dimension.
    points : ndarray(int64, shape=(p,))
        Grid points of a cell in one dimension, by its coordinate there.
    swept : ndarray(int64, shape=(p,))
        Those of them that messages of sweeps cover, if they run across this dimension.
    """

    n: int
    steps: int
    p: int
    points: Ints
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
            faces = _between(layout.points, i, j, axis, ends)
            swept = _between(layout.swept, i, j, axis, ends)
            volume = (steps + 2) * FACE_BYTES * faces + (steps + 1) * unit * swept
            rows.append((i + p * j, partner[axis], messages, volume))
    return [np.concatenate(column) for column in zip(*rows, strict=True)]


def _between(extent: Ints, i: Ints, j: Ints, axis: int, end: int) -> Ints:
    """Area across an axis of each rank's cells in all, but for the one at this end of the axis.

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

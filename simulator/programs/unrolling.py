"""Programs with loops, written out without them.

A REPEAT ends a body that begins in its row `target`; the body runs `size` times in all. Bodies may
contain others. A row that runs again begins something new: a WAIT is for the latest.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hopmap.arrays import Ints

from .program import LocalWork, Op, Program


def unroll(program: Program) -> Ints:
    """Row that each row of the program without loops comes from, REPEATs included."""
    order: list[Ints] = []
    for begin, end in zip(program.offsets[:-1].tolist(), program.offsets[1:].tolist(), strict=True):
        order.append(_unroll(program, begin, end))
    return np.concatenate(order) if order else np.zeros(0, dtype=np.int64)


def _unroll(program: Program, begin: int, end: int) -> Ints:
    """Write out the rows from begin to end, outermost loops first."""
    parts: list[Ints] = []
    ends = begin + np.flatnonzero(program.kind[begin:end] == Op.REPEAT)
    at = begin
    while len(ends):
        # The loop that begins first, and of those the longest.
        last = int(ends[program.target[ends] == program.target[ends].min()].max())
        first = int(program.target[last])
        parts.append(np.arange(at, first))
        body = np.append(_unroll(program, first, last), last)
        parts.append(np.tile(body, int(program.size[last])))
        at = last + 1
        ends = ends[ends > last]
    parts.append(np.arange(at, end))
    return np.concatenate(parts)


def latest(order: Ints, places: Ints, rows: Ints) -> Ints:
    """Place in `order`, before each of these places, where the matching row ran last.

    Of a row that comes further behind, in another task, where it runs first.
    """
    by_row = np.argsort(order, kind="stable")
    key = order[by_row] * len(order) + by_row
    found = np.searchsorted(key, rows * len(order) + places) - 1
    there: Ints = by_row[found + (order[by_row[found]] != rows)]
    return there


def _work(work: LocalWork, order: Ints) -> LocalWork:
    """Repeat what is done before rows as often as these run."""
    row = np.flatnonzero(np.isin(order, work.row))
    of = np.searchsorted(work.row, order[row])
    return LocalWork(row, *(column[of] for column in work[1:]))


def without_loops(program: Program) -> Program:
    """Write every iteration out; where a body ended, a REPEAT of one iteration is left.

    Takes 50 bytes an operation. It replays as the program with loops does, in every bit.
    """
    order = unroll(program)
    loops = program.kind[order] == Op.REPEAT
    target = program.target[order]
    waits = np.flatnonzero(program.kind[order] == Op.WAIT)
    target[waits] = latest(order, waits, target[waits])
    target[loops] = np.flatnonzero(loops)
    columns = ("kind", "compute", "peer", "tag", "context", "mode")
    return replace(
        program,
        offsets=np.searchsorted(
            np.searchsorted(program.offsets, order, side="right") - 1,
            np.arange(program.tasks + 1),
        ).astype(np.int64),
        size=np.where(loops, 1, program.size[order]),
        target=target,
        work=_work(program.work, order),
        event=program.event[order] if len(program.event) else program.event,
        **{column: getattr(program, column)[order] for column in columns},
    )

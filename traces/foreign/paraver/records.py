"""Records of a .prv: numbers between colons."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hopmap.traces.foreign.text import Fields

from .header import FIRST_CALL, LAST_CALL, Head

Ints = NDArray[np.int64]

THREADS = 2**20  # of a task, at most
SENT, RECEIVED, ROOT, COMM = 50100001, 50100002, 50100003, 50100004


def own_lines(fields: Fields, lines: Ints, head: Head, width: int) -> tuple[Ints, int]:
    """Lines of the program's records, and how many are of other applications."""
    counts = fields.counts[lines]
    bad = np.flatnonzero(counts < width)
    if bad.size:
        raise fields.wrong(int(lines[bad[0]]), f"at least {width} numbers")
    mine = fields.numbers(lines, 2, "the number of an application") == head.application
    return lines[mine], int((~mine).sum())


def tasks_at(fields: Fields, lines: Ints, at: int, head: Head) -> Ints:
    """Tasks at a place of some lines, counted from 0."""
    task = fields.numbers(lines, at, "the number of a task") - 1
    bad = np.flatnonzero((task < 0) | (task >= head.tasks))
    if bad.size:
        raise fields.wrong(int(lines[bad[0]]), f"a task from 1 to {head.tasks}")
    return task


def events_of(
    fields: Fields, lines: Ints, head: Head
) -> tuple[Ints, NDArray[np.float64], Ints, Ints, Ints, int]:
    """Strand, time, type, value and line of MPI's events, and how many others there are.

    A strand is a thread of a task: ``task * THREADS + thread``.
    """
    from hopmap.traces.foreign.text_kernels import INTEGER

    counts = fields.counts[lines] - 6
    odd = np.flatnonzero(counts % 2 != 0)
    if odd.size:
        raise fields.wrong(int(lines[odd[0]]), "pairs of type and value behind the time")
    task, time = tasks_at(fields, lines, 3, head), fields.numbers(lines, 5, "a time")
    thread = fields.numbers(lines, 4, "the number of a thread")
    bad = np.flatnonzero((thread < 0) | (thread >= THREADS))
    if bad.size:
        raise fields.wrong(int(lines[bad[0]]), f"a thread below {THREADS}")
    strand = task * THREADS + thread
    pairs = counts // 2
    line = np.repeat(np.arange(len(lines)), pairs)
    turn = np.arange(len(line)) - np.repeat(np.cumsum(pairs) - pairs, pairs)
    at = fields.lines[lines][line] + 6 + 2 * turn
    bad = np.flatnonzero((fields.kinds[at] != INTEGER) | (fields.kinds[at + 1] != INTEGER))
    if bad.size:
        raise fields.wrong(int(lines[line[bad[0]]]), "whole numbers as types and values")
    kind, value = fields.values[at], fields.values[at + 1]
    mpi = (kind >= FIRST_CALL) & (kind <= LAST_CALL) | (kind >= SENT) & (kind <= COMM)
    line = line[mpi]
    return strand[line], time[line] * head.scale, kind[mpi], value[mpi], line, int((~mpi).sum())

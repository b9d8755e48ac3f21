"""Records of a .prv, numbers between colons; its header names tasks and communicators."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from hopmap.arrays import Floats, Ints
from hopmap.traces.foreign.text import Fields
from hopmap.traces.trace import TraceError

FIRST_CALL, LAST_CALL = 50000001, 50000005  # types of events

_HEADER = re.compile(
    r"#Paraver \((?P<date>[^)]*)\):(?P<time>\d+)(?P<unit>_ns)?:(?P<nodes>\d+(?:\([\d,]*\))?):"
    r"(?P<count>\d{1,18}):(?P<rest>.*)"
)
_APPLICATION = re.compile(r"(\d{1,18})\(([\d:,]*)\)")


class Head(NamedTuple):
    """What the first line says."""

    application: int
    tasks: int
    scale: float  # seconds of a unit of time
    communicators: int


def head_of(fields: Fields, number: Ints) -> Head:
    """Read the first line, and find the program among the applications.

    `number` (lines,) is the kind of the record in each line, or 0.
    """
    text = fields.text.split(b"\n", 1)[0].decode("ascii", "replace").strip()
    match = _HEADER.match(text)
    applications = _APPLICATION.findall(match["rest"]) if match else []
    if match is None or len(applications) != int(match["count"]) or not applications:
        raise fields.wrong(0, "#Paraver (date):time:nodes:applications:tasks(threads:node,...),...")
    tasks = [int(count) for count, _ in applications]
    told = np.bincount(_speaking(fields, number), minlength=len(tasks) + 1)[1 : len(tasks) + 1]
    program = int(np.lexsort((np.array(tasks), told))[-1] if told.any() else np.argmax(tasks))
    last = match["rest"].rsplit(")", 1)[-1].lstrip(",")
    communicators = int(last) if last.isdecimal() else -1
    if not 0 < tasks[program] <= 2**24:
        raise fields.wrong(0, "between 1 and 2^24 tasks")
    return Head(program + 1, tasks[program], 1e-9 if match["unit"] else 1e-6, communicators)


def _speaking(fields: Fields, number: Ints) -> Ints:
    """Application of each communication, and of each line of events that begins with MPI's."""
    from hopmap.traces.foreign.text_kernels import INTEGER

    lines = np.flatnonzero((number >= 2) & (fields.counts > 7))
    at = fields.lines[lines]
    mpi = (fields.values[at + 6] >= FIRST_CALL) & (fields.values[at + 6] <= LAST_CALL)
    at = at[(number[lines] == 3) | mpi]
    whose = np.where(fields.kinds[at + 2] == INTEGER, fields.values[at + 2], 0)
    return np.clip(whose, 0, 2**16)


def communicators_of(fields: Fields, lines: Ints, head: Head) -> tuple[list[Ints], dict[int, int]]:
    """Members of communicators ``c:application:number:size:tasks``, and places of their numbers."""
    from hopmap.traces.foreign.text_kernels import INTEGER

    if head.communicators >= 0 and len(lines) != head.communicators:
        raise TraceError(
            f"{fields.file}: {len(lines)} communicators: expected {head.communicators} as line 1 "
            "says: the trace is cut"
        )
    members: list[Ints] = []
    alias: dict[int, int] = {}
    for line in lines.tolist():
        first, behind = fields.lines[line] + 1, fields.lines[line + 1]
        row = fields.values[first:behind]
        if len(row) < 3 or (fields.kinds[first:behind] != INTEGER).any() or row[2] != len(row) - 3:
            raise fields.wrong(line, "c:application:communicator:size:tasks")
        if row[0] != head.application:
            continue
        tasks = row[3:] - 1
        if len(tasks) and not 0 <= tasks.min() <= tasks.max() < head.tasks:
            continue  # of tasks that other tools have cut out; whoever calls on it is told
        alias[int(row[1])] = len(members) + 2 if len(tasks) > 1 else 1
        if len(tasks) > 1:
            members.append(tasks.copy())
    return members, alias


THREADS = 2**20  # of a task, at most
SENT, RECEIVED, ROOT, COMM = 50100001, 50100002, 50100003, 50100004


def own_lines(fields: Fields, lines: Ints, head: Head, width: int) -> tuple[Ints, int]:
    """Lines of the program's records, and how many are of other applications."""
    counts = fields.counts[lines]
    fields.refuse(lines, counts < width, f"at least {width} numbers")
    mine = fields.numbers(lines, 2, "the number of an application") == head.application
    return lines[mine], int((~mine).sum())


def tasks_at(fields: Fields, lines: Ints, at: int, head: Head) -> Ints:
    """Tasks at a place of some lines, counted from 0."""
    task = fields.numbers(lines, at, "the number of a task") - 1
    fields.refuse(lines, (task < 0) | (task >= head.tasks), f"a task from 1 to {head.tasks}")
    return task


class Events(NamedTuple):
    """MPI's events; a strand is a thread of a task: ``task * THREADS + thread``."""

    strand: Ints
    time: Floats  # seconds
    kind: Ints
    value: Ints
    line: Ints


def events_of(fields: Fields, lines: Ints, head: Head) -> tuple[Events, int]:
    """List MPI's events, and count others."""
    from hopmap.traces.foreign.text_kernels import INTEGER

    counts = fields.counts[lines] - 6
    fields.refuse(lines, counts % 2 != 0, "pairs of type and value behind the time")
    task, time = tasks_at(fields, lines, 3, head), fields.numbers(lines, 5, "a time")
    thread = fields.numbers(lines, 4, "the number of a thread")
    fields.refuse(lines, (thread < 0) | (thread >= THREADS), f"a thread below {THREADS}")
    strand = task * THREADS + thread
    pairs = counts // 2
    line = np.repeat(np.arange(len(lines)), pairs)
    turn = np.arange(len(line)) - np.repeat(np.cumsum(pairs) - pairs, pairs)
    at = fields.lines[lines][line] + 6 + 2 * turn
    fields.refuse(
        lines[line],
        (fields.kinds[at] != INTEGER) | (fields.kinds[at + 1] != INTEGER),
        "whole numbers as types and values",
    )
    kind, value = fields.values[at], fields.values[at + 1]
    mpi = (kind >= FIRST_CALL) & (kind <= LAST_CALL) | (kind >= SENT) & (kind <= COMM)
    line = line[mpi]
    events = Events(strand[line], time[line] * head.scale, kind[mpi], value[mpi], line)
    return events, int((~mpi).sum())

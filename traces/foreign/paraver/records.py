"""Records of a .prv, numbers between colons, and the calls of MPI that events bracket.

The header names tasks and communicators, the trace's .pcf the calls. A collective has
sizes, root and communicator from the line that begins its call.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hopmap.arrays import Bools, Floats, Ints, equals_before
from hopmap.traces.foreign.text import Fields, read_whole
from hopmap.traces.foreign.trace_builder import COLLECTIVES, Acts, Calls, acts, collective_bytes
from hopmap.traces.trace import Collective, Kind, TraceError, mpi_name

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
    records = np.bincount(_app_of(fields, number), minlength=len(tasks) + 1)[1 : len(tasks) + 1]
    program = int(np.lexsort((np.array(tasks), records))[-1] if records.any() else np.argmax(tasks))
    last = match["rest"].rsplit(")", 1)[-1].lstrip(",")
    communicators = int(last) if last.isdecimal() else -1
    if not 0 < tasks[program] <= 2**24:
        raise fields.wrong(0, "between 1 and 2^24 tasks")
    return Head(program + 1, tasks[program], 1e-9 if match["unit"] else 1e-6, communicators)


def _app_of(fields: Fields, number: Ints) -> Ints:
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
            continue  # of tasks that other tools have cut out; a call on it is an error
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
    """MPI's events; a thread is ``task * THREADS`` + its number in the task."""

    thread: Ints
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
    number = fields.numbers(lines, 4, "the number of a thread")
    fields.refuse(lines, (number < 0) | (number >= THREADS), f"a thread below {THREADS}")
    thread = task * THREADS + number
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
    events = Events(thread[line], time[line] * head.scale, kind[mpi], value[mpi], line)
    return events, int((~mpi).sum())


_IS_NUMBER = re.compile("[0-9]{1,18}")

# Names of calls by value, where there is no .pcf.
_NAMED = """
Send Recv Isend Irecv Wait Waitall Bcast Barrier Reduce Allreduce Alltoall Alltoallv Gather
Gatherv Scatter Scatterv Allgather Allgatherv Comm_rank Comm_size Comm_create Comm_dup Comm_split
Comm_group Comm_free Comm_remote_group Comm_remote_size Comm_test_inter Comm_compare Scan Init
Finalize Bsend Ssend Rsend Ibsend Issend Irsend Test Cancel Sendrecv Sendrecv_replace
"""
_NAMES = _NAMED.split()


_NAMELESS = "MPI_call_"


def is_nameless(region: str) -> bool:
    """Whether a region stands for a value that has no name."""
    return region.startswith(_NAMELESS)


def labels_of(trace: Path) -> dict[tuple[int, int], str]:
    """Names of values by type, from a trace's .pcf."""
    file = trace.with_suffix(".pcf")
    labels: dict[tuple[int, int], str] = {}
    if not file.is_file():
        return labels
    types: list[int] = []
    inside = ""
    for line in read_whole(file, 1).decode("utf-8", "replace").splitlines():
        words = line.split()
        if not words or words[0] in ("EVENT_TYPE", "VALUES"):
            inside = words[0] if words else ""
            types = [] if inside == "EVENT_TYPE" else types
        elif inside == "EVENT_TYPE" and len(words) > 1 and _IS_NUMBER.fullmatch(words[1]):
            types.append(int(words[1]))
        elif inside == "VALUES" and _IS_NUMBER.fullmatch(words[0]) and len(words) > 1:
            labels |= {(kind, int(words[0])): words[1] for kind in types}
    return labels


def calls_of(
    events: Events, head: Head, labels: dict[tuple[int, int], str]
) -> tuple[Calls, tuple[str, ...], Ints, int]:
    """Return calls, names of regions, the first event of each call, and how many are open."""
    thread, time, kind, value, _ = events
    brackets = np.flatnonzero(kind <= LAST_CALL)
    # What ends at a time stands before what begins then.
    order = brackets[np.lexsort((brackets, value[brackets] != 0, time[brackets], thread[brackets]))]
    opens = value[order] != 0
    starts = np.flatnonzero(opens)
    follows = np.minimum(starts + 1, max(len(order) - 1, 0))
    together = thread[order[follows]] == thread[order[starts]]
    closed = (starts + 1 < len(order)) & ~opens[follows] & together
    end = np.where(closed, time[order[follows]], time[order[starts]])
    begin, task = order[starts], thread[order[starts]] // THREADS
    # Calls of a task's threads may lie within each other.
    rising = np.lexsort((time[begin], task))
    begin, end, task = begin[rising], end[rising], task[rising]
    keys, inverse = np.unique(np.stack((kind[begin], value[begin])), axis=1, return_inverse=True)
    names = []
    for type_, number in keys.T.tolist():
        known = f"MPI_{_NAMES[number - 1]}" if 0 < number <= len(_NAMES) else f"{_NAMELESS}{number}"
        names.append(labels.get((type_, number), known))
    calls = Calls(
        np.searchsorted(task, np.arange(head.tasks + 1)).astype(np.int64),
        inverse.reshape(-1).astype(np.int64),
        time[begin],
        end,
    )
    return calls, tuple(names), begin, int((~closed).sum())


def collectives_of(
    calls: Calls,
    call: Ints,
    event: Ints,
    names: tuple[str, ...],
    events: Events,
    members: list[Ints],
    alias: dict[int, int],
    file: Path,
) -> tuple[Acts, int, int]:
    """List collectives, with sizes from the line that begins them.

    Returned are also how many have no recorded root, and how many do not block.
    """
    words = [mpi_name(name) for name in names]
    immediate = [word.startswith("i") and word[1:] in COLLECTIVES for word in words]
    base = [word[at_once:] for word, at_once in zip(words, immediate, strict=True)]
    operation = np.array([int(COLLECTIVES.get(word, -1)) for word in base], dtype=np.int64)
    found = operation[calls.region[call]] >= 0
    call, event = call[found], event[found]
    sort = operation[calls.region[call]]
    rank = calls.ranks()[call]
    about = {}
    for type_ in (SENT, RECEIVED, ROOT, COMM):
        which = np.flatnonzero(events.kind == type_)
        column = np.full(int(events.line.max(initial=-1)) + 1, -1, dtype=np.int64)
        column[events.line[which]] = events.value[which]
        about[type_] = column[events.line[event]]
    strange = sorted({int(number) for number in about[COMM] if number >= 0} - set(alias))
    if strange:
        raise TraceError(
            f"{file}: communicator {strange[0]}: collectives on it: expected a line c: with "
            "tasks of the program"
        )
    comm = np.array([alias.get(int(number), 0) for number in about[COMM]], dtype=np.int64)
    groups = [np.arange(len(calls.offsets) - 1), np.zeros(0, dtype=np.int64), *members]
    own = np.zeros(len(call), dtype=np.int64)
    for number in np.unique(comm).tolist():
        if number == 1:
            continue
        place = np.full(len(calls.offsets) - 1, -1, dtype=np.int64)
        place[groups[number]] = np.arange(len(groups[number]))
        mine = comm == number
        own[mine] = place[rank[mine]]
        stray = mine & (own < 0)
        if stray.any():
            raise TraceError(
                f"{file}: task {rank[stray][0] + 1}: a collective on communicator "
                f"{about[COMM][stray][0]}: expected one of its members"
            )
    size = np.array([max(len(group), 1) for group in groups], dtype=np.int64)[comm]
    sent, received = np.maximum(about[SENT], 0), np.maximum(about[RECEIVED], 0)
    root, untold = _roots(sort, comm, rank, about[ROOT], sent, received, groups)

    def of(*operations: Collective) -> Bools:
        return np.isin(sort, operations)

    part, total = sent.copy(), received.copy()
    part[of(Collective.BCAST)] = np.maximum(sent, received)[of(Collective.BCAST)]
    gets = of(Collective.SCATTER, Collective.SCATTERV, Collective.REDUCE_SCATTER)
    part[gets], total[gets] = received[gets], sent[gets]
    out, in_ = collective_bytes(file, sort, size, own, root == rank, part, total)
    columns = {"comm": comm, "operation": sort, "size": out, "received": in_}
    at_once = int(np.array(immediate, dtype=np.bool_)[calls.region[call]].sum())
    return acts(call, Kind.COLLECTIVE_END, peer=root, **columns), untold, at_once


def _roots(
    sort: Ints, comm: Ints, rank: Ints, flag: Ints, sent: Ints, received: Ints, groups: list[Ints]
) -> tuple[Ints, int]:
    """World rank of each call's root, -1 of others: who says so, or alone sends or receives."""
    gives = np.isin(sort, (Collective.BCAST, Collective.SCATTER, Collective.SCATTERV))
    takes = np.isin(sort, (Collective.REDUCE, Collective.GATHER, Collective.GATHERV))
    root = np.full(len(sort), -1, dtype=np.int64)
    rooted = np.flatnonzero(gives | takes)
    if not rooted.size:
        return root, 0
    # Calls of a communicator are numbered at each member; the k-th ones are one.
    key = comm * (int(rank.max()) + 1) + rank
    which = np.stack((comm[rooted], equals_before(key)[rooted]))
    _, group = np.unique(which, axis=1, return_inverse=True)
    group = group.reshape(-1)
    shown = np.where(gives, sent, received)[rooted] > 0
    shows = np.where(flag[rooted] > 0, 2, np.where(shown, 1, 0))
    best = np.zeros(int(group.max()) + 1, dtype=np.int64)
    np.maximum.at(best, group, shows)
    at = np.array(
        [groups[number][0] if len(groups[number]) else -1 for number in comm[rooted].tolist()]
    )
    chosen = np.full(len(best), -1, dtype=np.int64)
    candidates = np.flatnonzero((shows == best[group]) & (shows > 0))[::-1]
    chosen[group[candidates]] = rank[rooted][candidates]
    root[rooted] = np.where(chosen[group] >= 0, chosen[group], at)
    lonely = comm[rooted] == 1
    root[rooted[lonely]] = rank[rooted[lonely]]
    return root, int((best == 0).sum())

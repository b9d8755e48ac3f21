"""Read Paraver traces (.prv) as Extrae writes them: MPI's events and the communication records.

The first line says the time of the run, the tasks of each application and how many communicators
follow; records are numbers between colons. Of them count here:

* events ``2:cpu:application:task:thread:time:type:value:...``: calls of MPI are the types 50000001
  to 50000005, a value that is not 0 begins one, whose name the .pcf beside the trace has; sizes,
  root and communicator of a collective are the types 50100001 to 50100004 of the same line;
* communications ``3:cpu:application:task:thread:logical and physical send: the same of the
  receiver:size:tag``: the sending call is the one that the logical send lies in, a receive is
  posted where the logical one lies and complete where the physical one does.

The application with most tasks is the program; tasks are its ranks. A trace does not say which call
completes an MPI_Isend: MPI_Waitall completes all that are open, other waits that complete no
receive complete the oldest. Communications outside calls make calls of their own.

Sources: Paraver's trace format (tools.bsc.es, "Paraver: trace generation"); Extrae,
src/merger/paraver.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.traces.regions import mpi_name
from hopmap.traces.trace import Collective, Kind, Trace, TraceError

from .accounts import account
from .messages import Messages, acts_of
from .recorded import Acts, Calls, acts, trace_of
from .text import Fields, read_fields
from .text_kernels import INTEGER

Ints = NDArray[np.int64]

_HEADER = re.compile(
    r"#Paraver \((?P<date>[^)]*)\):(?P<time>\d+)(?P<unit>_ns)?:(?P<nodes>\d+(?:\([\d,]*\))?):"
    r"(?P<count>\d+):(?P<rest>.*)"
)
_APPLICATION = re.compile(r"(\d+)\(([\d:,]*)\)")
_FIRST_CALL, _LAST_CALL = 50000001, 50000005
_SENT, _RECEIVED, _ROOT, _COMM = 50100001, 50100002, 50100003, 50100004
# Names of calls by value, where there is no .pcf.
_NAMES = [
    "Send",
    "Recv",
    "Isend",
    "Irecv",
    "Wait",
    "Waitall",
    "Bcast",
    "Barrier",
    "Reduce",
    "Allreduce",
    "Alltoall",
    "Alltoallv",
    "Gather",
    "Gatherv",
    "Scatter",
    "Scatterv",
    "Allgather",
    "Allgatherv",
    "Comm_rank",
    "Comm_size",
    "Comm_create",
    "Comm_dup",
    "Comm_split",
    "Comm_group",
    "Comm_free",
    "Comm_remote_group",
    "Comm_remote_size",
    "Comm_test_inter",
    "Comm_compare",
    "Scan",
    "Init",
    "Finalize",
    "Bsend",
    "Ssend",
    "Rsend",
    "Ibsend",
    "Issend",
    "Irsend",
    "Test",
    "Cancel",
    "Sendrecv",
    "Sendrecv_replace",
]
_HANDLES = {
    **dict.fromkeys(("init", "init_thread", "comm_dup"), Collective.CREATE_HANDLE),
    **dict.fromkeys(
        ("comm_split", "comm_create", "cart_create", "cart_sub"), Collective.CREATE_HANDLE
    ),
    "finalize": Collective.DESTROY_HANDLE,
}
_COLLECTIVES = {each.name.lower(): each for each in Collective if each < 17} | _HANDLES


def is_paraver(start: bytes) -> bool:
    """Whether a file that begins like this is a trace."""
    return start.startswith(b"#Paraver")


class _Head(NamedTuple):
    """What the first line says."""

    application: int
    tasks: int
    scale: float  # seconds of a unit of time
    communicators: int


def read_paraver(files: list[Path], name: str) -> Trace:
    """Read a trace.

    Raises
    ------
    TraceError
        A record that is not understood, a task that does not exist, a trace that is cut; the
        message names file and line.
    """
    fields = read_fields(files[0], ":")
    head = _head(fields)
    first = fields.lines[:-1]
    kinds, values = fields.kinds[first], fields.values[first]
    number = np.where(kinds == INTEGER, values, 0)
    letters = np.frombuffer(fields.text, dtype=np.uint8)[
        np.minimum(fields.begins[first], max(len(fields.text) - 1, 0))
    ]
    comments, groups = letters == ord("#"), letters == ord("c")
    odd = np.flatnonzero(~comments & ~groups & ((number < 1) | (number > 3)))
    if odd.size:
        raise fields.wrong(int(odd[0]), "a record of kind 1, 2 or 3, c or #")
    if not fields.text.endswith(b"\n"):
        raise fields.wrong(len(first) - 1, "a whole line, which ends: the trace is cut")
    members, alias = _communicators(fields, np.flatnonzero(groups), head)
    events, others = _own(fields, np.flatnonzero(number == 2), head, 8)
    task, time, kind, value, line, skipped = _events(fields, events, head)
    calls, names, row, unended = _calls(task, time, kind, value, head, _labels(files[0]))
    talks, foreign = _own(fields, np.flatnonzero(number == 3), head, 15)
    calls, messages, names, outside, before = _messages(fields, talks, head, calls, names)
    collective, rootless = _collectives(
        calls, before[row[0]], row[1], names, kind, value, line, members, alias
    )
    ignored = {
        "state": int((number == 1).sum()),
        "event": skipped,
        "event and communication of other applications": others + foreign,
        "calls that do not end, in": unended,
        "communications outside of calls, in": outside,
        "collectives whose root is not told, taken for the first member,": rootless,
    }
    communicators = [np.arange(head.tasks), np.zeros(0, dtype=np.int64), *members]
    return trace_of(
        name, calls, (*acts_of(messages), collective), names, communicators, ignored=ignored
    )


def _head(fields: Fields) -> _Head:
    """Read the first line."""
    text = fields.text.split(b"\n", 1)[0].decode("ascii", "replace").strip()
    match = _HEADER.match(text)
    applications = _APPLICATION.findall(match["rest"]) if match else []
    if match is None or len(applications) != int(match["count"]) or not applications:
        raise fields.wrong(0, "#Paraver (date):time:nodes:applications:tasks(threads:node,...),...")
    tasks = [int(count) for count, _ in applications]
    largest = int(np.argmax(tasks))
    last = match["rest"].rsplit(")", 1)[-1].lstrip(",")
    communicators = int(last) if last.isdecimal() else -1
    if not 0 < tasks[largest] <= 2**24:
        raise fields.wrong(0, "between 1 and 2^24 tasks")
    return _Head(largest + 1, tasks[largest], 1e-9 if match["unit"] else 1e-6, communicators)


def _communicators(fields: Fields, lines: Ints, head: _Head) -> tuple[list[Ints], dict[int, int]]:
    """Members of communicators ``c:application:number:size:tasks``, and places of their numbers."""
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


def _own(fields: Fields, lines: Ints, head: _Head, width: int) -> tuple[Ints, int]:
    """Lines of the program's records, and how many are of other applications."""
    counts = fields.counts[lines]
    bad = np.flatnonzero(counts < width)
    if bad.size:
        raise fields.wrong(int(lines[bad[0]]), f"at least {width} numbers")
    mine = fields.numbers(lines, 2, "the number of an application") == head.application
    return lines[mine], int((~mine).sum())


def _tasks(fields: Fields, lines: Ints, at: int, head: _Head) -> Ints:
    task = fields.numbers(lines, at, "the number of a task") - 1
    bad = np.flatnonzero((task < 0) | (task >= head.tasks))
    if bad.size:
        raise fields.wrong(int(lines[bad[0]]), f"a task from 1 to {head.tasks}")
    return task


def _events(
    fields: Fields, lines: Ints, head: _Head
) -> tuple[Ints, NDArray[np.float64], Ints, Ints, Ints, int]:
    """Task, time, type, value and line of MPI's events, and how many others there are."""
    counts = fields.counts[lines] - 6
    odd = np.flatnonzero(counts % 2 != 0)
    if odd.size:
        raise fields.wrong(int(lines[odd[0]]), "pairs of type and value behind the time")
    task, time = _tasks(fields, lines, 3, head), fields.numbers(lines, 5, "a time")
    pairs = counts // 2
    line = np.repeat(np.arange(len(lines)), pairs)
    turn = np.arange(len(line)) - np.repeat(np.cumsum(pairs) - pairs, pairs)
    at = fields.lines[lines][line] + 6 + 2 * turn
    bad = np.flatnonzero((fields.kinds[at] != INTEGER) | (fields.kinds[at + 1] != INTEGER))
    if bad.size:
        raise fields.wrong(int(lines[line[bad[0]]]), "whole numbers as types and values")
    kind, value = fields.values[at], fields.values[at + 1]
    mpi = (kind >= _FIRST_CALL) & (kind <= _LAST_CALL) | (kind >= _SENT) & (kind <= _COMM)
    line = line[mpi]
    return task[line], time[line] * head.scale, kind[mpi], value[mpi], line, int((~mpi).sum())


def _labels(trace: Path) -> dict[tuple[int, int], str]:
    """Names of values by type, from the .pcf beside a trace."""
    file = trace.with_suffix(".pcf")
    labels: dict[tuple[int, int], str] = {}
    if not file.is_file():
        return labels
    types: list[int] = []
    inside = ""
    for line in file.read_text("utf-8", "replace").splitlines():
        words = line.split()
        if not words or words[0] in ("EVENT_TYPE", "VALUES"):
            inside = words[0] if words else ""
            types = [] if inside == "EVENT_TYPE" else types
        elif inside == "EVENT_TYPE" and len(words) > 1 and words[1].isdecimal():
            types.append(int(words[1]))
        elif inside == "VALUES" and words[0].isdecimal() and len(words) > 1:
            labels |= {(kind, int(words[0])): words[1] for kind in types}
    return labels


def _calls(
    task: Ints,
    time: NDArray[np.float64],
    kind: Ints,
    value: Ints,
    head: _Head,
    labels: dict[tuple[int, int], str],
) -> tuple[Calls, tuple[str, ...], tuple[Ints, Ints], int]:
    """Return calls, names of regions, entry and first event of each call, and open ones."""
    brackets = np.flatnonzero(kind <= _LAST_CALL)
    # What ends at a time stands before what begins then.
    order = brackets[np.lexsort((brackets, value[brackets] != 0, time[brackets], task[brackets]))]
    opens = value[order] != 0
    starts = np.flatnonzero(opens)
    follows = np.minimum(starts + 1, max(len(order) - 1, 0))
    closed = (
        (starts + 1 < len(order)) & ~opens[follows] & (task[order[follows]] == task[order[starts]])
    )
    end = np.where(closed, time[order[follows]], time[order[starts]])
    begin = order[starts]
    keys, inverse = np.unique(np.stack((kind[begin], value[begin])), axis=1, return_inverse=True)
    names = []
    for type_, number in keys.T.tolist():
        known = f"MPI_{_NAMES[number - 1]}" if 0 < number <= len(_NAMES) else f"MPI_call_{number}"
        names.append(labels.get((type_, number), known))
    calls = Calls(
        np.searchsorted(task[begin], np.arange(head.tasks + 1)).astype(np.int64),
        inverse.reshape(-1).astype(np.int64),
        time[begin],
        end,
    )
    return calls, tuple(names), (np.arange(len(begin)), begin), int((~closed).sum())


def _messages(
    fields: Fields, lines: Ints, head: _Head, calls: Calls, names: tuple[str, ...]
) -> tuple[Calls, Messages, tuple[str, ...], int, Ints]:
    """Messages with their calls, and where each call stands among these with new ones."""
    what = "a communication of 15 whole numbers"
    source, target = _tasks(fields, lines, 3, head), _tasks(fields, lines, 9, head)
    sent, posted, taken = (fields.numbers(lines, at, what) * head.scale for at in (5, 11, 12))
    size, tag = (fields.numbers(lines, at, what) for at in (13, 14))
    bad = np.flatnonzero(size < 0)
    if bad.size:
        raise fields.wrong(int(lines[bad[0]]), "a size >= 0")
    # Logical receives may be told later than the physical ones.
    posted = np.minimum(posted, taken)
    by, post, done = (
        _inside(calls, *at) for at in ((source, sent), (target, posted), (target, taken))
    )
    alone = np.flatnonzero(by < 0), np.flatnonzero((post < 0) | (done < 0))
    before = np.arange(len(calls.region) + 1)
    if len(alone[0]) or len(alone[1]):
        names = (*names, "MPI_Send", "MPI_Recv")
        count = len(calls.region)
        rank = np.concatenate((calls.ranks(), source[alone[0]], target[alone[1]]))
        region = np.concatenate(
            (
                calls.region,
                np.full(len(alone[0]), len(names) - 2),
                np.full(len(alone[1]), len(names) - 1),
            )
        )
        begin = np.concatenate((calls.begin, sent[alone[0]], taken[alone[1]]))
        end = np.concatenate((calls.end, begin[count:]))
        order = np.lexsort((np.arange(len(rank)), begin, rank))
        before = np.empty(len(order) + 1, dtype=np.int64)
        before[order], before[-1] = np.arange(len(order)), len(order)
        calls = Calls(
            np.searchsorted(rank[order], np.arange(head.tasks + 1)).astype(np.int64),
            region[order],
            begin[order],
            end[order],
        )
        by[alone[0]] = count + np.arange(len(alone[0]))
        post[alone[1]] = done[alone[1]] = count + len(alone[0]) + np.arange(len(alone[1]))
        by, post, done = before[by], before[post], before[done]
    words = [mpi_name(name) for name in names]
    immediate = np.array(
        [bool(re.fullmatch(r"i[bsr]?send|start|startall", word)) for word in words], dtype=bool
    )
    ends = _ends(
        calls, words, by, immediate[calls.region[by]] if len(by) else np.zeros(0, dtype=bool), done
    )
    call, finish = np.concatenate((by, post)), np.concatenate((ends, done))
    order = np.argsort(call, kind="stable")
    zeros = np.zeros(2 * len(by), dtype=np.int64)
    sends = np.arange(2 * len(by)) < len(by)
    columns = (
        call,
        finish,
        sends,
        np.concatenate((target, source)),
        np.tile(tag, 2),
        zeros,
        np.tile(size, 2),
    )
    ordered: Any = (column[order] for column in columns)
    messages = Messages(*ordered)
    return calls, messages, names, len(alone[0]) + len(alone[1]), before


def _inside(calls: Calls, rank: Ints, time: NDArray[np.float64]) -> Ints:
    """Call of a rank that a time lies in, or -1."""
    found = np.full(len(rank), -1, dtype=np.int64)
    for r in np.unique(rank).tolist():
        mine = np.flatnonzero(rank == r)
        first, behind = calls.offsets[r], calls.offsets[r + 1]
        at = first + np.searchsorted(calls.begin[first:behind], time[mine], side="right") - 1
        good = at >= first
        good[good] = time[mine][good] <= calls.end[at[good]]
        found[mine[good]] = at[good]
    return found


def _ends(
    calls: Calls, words: list[str], by: Ints, open_: NDArray[np.bool_], received: Ints
) -> Ints:
    """Call that completes each send: its own, or of a non-blocking one a wait behind it, or -1."""
    done = by.copy()
    waiting = np.flatnonzero(open_)
    done[waiting] = -1
    all_ = np.array([word in ("waitall", "testall") for word in words], dtype=bool)[calls.region]
    one = np.array([word in ("wait", "waitany", "waitsome") for word in words], dtype=bool)[
        calls.region
    ]
    free = np.zeros(len(calls.region), dtype=bool)
    free[one] = True
    free[received[received >= 0]] = False
    waits = np.flatnonzero(all_ | (free & one))
    ranks = calls.ranks()
    sends = waiting[np.argsort(by[waiting], kind="stable")]
    at = 0
    pending: list[int] = []
    for wait in [*waits.tolist(), -1]:
        rank = int(ranks[wait]) if wait >= 0 else -1
        while at < len(sends) and (wait < 0 or by[sends[at]] < wait):
            pending.append(int(sends[at]))
            at += 1
        pending = [send for send in pending if ranks[by[send]] == rank]
        if wait >= 0 and pending:
            over = len(pending) if all_[wait] else 1
            done[pending[:over]] = wait
            pending = pending[over:]
    return done


def _collectives(
    calls: Calls,
    call: Ints,
    event: Ints,
    names: tuple[str, ...],
    kind: Ints,
    value: Ints,
    line: Ints,
    members: list[Ints],
    alias: dict[int, int],
) -> tuple[Acts, int]:
    """List collectives, with sizes from the line that begins them; count untold roots."""
    words = [mpi_name(name) for name in names]
    base = [
        word[1:] if word.startswith("i") and word[1:] in _COLLECTIVES else word for word in words
    ]
    operation = np.array([int(_COLLECTIVES.get(word, -1)) for word in base], dtype=np.int64)
    found = operation[calls.region[call]] >= 0
    call, event = call[found], event[found]
    sort = operation[calls.region[call]]
    rank = calls.ranks()[call]
    about = {}
    for type_ in (_SENT, _RECEIVED, _ROOT, _COMM):
        which = np.flatnonzero(kind == type_)
        column = np.full(int(line.max(initial=-1)) + 1, -1, dtype=np.int64)
        column[line[which]] = value[which]
        about[type_] = column[line[event]]
    strange = sorted({int(number) for number in about[_COMM] if number >= 0} - set(alias))
    if strange:
        raise TraceError(
            f"communicator {strange[0]}: collectives on it: expected a line c: with tasks of the "
            "program"
        )
    comm = np.array([alias.get(int(number), 0) for number in about[_COMM]], dtype=np.int64)
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
                f"task {rank[stray][0] + 1}: a collective on communicator "
                f"{about[_COMM][stray][0]}: expected one of its members"
            )
    size = np.array([max(len(group), 1) for group in groups], dtype=np.int64)[comm]
    sent, received = np.maximum(about[_SENT], 0), np.maximum(about[_RECEIVED], 0)
    root, untold = _roots(sort, comm, rank, about[_ROOT], sent, received, groups)

    def of(*operations: Collective) -> NDArray[np.bool_]:
        return np.isin(sort, operations)

    part, total = sent.copy(), received.copy()
    part[of(Collective.BCAST)] = np.maximum(sent, received)[of(Collective.BCAST)]
    gets = of(Collective.SCATTER, Collective.SCATTERV, Collective.REDUCE_SCATTER)
    part[gets], total[gets] = received[gets], sent[gets]
    out, in_ = account(sort, size, own, root == rank, part, total)
    columns = {"comm": comm, "operation": sort, "size": out, "received": in_}
    return acts(call, Kind.COLLECTIVE_END, peer=root, **columns), untold


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
    order = np.argsort(key, kind="stable")
    turn = np.empty(len(key), dtype=np.int64)
    turn[order] = np.arange(len(key)) - np.searchsorted(key[order], key[order])
    which = np.stack((comm[rooted], turn[rooted]))
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

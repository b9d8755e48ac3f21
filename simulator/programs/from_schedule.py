"""From a schedule, a graph of operations per rank, to the program that a replay executes.

Every edge is kept. What depends on one another follows in a task; what branches off starts a
task of its own, and what joins waits. An operation that another task waits for is waited for
by its row, or by a START of an empty task behind it, which is a sign that it has come so far.
A send or receive that others do not wait for ends before its rank does.

Processors (``cpu``) and network interfaces (``nic``) are left to the program: computations that no
edge orders overlap even if they are on one processor, which LogGOPSim would run one
after the other, and all messages of a rank take turns at one interface.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hopmap.arrays import Ints
from hopmap.traces import Omission, TraceError, require_memory
from hopmap.traces.matching import ANY, Messages, pair_up
from hopmap.traces.schedule import Schedule, Task

from .program import Program

NANOSECOND = 1e-9
BYTES_PER_OPERATION = 300  # that this takes at its peak


def program_of_schedule(schedule: Schedule) -> Program:
    """Turn a schedule into a program."""
    from . import schedule_kernels as kernels

    require_memory(
        BYTES_PER_OPERATION * schedule.operations,
        f"{schedule.name}: {schedule.operations:,} operations",
        "take fewer ranks or steps",
    )
    schedule, guessed = _match_receives(schedule)
    offsets, kind, total = schedule.offsets, schedule.kind, schedule.operations
    first, edges = _by_owner(schedule.after, total)
    graph = kernels.Graph(
        *(offsets, kind, schedule.size, schedule.after, schedule.before, schedule.begun),
        *(first, edges, *_by_owner(schedule.before, total)),
    )
    works = (kind == Task.CALC) & (schedule.size > 0)
    order, circle = kernels.sort_operations(graph, works)
    if circle >= 0:
        rank = int(np.searchsorted(offsets, circle, side="right")) - 1
        raise TraceError(
            f"{schedule.name}: rank {rank}: operation {circle - offsets[rank]} waits for itself: "
            "expected dependencies without a circle"
        )
    task, parent = (np.full(total, -1, dtype=np.int64) for _ in range(2))
    division = kernels.Division(np.zeros(len(edges), dtype=np.uint8), task, parent)
    counts = kernels.tasks_of(graph, order, division)
    tasks = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    owner = schedule.rank_of_operation()
    begins, listed = _by_owner((tasks[owner] + task)[order], int(tasks[-1]))
    listed = order[listed]
    branches = order[parent[order] > -2]
    roots = np.where(parent[branches] < 0, total + owner[branches], parent[branches])
    child, children = _by_owner(roots, total + schedule.ranks)
    children = task[branches][children]
    ordered = kernels.Order(tasks, begins, listed, child, children)
    none = np.zeros(0, dtype=np.int64)
    written = kernels.Written(none, none, np.zeros((0, 4), dtype=np.int64))
    made, rows = kernels.rows_of(graph, division, ordered, written)
    of_task, rank_of = np.empty(made, dtype=np.int64), np.empty(made, dtype=np.int64)
    table = np.empty((rows, 4), dtype=np.int64)
    kernels.rows_of(graph, division, ordered, kernels.Written(of_task, rank_of, table))
    op, pause, about, target = (column.copy() for column in table.T)
    some = about >= 0

    def message_column(column: Ints, otherwise: int) -> Ints:
        values = np.full(rows, otherwise, dtype=np.int64)
        values[some] = column[about[some]]
        return values

    return Program(
        name=schedule.name,
        offsets=np.append(of_task, rows),
        rank_of=rank_of.astype(np.int32),
        kind=op.astype(np.uint8),
        compute=np.multiply(pause, NANOSECOND, dtype=np.float64),
        peer=message_column(schedule.peer, -1).astype(np.int32),
        tag=message_column(_labels(schedule), -1).astype(np.int32),
        context=np.where(some, 0, -1).astype(np.int32),
        size=message_column(schedule.size, 0),
        target=target,
        omitted=_list_omissions(schedule, task, guessed),
    )


def _by_owner(owner: Ints, count: int) -> tuple[Ints, Ints]:
    """Row pointers and entries, in order, of what each of `count` owners has."""
    first = np.concatenate(([0], np.cumsum(np.bincount(owner, minlength=count))))
    return first, np.argsort(owner, kind="stable")


def _labels(schedule: Schedule) -> Ints:
    """Tags as numbers below 2^31."""
    if not len(schedule.tag) or schedule.tag.max() < 2**31:
        return schedule.tag
    return np.unique(schedule.tag, return_inverse=True)[1].reshape(-1)


def _match_receives(schedule: Schedule) -> tuple[Schedule, int]:
    """Say of receives from anyone, or of any tag, what they take; return how many there were."""
    messages = np.flatnonzero(schedule.kind != Task.CALC)
    sends = schedule.kind[messages] == Task.SEND
    peer, tag = schedule.peer[messages], schedule.tag[messages]
    wild = ~sends & ((peer == ANY) | (tag == ANY))
    if not wild.any():
        return schedule, 0
    rank = schedule.rank_of_operation()[messages]
    blank = np.zeros(len(messages), dtype=np.int64)
    messages_in = Messages(messages, messages, sends, peer, tag, blank, schedule.size[messages])
    settled, found, untold = pair_up(messages_in, rank, np.zeros(len(messages)))
    if untold:
        odd = np.setdiff1d(messages, settled.call)[0]
        owner = int(np.searchsorted(schedule.offsets, odd, side="right")) - 1
        raise TraceError(
            f"{schedule.name}: rank {owner}, operation {odd - schedule.offsets[owner]}: a receive "
            "from any source or of any tag that no message is left for"
        )
    whole = {key: getattr(schedule, key).copy() for key in ("peer", "tag")}
    for key, column in whole.items():
        column[settled.call] = getattr(settled, key)
    return replace(schedule, **whole), found


def _list_omissions(schedule: Schedule, task: Ints, guessed: int) -> tuple[Omission, ...]:
    """Say what of processors, interfaces and open receives is not as LogGOPSim has it."""
    works = np.flatnonzero((schedule.kind == Task.CALC) & (schedule.size > 0))
    place = schedule.rank_of_operation()[works] * 2**16 + schedule.cpu[works]
    _, first, inverse = np.unique(place, return_index=True, return_inverse=True)
    overlapping = int((task[works] != task[works[first]][inverse.reshape(-1)]).sum())
    cpus = int((schedule.cpu > 0).sum())
    nics = int((schedule.nic > 0).sum())
    counts = {
        "operations on processors (cpu) other than 0, ordered by dependencies alone": cpus,
        "computations that may overlap others on their processor (cpu)": overlapping,
        "operations on network interfaces (nic) other than 0, treated as one interface": nics,
        "receives from any source or of any tag, matched with senders in their order": guessed,
    }
    return tuple(Omission(what, count) for what, count in counts.items() if count)

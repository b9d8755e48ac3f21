"""Calls of threads of a rank that overlap: the others' become tasks, concurrent with the first's.

A stretch is time in which calls follow each other so closely that none begins after all before it
are over. If several threads have calls in it, each but the first has a task: it starts where the
stretch does, waits as long as its thread did before its first call there, makes its calls in their
order, and is joined behind the last call of the first thread. Calls that do not overlap follow each
other as they were recorded, since one thread may have waited for another; those that begin where
others end may not have, and would wait for each other in a ring if both did.

Under MPI_THREAD_FUNNELED and _SERIALIZED no calls overlap (MPI 4.1, section 11.6.2): there, in
loops, and where one thread completes what another one began, calls are made one after the other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hopmap.arrays import Bools, Floats, Ints
from hopmap.traces import Trace
from hopmap.traces.trace import THREAD_LEVELS

from .mpi_calls import Calls
from .operation_rows import POST_RECEIVES, REST, Rows, rows_of
from .program import Op


class ThreadTasks(NamedTuple):
    """Tasks of threads, and what of the rank's own calls they change."""

    rank: Ints  # shape (tasks,)
    begin: Ints  # shape (tasks,): calls at which each starts, and behind which it is joined
    end: Ints
    task: Ints  # shape (calls,): task of each call, -1 of the rank's own
    # shape (calls,): seconds since the call before it in its thread, of calls in these stretches;
    # NaN of all others
    gap: Floats
    serialised: int  # calls that overlap and are made one after the other all the same

    @property
    def shared(self) -> Bools:
        """Which calls stand in a stretch with tasks."""
        return ~np.isnan(self.gap)


def no_tasks(calls: Calls) -> ThreadTasks:
    """Return what a trace without such calls has."""
    none, count = np.zeros(0, dtype=np.int64), len(calls.gap)
    return ThreadTasks(none, none, none, np.full(count, -1), np.full(count, np.nan), 0)


def plan_threads(trace: Trace, calls: Calls, rows: Rows, *, loops: bool) -> ThreadTasks:
    """Find the stretches in which several threads of a rank have calls with operations.

    `rows` are all operations so far, the WAITs among them with their targets in the same list.
    """
    found = no_tasks(calls)
    if trace.thread is None:
        return found
    own = rows.task < 0
    call_of_row = calls.of_event[rows.event].astype(np.int64)
    acts = np.zeros(len(calls.gap), dtype=np.bool_)
    acts[call_of_row[own]] = True
    acts[calls.finish] = False
    which = np.flatnonzero(acts)
    rank = np.searchsorted(calls.finish, which)
    thread = trace.thread[calls.first[which]].astype(np.int64)
    start, end = trace.time[calls.first[which]], trace.time[calls.last[which]]
    stretch = _stretches(rank, start, end)
    first = np.flatnonzero(np.diff(stretch, prepend=-1))
    others = thread != thread[first][stretch]
    several = np.zeros(len(first), dtype=np.bool_)
    several[stretch[others]] = True

    tangled = np.zeros(len(first), dtype=np.bool_)
    if loops or trace.thread_level in SERIAL:
        tangled[:] = True
    place = np.full(len(calls.gap), -1)
    place[which] = np.arange(len(which))
    waits = np.flatnonzero(own & (rows.kind == Op.WAIT))
    ends, begins = place[call_of_row[waits]], place[call_of_row[rows.target[waits]]]
    apart = (thread[ends] != thread[begins]) & (stretch[ends] == stretch[begins])
    tangled[stretch[ends[apart]]] = True
    serialised = int(others[(several & tangled)[stretch]].sum())
    several &= ~tangled

    inside = np.flatnonzero(several[stretch])
    order = inside[np.lexsort((inside, thread[inside], stretch[inside]))]
    fresh = np.ones(len(order), dtype=np.bool_)
    fresh[1:] = (np.diff(stretch[order]) > 0) | (np.diff(thread[order]) != 0)
    before = np.where(fresh, start[first[stretch[order]]], end[np.roll(order, 1)])
    gap = np.full(len(calls.gap), np.nan)
    gap[which[order]] = np.maximum(start[order] - before, 0.0)
    gap[which[first[several]]] = calls.gap[which[first[several]]]
    heads = order[fresh & others[order]]
    number = np.full(len(order), -1)
    number[others[order]] = (np.cumsum(fresh & others[order]) - 1)[others[order]]
    task = found.task.copy()
    task[which[order]] = number
    mains = order[~others[order]]
    last = np.zeros(len(first), dtype=np.int64)
    np.maximum.at(last, stretch[mains], which[mains])
    return ThreadTasks(
        rank=rank[heads],
        begin=which[first[stretch[heads]]],
        end=last[stretch[heads]],
        task=task,
        gap=gap,
        serialised=serialised,
    )


SERIAL = tuple(map(THREAD_LEVELS.index, ("SINGLE", "FUNNELED", "SERIALIZED")))


def _stretches(rank: Ints, start: Floats, end: Floats) -> Ints:
    """Count the stretches of calls, which stand in the order of their starts, rank by rank."""
    stretch = np.zeros(len(rank), dtype=np.int64)
    until, now, number = -np.inf, -1, -1
    columns = (rank.tolist(), start.tolist(), end.tolist())
    for k, (of, begin, over) in enumerate(zip(*columns, strict=True)):
        if of != now or begin > until:
            number, until, now = number + 1, -np.inf, of
        until = max(until, over)
        stretch[k] = number
    return stretch


def thread_rows(calls: Calls, tasks: ThreadTasks, number: Ints) -> Rows:
    """Start the tasks of these numbers, and wait for them; WAITs count from the first row here."""
    count = len(tasks.rank)
    return rows_of(
        np.concatenate((calls.first[tasks.begin], calls.last[tasks.end])),
        np.repeat([POST_RECEIVES, REST], count),
        np.repeat([Op.START, Op.WAIT], count),
        target=np.concatenate((number, np.arange(count))),
    )


def first_rows(calls: Calls, rows: Rows, tasks: ThreadTasks) -> tuple[Ints, Floats]:
    """Return the first row of each call of a task, and the seconds before it."""
    call = calls.of_event[rows.event].astype(np.int64)
    mine = np.flatnonzero((tasks.task[call] >= 0) & (rows.task < 0))
    order = mine[np.lexsort((rows.event[mine], rows.phase[mine], call[mine]))]
    fresh = np.flatnonzero(np.diff(call[order], prepend=-1))
    return order[fresh], tasks.gap[call[order[fresh]]]

"""Lowering: from the trace of a run to the program that a replay executes.

A call is an outermost region of MPI, or a record outside any. What it did stands in its records;
how long it took is left to the simulation. Time between calls is computation, except for what
`computation.py` says.

* A call with one SEND or RECV is blocking. A call with more (Sendrecv, Waitall, Startall) first
  posts its receives, then its sends, then waits in recorded order, so that it cannot deadlock.
* A non-blocking receive is taken at its request, with the partner, tag and size known at its
  completion. Requests that were cancelled are dropped, and so are receives that were never
  completed and of which `with_freed_receives` cannot tell what they took; both are counted.
* What a matched probe found is received there (`with_matched_probes`).
* A send whose request was never completed (freed) is sent and not waited for.
* Collectives become rounds of messages (`algorithms.py`): the k-th on a communicator at each
  member is one operation. Calls that make, free or allocate handles (MPI_Init, MPI_Comm_split,
  MPI_Finalize, ...) synchronise like a barrier, of some members where only some call
  (`collective_calls.py`). Communicators of one member move nothing.
* A non-blocking collective is a task that starts at its request, goes on in the background, and
  is joined at its completion.
* One-sided operations become messages that targets take no part in (`one_sided.py`).
* A call during which another thread of its rank computes lasts as long as that at least: the
  computation is a concurrent task. So are calls of threads that overlap (`thread_calls.py`); all
  others of a rank are made in the order of the recording.
* A loop of a folded trace becomes a REPEAT behind the last call of its body.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from hopmap.arrays import Ints
from hopmap.traces import Folded, Kind, Trace, TraceError, require_memory
from hopmap.traces.summary import Doubt
from hopmap.traces.traffic import EXACT

from .collective_calls import Found
from .computation import computation, omissions_of, other_threads_seconds
from .from_collectives import collective_rows, find_collectives
from .mpi_calls import Calls, calls_of, event_name
from .one_sided import one_sided_rows
from .operation_rows import (
    POST_RECEIVES,
    REST,
    Background,
    Rows,
    assemble,
    loop_rows,
    message_rows,
    rows_of,
)
from .program import Op, Program
from .requests import (
    count_dropped,
    pair_requests,
    ranks_of,
    with_freed_receives,
    with_matched_probes,
)
from .thread_calls import ThreadTasks, first_rows, plan_threads, thread_rows

SERIALISED = "calls of several threads at once, made one after the other"
BYTES_PER_EVENT = 130  # that lowering takes at its peak, measured on LU; the program takes 15


def lower(trace: Trace | Folded, algorithms: Mapping[str, str] | None = None) -> Program:
    """Turn a trace into a program, and a folded trace into a program with loops.

    `algorithms` of collectives are `Parameters.algorithms`.
    """
    algorithms = dict(algorithms or {})
    if isinstance(trace, Folded):
        folded, trace = trace, trace.trace
    else:
        none = np.zeros(0, dtype=np.int64)
        folded = Folded(trace, none, none, none)
    require_memory(
        BYTES_PER_EVENT * trace.events,
        f"{trace.name}: lowering {trace.events:,} events",
        "take fewer steps or ranks",
    )
    calls = calls_of(trace)
    gap, timed = computation(trace, calls)
    calls = calls._replace(gap=gap)
    recorded, trace = trace, with_matched_probes(trace)
    folded = folded._replace(trace=trace)
    events = np.flatnonzero(trace.kind > Kind.LEAVE)
    kind, rank = trace.kind[events], ranks_of(trace, events)
    partner, gone = pair_requests(trace, events, kind)
    freed = np.flatnonzero((kind == Kind.IRECV_REQUEST) & (partner < 0) & ~gone)
    trace, freed_with_partner = with_freed_receives(trace, events, rank, freed, partner, gone)
    partner[freed_with_partner] = freed_with_partner
    dropped = count_dropped(kind, partner, gone)
    one_sided = one_sided_rows(trace, calls)
    if len(folded.begin) and len(one_sided.rows.event):
        raise TraceError(f"{trace.name}: folded, with one-sided operations: expected it unfolded")
    omitted = omissions_of(recorded, timed, dropped) + one_sided.omitted
    messages = message_rows(trace, calls, events, kind, partner, gone)
    found = find_collectives(folded, rank, events, kind, partner)
    made, worked, carried = collective_rows(trace, found, algorithms)
    own = _joined([messages, one_sided.rows, made])
    tasks = plan_threads(trace, calls, own, loops=len(folded.begin) > 0)
    if tasks.serialised:
        omitted += (Doubt(SERIALISED, tasks.serialised),)
    other_rows, (of_memory, collectives), background, numbers = _other_rows(
        trace, calls, (one_sided.rows, made), found, one_sided.served, tasks
    )
    threads = thread_rows(calls, tasks, numbers)
    acting = np.concatenate((messages.event, of_memory.event, collectives.event))
    late = worked.row[worked.behind]
    working = collectives.event[late[collectives.task[late] < 0]]
    folded = _after_pauses(folded, calls, acting, working)
    # What one-sided calls wait for stands before the barrier of a fence.
    parts = [loop_rows(folded), messages, of_memory, collectives, other_rows, threads]
    before = np.cumsum([0, *(len(part.event) for part in parts)])
    rows = _joined(parts)
    beginning = first_rows(calls, rows, tasks)
    of_thread = tasks.task[calls.of_event[rows.event]]
    theirs = (of_thread >= 0) & (rows.task < 0)
    rows.task[theirs] = numbers[of_thread[theirs]]
    gap = np.where(tasks.task >= 0, 0.0, np.where(tasks.shared, tasks.gap, calls.gap))
    calls = calls._replace(gap=gap)
    for huge in np.flatnonzero(rows.size > EXACT)[:1]:
        at = event_name(trace, rows.event[huge])
        raise TraceError(f"{at}: {rows.size[huge]:,} bytes: expected at most 2^53")
    worked = worked._replace(row=worked.row + before[3])
    program = assemble(trace, calls, rows, worked, background, folded.begin, beginning)
    more = carried._asdict() | {"algorithms": algorithms, "dropped": dropped}
    return replace(program, **more, omitted=omitted)


def _joined(parts: Sequence[Rows]) -> Rows:
    """Put rows behind each other, targets of WAITs counted in all of them."""
    before = np.cumsum([0, *(len(part.event) for part in parts)])
    shifted = []
    for part, shift in zip(parts, before[:-1], strict=True):
        target = part.target + shift * (part.kind == Op.WAIT)
        shifted.append(part._replace(target=target))
    return Rows(*map(np.concatenate, zip(*shifted, strict=True)))


def _after_pauses(folded: Folded, calls: Calls, acting: Ints, working: Ints) -> Folded:
    """Enclose calls without operations that stand before a loop in loops of one iteration.

    Else the computation before such a call would be added to what stands first in the loop. So
    would the work that a call does behind its last operation.
    """
    acts = np.zeros(len(calls.gap), dtype=np.bool_)
    acts[calls.of_event[acting]] = True
    acts[calls.of_event[working]] = False
    acts[calls.of_event[folded.end - 1]] = True
    first = np.isin(folded.begin, folded.trace.offsets)
    begin = np.unique(folded.begin[~first])
    idle = begin[~acts[calls.of_event[begin - 1]]]
    return folded._replace(
        begin=np.concatenate((idle - 1, folded.begin)),
        end=np.concatenate((idle, folded.end)),
        times=np.concatenate((np.ones_like(idle), folded.times)),
    )


def _other_rows(
    trace: Trace,
    calls: Calls,
    made: tuple[Rows, Rows],
    collectives: Found,
    served: Ints,
    threads: ThreadTasks,
) -> tuple[Rows, tuple[Rows, Rows], Background, Ints]:
    """Begin what other threads compute during calls with these, and wait for it at their ends.

    `made` are the rows of one-sided operations and of collectives; the second result is `made`,
    with the tasks of a rank numbered: collectives, what other threads compute, its memory, threads
    with calls. The last result are the numbers of these.
    """
    seconds = np.where(threads.shared, 0.0, other_threads_seconds(trace, calls))
    which = np.flatnonzero(seconds)
    rank = np.searchsorted(calls.finish, which)
    others = collectives.rank[collectives.task >= 0]
    owner = np.concatenate((others, rank, served, threads.rank))
    order = np.argsort(owner, kind="stable")
    number = np.empty_like(order)
    number[order] = np.arange(len(order)) + owner[order] + 1
    compute = np.zeros(len(owner))
    compute[len(others) : len(others) + len(rank)] = seconds[which]
    background = Background(owner[order], compute[order])

    # Collectives' tasks were numbered as if there were no others, memory's from 0.
    of_collectives = np.zeros(trace.ranks + len(others) + 1, dtype=np.int64)
    of_collectives[np.arange(len(others)) + others + 1] = number[: len(others)]
    of_memory = number[len(others) + len(rank) : len(owner) - len(threads.rank)]
    renumbered = _renumber(made[0], of_memory), _renumber(made[1], of_collectives)
    begun = number[len(others) : len(others) + len(rank)]
    rows = rows_of(
        np.concatenate((calls.first[which], calls.last[which])),
        np.repeat([POST_RECEIVES, REST], len(which)),
        np.repeat([Op.START, Op.WAIT], len(which)),
        target=np.concatenate((begun, np.arange(len(which)))),
    )
    return rows, renumbered, background, number[len(owner) - len(threads.rank) :]


def _renumber(rows: Rows, number: Ints) -> Rows:
    """Give tasks, and what begins them, the numbers of the program."""
    task, target = rows.task.copy(), rows.target.copy()
    for column, which in ((task, task >= 0), (target, rows.kind == Op.START)):
        column[which] = number[column[which]]
    return rows._replace(task=task, target=target)

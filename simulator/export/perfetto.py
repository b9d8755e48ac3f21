"""A simulated run as JSON that Perfetto (ui.perfetto.dev) and chrome://tracing show.

Ranks are processes, their background collectives threads. Slices: computation, MPI calls,
collectives with their messages inside, and the waiting within each. Arrows are messages; counters
are the use of links, if it was kept.

Source: Duffy, Sinclair: Trace Event Format, Google, 2016, whose times are microseconds. They are
whole nanoseconds here, the resolution of the viewers, so that slices nest exactly.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.arrays import Bools, Floats, Ints
from hopmap.errors import HopmapError
from hopmap.simulator.link_use import LinkUse
from hopmap.simulator.operations import Operations
from hopmap.simulator.programs.program import Op, Program
from hopmap.simulator.result import Result, require_recorded
from hopmap.topologies import Topology
from hopmap.traces import Collective
from hopmap.traces.safety.atomic_files import replacing

Event = dict[str, Any]

NAMES = {Op.SEND: "Send", Op.ISEND: "Isend", Op.RECV: "Recv", Op.IRECV: "Irecv", Op.WAIT: "Wait"}

MOST = 5_000_000  # events; about what browsers can hold


class Slices(NamedTuple):
    """Where and when each operation ran, times in whole nanoseconds."""

    pid: Ints
    tid: Ints
    begin: Ints
    ready: Ints
    posted: Ints  # a send is done with its overhead; of others as `ready`
    woken: Ints  # as `posted` where nothing was waited for
    end: Ints


def slices_of(program: Program, result: Result) -> Slices:
    """Return the times of a run whose operations were recorded."""
    ops, times = result.operations, result.message_times
    assert ops is not None
    assert times is not None
    rank = program.rank_of[ops.task].astype(np.int64)
    kind = program.kind[ops.row]
    posted = ops.ready.copy()
    sends = (kind == Op.SEND) | (kind == Op.ISEND)
    posted[sends] = times.sent[ops.message[sends]]
    woken = np.where(np.isnan(ops.woken), posted, ops.woken)

    def nanoseconds(seconds: Floats) -> Ints:
        return np.rint(seconds * 1e9).astype(np.int64)

    stamps = map(nanoseconds, (ops.begin, ops.ready, posted, woken, ops.end))
    return Slices(rank, ops.task - program.main()[rank], *stamps)


def names(program: Program, node_of: Ints) -> Iterator[Event]:
    """Yield the names of ranks and tasks."""
    main = program.main()
    for task, rank in enumerate(program.rank_of.tolist()):
        tid = task - int(main[rank])
        common = {"ph": "M", "ts": 0, "pid": rank, "tid": tid}
        if tid == 0:
            name = f"rank {rank} on node {int(node_of[rank])}"
            yield {"name": "process_name", **common, "args": {"name": name}}
            yield {"name": "process_sort_index", **common, "args": {"sort_index": rank}}
        name = f"collective {tid}" if tid else "MPI"
        name = f"memory {tid}" if tid and program.serves_memory(task) else name
        yield {"name": "thread_name", **common, "args": {"name": name}}


def operations(program: Program, ops: Operations, slices: Slices) -> Iterator[Event]:
    """Yield computation, calls and waiting; outer slices before those in them."""
    kinds = program.kind[ops.row]
    # A WAIT is of the collective whose message it waits for.
    row = ops.row[np.where(ops.awaited >= 0, ops.awaited, np.arange(len(ops.row)))]
    context, tag = program.context[row], program.tag[row]
    acts = np.isin(kinds, (*NAMES, Op.START))
    within = acts & (context >= program.communicators) & (context < 2 * program.communicators)
    whole = _collectives(ops, within, context, tag)
    columns = (*slices, kinds, acts, within, row)
    for entry, (pid, tid, begin, ready, posted, woken, end, kind, act, inner, at) in enumerate(
        zip(*(column.tolist() for column in columns), strict=True)
    ):
        place = {"pid": pid, "tid": tid}
        if ready > begin:
            yield _slice("compute", "compute", place, begin, ready)
        if not act:
            continue
        if entry in whole:
            until = int(slices.end[whole[entry]])
            which = {"collective": int(tag[entry]), "communicator": int(context[entry])}
            which["communicator"] -= program.communicators
            outer = _slice(_name(program, at), "collective", place, ready, until)
            yield outer | {"args": which}
        word = NAMES.get(Op(kind), "start of a collective")
        if kind == Op.START and program.serves_memory(int(program.target[at])):
            word = "start of serving memory"
        call = not inner and kind != Op.START
        name, cat = (f"MPI_{word}", "mpi") if call else (word.lower(), "message")
        yield _slice(name, cat, place, ready, end) | {"args": _details(program, at)}
        if woken > posted:
            yield _slice("waiting", "wait", place, posted, woken)


def _slice(name: str, cat: str, place: Event, since: int, until: int) -> Event:
    times = {"ts": _micros(since), "dur": _micros(until - since)}
    return {"name": name, "cat": cat, "ph": "X", **place, **times}


def _collectives(
    ops: Operations, within: Bools, context: NDArray[Any], tag: NDArray[Any]
) -> dict[int, int]:
    """First and last operation of each collective of a task; they stand together."""
    changes = np.ones(len(within), dtype=np.bool_)
    changes[1:] = within[1:] != within[:-1]
    for column in (ops.task, context, tag):
        changes[1:] |= np.diff(column) != 0
    first = np.flatnonzero(changes)
    last = np.append(first[1:], len(within)) - 1
    of_collective = within[first]
    return dict(zip(first[of_collective].tolist(), last[of_collective].tolist(), strict=True))


def _name(program: Program, row: int) -> str:
    """MPI's name of the collective that a row is part of; ours of making and freeing handles."""
    operations = program.collectives.get(int(program.context[row]))
    if operations is None:
        return "collective"
    operation = Collective(operations[program.tag[row]])
    if operation >= Collective.CREATE_HANDLE:
        return operation.name.lower().replace("_", " ")
    return f"MPI_{operation.name.capitalize()}"


def _details(program: Program, row: int) -> dict[str, int]:
    if program.peer[row] < 0:
        return {}
    details = {"peer": int(program.peer[row]), "bytes": int(program.size[row])}
    if program.context[row] < program.communicators:
        details |= {"tag": int(program.tag[row]), "communicator": int(program.context[row])}
    return details


def messages(program: Program, ops: Operations, slices: Slices) -> Iterator[Event]:
    """Yield arrows from the slice that sends to the slice that takes the message."""
    kind = program.kind[ops.row]
    sends = np.flatnonzero((kind == Op.SEND) | (kind == Op.ISEND))
    takes = np.flatnonzero((kind == Op.RECV) | (kind == Op.WAIT))
    begun = ops.awaited[takes]
    receives = (kind[begun] == Op.RECV) | (kind[begun] == Op.IRECV)
    # The first that waits for a message takes it.
    taken = np.full(len(sends), -1)
    taken[ops.message[begun[receives][::-1]]] = takes[receives][::-1]
    for number, (source, target) in enumerate(zip(sends.tolist(), taken.tolist(), strict=True)):
        if target < 0:
            continue
        # The end of a slice is no longer in it.
        arrival = max(int(slices.ready[target]), int(slices.end[target]) - 1)
        common = {"name": "message", "cat": "message", "id": number}
        for entry, time, phase in (
            (source, int(slices.ready[source]), {"ph": "s"}),
            (target, arrival, {"ph": "f", "bp": "e"}),
        ):
            place = {"pid": int(slices.pid[entry]), "tid": int(slices.tid[entry])}
            yield common | phase | place | {"ts": _micros(time)}


def counters(use: LinkUse, topology: Topology, pid: int) -> Iterator[Event]:
    """Yield the share of each bin that links of each kind were busy, mean and most."""
    common = {"pid": pid, "tid": 0}
    yield {"name": "process_name", "ph": "M", "ts": 0, **common, "args": {"name": "links"}}
    for number, kind in enumerate(topology.kinds):
        share = use.fraction[topology.link_kind == number]
        if not len(share):
            continue
        lines = zip(share.mean(axis=0).tolist(), share.max(axis=0).tolist(), strict=True)
        for k, (mean, most) in enumerate(lines):
            time = _micros(round(k * use.width * 1e9))
            shares = {"mean": mean, "most": most}
            yield {"name": f"busy: {kind.name}", "ph": "C", "ts": time, **common, "args": shares}


def _micros(nanoseconds: int) -> float:
    """Microseconds, of which every reader makes the same nanoseconds again."""
    return nanoseconds / 1000


class ViewerError(HopmapError, ValueError):
    """A timeline too long for its viewers."""


def write_perfetto(
    path: str | Path, program: Program, result: Result, topology: Topology, node_of: Ints
) -> int:
    """Write a run whose operations were recorded; return the number of events."""
    expect_viewable(path, program)
    ops = require_recorded(program, result)
    slices = slices_of(program, result)
    written = 0
    with replacing(path) as partial, partial.open("w", encoding="utf-8") as out:
        out.write('{"displayTimeUnit": "ns", "otherData": ')
        about = {"name": program.name, "topology": topology.spec, "engine": result.engine}
        out.write(json.dumps({**about, "makespan": str(result.makespan)}))
        out.write(', "traceEvents": [')
        use = result.link_use
        events = chain(
            names(program, node_of),
            operations(program, ops, slices),
            messages(program, ops, slices),
            () if use is None else counters(use, topology, program.ranks),
        )
        for event in events:
            out.write((",\n" if written else "\n") + json.dumps(event))
            written += 1
        out.write("\n]}\n")
    return written


def expect_viewable(path: str | Path, program: Program) -> None:
    """Refuse programs of more than `MOST` operations and ends of messages, which are events."""
    times = program.iterations()
    events = int(times[program.kind != Op.REPEAT].sum() + 2 * times[program.sends()].sum())
    if events > MOST:
        raise ViewerError(
            f"{path}: {events:,} events or more: expected at most {MOST:,}, which viewers can "
            f"open: take fewer steps, or an OTF2 archive"
        )

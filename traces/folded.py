"""Folded traces: what repeats is listed once, with the number of its iterations.

A full NAS run has hundreds of millions of messages but few different ones. Its folded trace has
them once; the simulator lowers it to a program with loops.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from hopmap.arrays import Floats, Ints, Ints32, Table

from .calls import CALL, count_calls, trace_of_calls, with_requests
from .safety.memory import require_memory
from .trace import Kind, Spans, Trace, columns_of
from .traffic import Traffic, traffic_of


class Repeat(NamedTuple):
    """Calls that a rank makes `times` times over: tables of calls, and loops."""

    times: int
    body: list[Table | Repeat]


Parts = list[Table | Repeat]


class Recorded(NamedTuple):
    """What differs between iterations of a recording that was folded: columns of its `Trace`."""

    time: Floats
    request: Ints
    spans: Spans


class Folded(NamedTuple):
    """A trace in which the bodies of loops stand once, and these loops, inner ones first."""

    trace: Trace  # its times are of no use across loops
    # (loops,): the body of a loop is events ``begin`` to ``end - 1``: whole calls of one rank, the
    # first of them with what was recorded since the call before
    begin: Ints
    end: Ints
    times: Ints  # (loops,)
    recorded: Recorded | None = None  # of a recording, what is lost in its loops

    def iterations(self, events: Ints) -> Ints:
        """How often each of these events takes place; `events` in rising order."""
        iterations = np.ones(len(events), dtype=np.int64)
        begin, end = np.searchsorted(events, (self.begin, self.end))
        for first, behind, times in zip(begin, end, self.times, strict=True):
            iterations[first:behind] *= times
        return iterations


BYTES_PER_EVENT = 100  # of a trace while it is put together


def unfold(folded: Folded) -> Trace:
    """Write all iterations out, one after the other.

    A recording is as it was. Otherwise requests have the same numbers in all iterations, as
    persistent ones do.
    """
    trace = folded.trace
    events = int(folded.iterations(np.arange(trace.events)).sum())
    require_memory(
        BYTES_PER_EVENT * events,
        f"{trace.name}: the whole trace of {events:,} events",
        "keep its loops",
    )
    order = np.lexsort((-folded.end, folded.begin))
    rows = np.stack((folded.begin, folded.end, folded.times), axis=1)[order]
    loops = [tuple(row) for row in rows.tolist()]
    at = 0  # in loops

    def iterations_of(begin: int, end: int) -> Ints:
        nonlocal at
        parts = []
        while at < len(loops) and loops[at][1] <= end and loops[at][0] < end:
            first, behind, times = loops[at]
            at += 1
            parts += [np.arange(begin, first), np.tile(iterations_of(first, behind), times)]
            begin = behind
        return np.concatenate([*parts, np.arange(begin, end)])

    ranks = [iterations_of(b, e) for b, e in pairwise(trace.offsets.tolist())]
    chosen = np.concatenate([*ranks, np.zeros(0, dtype=np.int64)])
    offsets = np.concatenate(([0], np.cumsum([len(rank) for rank in ranks]))).astype(np.int64)
    gap = np.diff(trace.time, prepend=0.0)
    some = np.diff(trace.offsets) > 0
    gap[trace.offsets[:-1][some]] = trace.time[trace.offsets[:-1][some]]
    time = [np.cumsum(gap[rank]) for rank in ranks]
    written = replace(
        trace,
        offsets=offsets,
        time=np.rint(np.concatenate([*time, np.zeros(0)]) * 1e9) / 1e9,
        **columns_of(trace, chosen),
    )
    if folded.recorded is None:
        return written
    own = folded.recorded
    records = written.records._replace(request=own.request)
    return replace(written, time=own.time, spans=own.spans, records=records)


def trace_of_parts(
    name: str,
    ranks: int,
    programs: Iterable[Parts],
    communicators: Sequence[Ints32] = (),
) -> Trace:
    """Build the trace of a program from parts per rank, all calls; see `trace_of_calls`."""
    tables = (with_requests(_unroll(parts)) for parts in programs)
    return trace_of_calls(name, ranks, tables, communicators)


def folded_of_parts(
    name: str,
    ranks: int,
    programs: Iterable[Parts],
    communicators: Sequence[Ints32] = (),
) -> Folded:
    """Build the folded trace of a program from parts per rank; see `trace_of_calls`."""
    tables, loops = zip(*map(_bodies, programs), strict=True)
    trace = trace_of_calls(name, ranks, map(with_requests, tables), communicators)
    # Every call begins with its ENTER.
    calls = np.append(np.flatnonzero(trace.kind == Kind.ENTER), trace.events)
    first = np.cumsum([0] + [count_calls(table) for table in tables])
    rows = [
        (first[rank] + begin, first[rank] + end, times)
        for rank, of_rank in enumerate(loops)
        for begin, end, times in of_rank
    ]
    begin, end, times = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    return Folded(trace, calls[begin], calls[end], times)


def _unroll(parts: Parts) -> Table:
    """Table of all calls, iteration by iteration."""
    return np.concatenate(
        [
            np.tile(_unroll(part.body), part.times) if isinstance(part, Repeat) else part
            for part in parts
        ]
    )


def _bodies(parts: Parts, at: int = 0) -> tuple[Table, list[tuple[int, int, int]]]:
    """Table in which every body stands once, and (first call, call behind it, times) of loops."""
    tables, loops = [], []
    for part in parts:
        if isinstance(part, Repeat):
            table, inner = _bodies(part.body, at)
            loops += [*inner, (at, at + count_calls(table), part.times)]
        else:
            table = part
        tables.append(table)
        at += count_calls(table)
    # With an explicit type numpy does not infer it for each table, which takes half of the time.
    return np.concatenate(tables, dtype=CALL), loops


def traffic_of_folded(program: Folded) -> Traffic:
    """Point-to-point traffic of a program with loops, from its sends."""
    return traffic_of(program.trace, program.iterations)

"""Calls of MPI: the mode in which one sends, its events in a trace, and how long is between."""

from __future__ import annotations

import re
from dataclasses import replace
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.arrays import Floats, Ints, Ints32
from hopmap.simulator import model
from hopmap.traces import Kind, Role, Trace, TraceError, mpi_name
from hopmap.traces.trace import is_call

_CALL = re.compile(r"i?([bsr])send(_c)?")
_INITS = ("init", "init_thread", "session_init")


class SendMode(IntEnum):
    """How MPI sends a message (MPI 4.1, 3.4), or not MPI; what that means is in `model.py`."""

    STANDARD = model.STANDARD
    BUFFERED = model.BUFFERED
    SYNCHRONOUS = model.SYNCHRONOUS
    READY = model.READY
    PUT = model.PUT
    HARDWARE = model.HARDWARE
    RENDEZVOUS = model.RENDEZVOUS


LETTERS = {
    "": SendMode.STANDARD,
    "b": SendMode.BUFFERED,
    "s": SendMode.SYNCHRONOUS,
    "r": SendMode.READY,
}
"""What stands before "send" in the names of calls."""


def mode_of(name: str) -> SendMode:
    """Mode in which a region of this name sends.

    Examples
    --------
    >>> mode_of("MPI_Issend").name, mode_of("mpi_rsend_").name, mode_of("MPI_Send").name
    ('SYNCHRONOUS', 'READY', 'STANDARD')
    """
    found = _CALL.fullmatch(mpi_name(name))
    return LETTERS[found[1]] if found else SendMode.STANDARD


def modes_of(trace: Trace, calls: Calls, events: Ints) -> NDArray[np.uint8]:
    """Modes of the sends recorded by these events, from the calls that they stand in."""
    of_region = np.array([*map(mode_of, trace.regions), SendMode.STANDARD], dtype=np.uint8)
    of_region[:-1][~is_call(trace.roles)] = SendMode.STANDARD
    first = calls.first[calls.of_event[events]]
    return of_region[np.where(trace.kind[first] == Kind.ENTER, trace.ref[first], -1)]


def event_name(trace: Trace, event: int) -> str:
    """Name an event of a trace, for messages."""
    rank = int(np.searchsorted(trace.offsets, event, side="right")) - 1
    return f"{trace.name}: rank {rank}, event {event - trace.offsets[rank]}"


def expect_ranks(trace: Trace, events: Ints, partner: Ints, word: str) -> None:
    """Raise `TraceError` where the partner of an event is no rank."""
    for bad in np.flatnonzero((partner < 0) | (partner >= trace.ranks))[:1]:
        raise TraceError(
            f"{event_name(trace, events[bad])}: {word} {partner[bad]}: expected a rank below "
            f"{trace.ranks}"
        )


class Calls(NamedTuple):
    """The calls of a trace, rank after rank; each rank's last is its end."""

    of_event: Ints32  # shape (events,): call that an event belongs to; -1 between calls
    # shape (calls,): seconds since the previous call of the rank, or since its clock was 0
    gap: Floats
    finish: Ints  # shape (ranks,): call that stands for each rank's end
    # first, last: shape (calls,): events that a call begins and ends with; of a rank's end, the
    # rank's last one
    first: Ints
    last: Ints
    # shape (calls,): `Role` of the call's region; of a record outside any, CALL; of a rank's end,
    # USER
    role: NDArray[np.uint8]
    # shape (ranks,): when each rank's clock is 0, in seconds of the trace: at the rank's first
    # event if it calls MPI_Init, so that processes that start later, or have other clocks, do not
    # compute until then; else at the trace's 0
    start: Floats


def calls_of(trace: Trace) -> Calls:
    """Find the outermost MPI regions and the records outside any, each thread's for itself.

    A call that has no LEAVE, at the end of a cut trace, ends with the rank's last event.
    """
    return _calls_of(trace) if trace.thread is None else _calls_of_threads(trace, trace.thread)


def _calls_of_threads(trace: Trace, thread: Ints32) -> Calls:
    """Find the calls of each thread, and put them in the order in which they begin."""
    rank = trace.rank_of_event()
    order = np.lexsort((thread, rank))
    line = rank[order].astype(np.int64) * (int(thread.max(initial=0)) + 1) + thread[order]
    begin = np.flatnonzero(np.diff(line, prepend=-1))
    apart = replace(
        trace,
        offsets=np.append(begin, trace.events).astype(np.int64),
        kind=trace.kind[order],
        time=trace.time[order],
        ref=trace.ref[order],
        thread=None,
    )
    of = _calls_of(apart)
    rank_of_line = rank[order[begin]]
    ends = np.zeros(len(of.gap), dtype=np.bool_)
    ends[of.finish] = True
    first, last = order[of.first], order[of.last]
    owner = rank_of_line[np.searchsorted(of.finish, np.arange(len(of.gap)))].astype(np.int64)
    real = np.flatnonzero(~ends)
    real = real[np.argsort(first[real], kind="stable")]
    counts = np.bincount(owner[real], minlength=trace.ranks)
    finish = np.cumsum(counts) + np.arange(trace.ranks)
    number = np.full(len(of.gap), -1, dtype=np.int32)
    number[real] = np.arange(len(real)) + owner[real]
    of_event = np.empty(trace.events, dtype=np.int32)
    of_event[order] = np.where(of.of_event < 0, -1, number[np.maximum(of.of_event, 0)])

    total = len(real) + trace.ranks
    firsts, lasts = np.zeros(total, dtype=np.int64), np.zeros(total, dtype=np.int64)
    firsts[number[real]], lasts[number[real]] = first[real], last[real]
    firsts[finish] = lasts[finish] = np.maximum(trace.offsets[1:] - 1, 0)
    role = np.full(total, Role.USER, dtype=np.uint8)
    role[number[real]] = of.role[real]
    start = np.zeros(trace.ranks)
    np.maximum.at(start, rank_of_line, of.start)
    gap = np.zeros(total)
    for r in np.flatnonzero(np.diff(trace.offsets)).tolist():
        own = slice(finish[r] - counts[r], finish[r] + 1)
        over = np.maximum.accumulate(np.append(start[r], trace.time[lasts[own]]))[:-1]
        gap[own] = np.maximum(trace.time[firsts[own]] - over, 0.0)
    return Calls(of_event, gap, finish, firsts, lasts, role, start)


def _calls_of(trace: Trace) -> Calls:
    is_mpi = np.append(is_call(trace.roles), False)
    bracket = trace.kind <= Kind.LEAVE
    mpi = bracket & is_mpi[np.where(bracket, trace.ref, -1)]
    step = np.zeros(trace.events, dtype=np.int32)
    step[mpi] = np.where(trace.kind[mpi] == Kind.ENTER, 1, -1)
    depth = np.cumsum(step, dtype=np.int32)
    begin, end = trace.offsets[:-1], trace.offsets[1:]
    carried = np.concatenate(([0], depth))[begin]
    if carried.any():
        depth -= np.repeat(carried, end - begin)
    for below in np.flatnonzero(depth < 0)[:1]:
        region = trace.regions[trace.ref[below]]
        raise TraceError(f"{event_name(trace, below)}: leaves {region} without having entered it")

    opens = (step == 1) & (depth == 1)
    closes = np.flatnonzero((step == -1) & (depth == 0))
    lone = ~bracket & (depth == 0)
    first = np.flatnonzero(opens | lone)
    counts = np.diff(np.searchsorted(first, trace.offsets))
    owner = np.repeat(np.arange(trace.ranks), counts)
    # A call is over at its LEAVE; without one, at the last event of its rank.
    last = first.copy()
    opened = opens[first]
    closing = np.append(closes, trace.events)[np.searchsorted(closes, first[opened])]
    last[opened] = np.minimum(closing, end[owner[opened]] - 1)

    # One more call per rank for its end.
    calls = np.arange(len(first)) + owner
    finish = np.cumsum(counts) + np.arange(trace.ranks)
    inside = opens | lone
    of_event = np.cumsum(inside, dtype=np.int32) - 1
    if len(calls):
        of_event = calls.astype(np.int32)[np.maximum(of_event, 0)]
    outside = depth == 0
    outside[first] = False
    outside[closes] = False
    of_event[outside] = -1

    total = len(first) + trace.ranks
    some = np.flatnonzero(end > begin)
    firsts, lasts = np.zeros(total, dtype=np.int64), np.zeros(total, dtype=np.int64)
    firsts[calls], lasts[calls] = first, last
    firsts[finish] = lasts[finish] = np.maximum(end - 1, 0)
    region = np.where(opened, trace.ref[first], -1)
    role = np.full(total, Role.USER, dtype=np.uint8)
    role[calls] = np.append(trace.roles, Role.CALL)[region]
    is_init = [mpi_name(name) in _INITS for name in trace.regions]
    starts = np.unique(owner[np.array([*is_init, False])[region]])
    start = np.zeros(trace.ranks)
    start[starts] = trace.time[begin[starts]]

    started, ended = np.zeros(total), np.zeros(total)
    filled = np.append(calls, finish[some])
    started[filled], ended[filled] = trace.time[firsts[filled]], trace.time[lasts[filled]]
    # A rank begins where its clock is 0.
    ended[finish[:-1]] = start[1:]
    gap = started
    gap[1:] -= ended[:-1]
    gap[:1] -= start[:1]
    return Calls(of_event, np.maximum(gap, 0.0), finish, firsts, lasts, role, start)

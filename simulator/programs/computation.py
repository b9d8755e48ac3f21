"""How much of the time between calls is computation, and what else passed there.

* Time in which the measurement system wrote out its buffers, did not record, or was in a region of
  its own with nothing inside, is not the program's.
* Polling is waiting: the time between a call that looks for something and finds nothing
  (MPI_Test, MPI_Iprobe, ...), and the next such call of the rank. If another region was entered and
  left in between, the program did something there, and it is computation. A program that computes
  between its polls, and of which only MPI was recorded, is taken for one that waits; `LeftOut` says
  how many seconds that is about.
* MPI-IO is not simulated: its calls last as they did and count as computation behind the call. If
  the trace says that such a call is collective, it synchronises like a barrier first, and lasts
  as long as at the member that was in it for the shortest time, which waited least.
* One-sided calls are left out, and so is their time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.traces import Kind, Role, Span, Spans, Trace
from hopmap.traces.left_out import LeftOut, rank_seconds, timed
from hopmap.traces.trace import NO_SPANS, joined

from .mpi_calls import Calls

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# What says nothing of whether a call that looks for something found it.
_FRUITLESS = (Kind.REQUEST_TEST, Kind.COLLECTIVE_BEGIN)


class Computation(NamedTuple):
    """What a trace's ranks compute.

    Attributes
    ----------
    gap : ndarray(float64, shape=(calls,))
        Seconds of computation before each call.
    left_out : tuple of LeftOut
        What else there was, and took time.
    """

    gap: Floats
    left_out: tuple[LeftOut, ...]


def computation(trace: Trace, calls: Calls) -> Computation:
    """Take from the time between calls what is no computation, and add what is in calls."""
    total = rank_seconds(trace)
    left_out = []
    gap = calls.gap.copy()
    visits = _empty_visits(trace, calls)
    for what, count, taken in _not_the_programs(trace, calls, visits):
        left_out.append(timed(what, count, taken.sum(), total))
        gap -= taken

    spans = _of_kind(trace, Span.BESIDE)
    end = trace.time[calls.last[calls.finish[spans.rank]]]
    np.add.at(
        gap, calls.finish[spans.rank], np.maximum(spans.end - np.maximum(spans.begin, end), 0)
    )

    polls = calls.role == Role.POLL
    if polls.any():
        waiting = _waiting(trace, calls, polls, visits)
        left_out.append(timed("waiting between polls", polls.sum(), gap[waiting].sum(), total))
        gap[waiting] = 0.0
    files = np.flatnonzero(calls.role == Role.FILE)
    if files.size:
        seconds = _of_files(trace, calls, files)
        gap[files + 1] += seconds
        what = "calls of MPI-IO, counted as computation"
        left_out.append(timed(what, files.size, seconds.sum(), total))
    one_sided = np.flatnonzero(calls.role == Role.ONE_SIDED)
    if one_sided.size:
        lost = _length(trace, calls, one_sided).sum()
        left_out.append(timed("one-sided calls, not simulated", one_sided.size, lost, total))
    return Computation(gap, tuple(left_out))


def computed_beside(trace: Trace, calls: Calls) -> Floats:
    """Seconds that other threads of its rank computed during each call."""
    seconds = np.zeros(len(calls.gap))
    spans = _of_kind(trace, Span.BESIDE)
    for r in np.unique(spans.rank).tolist():
        of_rank = _calls_of_rank(calls, r)
        begin, end = (trace.time[event[of_rank]] for event in (calls.first, calls.last))
        seconds[of_rank] = _covered(begin, end, spans, r)
    return seconds


def _of_kind(trace: Trace, kind: Span) -> Spans:
    return Spans(*(column[trace.spans.kind == kind] for column in trace.spans))


def _calls_of_rank(calls: Calls, rank: int) -> slice:
    return slice(calls.finish[rank - 1] + 1 if rank else 0, calls.finish[rank] + 1)


def _empty_visits(trace: Trace, calls: Calls) -> Ints:
    """Rows of ENTERs between calls whose LEAVE comes next."""
    kind, outside = trace.kind, calls.of_event < 0
    if not outside.any():
        return np.zeros(0, dtype=np.int64)
    found = outside[:-1] & outside[1:] & (kind[:-1] == Kind.ENTER) & (kind[1:] == Kind.LEAVE)
    rows = np.flatnonzero(found)
    same: Ints = rows[trace.ref[rows] == trace.ref[rows + 1]]
    return same


def _not_the_programs(
    trace: Trace, calls: Calls, visits: Ints
) -> Iterator[tuple[str, int, Floats]]:
    """Go through what the measurement system did: what, how often, and seconds of each gap."""
    rows = visits[trace.roles[trace.ref[visits]] == Role.TOOL]
    rank = (np.searchsorted(trace.offsets, rows, side="right") - 1).astype(np.int32)
    flushes, off = (_of_kind(trace, kind) for kind in (Span.FLUSH, Span.OFF))
    times = trace.time
    regions = Spans(rank, times[rows], times[rows + 1], np.zeros(len(rows), dtype=np.uint8))
    so_far, before = NO_SPANS, np.zeros(len(calls.gap))
    for what, spans in (
        ("flushes of trace buffers", flushes),
        ("recording switched off", off),
        ("regions of the measurement system", regions),
    ):
        if not len(spans.rank):
            continue
        # Where two of them overlap, the first has it.
        so_far = joined([so_far, spans])
        covered = np.zeros(len(calls.gap))
        for r in np.unique(so_far.rank).tolist():
            of_rank = _calls_of_rank(calls, r)
            begin = np.append(calls.start[r], times[calls.last[of_rank][:-1]])
            covered[of_rank] = _covered(begin, times[calls.first[of_rank]], so_far, r)
        covered = np.clip(covered, before, calls.gap)
        yield what, len(spans.rank), covered - before
        before = covered


def _covered(begins: Floats, ends: Floats, spans: Spans, rank: int) -> Floats:
    """Seconds between each begin and its end that lie in spans of a rank, which may overlap."""
    mine = np.flatnonzero(spans.rank == rank)
    mine = mine[np.argsort(spans.begin[mine], kind="stable")]
    end = np.maximum.accumulate(spans.end[mine])
    begin = np.maximum(spans.begin[mine], np.append(spans.begin[mine[:1]], end[:-1]))
    end = np.maximum(begin, end)
    knots = np.stack((begin, end), axis=1).ravel()
    passed = np.repeat(np.cumsum(end - begin), 2)
    passed[::2] -= end - begin
    return np.asarray(np.interp(ends, knots, passed) - np.interp(begins, knots, passed))


def _waiting(trace: Trace, calls: Calls, polls: Bools, visits: Ints) -> Bools:
    """Which gaps lie between a poll that found nothing and the next one, with nothing inside."""
    says = (trace.kind > Kind.LEAVE) & ~np.isin(trace.kind, _FRUITLESS)
    fruitful = np.zeros(len(polls), dtype=np.bool_)
    fruitful[calls.of_event[says]] = True
    busy = np.zeros(len(polls), dtype=np.bool_)
    own = visits[trace.roles[trace.ref[visits]] == Role.USER]
    busy[np.searchsorted(calls.first, own, side="right")] = True
    waiting = polls & ~busy
    waiting[0] = False
    waiting[1:] &= polls[:-1] & ~fruitful[:-1]
    return waiting


def _length(trace: Trace, calls: Calls, which: Ints) -> Floats:
    """Seconds from the begin to the end of calls."""
    return trace.time[calls.last[which]] - trace.time[calls.first[which]]


def _of_files(trace: Trace, calls: Calls, files: Ints) -> Floats:
    """Seconds that each call of MPI-IO takes by itself."""
    seconds = _length(trace, calls, files)
    ends = np.flatnonzero(trace.kind == Kind.COLLECTIVE_END)
    ends = ends[calls.role[calls.of_event[ends]] == Role.FILE]
    if not ends.size:
        return seconds
    comm = trace.records.comm[trace.ref[ends]].astype(np.int64)
    rank = np.searchsorted(trace.offsets, ends, side="right") - 1
    # The k-th such call of each member of a communicator is one.
    order = np.lexsort((ends, rank, comm))
    ends, key = ends[order], (comm * trace.ranks + rank)[order]
    turn = np.arange(len(key)) - np.searchsorted(key, key)
    _, which = np.unique(np.stack((comm[order], turn)), axis=1, return_inverse=True)
    call = np.searchsorted(files, calls.of_event[ends])
    shortest = np.full(len(ends), np.inf)
    np.minimum.at(shortest, which.ravel(), seconds[call])
    seconds[call] = shortest[which.ravel()]
    return seconds

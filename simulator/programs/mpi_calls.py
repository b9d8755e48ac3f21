"""Which events of a trace belong to which MPI call, and the computation between calls."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.traces import Kind, Trace, TraceError

Ints = NDArray[np.int64]


class Calls(NamedTuple):
    """The calls of a trace, rank after rank; each rank's last is its end.

    Attributes
    ----------
    of_event : ndarray(int32, shape=(events,))
        Call that an event belongs to; -1 between calls.
    gap : ndarray(float64, shape=(calls,))
        Seconds since the previous call of the rank, or since the trace's beginning.
    finish : ndarray(int64, shape=(ranks,))
        Call that stands for each rank's end.
    """

    of_event: NDArray[np.int32]
    gap: NDArray[np.float64]
    finish: Ints


def calls_of(trace: Trace) -> Calls:
    """Find the outermost MPI regions and the records outside any.

    A call that has no LEAVE, at the end of a cut trace, ends with the rank's last event.

    Raises
    ------
    TraceError
        A LEAVE of an MPI region that was not entered.
    """
    is_mpi = np.array([name.startswith("MPI_") for name in trace.regions] + [False])
    bracket = trace.kind <= Kind.LEAVE
    mpi = bracket & is_mpi[np.where(bracket, trace.ref, -1)]
    step = np.zeros(trace.events, dtype=np.int32)
    step[mpi] = np.where(trace.kind[mpi] == Kind.ENTER, 1, -1)
    depth = np.cumsum(step, dtype=np.int32)
    begin, end = trace.offsets[:-1], trace.offsets[1:]
    carried = np.concatenate(([0], depth))[begin]
    if carried.any():
        depth -= np.repeat(carried, end - begin)
    below = np.flatnonzero(depth < 0)
    if below.size:
        rank = int(np.searchsorted(trace.offsets, below[0], side="right")) - 1
        region = trace.regions[trace.ref[below[0]]]
        raise TraceError(
            f"{trace.name}: rank {rank}, event {below[0] - begin[rank]}: leaves {region} "
            f"without having entered it"
        )

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
    started, ended = np.zeros(total), np.zeros(total)
    started[calls], ended[calls] = trace.time[first], trace.time[last]
    some = end > begin
    started[finish[some]] = trace.time[end[some] - 1]
    gap = started
    gap[1:] -= ended[:-1]  # 0 behind a rank's end: the next rank begins at 0
    return Calls(of_event, np.maximum(gap, 0.0), finish)

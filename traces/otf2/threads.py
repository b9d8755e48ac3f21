"""What the threads of a rank do at the same time: one in a call of MPI, while another computes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.traces.trace import Kind

Floats = NDArray[np.float64]


class Activity(NamedTuple):
    """Times of a thread, as rows (begin, end)."""

    calls: Floats
    computing: Floats


def activity_of(
    kind: NDArray[np.uint8],
    time: Floats,
    ref: NDArray[np.int32],
    is_mpi: NDArray[np.bool_],
    waits: NDArray[np.bool_],
    *,
    always: bool,
) -> Activity:
    """Say when a thread is inside calls of MPI, and when it computes.

    It computes outside of these calls and of regions in which it waits for other threads. Where no
    region is entered, a worker is idle; unless it has none at all, as if only MPI was recorded.

    Parameters
    ----------
    kind, time, ref : ndarray, shape (events,)
        Events of the thread, as in `Trace`.
    is_mpi, waits : ndarray(bool), shape (regions,)
        Which regions are calls of MPI, and in which a thread waits for others.
    always : bool
        Whether it computes where no region is entered: the thread that begins the process does.
    """
    bracket = kind <= Kind.LEAVE
    region = np.where(bracket, ref, 0)
    step = np.where(bracket, 1 - 2 * kind.astype(np.int64), 0)
    mpi, waiting = bracket & is_mpi[region], bracket & waits[region]
    others = bracket & ~is_mpi[region]
    inside = np.cumsum(np.where(mpi, step, 0))[:-1] > 0
    idle = np.cumsum(np.where(waiting, step, 0))[:-1] > 0
    if not always and others.any():
        idle |= np.cumsum(np.where(others, step, 0))[:-1] <= 0
    rows = np.stack((time[:-1], time[1:]), axis=1)
    return Activity(rows[inside], rows[~inside & ~idle])


def beside(threads: list[Activity], end: float) -> Floats:
    """Return when some thread computes while another is in a call: rows, in order, disjoint.

    Behind `end`, the last event that is kept of the rank, whatever is computed counts.
    """
    computing = np.concatenate([thread.computing for thread in threads])
    calls = np.concatenate([*(thread.calls for thread in threads), [[end, np.inf]]])
    edges = np.concatenate((computing.ravel(), calls.ravel()))
    change = np.zeros((len(edges), 2), dtype=np.int64)
    change[: computing.size, 0] = np.tile((1, -1), len(computing))
    change[computing.size :, 1] = np.tile((1, -1), len(calls))
    order = np.argsort(edges, kind="stable")
    edges = edges[order]
    computes, called = np.cumsum(change[order], axis=0).T[:, :-1] > 0
    rows = np.flatnonzero(computes & called & (np.diff(edges) > 0))
    first = rows[np.flatnonzero(np.diff(rows, prepend=-2) > 1)]
    last = rows[np.flatnonzero(np.diff(rows, append=len(edges) + 1) > 1)]
    return np.stack((edges[first], edges[last + 1]), axis=1)

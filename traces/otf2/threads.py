"""What the threads of a rank do at the same time: one in a call of MPI, while another computes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.arrays import Bools, Floats, Ints32
from hopmap.traces.regions import Role, is_call
from hopmap.traces.trace import FRUITLESS, Kind


class Activity(NamedTuple):
    """Times of a thread, as rows (begin, end)."""

    calls: Floats
    computing: Floats


def activity_of(
    kind: NDArray[np.uint8],
    time: Floats,
    ref: Ints32,
    roles: NDArray[np.uint8],
    waits: Bools,
    away: Floats,
    *,
    always: bool,
) -> Activity:
    """Say when a thread is inside calls of MPI, and when it computes.

    It computes outside of these calls and of regions in which it waits for other threads (`waits`).
    Where no region is entered, a worker is idle; unless it has none at all, as if only MPI was
    recorded. With `always`, it computes there: the thread that begins the process does. Between a
    poll that found nothing and the next one, it is as good as in a call. When its trace was written
    out or it was not recorded, it was `away` (spans, 2).
    """
    bracket = kind <= Kind.LEAVE
    region = np.where(bracket, ref, 0)
    role = np.where(bracket, np.append(roles, 0)[region], Role.USER)
    step = np.where(bracket, 1 - 2 * kind.astype(np.int64), 0)
    mpi, waiting = bracket & is_call(role), bracket & waits[region]
    others = bracket & ~is_call(role)
    enters, leaves = kind == Kind.ENTER, kind == Kind.LEAVE
    inside = np.cumsum(np.where(mpi, step, 0))[:-1] > 0
    found = np.cumsum(~bracket & ~np.isin(kind, FRUITLESS))
    entered = np.maximum.accumulate(np.where(enters, np.arange(len(kind)), 0))
    vain = (role == Role.POLL) & leaves & (found == found[entered])
    inside |= vain[:-1] & ((role == Role.POLL) & enters)[1:]
    idle = np.cumsum(np.where(waiting, step, 0))[:-1] > 0
    idle |= ((role == Role.TOOL) & enters)[:-1] & ((role == Role.TOOL) & leaves)[1:]
    if not always and others.any():
        idle |= np.cumsum(np.where(others, step, 0))[:-1] <= 0
    rows = np.stack((time[:-1], time[1:]), axis=1)
    computing = rows[~inside & ~idle]
    if len(away):
        computing = _at_once(computing, away, both=False)
    return Activity(rows[inside], computing)


def beside(threads: list[Activity], end: float) -> Floats:
    """Return when some thread computes while another is in a call: rows, in order, disjoint.

    Behind `end`, the last event that is kept of the rank, whatever is computed counts.
    """
    computing = np.concatenate([thread.computing for thread in threads])
    calls = np.concatenate([*(thread.calls for thread in threads), [[end, np.inf]]])
    return _at_once(computing, calls, both=True)


def _at_once(these: Floats, those: Floats, *, both: bool) -> Floats:
    """Return when one of these is going on and, as `both` says, one of those or none."""
    edges = np.concatenate((these.ravel(), those.ravel()))
    change = np.zeros((len(edges), 2), dtype=np.int64)
    change[: these.size, 0] = np.tile((1, -1), len(these))
    change[these.size :, 1] = np.tile((1, -1), len(those))
    order = np.argsort(edges, kind="stable")
    edges = edges[order]
    here, there = np.cumsum(change[order], axis=0).T[:, :-1] > 0
    rows = np.flatnonzero(here & (there == both) & (np.diff(edges) > 0))
    first = rows[np.flatnonzero(np.diff(rows, prepend=-2) > 1)]
    last = rows[np.flatnonzero(np.diff(rows, append=len(edges) + 1) > 1)]
    return np.stack((edges[first], edges[last + 1]), axis=1)

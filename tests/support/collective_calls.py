"""Traces of collectives and messages by hand, with the times at which calls begin and end."""

from __future__ import annotations

import numpy as np

from hopmap.traces import Collective, Kind

from .made_traces import COLUMNS, made_trace


def collective(operation, begin, end, region=None, *, comm=0, root=-1, sent=0, received=0):
    """A collective call; its region is named after the operation unless given."""
    what = (Kind.COLLECTIVE_END, root, comm, -1, Collective[operation], sent, received, -1)
    return begin, end, region or f"MPI_{operation.capitalize()}", what


def send(peer, begin, end, size=8):
    return begin, end, "MPI_Send", (Kind.SEND, peer, 0, 0, 255, size, 0, -1)


def recv(peer, begin, end, size=8):
    return begin, end, "MPI_Recv", (Kind.RECV, peer, 0, 0, 255, size, 0, -1)


def trace_of_calls(ranks, communicators=(), name="made"):
    """Trace of one list of calls per rank; communicator 0 is the world."""
    regions = sorted({region for calls in ranks for _, _, region, _ in calls})
    kind, time, ref, rows, offsets = [], [], [], [], [0]
    for calls in ranks:
        for begin, end, region, (what, *columns) in calls:
            at = regions.index(region)
            kind += [Kind.ENTER, what, Kind.LEAVE]
            time += [begin, end, end]
            ref += [at, len(rows), at]
            rows.append(columns)
        offsets.append(len(kind))
    table = np.array(rows, dtype=np.int64).reshape(-1, len(COLUMNS)).T
    events = kind, time, ref, offsets
    return made_trace(ranks, regions, events, table, [range(len(ranks)), *communicators], name)

"""Traces by hand: from what happens in each call, and from columns."""

from __future__ import annotations

import numpy as np

from hopmap.simulator import Op
from hopmap.traces import Collective, Kind, Records, Trace

K = Kind
COLUMNS = {
    "peer": -1,
    "comm": 0,
    "tag": 0,
    "operation": 255,
    "size": 0,
    "received": 0,
    "request": -1,
}


def trace_of(ranks, communicators=None, name="made"):
    """Trace from lists of (time, "MPI_...", what happens in the call...), one list per rank.

    What happens is (kind, columns); a call named None is a lone record.
    """
    regions = sorted({call[1] for calls in ranks for call in calls if call[1]})
    kind, time, ref, offsets = [], [], [], [0]
    columns = {key: [] for key in COLUMNS}
    for calls in ranks:
        for begin, region, *happens in calls:
            if region:
                kind.append(K.ENTER)
                time.append(begin)
                ref.append(regions.index(region))
            for what, given in happens:
                kind.append(what)
                time.append(begin)
                ref.append(len(columns["peer"]))
                for key, missing in COLUMNS.items():
                    columns[key].append(given.get(key, missing))
            if region:
                kind.append(K.LEAVE)
                time.append(begin + 0.25)
                ref.append(regions.index(region))
        offsets.append(len(kind))
    rows = np.array(list(columns.values()), dtype=np.int64)
    return made_trace(ranks, regions, (kind, time, ref, offsets), rows, communicators, name)


def send(peer, size=8, tag=0, **more):
    return K.SEND, {"peer": peer, "size": size, "tag": tag, **more}


def recv(peer, size=8, tag=0, **more):
    return K.RECV, {"peer": peer, "size": size, "tag": tag, **more}


def collective(operation, sent=0, received=0, root=-1, comm=0, kind=K.COLLECTIVE_END, **more):
    return kind, {
        "operation": operation,
        "size": sent,
        "received": received,
        "peer": root,
        "comm": comm,
        **more,
    }


def operations(program, strand=0):
    rows = range(program.offsets[strand], program.offsets[strand + 1])
    return [Op(program.kind[row]).name for row in rows]


def barrier(comm=0):
    return collective(Collective.BARRIER, comm=comm)


def made_trace(ranks, regions, events, rows, communicators, name):
    """Trace of events (kind, time, ref, offsets) and records in rows as `COLUMNS` has them."""
    kind, time, ref, offsets = events
    types = {"operation": np.uint8, "size": np.int64, "received": np.int64, "request": np.int64}
    return Trace(
        name=name,
        offsets=np.array(offsets, dtype=np.int64),
        kind=np.array(kind, dtype=np.uint8),
        time=np.array(time, dtype=np.float64),
        ref=np.array(ref, dtype=np.int32),
        records=Records(
            **{
                key: row.astype(types.get(key, np.int32))
                for key, row in zip(COLUMNS, rows, strict=True)
            }
        ),
        regions=tuple(regions),
        communicators=tuple(
            np.array(members, dtype=np.int32) for members in communicators or [range(len(ranks))]
        ),
    )

"""Traces by hand: from what happens in each call, one-sided ones too, and from columns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hopmap.simulator import Op
from hopmap.traces import Collective, Folded, Kind, Records, Trace
from hopmap.traces.trace import Lock, Sync

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


def operations(program, task=0):
    rows = range(program.offsets[task], program.offsets[task + 1])
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


# One-sided calls, with the records of Score-P.


def window_trace(ranks, groups=(), windows=(0,), **more):
    """Trace of lists of calls, one list a rank, with windows on these communicators."""
    made = trace_of(ranks, **more)
    members = tuple(np.array(group, dtype=np.int32) for group in groups)
    return replace(made, windows=tuple(windows), groups=members)


def put(at, target, size, number=1, window=0):
    return (at, "MPI_Put", (K.RMA_PUT, _to(target, window, number, size=size)))


def get(at, target, size, number=1, window=0):
    return (at, "MPI_Get", (K.RMA_GET, _to(target, window, number, size=size)))


def atomic(at, target, size, back, number=1, window=0, name="MPI_Get_accumulate", sort=7):
    moved = _to(target, window, number, size=size, received=back, operation=sort)
    return (at, name, (K.RMA_ATOMIC, moved))


def fence(at, *numbers, window=0, operation=Collective.BARRIER, name="MPI_Win_fence"):
    """A fence that completes what has these numbers, here and at targets."""
    about = {"operation": operation, "tag": window, "size": 0, "received": 0}
    both = int(Sync.PROCESS | Sync.MEMORY)
    ends = [record for number in numbers for record in complete(number, window)]
    begin = (K.RMA_COLLECTIVE_BEGIN, _blank() | {"comm": -1, "tag": -1})
    return (at, name, begin, *ends, (K.RMA_COLLECTIVE_END, about | {"request": both}))


def made_window(at, window=0):
    return fence(at, window=window, operation=Collective.CREATE_HANDLE, name="MPI_Win_create")


def complete(number, window=0, there=True):
    about = _blank() | {"tag": window, "request": number}
    kinds = (K.RMA_OP_COMPLETE_BLOCKING, K.RMA_OP_COMPLETE_REMOTE)
    return [(kind, about) for kind in kinds[: 1 + there]]


def flush(at, *numbers, window=0, there=True):
    name = "MPI_Win_flush" if there else "MPI_Win_flush_local"
    return (at, name, *(each for n in numbers for each in complete(n, window, there)))


def lock(at, target, sort=Lock.EXCLUSIVE, window=0):
    about = _to(target, window, 0, operation=int(sort))
    return (at, "MPI_Win_lock", (K.RMA_REQUEST_LOCK, about))


def unlock(at, target, *numbers, window=0):
    ends = [record for number in numbers for record in complete(number, window)]
    return (at, "MPI_Win_unlock", *ends, (K.RMA_RELEASE_LOCK, _to(target, window, 0)))


def group_sync(at, name, group=0, window=0, numbers=()):
    """MPI_Win_start, post, complete or wait, by its last word."""
    level = Sync.PROCESS if name in ("start", "post") else Sync.PROCESS | Sync.MEMORY
    about = _blank() | {"operation": int(level), "size": group, "tag": window}
    ends = [record for number in numbers for record in complete(number, window)]
    return (at, f"MPI_Win_{name}", *ends, (K.RMA_GROUP_SYNC, about))


def _blank():
    return {"peer": -1, "size": -1, "received": -1}


def _to(target, window, number, **more):
    return _blank() | {"peer": target, "tag": window, "request": number} | more


def differences(one, other):
    """Names of what differs between two `Folded`, times apart."""
    of = []
    for folded in (one, other):
        trace = folded.trace
        brackets = trace.kind <= Kind.LEAVE
        names = np.array(trace.regions)[np.where(brackets, trace.ref, 0)]
        loops = sorted(zip(*(column.tolist() for column in folded[1:4]), strict=True))
        rows = trace.ref[~brackets]
        of.append(
            {
                "offsets": trace.offsets,
                "kind": trace.kind,
                "region": np.where(brackets, names, ""),
                "loops": np.array(loops),
                **{key: getattr(trace.records, key)[rows] for key in Records._fields},
            }
        )
    return [key for key in of[0] if not np.array_equal(of[0][key], of[1][key])]


def as_folded(trace):
    """A trace without loops as one with them."""
    none = np.zeros(0, dtype=np.int64)
    return Folded(trace, none, none, none)

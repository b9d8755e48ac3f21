"""From the records of one process to events in OTF2's order: ENTER, what the call did, LEAVE."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.traces.trace import NO_OPERATION, Kind, Records

from .numbers import MYSELF_ROOT, PART, Extra

Ints = NDArray[np.int64]

# What a call does as it begins; all else is known at its end.
_AT_BEGIN = np.zeros(256, dtype=np.bool_)
_AT_BEGIN[[Kind.SEND, Kind.ISEND, Kind.IRECV_REQUEST, Kind.IMRECV_REQUEST]] = True
_AT_BEGIN[[Kind.COLLECTIVE_BEGIN, Kind.COLLECTIVE_REQUEST, Kind.RMA_COLLECTIVE_BEGIN]] = True
_AT_BEGIN[[Kind.RMA_PUT, Kind.RMA_GET, Kind.RMA_ATOMIC, Kind.RMA_REQUEST_LOCK]] = True
_EVENTS = np.zeros(256, dtype=np.int64)  # of each kind of record, brackets apart
_EVENTS[: max(Kind) + 1] = 1
_EVENTS[[Kind.COLLECTIVE_END, Kind.RMA_COLLECTIVE_END]] = 2
_ALONE = np.zeros(256, dtype=np.bool_)  # no call of MPI
_ALONE[Extra.REGION_ENTER : Extra.RECORDING_ON + 1] = True


class Communicators(NamedTuple):
    """The communicators of one process: by its own numbers, those of the trace."""

    number: dict[int, int]
    partners: dict[int, NDArray[np.int32]]  # world ranks of those that can be written to
    windows: dict[int, int]  # the same of windows
    groups: dict[int, int]  # numbers of groups, by what stands for them


class Events(NamedTuple):
    """Columns of a `Trace`, of one process; `ref` of a record counts from 0."""

    kind: NDArray[np.uint8]
    time: Ints  # ns of the process's own clock
    ref: Ints
    records: Records


def whole_calls(records: NDArray[np.void]) -> NDArray[np.void]:
    """Leave out parts of a call that never ended."""
    closed = np.flatnonzero(closes(records))
    return records[: closed[-1] + 1] if len(closed) else records[:0]


def closes(records: NDArray[np.void]) -> NDArray[np.bool_]:
    """Which records are not a part of the call whose record follows."""
    closing: NDArray[np.bool_] = (records["region"] != PART) | _ALONE[records["kind"]]
    return closing


def call_of(records: NDArray[np.void]) -> Ints:
    """Row of the record that ends the call to which each record belongs."""
    closing = closes(records)
    closed = np.flatnonzero(closing)
    return closed[np.cumsum(closing) - closing]


def expand(
    records: NDArray[np.void], region: Ints, communicators: Communicators, rank: int
) -> Events:
    """Lay the events of a process out, in the order of time.

    Parameters
    ----------
    records : ndarray(RECORD)
        Whole calls.
    region : ndarray(int64)
        The trace's number of each region of the process.
    rank : int
        Its world rank.
    """
    kind = records["kind"]
    call = call_of(records)
    first = np.flatnonzero(np.diff(call, prepend=-1))
    is_call = records["region"] != PART
    enters = np.zeros(len(records), dtype=np.int64)
    enters[first] = is_call[call[first]]
    bracket = (kind == Extra.REGION_ENTER) | (kind == Extra.REGION_LEAVE)
    told = _EVENTS[kind]
    start = np.cumsum(enters + told + is_call + bracket)
    total = int(start[-1]) if len(start) else 0
    start -= enters + told + is_call + bracket
    kinds = np.full(total, Kind.LEAVE, dtype=np.uint8)
    time, ref = np.zeros((2, total), dtype=np.int64)
    begin, end = records["begin"].astype(np.int64), records["end"].astype(np.int64)

    entering = np.flatnonzero(enters)
    at = start[entering]
    kinds[at], time[at] = Kind.ENTER, begin[entering]
    ref[at] = region[records["region"][call[entering]]]
    leaving = np.flatnonzero(is_call)
    at = start[leaving] + enters[leaving] + told[leaving]
    time[at], ref[at] = end[leaving], region[records["region"][leaving]]
    own = np.flatnonzero(bracket)
    kinds[start[own]] = np.where(kind[own] == Extra.REGION_ENTER, Kind.ENTER, Kind.LEAVE)
    time[start[own]], ref[start[own]] = begin[own], region[records["tag"][own]]

    source = np.repeat(np.arange(len(records)), told)
    at = np.repeat(start + enters - np.cumsum(told) + told, told) + np.arange(len(source))
    kinds[at] = kind[source]
    opens = np.flatnonzero(np.diff(source, append=-1) == 0)  # the first of two
    fences = kind[source[opens]] == Kind.RMA_COLLECTIVE_END
    kinds[at[opens]] = np.where(fences, Kind.RMA_COLLECTIVE_BEGIN, Kind.COLLECTIVE_BEGIN)
    early = _AT_BEGIN[kinds[at]]
    time[at] = np.where(early, begin[source], end[source])
    columns = _records(records[source], kinds[at], communicators, rank)
    ref[at] = np.arange(len(at))
    if (np.diff(time) < 0).any():  # threads beside each other
        order = np.argsort(time, kind="stable")
        kinds, time, ref = kinds[order], time[order], ref[order]
        bears = np.flatnonzero(kinds > Kind.LEAVE)
        columns = Records(**{k: column[ref[bears]] for k, column in columns._asdict().items()})
        ref[bears] = np.arange(len(bears))
    return Events(kinds, time, ref, columns)


def _records(
    source: NDArray[np.void], kind: NDArray[np.uint8], communicators: Communicators, rank: int
) -> Records:
    """Columns of what is no bracket, with world ranks and the trace's communicators."""
    begins = (kind == Kind.COLLECTIVE_BEGIN) | (kind == Kind.RMA_COLLECTIVE_BEGIN)
    blank = begins | (kind == Kind.COLLECTIVE_REQUEST)
    comm, peer = np.full((2, len(source)), -1, dtype=np.int32)
    for number in np.unique(source["comm"][~blank & (source["comm"] >= 0)]).tolist():
        these = np.flatnonzero(~blank & (source["comm"] == number))
        comm[these] = communicators.number[number]
        named = these[source["peer"][these] >= 0]
        peer[named] = communicators.partners[number][source["peer"][named]]
    peer[source["peer"] == MYSELF_ROOT] = rank
    number = np.where(begins, -1, source["request"])
    one_sided, syncs = kind >= Kind.RMA_WIN_CREATE, kind == Kind.RMA_GROUP_SYNC
    tag, size = source["tag"].copy(), np.where(blank, -1, source["size"])
    tag[one_sided & blank] = -1
    for column, which, numbers in (
        (tag, one_sided & ~blank, communicators.windows),
        (size, syncs, communicators.groups),
    ):
        known, place = np.unique(column[which], return_inverse=True)
        column[which] = np.array([numbers[k] for k in known.tolist()], dtype=np.int64)[place]
    return Records(
        peer=np.where(blank, -1, peer).astype(np.int32),
        comm=comm,
        tag=tag,
        operation=np.where(blank, NO_OPERATION, source["operation"]).astype(np.uint8),
        size=size,
        received=np.where(blank, -1, source["received"]),
        request=number,
    )

"""From what recorded processes left to a `Trace`: world ranks, one clock, one table of names.

The records of a process become events in OTF2's order: ENTER, what the call did, LEAVE.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.arrays import Bools, Floats, Ints, Ints32, Table
from hopmap.traces.safety.memory import require_memory
from hopmap.traces.trace import (
    NO_OPERATION,
    Kind,
    PairCounts,
    Records,
    Role,
    Span,
    Spans,
    Trace,
    TraceError,
    join_rows,
    mpi_name,
    role_of_call,
)

from .raw import FIRST_USER_REGION, MYSELF_ROOT, PART, Extra, Process

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
    """The communicators of one process: numbers in the trace by its own numbers."""

    number: dict[int, int]
    partners: dict[int, Ints32]  # world ranks of those that can be written to
    windows: dict[int, int]  # the same of windows
    groups: dict[int, int]  # numbers of groups, by what stands for them


class Events(NamedTuple):
    """Columns of a `Trace`, of one process; `ref` of a record counts from 0."""

    kind: NDArray[np.uint8]
    time: Ints  # ns of the process's own clock
    ref: Ints
    records: Records
    thread: Ints32  # of each event


def whole_calls(records: Table) -> Table:
    """Leave out parts of a call that never ended."""
    closed = np.flatnonzero(are_last(records))
    return records[: closed[-1] + 1] if len(closed) else records[:0]


def are_last(records: Table) -> Bools:
    """Which records are not a part of the call whose record follows."""
    closing: Bools = (records["region"] != PART) | _ALONE[records["kind"]]
    return closing


def call_of(records: Table) -> Ints:
    """Row of the record that ends the call to which each record belongs."""
    closing = are_last(records)
    closed = np.flatnonzero(closing)
    return closed[np.cumsum(closing) - closing]


def expand(records: Table, region: Ints, communicators: Communicators, rank: int) -> Events:
    """Lay the events of a process out, in the order of time.

    `records` are whole calls, `region` the trace's number of each region of the process, `rank` its
    world rank.
    """
    kind = records["kind"]
    call = call_of(records)
    first = np.flatnonzero(np.diff(call, prepend=-1))
    is_call = records["region"] != PART
    enters = np.zeros(len(records), dtype=np.int64)
    enters[first] = is_call[call[first]]
    bracket = (kind == Extra.REGION_ENTER) | (kind == Extra.REGION_LEAVE)
    events = _EVENTS[kind]
    start = np.cumsum(enters + events + is_call + bracket)
    total = int(start[-1]) if len(start) else 0
    start -= enters + events + is_call + bracket
    kinds = np.full(total, Kind.LEAVE, dtype=np.uint8)
    time, ref = np.zeros((2, total), dtype=np.int64)
    thread = np.zeros(total, dtype=np.int32)
    begin, end = records["begin"].astype(np.int64), records["end"].astype(np.int64)

    entering = np.flatnonzero(enters)
    at = start[entering]
    kinds[at], time[at] = Kind.ENTER, begin[entering]
    thread[at] = records["thread"][entering]
    ref[at] = region[records["region"][call[entering]]]
    leaving = np.flatnonzero(is_call)
    at = start[leaving] + enters[leaving] + events[leaving]
    time[at], ref[at] = end[leaving], region[records["region"][leaving]]
    thread[at] = records["thread"][leaving]
    own = np.flatnonzero(bracket)
    kinds[start[own]] = np.where(kind[own] == Extra.REGION_ENTER, Kind.ENTER, Kind.LEAVE)
    time[start[own]], ref[start[own]] = begin[own], region[records["tag"][own]]
    thread[start[own]] = records["thread"][own]

    source = np.repeat(np.arange(len(records)), events)
    at = np.repeat(start + enters - np.cumsum(events) + events, events) + np.arange(len(source))
    kinds[at], thread[at] = kind[source], records["thread"][source]
    opens = np.flatnonzero(np.diff(source, append=-1) == 0)  # the first of two
    fences = kind[source[opens]] == Kind.RMA_COLLECTIVE_END
    kinds[at[opens]] = np.where(fences, Kind.RMA_COLLECTIVE_BEGIN, Kind.COLLECTIVE_BEGIN)
    early = _AT_BEGIN[kinds[at]]
    time[at] = np.where(early, begin[source], end[source])
    columns = _records(records[source], kinds[at], communicators, rank)
    ref[at] = np.arange(len(at))
    if (np.diff(time) < 0).any():  # threads that run at the same time
        order = np.argsort(time, kind="stable")
        kinds, time, ref, thread = kinds[order], time[order], ref[order], thread[order]
        bears = np.flatnonzero(kinds > Kind.LEAVE)
        columns = Records(**{k: column[ref[bears]] for k, column in columns._asdict().items()})
        ref[bears] = np.arange(len(bears))
    return Events(kinds, time, ref, columns, thread)


def _records(
    source: Table, kind: NDArray[np.uint8], communicators: Communicators, rank: int
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


_PER_RECORD = 250  # bytes that putting together takes at its peak
_OF_PAIRS = ("alltoallv", "alltoallw", "ialltoallv", "ialltoallw")


def trace_of(processes: Sequence[Process], name: str) -> Trace:
    """Put the recordings of all processes of a run together.

    Clocks follow rank 0: the clock of every host was compared with it at the start and at the end,
    and is taken to have gone evenly in between.
    """
    total = sum(len(each.records) for each in processes)
    require_memory(_PER_RECORD * total, f"{name}: {total:,} records", "record it with --profile")
    regions = sorted(
        {
            (number >= FIRST_USER_REGION, region)
            for each in processes
            for number, region in each.names.regions.items()
        }
    )
    communicators, known = _communicators(processes, name)
    windows = _windows(processes, known)
    groups = _groups(processes, known, name)
    parts: list[Events] = []
    pairs, spans, filled = [], [], 0
    for rank, process in enumerate(processes):
        records = whole_calls(process.records)
        of_region = np.full(max(process.names.regions, default=0) + 1, -1, dtype=np.int64)
        for number, region in process.names.regions.items():
            of_region[number] = regions.index((number >= FIRST_USER_REGION, region))
        events = expand(records, of_region, known[rank], rank)
        behind = _clock_offset(processes, rank)
        bears = events.kind > Kind.LEAVE
        parts.append(
            events._replace(
                time=events.time - behind(events.time),
                ref=np.where(bears, events.ref + filled, events.ref),
            )
        )
        filled += int(bears.sum())
        pairs.append(_pairs(process, records, known[rank], communicators, rank))
        off = _unrecorded(records)
        spans.append((rank, off - behind(off)))
    time = np.concatenate([each.time for each in parts])
    first = int(time.min(initial=np.iinfo(np.int64).max)) if len(time) else 0
    uncounted = any(each.counts["uncounted_pairs"] for each in processes)
    of_pairs = np.concatenate(pairs, axis=1)
    roles = [Role.USER if own else role_of_call(region) for own, region in regions]
    thread = np.concatenate([each.thread for each in parts])
    return Trace(
        name=name,
        offsets=np.cumsum([0, *(len(each.kind) for each in parts)]),
        kind=np.concatenate([each.kind for each in parts]),
        time=(time - first) / 1e9,
        ref=np.concatenate([each.ref for each in parts]).astype(np.int32),
        records=Records(*map(np.concatenate, zip(*(each.records for each in parts), strict=True))),
        regions=tuple(region for _, region in regions),
        communicators=communicators,
        roles=np.array(roles, dtype=np.uint8),
        spans=join_rows(_spans(rank, (times - first) / 1e9) for rank, times in spans),
        windows=windows,
        groups=groups,
        counts=PairCounts(name, *of_pairs) if of_pairs.size and not uncounted else None,
        thread=thread if thread.any() else None,
        thread_level=int(processes[0].header["provided"]),
    )


def hosts_of(processes: Sequence[Process]) -> Ints:
    """Host of every process, numbered."""
    return np.unique([each.header["host"] for each in processes], return_inverse=True)[1]


def names_of(processes: Sequence[Process]) -> list[str]:
    """Name of every host, by its number, as its first process has it."""
    first = np.unique([each.header["host"] for each in processes], return_index=True)[1]
    return [bytes(processes[n].header["node"]).decode(errors="replace") for n in first]


def cores_of(processes: Sequence[Process]) -> Ints:
    """Cores of every host that one or another of its processes may run on; 0 if not known."""
    hosts = hosts_of(processes)
    masks = np.stack([np.unpackbits(each.header["cpus"]) for each in processes])
    return np.array([masks[hosts == host].any(axis=0).sum() for host in range(hosts.max() + 1)])


def _communicators(
    processes: Sequence[Process], name: str
) -> tuple[tuple[Ints32, ...], list[Communicators]]:
    """Give communicators their numbers: of the same members, those made as the n-th are one."""
    groups = {key: group for each in processes for key, group in each.names.groups.items()}
    # The first two are the world and MPI_COMM_SELF, which has no members here.
    numbers: dict[tuple[tuple[str, ...], int], int] = {}
    members = [np.arange(len(processes), dtype=np.int32), np.zeros(0, dtype=np.int32)]
    known = []
    for rank, process in enumerate(processes):
        partners = {0: members[0], 1: np.array([rank], dtype=np.int32)}
        found = Communicators({0: 0, 1: 1}, partners, {}, {})
        for number, (here, there, before) in process.names.communicators.items():
            if number < 2:
                continue
            sides = sorted({here, there} - {"0"})
            missing = [side for side in sides if side not in groups]
            if missing:
                raise TraceError(
                    f"{name}: rank {rank}, communicator {number}: rank 0 of its group left no "
                    f"members: expected its file of names"
                )
            key = (tuple(sides), before)
            if key not in numbers:
                numbers[key] = len(members)
                members.append(np.concatenate([groups[side] for side in sides]))
            found.number[number] = numbers[key]
            found.partners[number] = groups[here if there == "0" else there]
        known.append(found)
    return tuple(members), known


def _windows(processes: Sequence[Process], known: Sequence[Communicators]) -> tuple[int, ...]:
    """Give windows their numbers: those made as the n-th on a communicator are one."""
    numbers: dict[tuple[int, int], int] = {}
    for process, found in zip(processes, known, strict=True):
        before: Counter[int] = Counter()
        for window, of in sorted(process.names.windows.items()):
            communicator = found.number[of]
            key = (communicator, before[communicator])
            before[communicator] += 1
            found.windows[window] = numbers.setdefault(key, len(numbers))
    return tuple(communicator for communicator, _ in numbers)


def _groups(
    processes: Sequence[Process], known: Sequence[Communicators], name: str
) -> tuple[Ints32, ...]:
    """Give groups that synchronise windows their numbers."""
    named = {key: members for each in processes for key, members in each.names.groups.items()}
    groups: dict[int, Ints32] = {}
    for process in processes:
        which = process.records["kind"] == Kind.RMA_GROUP_SYNC
        for digest in np.unique(process.records["size"][which]).tolist():
            key = f"{digest % 2**64:x}"
            if key not in named:
                raise TraceError(f"{name}: group {key}: its members are missing: expected a line")
            groups.setdefault(digest, named[key])
    numbers = {digest: number for number, digest in enumerate(groups)}
    for found in known:
        found.groups.update(numbers)
    return tuple(groups.values())


def _clock_offset(processes: Sequence[Process], rank: int) -> Callable[[Ints], Ints]:
    """Return a function that says how far the clock of a process was ahead of rank 0's, in ns."""
    host = processes[rank].header["host"]
    first = next(each.header for each in processes if each.header["host"] == host)
    measured = first["clock"][: int(first["clocks"])]
    at, ahead = measured["at"].astype(np.float64), measured["ahead"].astype(np.float64)

    def behind(time: Ints) -> Ints:
        if not len(at):
            return np.zeros(len(time), dtype=np.int64)
        found: Ints = np.rint(np.interp(time, at, ahead)).astype(np.int64)
        return found

    return behind


def _unrecorded(records: Table) -> Ints:
    """Begin and end of times in which nothing was recorded, one behind the other, in ns."""
    modes = np.isin(records["kind"], (Extra.RECORDING_OFF, Extra.RECORDING_ON))
    times = records["begin"][modes].astype(np.int64)
    return times if len(times) % 2 == 0 else np.append(times, times[-1])


def _spans(rank: int, times: Floats) -> Spans:
    begin, end = times.reshape(-1, 2).T
    kind = np.full(len(begin), Span.OFF, dtype=np.uint8)
    return Spans(np.full(len(begin), rank, dtype=np.int32), begin, end, kind)


def _pairs(
    process: Process,
    records: Table,
    known: Communicators,
    communicators: Sequence[Ints32],
    rank: int,
) -> Ints:
    """Rank, call, peer and bytes of what alltoallv and alltoallw send; see `PairCounts`."""
    names = process.names.regions.items()
    those = [k for k, region in names if mpi_name(region).removesuffix("_c") in _OF_PAIRS]
    several = [k for k, number in known.number.items() if len(communicators[number]) > 1]
    calls = np.isin(records["region"], those) & np.isin(records["comm"], several)
    before: Ints = np.cumsum(calls) - calls
    rows = np.flatnonzero(records["kind"] == Extra.PAIR)
    call: Ints = before[call_of(records)[rows]]
    return np.stack((np.full(len(rows), rank), call, records["peer"][rows], records["size"][rows]))

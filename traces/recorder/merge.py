"""From what recorded processes left to a `Trace`: world ranks, one clock, one table of names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from hopmap.traces.regions import Role, mpi_name, role_of_call
from hopmap.traces.safety.memory import require_memory
from hopmap.traces.trace import Kind, PairCounts, Records, Span, Spans, Trace, TraceError, joined

from .expand import Communicators, Events, call_of, expand, whole_calls
from .numbers import FIRST_USER_REGION, Extra
from .raw import Process

Ints = NDArray[np.int64]
_PER_RECORD = 250  # bytes that putting together takes at its peak
_OF_PAIRS = ("alltoallv", "alltoallw", "ialltoallv", "ialltoallw")


def trace_of(processes: Sequence[Process], name: str) -> Trace:
    """Put the recordings of all processes of a run together.

    Clocks are those of rank 0: that of every host was compared with it at the start and at the end,
    and is taken to have gone evenly in between.

    Raises
    ------
    TraceError
        A communicator whose members nobody wrote down.
    OutOfMemoryError
        The trace would not fit.
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
        behind = _ahead(processes, rank)
        bears = events.kind > Kind.LEAVE
        parts.append(
            events._replace(
                time=events.time - behind(events.time),
                ref=np.where(bears, events.ref + filled, events.ref),
            )
        )
        filled += int(bears.sum())
        pairs.append(_pairs(process, records, known[rank], communicators, rank))
        off = _off(records)
        spans.append((rank, off - behind(off)))
    time = np.concatenate([each.time for each in parts])
    first = int(time.min(initial=np.iinfo(np.int64).max)) if len(time) else 0
    uncounted = any(each.counts["uncounted_pairs"] for each in processes)
    of_pairs = np.concatenate(pairs, axis=1)
    roles = [Role.USER if own else role_of_call(region) for own, region in regions]
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
        spans=joined(_spans(rank, (times - first) / 1e9) for rank, times in spans),
        windows=windows,
        groups=groups,
        counts=PairCounts(name, *of_pairs) if of_pairs.size and not uncounted else None,
    )


def hosts_of(processes: Sequence[Process]) -> Ints:
    """Host of every process, numbered."""
    return np.unique([each.header["host"] for each in processes], return_inverse=True)[1]


def _communicators(
    processes: Sequence[Process], name: str
) -> tuple[tuple[NDArray[np.int32], ...], list[Communicators]]:
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
) -> tuple[NDArray[np.int32], ...]:
    """Give groups that synchronise windows their numbers."""
    named = {key: members for each in processes for key, members in each.names.groups.items()}
    groups: dict[int, NDArray[np.int32]] = {}
    for process in processes:
        which = process.records["kind"] == Kind.RMA_GROUP_SYNC
        for digest in np.unique(process.records["size"][which]).tolist():
            key = f"{digest % 2**64:x}"
            if key not in named:
                raise TraceError(f"{name}: group {key}: nobody left its members: expected a line")
            groups.setdefault(digest, named[key])
    numbers = {digest: number for number, digest in enumerate(groups)}
    for found in known:
        found.groups.update(numbers)
    return tuple(groups.values())


def _ahead(processes: Sequence[Process], rank: int) -> Callable[[Ints], Ints]:
    """Return a function that says how far the clock of a process was ahead of rank 0's, in ns."""
    host = processes[rank].header["host"]
    asked = next(each.header for each in processes if each.header["host"] == host)
    measured = asked["clock"][: int(asked["clocks"])]
    at, ahead = measured["at"].astype(np.float64), measured["ahead"].astype(np.float64)

    def behind(time: Ints) -> Ints:
        if not len(at):
            return np.zeros(len(time), dtype=np.int64)
        found: Ints = np.rint(np.interp(time, at, ahead)).astype(np.int64)
        return found

    return behind


def _off(records: NDArray[np.void]) -> Ints:
    """Begin and end of times in which nothing was recorded, one behind the other, in ns."""
    modes = np.isin(records["kind"], (Extra.RECORDING_OFF, Extra.RECORDING_ON))
    times = records["begin"][modes].astype(np.int64)
    return times if len(times) % 2 == 0 else np.append(times, times[-1])


def _spans(rank: int, times: NDArray[np.float64]) -> Spans:
    begin, end = times.reshape(-1, 2).T
    kind = np.full(len(begin), Span.OFF, dtype=np.uint8)
    return Spans(np.full(len(begin), rank, dtype=np.int32), begin, end, kind)


def _pairs(
    process: Process,
    records: NDArray[np.void],
    known: Communicators,
    communicators: Sequence[NDArray[np.int32]],
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

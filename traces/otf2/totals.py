"""Read the traffic and the totals of an OTF2 archive, without holding its events.

Locations are read one after another, each from its file in chunks, by compiled callbacks that add
up and keep nothing (`total_kernels`): memory does not grow with the number of events, but with the
pairs of ranks that talk. Several processes may each take some of the locations. What they found is
added up in the order of the ranks, in whole numbers: the sums are the same however many there are.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.arrays import Ints
from hopmap.progress import Progress
from hopmap.traces.safety.guarded_process import Line
from hopmap.traces.summary import Summary, count_calls
from hopmap.traces.trace import SharedCores, TraceError
from hopmap.traces.traffic import Traffic, traffic_of

from .archive import open_reader, reading_in_shares
from .library import UNDEFINED_UINT64

# Totals of a rank with each other one: messages sent, one-sided operations
_OF_PEERS = ("messages", "bytes", "put_messages", "put_bytes", "got_messages", "got_bytes")

WHOLE = 5_000_000
Pairs = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]  # src, dst, messages, bytes


class _Share(NamedTuple):
    """What is in some of an archive's locations.

    `calls` are records of collectives by whether they block, communicator (records without one
    first) and operation, and `members` the ranks of these communicators. `ticks` are the times of
    the first and of the last event, None of no events.
    """

    name: str
    ranks: int
    resolution: int
    members: list[int]
    sent: list[Pairs]
    moved: list[Pairs]
    calls: Ints
    collective_bytes: int
    counts: Ints
    ticks: tuple[int, int] | None
    events: int
    foreign: int
    windows: bool
    shared_cores: SharedCores | None
    thread_level: int


def read_traffic(
    path: str | os.PathLike[str],
    *,
    progress: Progress | None = None,
    workers: int | None = None,
) -> Traffic:
    """Read only who sends how much to whom; see `read_summary`."""
    return read_summary(path, progress=progress, workers=workers).traffic


def read_summary(
    path: str | os.PathLike[str],
    *,
    progress: Progress | None = None,
    workers: int | None = None,
) -> Summary:
    """Read the traffic and the totals of an archive of any size; see `read_trace`.

    The checks are fewer, since most events are skipped over: regions and order in time are not
    looked at. Where requests were cancelled, all of an archive of up to `WHOLE` events is read, to
    leave out what was not sent. Several `workers` (processes) share the locations; when left
    out, one for every 64 MiB of the archive, as far as there are processors.
    """
    from . import read_kernels as kernels
    from .read import read_trace

    if workers is not None and workers < 1:
        raise TraceError(f"workers {workers}: expected at least 1")
    kernels.time_callbacks(), kernels.total_callbacks()
    found = _summary(
        reading_in_shares(path, _read_share, progress, workers, one_sided="total_callbacks")
    )
    if not found.cancelled or found.events > WHOLE:
        return found
    return replace(found, traffic=traffic_of(read_trace(path)), cancelled=0)


def _read_share(
    anchor: Path,
    share: tuple[int, int],
    line: Line | None,
    *,
    windows: dict[str, int] | None = None,
) -> _Share | None:
    """Read one of so many shares; None if there are windows and there are no callbacks for them."""
    from . import read_kernels as kernels
    from .state_kernels import OPERATIONS, STATE

    with open_reader(anchor, line) as archive:
        definitions = archive.definitions
        if len(definitions.windows.reference) and windows is None:
            return None
        state = archive.state(STATE)
        partners = definitions.partners
        calls = np.zeros((2, len(partners.reference) + 1, OPERATIONS), dtype=np.int64)
        counts = np.zeros(len(kernels.EVENTS), dtype=np.int64)
        state["calls"], state["counts"] = calls.ctypes.data, counts.ctypes.data
        of_peers = np.zeros((len(_OF_PEERS), definitions.ranks), dtype=np.int64)
        for name, of_each in zip(_OF_PEERS, of_peers, strict=True):
            state[name] = of_each.ctypes.data
        times = archive.table(kernels.time_callbacks() | (windows or {}))
        totals = archive.table(kernels.total_callbacks() | (windows or {}))
        nothing = archive.table({})
        ticks: list[tuple[int, int]] = []
        sent: list[Pairs] = []
        moved: list[Pairs] = []
        foreign = 0
        for rank, locations in archive.by_share(*share):
            if rank < 0:
                for location in locations:
                    archive.read(location, state, (location.events, nothing))
                    foreign += location.events
                continue
            for location in locations:
                state["first"], state["latest"] = UNDEFINED_UINT64, 0
                # All kinds of events for the first and the last time stamp, else only sends.
                ends = min(location.events, 1)
                between = max(location.events - 2, 0)
                rest = location.events - ends - between
                archive.read(location, state, (ends, times), (between, totals), (rest, times))
                if location.events:
                    ticks.append((int(state["first"]), int(state["latest"])))
            sent.append(_pairs(rank, *of_peers[:2]))
            moved.append(_pairs(rank, *of_peers[2:4]))
            receiver, sender, messages, size = _pairs(rank, *of_peers[4:])
            moved.append((sender, receiver, messages, size))
            of_peers[:] = 0
        members = [
            len(definitions.communicators[index]) if index >= 0 else 0 for index in partners.number
        ]
        return _Share(
            name=archive.name,
            ranks=definitions.ranks,
            resolution=definitions.resolution,
            members=[definitions.ranks, *members],
            sent=sent,
            moved=moved,
            calls=calls,
            collective_bytes=int(state["collective_bytes"]),
            counts=counts,
            ticks=(min(t[0] for t in ticks), max(t[1] for t in ticks)) if ticks else None,
            events=archive.done,
            foreign=foreign,
            windows=windows is not None,
            shared_cores=definitions.shared_cores,
            thread_level=definitions.thread_level,
        )


def _pairs(rank: int, messages: Ints, size: Ints) -> Pairs:
    """Messages and bytes of a rank with each of those that it has some with."""
    peers = np.flatnonzero(messages)
    return np.full(len(peers), rank), peers, messages[peers], size[peers]


def _summary(shares: list[_Share]) -> Summary:
    """Add the shares of an archive up."""
    from . import read_kernels as kernels

    one = shares[0]
    counts = np.sum([share.counts for share in shares], axis=0)
    cancelled = int(counts[kernels.EVENTS.index(kernels.CANCELLED)])
    counts[: len(kernels.PROGRAM)] = 0
    records = {}
    if one.windows:
        at = kernels.EVENTS.index(kernels.ONE_SIDED[0])
        records_counted = counts[at : at + len(kernels.ONE_SIDED)]
        records = {k: int(n) for k, n in zip(kernels.ONE_SIDED, records_counted, strict=True) if n}
        records_counted[:] = 0
    ignored = {name: int(n) for name, n in zip(kernels.EVENTS, counts, strict=True) if n}
    foreign = sum(share.foreign for share in shares)
    calls = np.sum([share.calls for share in shares], axis=0)
    collective_bytes = sum(share.collective_bytes for share in shares)
    if collective_bytes >= 2**63:
        raise TraceError(f"{one.name}: the bytes sent in collectives do not fit into 63 bits")
    ticks = [share.ticks for share in shares if share.ticks is not None]
    spent = max(t[1] for t in ticks) - min(t[0] for t in ticks) if ticks else 0
    return Summary(
        name=one.name,
        traffic=_add_up(one, [rows for share in shares for rows in share.sent]),
        events=sum(share.events for share in shares),
        collectives=count_calls(
            (row[0] == 0, int(row[2]), int(calls[tuple(row)]), one.members[row[1]])
            for row in np.argwhere(calls)
        ),
        collective_bytes=collective_bytes,
        duration=spent / one.resolution,
        one_sided=_add_up(one, [rows for share in shares for rows in share.moved]),
        one_sided_records=records,
        ignored=ignored | ({"of other locations": foreign} if foreign else {}),
        shared_cores=one.shared_cores,
        thread_level=one.thread_level,
        cancelled=cancelled,
    )


def _add_up(one: _Share, rows: list[Pairs]) -> Traffic:
    none = np.zeros(0, dtype=np.int64)
    src, dst, messages, sizes = map(
        np.concatenate, zip(*rows, (none, none, none, none), strict=True)
    )
    return Traffic.from_pairs(one.ranks, src, dst, messages, sizes, name=one.name)

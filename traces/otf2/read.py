"""Read OTF2 archives: the whole program of every rank; of traffic alone, see `totals`.

libotf2 decodes the records; compiled callbacks (`read_kernels`) put them where they belong.

What becomes of the locations: a world rank is an index into MPI's group of locations, and its
program is that location's events. Further CPU threads of the same process add their MPI calls,
merged by time, and the times in which one of them computed while another was in a call (`Span`).
Events of GPU streams, metrics and threads of other processes are only counted.

An archive is believed only as far as it is consistent. Wrong references, MPI calls left that were
not entered, fewer or more events than the definitions say, time running backwards (after the clock
offsets of the archive have been applied): each is a `TraceError` that names file, location, event.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.arrays import Bools, Floats, Ints32
from hopmap.progress import Progress
from hopmap.traces.safety.guarded_process import Line
from hopmap.traces.safety.memory import require_memory
from hopmap.traces.sources import FileSource
from hopmap.traces.trace import (
    FRUITLESS,
    RECORD_TYPES,
    Kind,
    Records,
    Role,
    Span,
    Spans,
    Trace,
    TraceError,
    is_call,
    join_rows,
)

from .archive import open_reader, reading_in_shares
from .definitions import Definitions
from .files import archive_files, companion_of, find_archive, read_pair_counts

if TYPE_CHECKING:
    from hopmap.traces.summary import Summary
    from hopmap.traces.traffic import Traffic

BYTES_PER_EVENT = 13  # of kind, time and ref; records come on top


def read_trace(path: str | os.PathLike[str], *, progress: Progress | None = None) -> Trace:
    """Read the whole program of every rank.

    Parameters
    ----------
    path : path-like
        An archive folder, its anchor file (``*.otf2``), or a folder that holds exactly one of
        these.
    progress : callable, optional
        Called with (events read, events in all) now and then.

    Returns
    -------
    Trace
        Times are seconds since the archive's global offset; with the archive's .counts file,
        see `pair_counts`.

    Raises
    ------
    TraceError
        The archive is missing, foreign, cut or inconsistent; one line that says where.
    OutOfMemoryError
        The program would not fit.
    """
    from . import read_kernels as kernels  # compiled on first use, then cached on disk

    kernels.program_callbacks(), kernels.counting_callbacks()
    (trace,) = reading_in_shares(path, _read_trace, progress, one_sided="program_callbacks")
    companion = companion_of(find_archive(path))
    return replace(trace, counts=read_pair_counts(companion)) if companion.is_file() else trace


def _read_trace(
    anchor: Path, _: tuple[int, int], line: Line | None, *, windows: dict[str, int] | None = None
) -> Trace | None:
    """Read a trace; None if it has windows and there are no callbacks for them."""
    from . import read_kernels as kernels
    from .state_kernels import STATE

    with open_reader(anchor, line) as archive:
        definitions = archive.definitions
        if len(definitions.windows.reference) and windows is None:
            return None
        events = sum(loc.events for loc in archive.locations if archive.rank(loc) >= 0)
        require_memory(
            BYTES_PER_EVENT * events,
            f"{archive.name}: the whole program of {events:,} events",
            "its traffic alone takes little",
        )
        state = archive.state(STATE)
        columns = _Columns(events, state)
        counts = np.zeros(len(kernels.EVENTS), dtype=np.int64)
        open_regions = np.zeros(len(definitions.regions), dtype=np.int64)
        state["counts"], state["open"] = counts.ctypes.data, open_regions.ctypes.data

        offsets = [0]
        thread = np.zeros(events + 1, dtype=np.int32)
        spans = _SpanColumns(events, state, definitions)
        table, counting = archive.table(kernels.program_callbacks() | (windows or {})), 0
        for rank, locations in archive.by_share(0, 1):
            if rank < 0:
                counting = counting or archive.table(kernels.counting_callbacks())
                archive.read(locations[0], state, (locations[0].events, counting))
                continue
            first, first_record = int(state["events"]), int(state["records"])
            parts = workers = 0
            threads: list[Activity] = []
            for location in locations:
                begin = int(state["events"])
                master = location.reference == definitions.masters[rank]
                archive.read(location, state, (location.events, table))
                away = spans.take(rank if master else -1)
                if open_regions.any():
                    region = definitions.regions[int(np.flatnonzero(open_regions)[0])]
                    raise TraceError(f"{archive.place(location)}: {region} is entered and not left")
                if len(locations) > 1:
                    own = slice(begin, int(state["events"]))
                    kind, time, ref = (column[own] for column in columns.of_events())
                    roles, waits = definitions.roles, definitions.waits
                    threads.append(activity_of(kind, time, ref, roles, waits, away, always=master))
                if not master:
                    for name, which in (("Enter", Kind.ENTER), ("Leave", Kind.LEAVE)):
                        counts[kernels.EVENTS.index(name)] += columns.drop_brackets(
                            which, begin, state, definitions.region_is_mpi
                        )
                parts += int(state["events"]) > begin
                workers += not master
                thread[begin : int(state["events"])] = 0 if master else workers
            if threads and state["events"] > first:
                end = columns.time[first : int(state["events"])].max(initial=-np.inf)
                spans.add(rank, thread_spans(threads, end), Span.THREADS)
            if parts > 1:
                columns.merge(first, int(state["events"]), first_record, thread)
            offsets.append(int(state["events"]))
        columns.cut(offsets[-1], int(state["records"]))
        ignored = {name: int(n) for name, n in zip(kernels.EVENTS, counts, strict=True) if n}
        nameless = archive.done - offsets[-1] - int(counts.sum())
        if nameless:  # kinds that came after our list of names
            ignored["other"] = nameless
        return Trace(
            name=archive.name,
            offsets=np.array(offsets, dtype=np.int64),
            kind=columns.kind,
            time=columns.time,
            ref=columns.ref,
            records=columns.records,
            regions=definitions.regions,
            communicators=definitions.communicators,
            resolution=float(definitions.resolution),
            ignored=ignored,
            roles=definitions.roles,
            spans=join_rows(spans.parts),
            windows=tuple(
                int(definitions.partners.number[row]) if row >= 0 else -1
                for row in definitions.windows.communicator
            ),
            groups=_groups_in_use(definitions, columns),
            shared_cores=definitions.shared_cores,
            thread=thread[: offsets[-1]] if thread[: offsets[-1]].any() else None,
            thread_level=definitions.thread_level,
        )


def _groups_in_use(definitions: Definitions, columns: _Columns) -> tuple[Ints32, ...]:
    """Return the groups that synchronise windows, and renumber them in the records."""
    events = np.flatnonzero(columns.kind == Kind.RMA_GROUP_SYNC)
    rows = columns.ref[events]
    used, columns.records.size[rows] = np.unique(columns.records.size[rows], return_inverse=True)
    return tuple(definitions.windows.groups[k] for k in used.tolist())


class _SpanColumns:
    """The spans of a trace under construction."""

    def __init__(self, events: int, state: NDArray[Any], definitions: Definitions) -> None:
        self.state, self.definitions = state, definitions
        # Room for the worst case, as for the events.
        self.begin = np.empty(events + 1, dtype=np.uint64)
        self.end = np.empty(events + 1, dtype=np.uint64)
        self.kind = np.empty(events + 1, dtype=np.uint8)
        for name in ("begin", "end", "kind"):
            state[f"span_{name}"] = getattr(self, name).ctypes.data
        self.parts: list[Spans] = []

    def take(self, rank: int) -> Floats:
        """Return the times that a location noted, and keep them if it is a rank's own."""
        count, last = int(self.state["spans"]), self.state["last"]
        self.state["spans"] = self.state["off"] = 0
        if not count:
            return np.zeros((0, 2))
        ticks = np.stack((self.begin[:count], np.minimum(self.end[:count], last)), axis=1)
        offset = np.uint64(self.definitions.offset)
        times = (ticks - offset).astype(np.int64) / self.definitions.resolution
        times[:, 1] = np.maximum(times[:, 1], times[:, 0])
        if rank >= 0:
            self.add(rank, times, self.kind[:count].copy())
        return times

    def add(self, rank: int, times: Floats, kind: NDArray[np.uint8] | int) -> None:
        """Append spans from rows of begin and end."""
        count = len(times)
        kinds = np.broadcast_to(np.asarray(kind, dtype=np.uint8), count)
        ranks = np.full(count, rank, dtype=np.int32)
        self.parts.append(Spans(ranks, times[:, 0].copy(), times[:, 1].copy(), kinds))


class _Columns:
    """The columns of a trace under construction; callbacks know their addresses.

    They have room for the worst case; memory that stays untouched costs nothing.
    """

    def __init__(self, events: int, state: NDArray[Any]) -> None:
        rows = events + 1  # one more for the event that should not be there
        self.kind = np.empty(rows, dtype=np.uint8)
        self.time = np.empty(rows, dtype=np.float64)
        self.ref = np.empty(rows, dtype=np.int32)
        self.records = Records(
            **{name: np.empty(rows, dtype=kind) for name, kind in RECORD_TYPES.items()}
        )
        for name in ("kind", "time", "ref"):
            state[name] = getattr(self, name).ctypes.data
        for name, column in self.records._asdict().items():
            state[name] = column.ctypes.data

    def of_events(self) -> tuple[NDArray[Any], ...]:
        """Return the columns that have a row for each event."""
        return self.kind, self.time, self.ref

    def cut(self, events: int, records: int) -> None:
        """Give back what was not needed, in place."""
        for column in self.of_events():
            column.resize(events, refcheck=False)
        for record in self.records:
            record.resize(records, refcheck=False)

    def drop_brackets(self, kind: Kind, begin: int, state: NDArray[Any], wanted: Bools) -> int:
        """Leave brackets of unwanted regions out from row `begin` on; return how many."""
        end = int(state["events"])
        keep = self.kind[begin:end] != kind
        keep[~keep] = wanted[self.ref[begin:end][~keep]]
        kept = begin + int(keep.sum())
        for column in self.of_events():
            column[begin:kept] = column[begin:end][keep]
        state["events"] = kept
        return end - kept

    def merge(self, begin: int, end: int, first_record: int, thread: Ints32) -> None:
        """Sort rows by time, as recorded where times are equal; records follow their events."""
        order = begin + np.argsort(self.time[begin:end], kind="stable")
        for column in (*self.of_events(), thread):
            column[begin:end] = column[order]
        bearers = begin + np.flatnonzero(self.kind[begin:end] > Kind.LEAVE)
        rows = self.ref[bearers]
        for record in self.records:
            record[first_record : first_record + len(rows)] = record[rows]
        self.ref[bearers] = first_record + np.arange(len(rows), dtype=np.int32)


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
        computing = _overlap(computing, away, both=False)
    return Activity(rows[inside], computing)


def thread_spans(threads: list[Activity], end: float) -> Floats:
    """Return when some thread computes while another is in a call: rows, in order, disjoint.

    Behind `end`, the last event that is kept of the rank, all that is computed counts.
    """
    computing = np.concatenate([thread.computing for thread in threads])
    calls = np.concatenate([*(thread.calls for thread in threads), [[end, np.inf]]])
    return _overlap(computing, calls, both=True)


def _overlap(these: Floats, those: Floats, *, both: bool) -> Floats:
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


class ArchiveSource(FileSource):
    """An OTF2 archive: its folder or its anchor file."""

    kind = "archive"
    is_recorded = True

    @property
    def archive(self) -> Path:
        """Folder or anchor file."""
        return self.path

    def traffic(self) -> Traffic:
        """Read who sends how much to whom."""
        from .totals import read_traffic

        return read_traffic(self.path)

    def calls(self) -> Trace:
        """Read what every rank does."""
        return read_trace(self.path)

    def summary(self) -> Summary:
        """Sum up what is in it, in one pass."""
        from .totals import read_summary

        return read_summary(self.path)

    def files(self) -> list[Path]:
        """Files of the archive; see `archive_files`."""
        return archive_files(self.path)


def open_archive(text: str, _: Path | None) -> ArchiveSource:
    """Return the source that a folder or an anchor file is."""
    path = Path(text)
    folder = path if path.is_dir() else path.parent
    return ArchiveSource(folder.resolve().name or text, path)

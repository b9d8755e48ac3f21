"""Write a trace as an OTF2 archive that Vampir, otf2-print and `read_trace` understand.

The definitions are as Score-P writes them for an MPI program: one process with one thread per
rank (location number = world rank), regions with their roles, MPI's group of locations, a group
and a communicator for each of the trace's. The archive grows in a hidden folder next to its place
and is moved there when it is complete.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.traces.safety.atomic_files import replacing_folder
from hopmap.traces.trace import RECORD_TYPES, Kind, Role, Span, Trace, TraceError, is_call, mpi_name

from .definitions import (
    COMM_GROUP,
    COMM_LOCATIONS,
    COMM_SELF,
    CPU_THREAD,
    FILE_IO,
    MEASUREMENT_SYSTEM,
    MPI,
    RMA,
    THREAD_LEVEL,
)
from .files import companion_of, write_pair_counts
from .library import (
    LARGEST_CHUNK,
    POINTER,
    SMALLEST_CHUNK,
    UINT8,
    UINT64,
    UNDEFINED_UINT32,
    UNDEFINED_UINT64,
    Complaints,
    address,
    call,
    listening,
)

_PORTION = 1 << 18  # events between two looks at Ctrl-C and progress
_EVENT_CHUNK = 1 << 20  # bytes
_WRITE, _POSIX, _NO_COMPRESSION = 0, 1, 1  # OTF2_FileMode, OTF2_FileSubstrate, OTF2_Compression
_USER = 1  # OTF2_PARADIGM_USER
_PROCESS = 1  # OTF2_LOCATION_GROUP_TYPE_PROCESS, OTF2_PARADIGM_CLASS_PROCESS is 0
_FUNCTION, _BARRIER, _POINT_TO_POINT, _ARTIFICIAL = 1, 15, 28, 31  # OTF2_REGION_ROLE_*
_ONE_TO_ALL, _ALL_TO_ONE, _ALL_TO_ALL, _OTHER_COLLECTIVE = 23, 24, 25, 26
_ROLES = {
    **dict.fromkeys(("bcast", "scatter", "scatterv"), _ONE_TO_ALL),
    **dict.fromkeys(("gather", "gatherv", "reduce"), _ALL_TO_ONE),
    **dict.fromkeys(("allgather", "allgatherv", "allreduce", "alltoall", "alltoallv"), _ALL_TO_ALL),
    **dict.fromkeys(("alltoallw", "reduce_scatter", "reduce_scatter_block"), _ALL_TO_ALL),
    **dict.fromkeys(("scan", "exscan"), _OTHER_COLLECTIVE),
    **dict.fromkeys(("send", "bsend", "rsend", "ssend", "recv", "sendrecv"), _POINT_TO_POINT),
    **dict.fromkeys(("isend", "ibsend", "irsend", "issend", "irecv"), _POINT_TO_POINT),
    "barrier": _BARRIER,
}
_OF_ROLE = {Role.USER: _FUNCTION, Role.TOOL: _ARTIFICIAL, Role.FILE: FILE_IO, Role.ONE_SIDED: RMA}
_CREATED_AND_FREED = 1  # OTF2_RMA_WIN_FLAG_CREATE_DESTROY_EVENTS
_UINT64 = 4  # OTF2_TYPE_UINT64
_ON, _OFF = 1, 2  # OTF2_MeasurementMode
_FLUSH = ctypes.CFUNCTYPE(UINT8, POINTER, UINT8, UINT64, POINTER, ctypes.c_bool)


class _FlushCallbacks(ctypes.Structure):
    _fields_ = (("before", _FLUSH), ("after", POINTER))


def write_trace(
    trace: Trace,
    path: str | os.PathLike[str],
    *,
    node_of: NDArray[np.integer[Any]] | None = None,
    cores: NDArray[np.integer[Any]] | None = None,
    nodes: Sequence[str] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Write a trace as an OTF2 archive.

    Reading the archive gives the same events, regions and communicators. Times are rounded to
    ticks of ``trace.resolution``. What the trace `ignored` is not written, and neither is what
    threads computed at the same time (see `Span`): a thread has a location if it calls MPI.

    Parameters
    ----------
    trace : Trace
        What to write. A communicator without members stands for MPI_COMM_SELF.
    path : path-like
        The archive folder; ``traces.otf2``, ``traces.def`` and ``traces/`` will be in it, and
        ``traces.counts`` if the trace has any. An archive that is already there is replaced,
        anything else is left alone.
    node_of : ndarray of int, shape (ranks,), optional
        Nodes of the ranks, for tools that show where processes sit; one node if left out.
    cores : ndarray of int, shape (nodes,), optional
        Cores that the ranks of each node may run on.
    nodes : sequence of str, optional
        Names of the nodes; "node 0", "node 1", ... if left out.
    progress : callable, optional
        Called with (events written, events in all) now and then.

    Raises
    ------
    TraceError
        The trace is inconsistent, or the folder cannot be written. Nothing is left behind.
    """
    if trace.resolution < 1 or trace.resolution != int(trace.resolution):
        raise TraceError(
            f"{trace.name}: resolution {trace.resolution}, expected whole ticks per second"
        )
    ticks = _ticks(trace)
    trace, locations = _by_thread(trace)
    with _fresh_folder(Path(path)) as folder, listening() as complaints, ExitStack() as last:
        archive = call(
            *("Archive_Open", os.fsencode(folder), b"traces", _WRITE, *_chunks(trace)),
            *(_POSIX, _NO_COMPRESSION),
        )
        if not archive:
            raise complaints.fail(str(path), "not writable")
        last.callback(call, "Archive_Close", archive)
        out = _Output(trace, locations, archive, complaints, os.fspath(path), *ticks)
        flush = _FlushCallbacks(_FLUSH(lambda *_: 1), None)
        out.call("Archive_SetFlushCallbacks", archive, ctypes.byref(flush), None)
        out.call("Archive_SetSerialCollectiveCallbacks", archive)
        out.call("Archive_SetCreator", archive, b"hopmap")
        _write_events(out, progress)
        _write_local_definitions(out)
        _write_definitions(out, node_of, cores, nodes)
        last.pop_all()
        out.call("Archive_Close", archive)
        if trace.counts is not None:
            write_pair_counts(companion_of(folder / "traces.otf2"), trace.counts)


class Located(NamedTuple):
    """A location, and its rows of the trace: a rank's first has the rank's number."""

    number: int
    rank: int
    begin: int
    end: int


def _by_thread(trace: Trace) -> tuple[Trace, list[Located]]:
    """Put the rows of each rank in the order of its threads; list the locations, rank by rank."""
    rows = trace.offsets.tolist()
    if trace.thread is None:
        return trace, [Located(r, r, *rows[r : r + 2]) for r in range(trace.ranks)]
    order = np.lexsort((trace.thread, trace.rank_of_event()))
    columns = {name: getattr(trace, name)[order] for name in ("kind", "time", "ref", "thread")}
    found, number = [], trace.ranks
    for rank in range(trace.ranks):
        first = rows[rank]
        threads, counts = np.unique(columns["thread"][first : rows[rank + 1]], return_counts=True)
        if 0 not in threads:
            found.append(Located(rank, rank, first, first))
        for thread, count in zip(threads.tolist(), counts.tolist(), strict=True):
            found.append(Located(number if thread else rank, rank, first, first + count))
            number, first = number + (thread > 0), first + count
    return replace(trace, **columns), found


class _Output(NamedTuple):
    """An archive that is being written, and where its clock stands."""

    trace: Trace
    locations: list[Located]
    archive: int
    complaints: Complaints
    path: str
    first_tick: int  # at second 0 of the trace
    length: int  # ticks

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function of libotf2 that may fail."""
        self.complaints.expect(call(name, *arguments), self.path, "not written")

    def writer(self, kind: str, location: int, name: str) -> Any:
        """Begin the file of a location."""
        writer = call(f"Archive_Get{kind}Writer", self.archive, location)
        if not writer:
            raise self.complaints.fail(self.path, f"no {name} file for location {location}")
        return writer


def _chunks(trace: Trace) -> tuple[int, int]:
    """Sizes of what libotf2 buffers for events and for definitions.

    It fills whole chunks, so with thousands of short programs big ones cost seconds; on the other
    hand a definition, such as the members of a group, must fit into one.
    """
    short = trace.events * 32 < trace.ranks * SMALLEST_CHUNK
    definitions = SMALLEST_CHUNK
    while definitions < min(32 * trace.ranks, LARGEST_CHUNK):
        definitions *= 2
    return SMALLEST_CHUNK if short else _EVENT_CHUNK, definitions


def _ticks(trace: Trace) -> tuple[int, int]:
    """Tick at second 0 of the trace, such that none is negative, and the length in ticks."""
    if not trace.events:
        return 0, 0
    extent = float(trace.time.min()), float(trace.time.max())
    if not all(abs(end) * trace.resolution < 2.0**62 for end in extent):
        raise TraceError(
            f"{trace.name}: times from {extent[0]} to {extent[1]} s, too far for ticks"
        )
    first, last = (float(np.rint(end * trace.resolution)) for end in extent)
    offset = max(0, -int(first))
    return offset, max(int(last), 0) + offset


def _write_events(out: _Output, progress: Callable[[int, int], None] | None) -> None:
    from . import write_kernels as kernels  # compiled on first use, then cached on disk

    write_rows = kernels.write_rows()
    trace, first_tick = out.trace, out.first_tick
    state, kept_alive = _state(trace, first_tick, kernels)
    out.call("Archive_OpenEvtFiles", out.archive)
    for location, rank, begin, end in out.locations:
        writer = out.writer("Evt", location, "event")
        state["writer"], state["rank"], state["last"] = writer, rank, 0
        notes = _notes(trace, rank, begin, end, first_tick) if location == rank else {}
        for stop in sorted({*range(begin + _PORTION, end, _PORTION), *notes, end}):
            state["begin"], state["end"], begin = begin, stop, stop
            if write_rows(state.ctypes.data):
                event = int(state["row"]) - int(trace.offsets[rank]) + 1
                what = kernels.ERRORS[int(state["error"])].format(detail=int(state["detail"]))
                raise out.complaints.fail(f"{trace.name}: rank {rank}, event {event}", what)
            for name, *arguments in notes.get(stop, ()):
                out.call(f"EvtWriter_{name}", writer, None, *arguments)
            if progress:
                progress(stop, trace.events)
        out.call("Archive_CloseEvtWriter", out.archive, writer)
    out.call("Archive_CloseEvtFiles", out.archive)
    del kept_alive


def _notes(
    trace: Trace, rank: int, low: int, high: int, first_tick: int
) -> dict[int, list[tuple[Any, ...]]]:
    """Events that tell the spans of a rank, by the row from `low` to `high` they stand before."""
    notes = []
    for row in np.flatnonzero((trace.spans.rank == rank) & (trace.spans.kind != Span.THREADS)):
        times = np.array([trace.spans.begin[row], trace.spans.end[row]])
        begin, end = (np.rint(times * trace.resolution).astype(np.int64) + first_tick).tolist()
        if trace.spans.kind[row] == Span.FLUSH:
            notes.append((times[0], "BufferFlush", begin, end))
        else:
            notes.append((times[0], "MeasurementOnOff", begin, _OFF))
            notes.append((times[1], "MeasurementOnOff", end, _ON))
    found: dict[int, list[tuple[Any, ...]]] = {}
    for moment, *note in sorted(notes, key=lambda note: note[2]):
        before = int(low + np.searchsorted(trace.time[low:high], moment, side="right"))
        found.setdefault(before, []).append(tuple(note))
    return found


def _state(trace: Trace, first_tick: int, kernels: Any) -> tuple[NDArray[Any], list[NDArray[Any]]]:
    """Make the state of the compiled loop, and the arrays that it points into."""
    state = np.zeros((), dtype=kernels.STATE)
    kept_alive = []

    def point(name: str, array: NDArray[Any], kind: type[np.generic]) -> None:
        kept_alive.append(np.ascontiguousarray(array, dtype=kind))
        state[name] = kept_alive[-1].ctypes.data

    if (
        trace.offsets[0] != 0
        or trace.offsets[-1] != trace.events
        or (np.diff(trace.offsets) < 0).any()
        or not len(trace.kind) == len(trace.time) == len(trace.ref)
        or len({len(column) for column in trace.records}) != 1
    ):
        raise TraceError(f"{trace.name}: columns and offsets of unequal length")
    point("kind", trace.kind, np.uint8)
    point("time", trace.time, np.float64)
    point("ref", trace.ref, np.int32)
    for name, column in trace.records._asdict().items():
        point(name, column, RECORD_TYPES[name])
    for number, members in enumerate(trace.communicators):
        if len(members) and not 0 <= members.min() <= members.max() < trace.ranks:
            raise TraceError(
                f"{trace.name}: communicator {number} has members outside 0..{trace.ranks - 1}"
            )
    positions = [np.argsort(members, kind="stable") for members in trace.communicators]
    sizes = [len(members) for members in trace.communicators]
    empty = [np.zeros(0, dtype=np.int32)]
    sorted_members = [
        members[order] for members, order in zip(trace.communicators, positions, strict=True)
    ]
    point("start", np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]), np.int64)
    point("member", np.concatenate(sorted_members + empty), np.int32)
    point("position", np.concatenate(positions + empty), np.int32)
    state["regions"], state["records"] = len(trace.regions), len(trace.records.peer)
    state["communicators"] = len(trace.communicators)
    point("window_comm", np.array(trace.windows), np.int32)
    if any(not -1 <= comm < len(trace.communicators) for comm in trace.windows):
        raise TraceError(f"{trace.name}: a window on a communicator that is not in the trace")
    # The only one-sided record that names no window; without any it would not be read back.
    if max(trace.windows, default=-1) < 0 and (trace.kind == Kind.RMA_COLLECTIVE_BEGIN).any():
        raise TraceError(f"{trace.name}: one-sided records: expected a window on a communicator")
    state["windows"], state["groups"] = len(trace.windows), len(trace.groups)
    state["first_group"] = len(trace.communicators) + 1
    state["offset"], state["resolution"] = first_tick, trace.resolution
    writers = [address(f"EvtWriter_{name}") for name in kernels.NAMES]
    point("writers", np.array(writers, dtype=np.uint64), np.uint64)
    return state, kept_alive


def _write_local_definitions(out: _Output) -> None:
    """Write what stands in the file of each location: that its clock needs no correction."""
    out.call("Archive_OpenDefFiles", out.archive)
    for location, *_ in out.locations:
        writer = out.writer("Def", location, "definition")
        out.call("DefWriter_WriteClockOffset", writer, out.first_tick, 0, 0.0)
        out.call("Archive_CloseDefWriter", out.archive, writer)
    out.call("Archive_CloseDefFiles", out.archive)


def _write_system_tree(
    write: Callable[..., None],
    text: Callable[[str], int],
    ranks: int,
    node_of: NDArray[np.integer[Any]] | None,
    cores: NDArray[np.integer[Any]] | None,
    names: Sequence[str] | None,
) -> Any:
    """Write the machine and its nodes with their cores; return the place of each rank's node."""
    places = np.zeros(ranks, dtype=np.int64) if node_of is None else node_of
    nodes, node = np.unique(places, return_inverse=True)
    write("SystemTreeNode", 0, text("machine"), text("machine"), UNDEFINED_UINT32)
    for number, place in enumerate(nodes.tolist(), start=1):
        name = f"node {place}" if names is None else names[place]
        write("SystemTreeNode", number, text(name), text("node"), 0)
    for number, has in enumerate(() if cores is None else cores[nodes], start=1):
        write("SystemTreeNodeProperty", number, text("hopmap::cores"), _UINT64, int(has))
    return node


def _write_definitions(
    out: _Output,
    node_of: NDArray[np.integer[Any]] | None,
    cores: NDArray[np.integer[Any]] | None,
    nodes: Sequence[str] | None,
) -> None:
    trace = out.trace
    writer = call("Archive_GetGlobalDefWriter", out.archive)
    if not writer:
        raise out.complaints.fail(out.path, "no global definitions")

    def write(definition: str, *values: Any) -> None:
        out.call(f"GlobalDefWriter_Write{definition}", writer, *values)

    strings: dict[str, int] = {}

    def text(value: str) -> int:
        if value not in strings:
            strings[value] = len(strings)
            write("String", strings[value], value.encode())
        return strings[value]

    def group(reference: int, kind: int, members: NDArray[np.integer[Any]]) -> None:
        values = np.ascontiguousarray(members, dtype=np.uint64)
        write("Group", reference, text(""), kind, MPI, 0, len(values), values.ctypes.data)

    resolution = int(trace.resolution)
    write("ClockProperties", resolution, out.first_tick, out.length, UNDEFINED_UINT64)
    text("")
    write("Paradigm", MPI, text("MPI"), 0)
    node = _write_system_tree(write, text, trace.ranks, node_of, cores, nodes)
    if trace.thread_level >= 0:
        write("SystemTreeNodeProperty", 0, text(THREAD_LEVEL), _UINT64, trace.thread_level)
    for rank in range(trace.ranks):
        write(
            *("LocationGroup", rank, text(f"MPI Rank {rank}"), _PROCESS, int(node[rank]) + 1),
            UNDEFINED_UINT32,
        )
    # A flush is one event, a time without recording two.
    of_span = np.array([1, 2, 0])[trace.spans.kind]
    spans = np.bincount(trace.spans.rank, of_span, minlength=trace.ranks)
    for location, rank, begin, end in out.locations:
        master = location == rank
        events = end - begin + int(spans[rank]) * master
        called = text("Master thread" if master else "Thread")
        write("Location", location, called, CPU_THREAD, events, rank)
    for number, (name, kind) in enumerate(zip(trace.regions, trace.roles.tolist(), strict=True)):
        mpi = bool(is_call(trace.roles[number]))
        role = _OF_ROLE.get(kind) or _ROLES.get(mpi_name(name), _FUNCTION)
        paradigm = MPI if mpi else MEASUREMENT_SYSTEM if kind == Role.TOOL else _USER
        write(
            *("Region", number, text(name), text(name), text(""), role, paradigm),
            *(0, text("MPI" if mpi else ""), 0, 0),
        )
    group(0, COMM_LOCATIONS, np.arange(trace.ranks))
    for number, members in enumerate(trace.communicators):
        group(number + 1, COMM_GROUP if len(members) else COMM_SELF, members)
    world_named = False
    for number, members in enumerate(trace.communicators):
        name = ""
        if not len(members):
            name = "MPI_COMM_SELF"
        elif not world_named and np.array_equal(members, np.arange(trace.ranks)):
            name, world_named = "MPI_COMM_WORLD", True
        write("Comm", number, text(name), number + 1, UNDEFINED_UINT32, 0)
    for number, members in enumerate(trace.groups, len(trace.communicators) + 1):
        group(number, COMM_GROUP, members)
    for number, communicator in enumerate(trace.windows):
        if communicator >= 0:
            write("RmaWin", number, text(""), communicator, _CREATED_AND_FREED)
    out.call("Archive_CloseGlobalDefWriter", out.archive, writer)


@contextmanager
def _fresh_folder(path: Path) -> Iterator[Path]:
    """Give a fresh folder next to `path` that takes its place at the end unless an error occurs."""
    expect_replaceable(path)
    try:
        with replacing_folder(path.absolute()) as folder:
            yield folder
    except OSError as error:
        raise TraceError(f"{path}: not writable ({error.strerror})") from None


_ENDS = ("", ".otf2", ".def", ".marker", ".counts")  # of an archive's name


def expect_replaceable(path: Path) -> None:
    """Refuse to replace anything except an empty folder or a folder with only an archive."""
    if not path.exists():
        return
    if not path.is_dir():
        raise TraceError(f"{path}: a file, expected the place of an archive folder")
    entries = sorted(path.iterdir())
    names = {entry.stem for entry in entries if entry.suffix == ".otf2" and entry.is_file()}
    own = {"scorep.cfg", "MANIFEST.md", *(name + end for name in names for end in _ENDS)}
    below = [file for name in sorted(names) for file in sorted(path.glob(f"{name}/*"))]
    foreign = [entry for entry in entries if entry.name not in own]
    foreign += [file for file in below if file.suffix not in (".def", ".evt")]
    if foreign:
        found = foreign[0].relative_to(path)
        raise TraceError(f"{path}: not replaced, {found} in it is not part of an OTF2 archive")

"""An open OTF2 archive: opening its files, reading a location's events in portions.

The locations are read one after another, so that memory and open files do not grow with their
number, and in portions, so that Ctrl-C and progress get a turn. If a part is missing, cut or
contradicts the definitions, a `TraceError` names file, location and event.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hopmap.cores import cores
from hopmap.progress import Progress
from hopmap.traces.safety.guarded_process import Death, Limits, Line, run_guarded
from hopmap.traces.safety.memory import OutOfMemoryError
from hopmap.traces.trace import TraceError

from .definitions import Definitions, Location, read_definitions
from .files import expect_anchor, expect_end, find_archive
from .library import LARGEST_CHUNK, SMALLEST_CHUNK, UINT64, Complaints, call, exclusive, listening

T = TypeVar("T")

_PORTION = 1 << 18  # events between two looks at Ctrl-C and progress
_SMALLEST_EVENT = 2  # bytes: type and length

# Of the process that reads: bytes, and bytes for each of the archive's; seconds of a processor
# between two portions, and bytes of definitions for which there is one more.
_ROOM, _ROOM_PER_BYTE, _PATIENCE, _PER_SECOND = 2**29, 100, 10, 2**18
_PER_WORKER = 2**26  # bytes of an archive, a second or so, that are worth a process


@dataclass
class Archive:
    """An open archive, and how much of it has been read."""

    anchor: Path
    reader: int
    complaints: Complaints
    definitions: Definitions
    locations: tuple[Location, ...]
    event_chunk: int  # bytes of a chunk of events
    definition_chunk: int
    mapped: bool  # it has local definitions
    line: Line | None
    cleanup: ExitStack
    total: int = 0
    done: int = 0

    @property
    def name(self) -> str:
        """What the archive is called: its folder, where the anchor file has the usual name."""
        anchor = self.anchor.absolute()
        return anchor.stem if anchor.stem != "traces" else anchor.parent.name.removesuffix(".otf2")

    def rank(self, location: Location) -> int:
        """World rank of a location's process, or -1."""
        return self.definitions.rank_of.get(location.reference, -1)

    def by_share(self, which: int, shares: int) -> Iterator[tuple[int, list[Location]]]:
        """Go through a part of the ranks and the locations that make up their programs.

        A location that belongs to no rank comes behind all, as rank -1. Each share is a stretch of
        these, of about as many events as any other.
        """
        ranks = self.definitions.ranks
        parts: list[list[Location]] = [[] for _ in range(ranks)]
        for location in self.locations:
            if self.rank(location) >= 0:
                parts[self.rank(location)].append(location)
        parts += [[location] for location in self.locations if self.rank(location) < 0]
        before = 0
        for rank, own in enumerate(parts):
            # A rank belongs to the share that has the middle of its events.
            events = sum(location.events for location in own)
            share = (2 * before + events) * shares // (2 * max(self.total, 1))
            before += events
            if min(share, shares - 1) == which:
                if rank < ranks:
                    self.definitions.partners.switch_to_rank(rank)
                yield (rank if rank < ranks else -1), own

    def state(self, kind: np.dtype[Any]) -> NDArray[Any]:
        """Make the state of the callbacks, with the tables of the definitions."""
        state = np.zeros((), dtype=kind)
        partners = self.definitions.partners
        for name in ("reference", "number", "start", "length", "members", "belongs"):
            state[name] = getattr(partners, name).ctypes.data
        state["communicators"] = len(partners.reference)
        state["self_at"] = len(partners.members) - 1
        state["region_reference"] = self.definitions.region_reference.ctypes.data
        state["region_is_mpi"] = self.definitions.region_is_mpi.ctypes.data
        state["regions"] = len(self.definitions.regions)
        windows = self.definitions.windows
        state["window_reference"] = windows.reference.ctypes.data
        state["window_comm"] = windows.communicator.ctypes.data
        state["group_reference"] = windows.group_reference.ctypes.data
        state["windows"], state["groups"] = len(windows.reference), len(windows.group_reference)
        state["offset"] = self.definitions.offset
        state["resolution"] = self.definitions.resolution
        return state

    def file(self, location: Location, suffix: str) -> Path:
        """Return the file of a location with events (evt) or definitions (def)."""
        return self.anchor.with_suffix("") / f"{location.reference}.{suffix}"

    def place(self, location: Location) -> str:
        """Say in a message which events are meant."""
        return f"{self.file(location, 'evt')}: location {location.reference}"

    def read(
        self,
        location: Location,
        state: NDArray[Any],
        *stretches: tuple[int, int],
    ) -> None:
        """Read all events of a location: so many with this table, then so many with that one."""
        if not location.events:
            return
        place = self.place(location)
        if self.line:
            self.line.at(place)
        state["last"] = state["error"] = 0
        with self._events_of(location) as events:
            expect_end(self.file(location, "evt"), self.event_chunk, place)
            begin = self.done
            for count, table in stretches:
                if count:
                    call(
                        *("Reader_RegisterEvtCallbacks", self.reader, events, table),
                        state.ctypes.data,
                    )
                while count:
                    read = self._portion(events, min(count, _PORTION), state, place, begin)
                    if not read:
                        raise TraceError(
                            f"{place}: ends after event {self.done - begin}, "
                            f"the definitions say {location.events}"
                        )
                    count -= read
            if self._portion(events, 1, state, place, begin):
                raise TraceError(
                    f"{place}: goes on after event {location.events}, its last by the definitions"
                )

    @contextmanager
    def _events_of(self, location: Location) -> Iterator[int]:
        """Open the events of a location, after its local definitions."""
        place = self.place(location)
        if self.mapped:
            file = str(self.file(location, "def"))
            expect_end(Path(file), self.definition_chunk, file)
            local = call("Reader_GetDefReader", self.reader, location.reference)
            if not local:
                raise self.complaints.fail(file, "no local definitions")
            count = UINT64()
            status = call("Reader_ReadAllLocalDefinitions", self.reader, local, ctypes.byref(count))
            try:
                self.complaints.expect(status, file, f"unreadable after {count.value} definitions")
            finally:
                call("Reader_CloseDefReader", self.reader, local)
        events = call("Reader_GetEvtReader", self.reader, location.reference)
        if not events:
            raise self.complaints.fail(place, "no events")
        try:
            call("EvtReader_ApplyMappingTables", events, True)
            call("EvtReader_ApplyClockOffsets", events, True)
            yield events
        finally:
            call("Reader_CloseEvtReader", self.reader, events)

    def table(self, callbacks: Mapping[str, int]) -> int:
        """Make libotf2's table of callbacks, from addresses by name; it lives with the archive."""
        table = call("EvtReaderCallbacks_New")
        self.cleanup.callback(call, "EvtReaderCallbacks_Delete", table)
        for name, address in callbacks.items():
            call(f"EvtReaderCallbacks_Set{name}Callback", table, address)
        return int(table)

    def _portion(self, events: int, count: int, state: NDArray[Any], place: str, begin: int) -> int:
        """Read up to `count` events; return how many there were."""
        from .state_kernels import ERRORS

        read = UINT64()
        status = call("Reader_ReadLocalEvents", self.reader, events, count, ctypes.byref(read))
        if state["error"]:
            found = ERRORS[int(state["error"])].format(detail=int(state["detail"]))
            raise TraceError(f"{place}, event {int(state['position'])}: {found}")
        self.done += read.value
        self.complaints.expect(status, f"{place}, after event {self.done - begin}", "unreadable")
        if self.line:
            self.line.progress(self.done, self.total)
        return read.value


def reading_in_shares(
    path: str | os.PathLike[str],
    read: Callable[..., T | None],
    progress: Progress | None,
    workers: int | None = 1,
    *,
    one_sided: str = "",
) -> list[T]:
    """Return what `read` makes of each share of an archive, guarded against all libotf2 may do.

    `read` takes the anchor file, (number of the share, shares), and the line of a guarded process.
    If it returns None, there are windows: it is called again with `windows`, the callbacks that are
    called `one_sided`. There are as many `workers`, that is processes; when left out, one for each
    `_PER_WORKER` bytes of the archive, as far as there are processors.

    libotf2 checks much and not all: there are damaged archives on which it loops, or takes any
    amount of memory. The limits are far beyond what any sound archive of that size needs.
    """
    from . import state_kernels  # noqa: F401 - compiled here, since the child must not

    anchor = find_archive(path)
    expect_anchor(anchor)
    definitions = anchor.with_suffix(".def")
    files = [definitions, *anchor.with_suffix("").glob("*")]
    size = sum(file.stat().st_size for file in files if file.is_file())
    known = definitions.stat().st_size if definitions.is_file() else 0
    limits = Limits(_ROOM + _ROOM_PER_BYTE * size, _PATIENCE + known // _PER_SECOND)
    if workers is None:
        workers = min(cores(), size // _PER_WORKER)
    shares = max(1, min(workers, sum(file.suffix == ".evt" for file in files)))
    works = [partial(read, anchor, (share, shares)) for share in range(shares)]
    with exclusive():  # no other thread is inside libotf2 when the process forks
        try:
            found = run_guarded(works, limits, progress)
        except Death as death:
            raise TraceError(
                f"{death.at or anchor}: reading it {death}: the archive is damaged"
            ) from None
        except OutOfMemoryError:
            raise
        except MemoryError:
            raise TraceError(
                f"{anchor}: reading it takes more memory than an archive of {size} bytes can need: "
                "it is damaged"
            ) from None
    if found[0] is None:
        from . import one_sided_kernels  # compiled here, since the child must not

        again = partial(read, windows=getattr(one_sided_kernels, one_sided)())
        return reading_in_shares(path, again, progress, workers)
    return [each for each in found if each is not None]


@contextmanager
def open_reader(anchor: Path, line: Line | None) -> Iterator[Archive]:
    """Open an archive up to the point where events can be read; close all of it in any case."""
    with listening() as complaints, ExitStack() as cleanup:
        reader = call("Reader_Open", os.fsencode(anchor))
        if not reader:
            raise complaints.fail(str(anchor), "not readable as the anchor file of OTF2")
        cleanup.callback(call, "Reader_Close", reader)
        complaints.expect(call("Reader_SetSerialCollectiveCallbacks", reader), str(anchor))
        file = anchor.with_suffix(".def")
        if not file.is_file():
            raise TraceError(f"{file}: no such file, the global definitions are missing")
        if line:
            line.at(str(file))
        chunks = _chunk_sizes(reader, anchor)
        expect_end(file, chunks[1], str(file))
        definitions = read_definitions(reader, str(file), complaints)
        archive = Archive(
            *(anchor, reader, complaints, definitions, definitions.locations, *chunks, False),
            *(line, cleanup),
        )
        archive.total = sum(location.events for location in archive.locations)
        archive.mapped = any(archive.file(each, "def").is_file() for each in archive.locations)
        for location in archive.locations:
            _expect_files(archive, location)
            call("Reader_SelectLocation", reader, location.reference)
        for files in ("Def", "Evt") if archive.mapped else ("Evt",):
            complaints.expect(call(f"Reader_Open{files}Files", reader), str(anchor))
            cleanup.callback(call, f"Reader_Close{files}Files", reader)
        yield archive


def _chunk_sizes(reader: int, anchor: Path) -> tuple[int, int]:
    """Bytes of a chunk of events, and of definitions."""
    events, definitions = UINT64(), UINT64()
    call("Reader_GetChunkSize", reader, ctypes.byref(events), ctypes.byref(definitions))
    for size in (events.value, definitions.value):
        if not SMALLEST_CHUNK <= size <= LARGEST_CHUNK:
            raise TraceError(
                f"{anchor}: chunks of {size} bytes, expected {SMALLEST_CHUNK} to {LARGEST_CHUNK}"
            )
    return events.value, definitions.value


def _expect_files(archive: Archive, location: Location) -> None:
    """Look for the files of a location before anything is allocated for its events."""
    events = archive.file(location, "evt")
    place = archive.place(location)
    if not location.events:
        return
    if not events.is_file():
        raise TraceError(f"{place}: no such file, {location.events} events are missing")
    size = events.stat().st_size
    if location.events > size // _SMALLEST_EVENT:
        raise TraceError(
            f"{place}: {size} bytes cannot hold the {location.events} events of the definitions"
        )
    local = archive.file(location, "def")
    if archive.mapped and not local.is_file():
        raise TraceError(f"{local}: no such file, the local definitions are missing")

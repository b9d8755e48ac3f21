"""The files that recorded processes leave in a folder, and the numbers that both sides agree on.

The library is compiled with `numbers_text`; `VERSION` changes with anything there or in c/events.h,
which says how the files are laid out.
"""

from __future__ import annotations

import mmap
import re
from collections import Counter
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path

import numpy as np

from hopmap.arrays import Ints32, Table
from hopmap.traces.trace import Collective, Kind, TraceError

VERSION = 5
PAGE = 4096  # bytes of the header
MAGIC = b"hopmaprc"
PART = 0xFFFF  # region of what is a part of the call whose record follows
FIRST_USER_REGION = 0x8000
MYSELF_ROOT = -2  # root of a collective between two groups, at the root itself


class Extra(IntEnum):
    """Kinds of records in addition to `Kind`."""

    PAIR = 64  # bytes to a member in an alltoallv or alltoallw
    REGION_ENTER = 68  # of the program's own; the region is the tag
    REGION_LEAVE = 69
    RECORDING_OFF = 70
    RECORDING_ON = 71
    NOTHING = 255  # a call of which no more is known than that it was made


COUNTS = (
    *("flushes", "flush_ns", "merged_polls", "calls_while_off", "foreign_messages"),
    *("foreign_collectives", "foreign_communicators", "unknown_requests", "freed_requests"),
    *("uncounted_pairs", "lost_regions", "one_sided", "one_sided_bytes", "failed_calls"),
)

HEADER = np.dtype(
    [
        ("magic", "S8"),
        *((name, "u4") for name in ("version", "record_size")),
        *((name, "i4") for name in ("rank", "ranks")),
        *((name, "u8") for name in ("run", "host")),
        ("cpus", "u1", 1024 // 8),
        ("node", "S64"),
        *((name, "i4") for name in ("required", "provided")),
        ("clock", [("at", "u8"), ("ahead", "i8")], 2),
        *((name, "i4") for name in ("clocks", "finished", "open", "profile")),
        ("counts", "u8", len(COUNTS)),
        ("collectives", [(name, "u8") for name in ("calls", "sent", "received")], len(Collective)),
    ]
)
RECORD = np.dtype(
    [
        *((name, "u8") for name in ("begin", "end")),
        *((name, "i8") for name in ("size", "received", "request")),
        *((name, "i4") for name in ("comm", "peer", "tag")),
        ("region", "u2"),
        *((name, "u1") for name in ("kind", "operation")),
        *((name, "i4") for name in ("thread", "unused")),
    ]
)


def numbers_text() -> str:
    """Return the numbers as a header in C."""
    groups = [
        *([(each.name, int(each)) for each in group] for group in (Kind, Extra, Collective)),
        [(name.upper(), place) for place, name in enumerate(COUNTS)],
        [("COUNTS", len(COUNTS)), ("OPERATIONS", len(Collective)), ("VERSION", VERSION)],
    ]
    lines = (", ".join(f"{name} = {number}" for name, number in group) for group in groups)
    return "".join(f"enum {{ {line} }};\n" for line in lines)


_FILE = re.compile(r"(\d+)\.events")


@dataclass
class Names:
    """What a process called things, by their numbers."""

    # MPI's functions and the program's own regions
    regions: dict[int, str] = field(default_factory=dict)
    # Members of groups whose rank 0 the process was, as world ranks
    groups: dict[str, Ints32] = field(default_factory=dict)
    # By number: the names of the group here and, between two groups, of that there; and how many of
    # the same members came before
    communicators: dict[int, tuple[str, str, int]] = field(default_factory=dict)
    # Communicator of each window of one-sided operations
    windows: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Process:
    """What one process left: header, records (none of a profile), names."""

    header: np.void
    records: Table
    names: Names

    @property
    def counts(self) -> dict[str, int]:
        """What was counted without a record."""
        return dict(zip(COUNTS, self.header["counts"].tolist(), strict=True))


def read_processes(folder: Path) -> list[Process]:
    """Read what all processes of a run left, in the order of their ranks.

    Records are mapped, not read. Those behind a call that never ended are left out.
    """
    ranks = sorted(int(m[1]) for m in map(_FILE.fullmatch, _names_in(folder)) if m)
    if not ranks and (folder / "0.sessions").exists():
        raise TraceError(
            f"{folder}: MPI Sessions alone are not recorded: expected MPI_Init as well"
        )
    if not ranks:
        raise TraceError(
            f"{folder}: no recording in it: expected an MPI program that calls MPI_Init and is "
            f"linked with the MPI of --mpicc as a shared library"
        )
    found = [_process(folder, rank) for rank in ranks]
    size, run = int(found[0].header["ranks"]), found[0].header["run"]
    for rank, each in zip(ranks, found, strict=True):
        if (each.header["rank"], each.header["ranks"], each.header["run"]) != (rank, size, run):
            raise TraceError(f"{folder / f'{rank}.events'}: of another run than {ranks[0]}.events")
    missing = sorted(set(range(size)) - set(ranks))
    if missing:
        raise TraceError(
            f"{folder}: no {missing[0]}.events, {len(missing)} of {size} processes are missing: "
            f"expected a folder that all nodes see"
        )
    return found


def _names_in(folder: Path) -> list[str]:
    try:
        return [each.name for each in folder.iterdir()]
    except OSError as error:
        raise TraceError(f"{folder}: {error.strerror}: expected a folder of a recording") from None


def _process(folder: Path, rank: int) -> Process:
    file = folder / f"{rank}.events"
    with file.open("rb") as stream:
        start = stream.read(PAGE)
        if len(start) < PAGE or not start.startswith(MAGIC):
            raise TraceError(f"{file}: not begun by the recorder: expected {MAGIC.decode()}")
        header = np.frombuffer(start, HEADER, 1)[0]
        if header["version"] != VERSION or header["record_size"] != RECORD.itemsize:
            raise TraceError(f"{file}: version {header['version']}, expected {VERSION}")
        size = file.stat().st_size - PAGE
        records = np.zeros(0, RECORD)
        if size >= RECORD.itemsize:
            whole = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
            records = np.frombuffer(whole, RECORD, size // RECORD.itemsize, PAGE)
    # Room that was not used, or not any more, is zero.
    end = records["end"] != 0
    used = len(end) if end.all() else int(end.argmin())
    return Process(header, records[:used], _names(folder / f"{rank}.names"))


def _names(file: Path) -> Names:
    """Read names; the last line of a process that was killed may be cut."""
    names = Names()
    before: Counter[tuple[str, ...]] = Counter()
    for line in file.read_text(encoding="utf-8", errors="replace").split("\n")[:-1]:
        what, _, rest = line.partition(" ")
        if what == "region":
            number, _, name = rest.partition(" ")
            names.regions[int(number)] = name
        elif what == "group":
            digest, *runs = rest.split(" ")
            names.groups[digest] = _members(runs)
        elif what == "window":
            window, _, of = rest.partition(" ")
            names.windows[int(window)] = int(of)
        elif what == "comm":
            number, here, there = rest.split(" ")
            members = tuple(sorted((here, there)))
            names.communicators[int(number)] = (here, there, before[members])
            before[members] += 1
    return names


def _members(runs: list[str]) -> Ints32:
    parts = []
    for run in runs:
        first, _, last = run.partition("-")
        parts.append(np.arange(int(first), int(last or first) + 1, dtype=np.int32))
    return np.concatenate([np.zeros(0, dtype=np.int32), *parts])

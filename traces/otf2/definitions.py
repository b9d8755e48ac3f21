"""The definitions of an OTF2 archive that a program needs: clock, locations, regions, partners.

Events name their partner by its rank in a communicator. The way from there to a world rank is
communicator -> group -> (MPI's COMM_LOCATIONS group) -> location; a world rank is an index into
that last group. `read_records` reads the definitions as they stand in the file; `read_definitions`
walks that way once and leaves flat tables for the compiled readers.
"""

from __future__ import annotations

import ctypes
import re
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.arrays import Bools, Ints, Ints32
from hopmap.traces.trace import (
    THREAD_LEVELS,
    Role,
    SharedCores,
    TraceError,
    is_call,
    role_of_call,
    roles_by_name,
)

from .library import (
    POINTER,
    STATUS,
    TEXT,
    UINT8,
    UINT32,
    UINT64,
    UNDEFINED_UINT32,
    Complaints,
    call,
)

UNKNOWN, MPI, MEASUREMENT_SYSTEM = 0, 4, 6  # OTF2_PARADIGM_*
FILE_IO, FILE_IO_METADATA, RMA, ATOMIC = 27, 38, 29, 14  # OTF2_REGION_ROLE_*
_SORT = {FILE_IO: Role.FILE, FILE_IO_METADATA: Role.FILE, RMA: Role.ONE_SIDED}
_SORT[ATOMIC] = Role.ONE_SIDED
# Roles of regions in which a thread waits for others: barriers, ends of tasks and of threads.
_WAITS = (15, 16, 22, 33)
CPU_THREAD = 1  # OTF2_LOCATION_TYPE_CPU_THREAD
COMM_LOCATIONS, COMM_GROUP, COMM_SELF = 4, 5, 6  # OTF2_GROUP_TYPE_*
STRING, UNSIGNED = 11, (1, 2, 3, 4)  # OTF2_Type
CORES = ("cores", "cpus", "ncores", "num_cores")
"""Names of properties of a node of the system tree, after a tool's own prefix."""
THREAD_LEVEL = "hopmap::thread_level"  # the same
GLOBAL_MEMBERS = 1  # OTF2_GROUP_FLAG_GLOBAL_MEMBERS: events already carry world ranks


class Location(NamedTuple):
    """A stream of events: a thread, a GPU stream, a set of metrics."""

    reference: int
    kind: int
    events: int
    process: int  # its location group


class Group(NamedTuple):
    """A group as it stands in the file."""

    kind: int
    paradigm: int
    flags: int
    members: NDArray[np.uint64]


@dataclass
class Records:
    """Definitions by their references; what refers to what is not followed."""

    clock: tuple[int, int] | None = None
    strings: dict[int, str] = field(default_factory=dict)
    locations: dict[int, Location] = field(default_factory=dict)
    regions: dict[int, tuple[int, int, int]] = field(default_factory=dict)  # name, role, paradigm
    groups: dict[int, Group] = field(default_factory=dict)
    communicators: dict[int, tuple[int, ...]] = field(default_factory=dict)  # one group or two
    windows: dict[int, int] = field(default_factory=dict)  # communicator
    processes: dict[int, int] = field(default_factory=dict)  # node of each location group
    nodes: dict[int, int] = field(default_factory=dict)  # node above each
    labels: dict[int, tuple[int, int]] = field(default_factory=dict)  # name and class of each
    properties: list[tuple[int, int, int, int]] = field(default_factory=list)  # of nodes

    def _on_clock_properties(self, resolution: int, offset: int, _length: int, _date: int) -> None:
        self.clock = (resolution, offset)

    def _on_string(self, reference: int, text: bytes) -> None:
        self.strings[reference] = text.decode(errors="replace")

    def _on_location(self, reference: int, _name: int, kind: int, events: int, group: int) -> None:
        self.locations[reference] = Location(reference, kind, events, group)

    def _on_location_group(self, reference: int, _name: int, _kind: int, node: int) -> None:
        self.processes[reference] = node

    def _on_system_tree_node(self, reference: int, name: int, kind: int, above: int) -> None:
        self.nodes[reference] = above
        self.labels[reference] = (name, kind)

    def _on_system_tree_node_property(self, *of_node: int) -> None:
        self.properties.append(of_node)  # type: ignore[arg-type]

    def _on_region(
        self, reference: int, name: int, _canonical: int, _about: int, role: int, paradigm: int
    ) -> None:
        self.regions[reference] = (name, role, paradigm)

    def _on_group(
        self, reference: int, _name: int, kind: int, paradigm: int, flags: int, size: int, at: int
    ) -> None:
        members = np.zeros(0, dtype=np.uint64)
        if size and at:
            members = np.array((UINT64 * size).from_address(at), dtype=np.uint64)
        self.groups[reference] = Group(kind, paradigm, flags, members)

    def _on_comm(self, reference: int, _name: int, group: int) -> None:
        self.communicators[reference] = (group,)

    def _on_inter_comm(self, reference: int, _name: int, near: int, far: int) -> None:
        self.communicators[reference] = (near, far)

    def _on_rma_win(self, reference: int, _name: int, communicator: int) -> None:
        self.windows[reference] = communicator


# Callback of libotf2, method above, argument types. Unneeded trailing arguments are left
# out: in every ABI that numba runs on the caller owns them.
_CALLBACKS: tuple[tuple[str, str, tuple[Any, ...]], ...] = (
    ("ClockProperties", "_on_clock_properties", (UINT64, UINT64, UINT64, UINT64)),
    ("String", "_on_string", (UINT32, TEXT)),
    ("Location", "_on_location", (UINT64, UINT32, UINT8, UINT64, UINT32)),
    ("LocationGroup", "_on_location_group", (UINT32, UINT32, UINT8, UINT32)),
    ("SystemTreeNode", "_on_system_tree_node", (UINT32, UINT32, UINT32, UINT32)),
    (
        "SystemTreeNodeProperty",
        "_on_system_tree_node_property",
        (UINT32, UINT32, UINT8, UINT64),  # the last is a union of eight bytes
    ),
    ("Region", "_on_region", (UINT32, UINT32, UINT32, UINT32, UINT8, UINT8)),
    ("Group", "_on_group", (UINT32, UINT32, UINT8, UINT8, UINT32, UINT32, POINTER)),
    ("Comm", "_on_comm", (UINT32, UINT32, UINT32)),
    ("InterComm", "_on_inter_comm", (UINT32, UINT32, UINT32, UINT32)),
    ("RmaWin", "_on_rma_win", (UINT32, UINT32, UINT32)),
)


def read_records(reader: int, file: str, complaints: Complaints) -> Records:
    """Read the global definitions of an open archive; `file` is for messages."""
    records = Records()
    failure: list[BaseException] = []

    def guard(method: Callable[..., None]) -> Callable[..., int]:
        def callback(_user: int | None, *arguments: Any) -> int:
            try:
                method(*arguments)
            except BaseException as error:  # also Ctrl-C: it must not be lost inside libotf2
                failure.append(error)
                return 1
            return 0

        return callback

    with ExitStack() as cleanup:
        callbacks = call("GlobalDefReaderCallbacks_New")
        cleanup.callback(call, "GlobalDefReaderCallbacks_Delete", callbacks)
        kept_alive = []
        for name, method, types in _CALLBACKS:
            prototype = ctypes.CFUNCTYPE(STATUS, POINTER, *types)
            kept_alive.append(prototype(guard(getattr(records, method))))
            call(f"GlobalDefReaderCallbacks_Set{name}Callback", callbacks, kept_alive[-1])
        definitions = call("Reader_GetGlobalDefReader", reader)
        if not definitions:
            raise complaints.fail(file, "no global definitions")
        cleanup.callback(call, "Reader_CloseGlobalDefReader", reader, definitions)
        count, expected = UINT64(), UINT64()
        call("Reader_RegisterGlobalDefCallbacks", reader, definitions, callbacks, None)
        status = call("Reader_ReadAllGlobalDefinitions", reader, definitions, ctypes.byref(count))
        if failure and not isinstance(failure[0], Exception):
            raise failure[0]
        if failure:
            raise TraceError(f"{file}: definition {count.value}: {failure[0]!r}")
        complaints.expect(status, file, f"unreadable after {count.value} definitions")
        call("Reader_GetNumberOfGlobalDefinitions", reader, ctypes.byref(expected))
        if count.value != expected.value:
            raise TraceError(
                f"{file}: {count.value} definitions, the anchor file says {expected.value}"
            )
    return records


class Partners(NamedTuple):
    """Tables of all communicators, sorted by reference; the compiled `partner` looks in them.

    Who is meant by rank p of communicator i is ``members[start[i] + p]``, for p < ``length[i]``.
    """

    reference: NDArray[np.uint32]
    number: Ints32  # in Trace.communicators; -1: not a communicator of MPI
    start: Ints
    length: Ints
    members: Ints32  # the last entry is the rank whose events are being read
    selves: tuple[int, ...]  # rows that mean the reading rank alone
    bridges: tuple[tuple[int, int, int, int], ...]  # rows with two sides: row, start, lengths
    # Of each row whether everybody, and whether the reading rank, is a member; members and rows
    # of all the others, by member
    of_all: NDArray[np.uint8]
    belongs: NDArray[np.uint8]
    member: Ints
    row_of_member: Ints

    def switch_to_rank(self, rank: int) -> None:
        """Fill in what depends on the rank whose events are read next."""
        self.belongs[:] = self.of_all
        first, last = np.searchsorted(self.member, (rank, rank + 1))
        self.belongs[self.row_of_member[first:last]] = 1
        self.members[-1] = rank
        for row in self.selves:
            self.start[row], self.length[row] = len(self.members) - 1, 1
        for row, start, near, far in self.bridges:
            # A rank of one side addresses the ranks of the other.
            inside = rank in self.members[start : start + near]
            self.start[row] = start + near if inside else start
            self.length[row] = far if inside else near


class Windows(NamedTuple):
    """Windows of one-sided operations, and groups of MPI's ranks, sorted by reference."""

    reference: NDArray[np.uint32]
    communicator: Ints32  # row in `Partners`; -1: of no communicator of MPI
    group_reference: NDArray[np.uint32]
    groups: tuple[Ints32, ...]  # world ranks


@dataclass(frozen=True, eq=False)
class Definitions:
    """What is known of an archive before its events are read.

    `rank_of` gives the world rank of a location's reference; it holds the CPU threads of MPI
    processes and nothing else. `masters` are the locations of the world ranks themselves.
    """

    resolution: int
    offset: int
    locations: tuple[Location, ...]
    rank_of: dict[int, int]
    masters: NDArray[np.uint64]
    regions: tuple[str, ...]
    region_reference: NDArray[np.uint32]
    roles: NDArray[np.uint8]  # `Role` of each region
    region_is_mpi: Bools
    waits: Bools  # regions in which a thread waits for others of its process
    communicators: tuple[Ints32, ...]
    partners: Partners
    windows: Windows
    shared_cores: SharedCores | None
    hosts: tuple[str, ...]  # names of the ranks' nodes, "" where there is none
    thread_level: int  # a place in `THREAD_LEVELS`, or -1

    @property
    def ranks(self) -> int:
        """Number of MPI processes."""
        return len(self.masters)


def read_definitions(reader: int, file: str, complaints: Complaints) -> Definitions:
    """Read the global definitions of an open archive, see `read_records`."""
    records = read_records(reader, file, complaints)
    if records.clock is None or records.clock[0] == 0:
        raise TraceError(f"{file}: no ClockProperties definition with a resolution")
    masters = _masters(records, file)
    ranks = len(masters)
    process_of = {
        records.locations[int(master)].process: rank for rank, master in enumerate(masters)
    }
    if len(process_of) == ranks:
        rank_of = {
            location.reference: process_of[location.process]
            for location in records.locations.values()
            if location.kind == CPU_THREAD and location.process in process_of
        }
    else:  # ranks share a process (they are threads themselves): nothing else belongs to one
        rank_of = {int(master): rank for rank, master in enumerate(masters)}
    communicators, partners = _partners(records, ranks, file)
    regions = sorted(records.regions.items())
    names = tuple(
        _text(records, name, f"{file}: region {reference}") for reference, (name, *_) in regions
    )
    roles = _roles(names, [kind for _, (_, *kind) in regions])
    return Definitions(
        resolution=records.clock[0],
        offset=records.clock[1],
        locations=tuple(sorted(records.locations.values())),
        rank_of=rank_of,
        masters=masters,
        regions=names,
        region_reference=np.array([reference for reference, _ in regions], dtype=np.uint32),
        roles=roles,
        region_is_mpi=is_call(roles),
        waits=np.array([role in _WAITS for _, (_, role, _) in regions], dtype=np.bool_),
        communicators=communicators,
        partners=partners,
        windows=_windows(records, partners, ranks, file),
        shared_cores=_shared_cores(records, masters),
        hosts=tuple(_host(records, int(master)) for master in masters),
        thread_level=_thread_level(records),
    )


def _thread_level(records: Records) -> int:
    """Return the level that MPI provided, where hopmap wrote it; else -1."""
    for _, name, kind, value in records.properties:
        is_level = records.strings.get(name) == THREAD_LEVEL and kind in UNSIGNED
        if is_level and value < len(THREAD_LEVELS):
            return int(value)
    return -1


def _shared_cores(records: Records, masters: NDArray[np.uint64]) -> SharedCores | None:
    """Return the host with most ranks a core, by the nodes that say how many cores they have."""
    cores = dict(filter(None, (_cores(records, *each) for each in records.properties)))
    ranks: Counter[int] = Counter()
    for master in masters if cores else ():
        node, passed = records.processes.get(records.locations[int(master)].process), set[int]()
        while node is not None and node not in cores and node not in passed:
            passed.add(node)
            node = records.nodes.get(node)
        if node in cores:
            ranks[node] += 1
    most = max(ranks, key=lambda node: ranks[node] / cores[node], default=None)
    if most is None or ranks[most] <= cores[most]:
        return None
    return SharedCores(ranks[most], cores[most])


def _host(records: Records, master: int) -> str:
    """Return the name of the node of class "node" that a location is on, or else of the lowest."""
    lowest = node = records.processes.get(records.locations[master].process)
    passed = set[int]()
    while node in records.labels and node not in passed:
        passed.add(node)
        name, kind = records.labels[node]
        if records.strings.get(kind, "").lower() == "node":
            return records.strings.get(name, "")
        node = records.nodes[node]
    return records.strings.get(records.labels[lowest][0], "") if lowest in records.labels else ""


def _cores(records: Records, node: int, name: int, kind: int, value: int) -> tuple[int, int] | None:
    """Return a node and its cores, if that is what a property says: a number, or text of one."""
    if records.strings.get(name, "").lower().rpartition("::")[2] not in CORES:
        return None
    text = records.strings.get(value & 0xFFFFFFFF, "") if kind == STRING else str(value)
    number = int(text) if re.fullmatch(r"[1-9]\d{0,6}", text) else 0
    return (node, number) if number and (kind == STRING or kind in UNSIGNED) else None


def _windows(records: Records, partners: Partners, ranks: int, file: str) -> Windows:
    """Find the communicators of windows, and the groups that may synchronise them."""
    rows = []
    for reference, communicator in sorted(records.windows.items()):
        row = int(np.searchsorted(partners.reference, communicator))
        if row == len(partners.reference) or partners.reference[row] != communicator:
            raise TraceError(
                f"{file}: window {reference}: its communicator {communicator} is not defined"
            )
        rows.append(row if partners.number[row] >= 0 else -1)
    groups = {
        reference: _world_ranks(group, ranks, f"{file}: group {reference}")
        for reference, group in sorted(records.groups.items())
        if rows and group.paradigm == MPI and group.kind in (COMM_LOCATIONS, COMM_GROUP)
    }
    return Windows(
        reference=np.array(sorted(records.windows), dtype=np.uint32),
        communicator=np.array(rows, dtype=np.int32),
        group_reference=np.array(list(groups), dtype=np.uint32),
        groups=tuple(groups.values()),
    )


def _roles(names: tuple[str, ...], kinds: list[list[int]]) -> NDArray[np.uint8]:
    """Roles of regions by their definitions: role and paradigm of each.

    A name decides where there is no paradigm, and in archives that have no region of MPI at all.
    """
    roles = roles_by_name(names)
    nameless = all(paradigm != MPI for _, paradigm in kinds)
    for row, (name, (role, paradigm)) in enumerate(zip(names, kinds, strict=True)):
        if paradigm == MPI:
            by_name = role_of_call(name)
            roles[row] = by_name if by_name == Role.POLL else _SORT.get(role, by_name)
        elif paradigm == MEASUREMENT_SYSTEM:
            roles[row] = Role.TOOL
        elif paradigm != UNKNOWN and not nameless:
            roles[row] = Role.USER
    return roles


def _masters(records: Records, file: str) -> NDArray[np.uint64]:
    """Locations of the world ranks: the members of MPI's COMM_LOCATIONS group."""
    found = [
        group
        for group in records.groups.values()
        if group.kind == COMM_LOCATIONS and group.paradigm == MPI
    ]
    if len(found) != 1:
        raise TraceError(
            f"{file}: {len(found)} groups of MPI locations, expected 1: not the trace of an MPI run"
        )
    masters = found[0].members
    unknown = [int(member) for member in masters if int(member) not in records.locations]
    if unknown:
        raise TraceError(f"{file}: MPI location {unknown[0]} is not defined")
    if len(set(masters.tolist())) != len(masters):
        raise TraceError(f"{file}: a location is listed twice among the MPI locations")
    return masters


def _partners(records: Records, ranks: int, file: str) -> tuple[tuple[Ints32, ...], Partners]:
    """Lay the members of all communicators out flat."""
    communicators: list[Ints32] = []
    members = [np.arange(ranks, dtype=np.int32)]  # first, for groups with GLOBAL_MEMBERS
    filled = ranks
    rows: list[tuple[int, int, int, int]] = []
    selves, bridges = [], []
    for row, (reference, references) in enumerate(sorted(records.communicators.items())):
        place = f"{file}: communicator {reference}"
        groups = []
        for group in references:
            if group not in records.groups:
                raise TraceError(f"{place}: its group {group} is not defined")
            groups.append(records.groups[group])
        if any(group.paradigm != MPI for group in groups):
            rows.append((reference, -1, 0, 0))
            continue
        sides = [_world_ranks(group, ranks, place) for group in groups]
        rows.append((reference, len(communicators), filled, len(sides[0])))
        if groups[0].kind == COMM_SELF:
            selves.append(row)
        elif len(sides) == 2:
            bridges.append((row, filled, len(sides[0]), len(sides[1])))
        elif groups[0].flags & GLOBAL_MEMBERS:
            rows[-1] = (reference, len(communicators), 0, ranks)
        communicators.append(np.concatenate(sides))
        members.append(communicators[-1])
        filled += len(communicators[-1])
    members.append(np.zeros(1, dtype=np.int32))
    table = np.array(rows, dtype=np.int64).reshape(-1, 4)
    number = table[:, 1]
    of_all = (table[:, 2] == 0) & (number >= 0)
    of_all[selves] = True
    row_of_member = np.repeat(
        np.flatnonzero(number >= 0), [len(ranks_in) for ranks_in in communicators]
    )
    member = np.concatenate((*communicators, np.zeros(0, dtype=np.int32))).astype(np.int64)
    order = np.argsort(member, kind="stable")
    return tuple(communicators), Partners(
        reference=table[:, 0].astype(np.uint32),
        number=table[:, 1].astype(np.int32),
        start=table[:, 2].copy(),
        length=table[:, 3].copy(),
        members=np.concatenate(members),
        selves=tuple(selves),
        bridges=tuple(bridges),
        of_all=of_all.astype(np.uint8),
        belongs=of_all.astype(np.uint8),
        member=member[order],
        row_of_member=row_of_member[order],
    )


def _world_ranks(group: Group, ranks: int, place: str) -> Ints32:
    """Members of a communicator's group as world ranks; none for MPI_COMM_SELF."""
    if group.kind == COMM_SELF:
        return np.zeros(0, dtype=np.int32)
    if group.kind == COMM_LOCATIONS:
        return np.arange(ranks, dtype=np.int32)
    if group.kind != COMM_GROUP:
        raise TraceError(f"{place}: its group is of type {group.kind}, expected a group of ranks")
    if len(group.members) and group.members.max() >= ranks:
        raise TraceError(f"{place}: member {group.members.max()}, expected a rank below {ranks}")
    return group.members.astype(np.int32)


def _text(records: Records, reference: int, place: str) -> str:
    if reference == UNDEFINED_UINT32:
        return ""
    if reference not in records.strings:
        raise TraceError(f"{place}: its name, string {reference}, is not defined")
    return records.strings[reference]

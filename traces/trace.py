"""The trace of an MPI run: one columnar program per rank, as it was recorded.

A trace is a list of event records per rank in recorded order. Calls are bracketed by ENTER and
LEAVE; what a call does (messages, requests, collectives) stands between the brackets, as in OTF2.
Two tables hold it, because two thirds of all events are brackets and need no more than a region:

* events: ``kind``, ``time`` and ``ref``, one row each, rank after rank;
* records: partner, communicator, tag, sizes and request of every event that is not a bracket.

Partners are *world ranks*: the reader has already translated OTF2's ranks in a communicator.
Regions have roles, which say what they mean to a replay: which are MPI calls, of what sort.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum, IntFlag
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.arrays import Bools
from hopmap.errors import HopmapError


class TraceError(HopmapError, ValueError):
    """A trace, traffic or matrix file cannot be used; the message names file and place."""


class Kind(IntEnum):
    """What an event is. Order is part of the file format of nothing: only names are stable."""

    ENTER = 0
    LEAVE = 1
    SEND = 2
    ISEND = 3
    ISEND_COMPLETE = 4
    RECV = 5
    IRECV_REQUEST = 6
    IRECV = 7  # completion of a non-blocking receive: partner, tag and size are known here
    REQUEST_TEST = 8
    REQUEST_CANCELLED = 9
    COLLECTIVE_BEGIN = 10
    COLLECTIVE_END = 11
    COLLECTIVE_REQUEST = 12  # start of a non-blocking collective
    COLLECTIVE_COMPLETE = 13
    PROBE = 14  # a message is there; its request is the message's, if it was matched, else -1
    MRECV = 15  # receive of the matched message that `request` names
    IMRECV_REQUEST = 16  # start of the same; `received` names the message
    IMRECV = 17
    # One-sided, named as in OTF2; see `Records` for what their columns hold.
    RMA_WIN_CREATE = 18
    RMA_WIN_DESTROY = 19
    RMA_WAIT_CHANGE = 20
    RMA_COLLECTIVE_BEGIN = 21
    RMA_COLLECTIVE_END = 22  # a fence, or a window made or freed
    RMA_GROUP_SYNC = 23  # of MPI_Win_start, post, complete, wait
    RMA_SYNC = 24
    RMA_REQUEST_LOCK = 25
    RMA_ACQUIRE_LOCK = 26
    RMA_TRY_LOCK = 27  # in vain
    RMA_RELEASE_LOCK = 28
    RMA_PUT = 29
    RMA_GET = 30
    RMA_ATOMIC = 31
    RMA_OP_COMPLETE_BLOCKING = 32  # here
    RMA_OP_COMPLETE_NON_BLOCKING = 33  # here, as a request
    RMA_OP_TEST = 34  # not complete yet
    RMA_OP_COMPLETE_REMOTE = 35  # at the target


FRUITLESS = (Kind.REQUEST_TEST, Kind.COLLECTIVE_BEGIN, Kind.RMA_OP_TEST, Kind.RMA_TRY_LOCK)
"""Records in a call that looks for something which do not say that it found it."""


POSTS = (Kind.ISEND, Kind.IRECV_REQUEST, Kind.COLLECTIVE_REQUEST)
ENDS = (Kind.ISEND_COMPLETE, Kind.IRECV, Kind.COLLECTIVE_COMPLETE)
"""Records that start a request, and those that complete one."""


class Collective(IntEnum):
    """Collective operations, numbered as OTF2_CollectiveOp."""

    BARRIER = 0
    BCAST = 1
    GATHER = 2
    GATHERV = 3
    SCATTER = 4
    SCATTERV = 5
    ALLGATHER = 6
    ALLGATHERV = 7
    ALLTOALL = 8
    ALLTOALLV = 9
    ALLTOALLW = 10
    ALLREDUCE = 11
    REDUCE = 12
    REDUCE_SCATTER = 13
    SCAN = 14
    EXSCAN = 15
    REDUCE_SCATTER_BLOCK = 16
    CREATE_HANDLE = 17
    DESTROY_HANDLE = 18
    ALLOCATE = 19
    DEALLOCATE = 20
    CREATE_HANDLE_AND_ALLOCATE = 21
    DESTROY_HANDLE_AND_DEALLOCATE = 22


class Sync(IntFlag):
    """What a one-sided synchronisation is about, as OTF2_RmaSyncLevel."""

    NONE = 0  # it was looked for in vain
    PROCESS = 1
    MEMORY = 2


class Lock(IntEnum):
    """Sorts of locks, as OTF2_LockType."""

    EXCLUSIVE = 0
    SHARED = 1


class Records(NamedTuple):
    """Columns of the events that are not brackets, all of one length; -1 means "does not apply".

    One-sided records have their window as `tag`, its communicator as `comm` and the target as
    `peer` (-1: all of the window); `request` is OTF2's matching number, which may be that of
    several operations, or the number of the lock.
    """

    peer: NDArray[np.int32]  # world rank of the partner; of a collective, the root's world rank
    comm: NDArray[np.int32]  # index into `Trace.communicators`
    tag: NDArray[np.int32]  # message tag
    # `Collective` of COLLECTIVE_END, COLLECTIVE_COMPLETE and RMA_COLLECTIVE_END; `Lock` of locks,
    # OTF2's number of RMA_ATOMIC and RMA_SYNC, `Sync` of RMA_GROUP_SYNC; else 255
    operation: NDArray[np.uint8]
    # Bytes of the message; of a collective, bytes sent as OTF2 counts them (the whole operation at
    # this rank: an allreduce of b bytes over P ranks has b * P). Of RMA_PUT and RMA_ATOMIC what
    # goes to the target, of RMA_GET what comes back; of RMA_GROUP_SYNC the index into
    # `Trace.groups`.
    size: NDArray[np.int64]
    # Bytes received by a collective, counted likewise; of RMA_ATOMIC what comes back
    received: NDArray[np.int64]
    # Request of non-blocking operations; a persistent request reuses its number. Of
    # RMA_COLLECTIVE_END its `Sync`.
    request: NDArray[np.int64]


class Span(IntEnum):
    """Why a time of a rank is noted in addition to its events."""

    FLUSH = 0  # the measurement system wrote out what it had recorded
    OFF = 1  # recording was switched off
    THREADS = 2  # a thread computed while another was in a call of MPI, or behind the last event


class Spans(NamedTuple):
    """Times of ranks that events do not show, one row each, rank after rank."""

    rank: NDArray[np.int32]
    # Seconds, as `Trace.time`
    begin: NDArray[np.float64]
    end: NDArray[np.float64]
    kind: NDArray[np.uint8]  # `Span`


NO_SPANS = Spans(np.zeros(0, dtype=np.int32), np.zeros(0), np.zeros(0), np.zeros(0, dtype=np.uint8))
NO_OPERATION = 255


def join_rows(parts: Iterable[Spans]) -> Spans:
    """Return the rows of all these, in their order."""
    return Spans(*map(np.concatenate, zip(*(NO_SPANS, *parts), strict=True)))


RECORD_TYPES: Mapping[str, type[np.signedinteger[Any] | np.unsignedinteger[Any]]] = {
    "peer": np.int32,
    "comm": np.int32,
    "tag": np.int32,
    "operation": np.uint8,
    "size": np.int64,
    "received": np.int64,
    "request": np.int64,
}


class PairCounts(NamedTuple):
    """Bytes per pair of members in MPI_Alltoallv and MPI_Alltoallw; events have only their sums."""

    name: str  # where they come from
    rank: NDArray[np.int64]  # world rank of the sender
    # Such calls of this rank before it, in the order in which they began, on communicators of at
    # least two members
    call: NDArray[np.int64]
    peer: NDArray[np.int64]  # receiver, as a rank in the communicator
    size: NDArray[np.int64]  # bytes; pairs that are not listed have none


THREAD_LEVELS = ("SINGLE", "FUNNELED", "SERIALIZED", "MULTIPLE")
"""What MPI_Init_thread provides, in their order."""


class SharedCores(NamedTuple):
    """Ranks of a host that shared its cores in turns while they were recorded."""

    ranks: int
    cores: int

    def __str__(self) -> str:
        return (
            f"{self.ranks} ranks shared {self.cores} cores of a host, so that computing may be "
            f"recorded up to {self.ranks / self.cores:.3g} times too long"
        )


@dataclass(frozen=True, eq=False)
class Trace:
    """A recorded (or generated) run of `ranks` MPI processes.

    Attributes
    ----------
    name : str
        Where it comes from; used in messages and reports.
    offsets : ndarray(int64, shape=(ranks + 1,))
        Events of rank r are rows ``offsets[r]:offsets[r + 1]``.
    kind : ndarray(uint8, shape=(events,))
        `Kind` of each event.
    time : ndarray(float64, shape=(events,))
        Seconds since the beginning of the trace; never decreasing within a rank.
    ref : ndarray(int32, shape=(events,))
        Region of ENTER and LEAVE (index into `regions`), otherwise the row in `records`.
    records : Records
        Rank after rank, in the order of the events that refer to them.
    regions : tuple of str
        Names of regions ("MPI_Send", or a user's function).
    communicators : tuple of ndarray(int32)
        World ranks of the members, in the communicator's own order; one without members is
        MPI_COMM_SELF: each rank alone. Of a communicator with two sides, the members of both.
    resolution : float
        Clock ticks per second of the recording; writing uses the same.
    ignored : mapping of str to int
        Event records that were read and left out (metrics, OpenMP, ...), counted by name.
    roles : ndarray(uint8, shape=(regions,))
        `Role` of each region; where it is missing, names decide.
    spans : Spans
        Times that were not the program's, or not of one thread alone.
    counts : PairCounts, optional
        Who sends how much to whom in alltoallv and alltoallw, where that is known.
    windows : tuple of int
        Communicator of each window of one-sided operations; -1 of what is no window of MPI.
    groups : tuple of ndarray(int32)
        World ranks of groups that synchronise one-sided operations.
    shared_cores : SharedCores, optional
        The host with most ranks a core, if it had more ranks than cores.
    thread : ndarray(int32, shape=(events,)), optional
        Thread of each event, 0 for the one that began the process; where several threads of a rank
        call MPI.
    thread_level : int
        Level of threads that MPI provided, a place in `THREAD_LEVELS`; -1 where that is not known.
    """

    name: str
    offsets: NDArray[np.int64]
    kind: NDArray[np.uint8]
    time: NDArray[np.float64]
    ref: NDArray[np.int32]
    records: Records
    regions: tuple[str, ...]
    communicators: tuple[NDArray[np.int32], ...]
    resolution: float = 1e9
    ignored: Mapping[str, int] = field(default_factory=dict)
    roles: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, dtype=np.uint8))
    spans: Spans = NO_SPANS
    counts: PairCounts | None = None
    windows: tuple[int, ...] = ()
    groups: tuple[NDArray[np.int32], ...] = ()
    shared_cores: SharedCores | None = None
    thread: NDArray[np.int32] | None = None
    thread_level: int = -1

    def __post_init__(self) -> None:
        """Fill in the roles of regions."""
        if not len(self.roles):
            object.__setattr__(self, "roles", roles_by_name(self.regions))

    @property
    def ranks(self) -> int:
        """Number of MPI processes."""
        return len(self.offsets) - 1

    @property
    def events(self) -> int:
        """Number of events kept (`ignored` ones apart)."""
        return len(self.kind)

    @property
    def duration(self) -> float:
        """Seconds from the first to the last event of any rank."""
        return float(self.time.max() - self.time.min()) if self.events else 0.0

    @property
    def nbytes(self) -> int:
        """Bytes that the columns hold."""
        columns = (self.offsets, self.kind, self.time, self.ref, *self.records)
        return sum(column.nbytes for column in columns)

    def rank_of_event(self) -> NDArray[np.int32]:
        """World rank of every event, shape (events,)."""
        return np.repeat(np.arange(self.ranks, dtype=np.int32), np.diff(self.offsets))


def columns_of(trace: Trace, events: NDArray[Any]) -> dict[str, Any]:
    """Kinds, references and records of some events of a trace, to be all of another one."""
    kind, ref = trace.kind[events], trace.ref[events]
    recorded = kind > Kind.LEAVE
    rows = ref[recorded]
    ref[recorded] = np.arange(len(rows))
    records = Records(*(column[rows] for column in trace.records))
    return {"kind": kind, "ref": ref, "records": records}


class Role(IntEnum):
    """What a region is; those from CALL to ONE_SIDED are calls of MPI."""

    USER = 0
    CALL = 1
    POLL = 2  # looks whether something is there, and returns at once
    FILE = 3  # MPI-IO
    ONE_SIDED = 4
    TOOL = 5  # of the measurement system: not the program's own time


# C, Fortran (upper or lower case, with underscores behind it, mpi_f08), and the profiling names.
_CALL = re.compile(r"p?mpi_(\w+?)(?:_f08(?:ts)?)?_*", re.IGNORECASE | re.ASCII)
_POLL = re.compile(r"(win_)?test|test(any|some|all)|im?probe|request_get_status(_\w+)?")
_FILE = re.compile(r"file_\w+")
_ONE_SIDED = re.compile(
    r"win_\w+|r?(put|get|accumulate|get_accumulate)(_c)?|(fetch_and_op|compare_and_swap)(_c)?"
)
_SORTS = ((_POLL, Role.POLL), (_FILE, Role.FILE), (_ONE_SIDED, Role.ONE_SIDED))


def mpi_name(region: str) -> str:
    """Return what a region's name says that it calls: "recv" for MPI_Recv, mpi_recv_, PMPI_RECV.

    Names that are not of that form give "".
    """
    found = _CALL.fullmatch(region)
    return found[1].lower() if found else ""


def role_of_call(region: str) -> Role:
    """Sort of a call of MPI, by its name."""
    name = mpi_name(region)
    return next((role for pattern, role in _SORTS if pattern.fullmatch(name)), Role.CALL)


def roles_by_name(regions: Iterable[str]) -> NDArray[np.uint8]:
    """Roles of regions of which no more than the name is known."""
    roles = [role_of_call(name) if mpi_name(name) else Role.USER for name in regions]
    return np.array(roles, dtype=np.uint8)


def is_call(roles: NDArray[np.uint8]) -> Bools:
    """Which roles belong to calls of MPI."""
    return (roles >= Role.CALL) & (roles <= Role.ONE_SIDED)

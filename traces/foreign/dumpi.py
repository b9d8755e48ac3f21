"""Read DUMPI traces: one binary file a rank, and the meta file that names them.

A file begins with its mark and ends with an index: where its parts stand, the last of them behind
the mark again. The calls stand one behind the other (`dumpi_layouts.py`); times are seconds since a
bias, of 16 bits and thus counted on beyond 65,535, and nanoseconds, of the wall clock or else of
the processor. Types have the sizes that the file lists. Requests and their statuses are known, and
so is what MPI_Test and MPI_Waitany found.

Source: sstsimulator/sst-dumpi, docs/traceformat.dox and dumpi/common.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.traces.safety.memory import require_memory
from hopmap.traces.trace import Collective, Kind, Trace, TraceError

from .accounts import account
from .dumpi_communicators import FUNCTIONS, Made, members_of
from .dumpi_layouts import END_OF_STREAM, LAYOUTS, NAMES, PROFILED, TYPE_SIZES
from .messages import ANY, Messages, acts_of, matched
from .recorded import Acts, Calls, acts, trace_of
from .requests import Part, completions

Ints = NDArray[np.int64]

MARK = b"\xff\xaa\xddDUMPI"
_META = re.compile(rb"^(hostname|numprocs|username|startime|fileprefix|version)=", re.MULTILINE)
_PER_BYTE = 8  # bytes of memory that a byte of the file takes at least
_ROOTS = {"MPI_Gatherv": (0, 4), "MPI_Scatterv": (0, 5), "MPI_Comm_spawn": (0, 1)} | {
    "MPI_Comm_spawn_multiple": (1, 2)
}
_SENDS = ("Send", "Bsend", "Ssend", "Rsend")
# What a collective's own bytes are, where its root and communicator stand, and its sort.
_SIMPLE: dict[str, tuple[int, int, int, Collective]] = {
    "Bcast": (0, 2, 3, Collective.BCAST),
    "Reduce": (0, 3, 4, Collective.REDUCE),
    "Allreduce": (0, -1, 3, Collective.ALLREDUCE),
    "Scan": (0, -1, 3, Collective.SCAN),
    "Exscan": (0, -1, 3, Collective.EXSCAN),
    "Gather": (1, 3, 4, Collective.GATHER),
    "Scatter": (1, 3, 4, Collective.SCATTER),
    "Allgather": (0, -1, 4, Collective.ALLGATHER),
    "Alltoall": (0, -1, 4, Collective.ALLTOALL),
    "Barrier": (-1, -1, 0, Collective.BARRIER),
    "Comm_dup": (-1, -1, 0, Collective.CREATE_HANDLE),
    "Comm_create": (-1, -1, 0, Collective.CREATE_HANDLE),
    "Comm_split": (-1, -1, 0, Collective.CREATE_HANDLE),
    "Cart_create": (-1, -1, 0, Collective.CREATE_HANDLE),
    "Cart_sub": (-1, -1, 1, Collective.CREATE_HANDLE),
    "Graph_create": (-1, -1, 1, Collective.CREATE_HANDLE),
}


def is_dumpi(start: bytes) -> bool:
    """Whether a file that begins like this is of one rank."""
    return start.startswith(MARK)


def is_meta(start: bytes) -> bool:
    """Whether a file that begins like this names the files of a run."""
    return len(start) < 1 << 14 and {b"numprocs", b"fileprefix"} <= set(_META.findall(start))


def files_of_meta(meta: Path) -> tuple[Path, ...]:
    """Return the files of all ranks that a meta file names.

    Raises
    ------
    TraceError
        Values that make no sense, or files that are missing.
    """
    lines = (line.partition("=") for line in meta.read_text("utf-8", "replace").splitlines())
    values = {key.strip(): value.strip() for key, _, value in lines}
    count, prefix = values["numprocs"], Path(values["fileprefix"]).name
    if not count.isdecimal() or not 0 < int(count) <= 2**24:
        raise TraceError(f"{meta}: numprocs={count[:40]}: expected a number of ranks")
    files = {}
    for file in meta.parent.iterdir():
        match = re.fullmatch(re.escape(prefix) + r"-(\d+)\.bin", file.name)
        if match:
            files[int(match[1])] = file
    for rank in range(int(count)):
        if rank not in files:
            raise TraceError(f"{meta}: {prefix}-{rank:04}.bin of {count} ranks is not beside it")
    return tuple(files[rank] for rank in range(int(count)))


class _Rank(NamedTuple):
    """Calls of one file, `COLUMNS` each, and their arguments."""

    file: Path
    calls: Ints
    values: Ints
    sizes: Ints  # bytes of each type
    bias: int  # seconds
    profiled: int

    def of(self, name: str) -> Ints:
        """Find the calls of a function."""
        return np.flatnonzero(self.calls[:, 0] == NAMES.index(f"MPI_{name}"))

    def get(self, which: Ints, at: Ints | int) -> Ints:
        """Return the number at a place of the arguments of some calls."""
        place = self.calls[which, 3] + at
        if len(place) and not 0 <= place.min() <= place.max() < len(self.values):
            raise TraceError(f"{self.file}: call {which[0]}: arguments that do not fit together")
        numbers: Ints = self.values[place]
        return numbers

    def bytes(self, which: Ints, count: Ints | int, kind: Ints | int) -> Ints:
        """Bytes of buffers, from places of count and type."""
        number, type_ = self.get(which, count), self.get(which, kind)
        bad = (type_ < 0) | (type_ >= len(self.sizes)) | (number < 0)
        if bad.any():
            k = int(np.flatnonzero(bad)[0])
            raise TraceError(
                f"{self.file}: call {which[k]}, {NAMES[self.calls[which[k], 0]]}: {number[k]} of "
                f"type {type_[k]}: expected a count >= 0 and one of {len(self.sizes)} types"
            )
        whole: Ints = number * self.sizes[type_]
        return whole

    def sums(self, which: Ints, at: Ints | int) -> tuple[Ints, Ints]:
        """Add up arrays of counts; return also how long these are."""
        length = self.get(which, at)
        self.get(which, at + np.maximum(length, 0))
        first = self.calls[which, 3] + at + 1
        rising = np.concatenate(([0], np.cumsum(self.values)))
        return rising[first + length] - rising[first], length


def read_dumpi(files: list[Path], name: str) -> Trace:
    """Read the files of all ranks, in order.

    Raises
    ------
    TraceError
        A file that is cut or foreign, a function or type that is not known, messages on
        communicators whose members are not; the message names file and place.
    """
    ranks = [_read(file) for file in files]
    made = members_of([_made(rank) for rank in ranks], [rank.file for rank in ranks])
    offsets = np.concatenate(([0], np.cumsum([len(rank.calls) for rank in ranks]))).astype(np.int64)
    begin, end = zip(*(_times(rank, min(r.bias for r in ranks)) for rank in ranks), strict=True)
    function = np.concatenate([rank.calls[:, 0] for rank in ranks])
    calls = Calls(offsets, function, np.concatenate(begin), np.concatenate(end))
    tables = [
        _messages(rank, k, made[1][k], made[0], int(offsets[k])) for k, rank in enumerate(ranks)
    ]
    messages = Messages(*map(np.concatenate, zip(*(table[:7] for table in tables), strict=True)))
    of_call = calls.ranks()
    when = (
        calls.begin
        - np.repeat(
            calls.begin[np.minimum(offsets[:-1], max(len(function) - 1, 0))], np.diff(offsets)
        )
    )[messages.call]
    messages, guessed, untold = matched(messages, of_call[messages.call], when)
    parts = [
        _collectives(rank, k, made[1][k], made[0], int(offsets[k])) for k, rank in enumerate(ranks)
    ]
    ignored = {
        "Function_enter and Function_exit": sum(rank.profiled for rank in ranks),
        "MPI_ANY_SOURCE or MPI_ANY_TAG, given to senders in order of time, in": guessed,
        "receives that no message fits, left out, in": untold,
        "cancelled receives, left out, in": sum(table[7] for table in tables),
        "MPI_Alltoallw, types taken for bytes, in": int(
            (function == NAMES.index("MPI_Alltoallw")).sum()
        ),
    }
    return trace_of(name, calls, (*acts_of(messages), *parts), NAMES, made[0], ignored=ignored)


def _read(file: Path) -> _Rank:
    """Read one file."""
    from . import dumpi_kernels as kernels

    try:
        size = file.stat().st_size
        require_memory(_PER_BYTE * size, f"{file}: {size:,} bytes", "take fewer ranks or steps")
        content = file.read_bytes()
    except OSError as error:
        raise TraceError(f"{file}: cannot be read ({error.strerror})") from None
    if not is_dumpi(content):
        raise TraceError(f"{file}: not a file of DUMPI: expected its mark at the begin")
    mark = int.from_bytes(MARK, "big")
    index = np.frombuffer(content[len(content) % 8 :], ">u8")[-8:][::-1].astype(np.uint64)
    ends = [k for k in range(4, len(index)) if int(index[k]) == mark]
    if not ends:
        raise TraceError(f"{file}: no index in its last 64 bytes: expected one: it is cut")
    places = [int(place) for place in index[: ends[0]]]
    header, body = places[3], places[2]
    if not (8 <= body < size - 8 and 8 <= header < size - 8) or max(places) >= size:
        raise TraceError(f"{file}: index {places[:7]}: expected places in {size} bytes")
    version = tuple(content[header : header + 3])
    data = np.frombuffer(content, dtype=np.uint8)
    width = max(map(len, LAYOUTS))
    layouts = np.zeros((END_OF_STREAM, width), dtype=np.uint8)
    roots = np.zeros((END_OF_STREAM, 2), dtype=np.int64)
    for k, layout in enumerate(LAYOUTS):
        if NAMES[k] in ("MPI_Init", "MPI_Init_thread") and version < (0, 6, 2):
            layout = f"i{layout}"  # which had the length twice
        layouts[k, : len(layout)] = list(layout.encode())
        roots[k] = _ROOTS.get(NAMES[k], (0, 3))
    given = (data, body + 8, layouts, roots, version >= (0, 6, 3))
    none = np.zeros((0, kernels.COLUMNS), dtype=np.int64)
    code, at, count, used = kernels.walk(*given, none, np.zeros(0, dtype=np.int64))
    if code == kernels.UNKNOWN:
        number = int.from_bytes(content[at : at + 2], "big")
        raise TraceError(
            f"{file}: byte {at}, call {count}: function {number}: expected one below "
            f"{END_OF_STREAM}, or {END_OF_STREAM} behind the last call"
        )
    if code != kernels.FINE:
        raise TraceError(f"{file}: byte {at}, call {count}: its arguments do not fit: it is cut")
    calls = np.zeros((count + 1, kernels.COLUMNS), dtype=np.int64)
    values = np.zeros(used, dtype=np.int64)
    kernels.walk(*given, calls, values)
    calls = calls[:count]
    own = calls[:, 0] >= END_OF_STREAM - PROFILED
    calls = calls[~own]
    if len(np.unique(calls[:, 4])) > 1:
        calls = calls[np.argsort(calls[:, 1], kind="stable")]
    biases = np.frombuffer(content, ">i4", 2, body).tolist()
    sizes = np.array(TYPE_SIZES, dtype=np.int64)
    if len(places) > 6 and places[6]:
        known = int.from_bytes(content[places[6] : places[6] + 4], "big")
        if places[6] + 4 + 4 * known > size:
            raise TraceError(
                f"{file}: {known} types at byte {places[6]}: expected fewer: it is cut"
            )
        sizes = np.frombuffer(content, ">i4", known, places[6] + 4).astype(np.int64)
    return _Rank(file, calls, values, np.maximum(sizes, 0), biases[1] or biases[0], int(own.sum()))


def _times(rank: _Rank, bias: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Begin and end of each call, in seconds since the earliest bias."""
    turn = 65536 * 10**9
    begin, end = rank.calls[:, 1].copy(), rank.calls[:, 2].copy()
    if len(begin):
        begin += turn * np.cumsum(np.diff(begin, prepend=begin[0]) < -turn // 2)
        end += turn * ((begin - end + turn // 2) // turn)
    late = rank.bias - bias
    first, last = (np.add(np.multiply(t, 1e-9, dtype=np.float64), late) for t in (begin, end))
    return first, last


def _messages(
    rank: _Rank, own: int, number: dict[int, int], members: list[Ints], first: int
) -> tuple[Any, ...]:
    """List sends and receives of one rank, with world ranks of their partners."""
    rows: list[tuple[Any, ...]] = []  # call, sends, peer, tag, comm, size, blocking, status
    entries: list[tuple[Any, ...]] = []  # call, key, part, entry of `rows`, place of its status
    made = 0

    def add(
        which: Ints,
        at: tuple[int, int, int, int, int],
        sends: bool,
        blocking: bool,
        status: Ints | int,
    ) -> Ints:
        nonlocal made
        peer, tag, comm = (rank.get(which, k) for k in at[2:])
        size = rank.bytes(which, at[0], at[1])
        places = np.broadcast_to(np.asarray(status, np.int64), len(which))
        flags = np.full(len(which), sends), np.full(len(which), blocking)
        rows.append((which, flags[0], peer, tag, comm, size, flags[1], places))
        made += len(which)
        return np.arange(made - len(which), made)

    def status_at(which: Ints, at: Ints | int) -> Ints:
        """Place of the first status in the values of a call, or -1."""
        told = rank.calls[which, 5] > 0
        place = rank.calls[which, 3] + at
        there = told & (place < len(rank.values))
        there[there] = rank.values[place[there]] > 0
        return np.where(there, place + 1, -1)

    plain = (0, 1, 2, 3, 4)
    for prefix in ("", "b", "s", "r"):
        blocking = f"{prefix}send".capitalize()
        add(rank.of(blocking), plain, True, True, -1)
        for name, how in (
            (f"I{prefix}send", Part.BEGIN),
            (f"{prefix}send_init".capitalize(), Part.INIT),
        ):
            which = rank.of(name)
            at = add(which, plain, True, False, -1)
            entries.append(
                (which, rank.get(which, 5), np.full(len(which), how), at, np.full(len(which), -1))
            )
    which = rank.of("Recv")
    add(which, plain, False, True, status_at(which, 5))
    for name, how in (("Irecv", Part.BEGIN), ("Recv_init", Part.INIT)):
        which = rank.of(name)
        at = add(which, plain, False, False, -1)
        entries.append(
            (which, rank.get(which, 5), np.full(len(which), how), at, np.full(len(which), -1))
        )
    which = rank.of("Sendrecv")
    add(which, (0, 1, 2, 3, 8), True, True, -1)
    add(which, (4, 5, 6, 7, 8), False, True, status_at(which, 9))
    which = rank.of("Sendrecv_replace")
    add(which, (0, 1, 2, 3, 6), True, True, -1)
    add(which, (0, 1, 4, 5, 6), False, True, status_at(which, 7))
    entries += _requests(rank, status_at)

    call, sends, peer, tag, comm, size, blocking_, status = (
        np.concatenate(column) for column in zip(*rows, strict=True)
    )
    when, key, part, entry, told = (np.concatenate(column) for column in zip(*entries, strict=True))
    order = np.argsort(when, kind="stable")
    when, key, part, entry, told = (column[order] for column in (when, key, part, entry, told))
    origin, ended = completions(np.zeros_like(key), key, part)
    begins = np.flatnonzero((part == Part.BEGIN) | ((part == Part.START) & (origin >= 0)))
    of, over = entry[origin[begins]], ended[begins]
    kept = np.flatnonzero(blocking_)
    source = np.concatenate((kept, of))
    done = np.concatenate((call[kept], np.where(over >= 0, when[over], -1)))
    status = np.concatenate((status[kept], np.where(over >= 0, told[over], -1)))
    call = np.concatenate((call[kept], when[begins]))
    order = np.argsort(call, kind="stable")
    source, call, done, status = (column[order] for column in (source, call, done, status))
    sends, peer, tag, comm, size = (c[source] for c in (sends, peer, tag, comm, size))
    # A status says who sent a message, and under which tag.
    open_ = ~sends & (status >= 0) & (peer >= ANY)
    place = np.where(open_, status, 0)
    cancelled = np.zeros(len(call), dtype=np.bool_)
    if open_.any():
        cancelled = open_ & (rank.values[place + 2] != 0)
        peer = np.where(open_ & (peer == ANY), rank.values[place + 1], peer)
        tag = np.where(open_ & (tag == ANY), rank.values[place + 3], tag)
    real = ((peer >= 0) | (~sends & (peer == ANY))) & ~cancelled
    columns = (call + first, np.where(done >= 0, done + first, -1), sends, peer, tag, comm, size)
    call, done, sends, peer, tag, comm, size = (column[real] for column in columns)
    world = _number(rank, comm, number)
    peer = _world(rank, peer, world, members, own)
    return call, done, sends, peer, tag, world, size, int(cancelled.sum())


def _number(rank: _Rank, comm: Ints, number: dict[int, int]) -> Ints:
    """Communicators by their numbers in the trace."""
    handles, inverse = np.unique(comm, return_inverse=True)
    for handle in handles.tolist():
        if handle not in number:
            raise TraceError(
                f"{rank.file}: communicator {handle}: its members cannot be told: expected one "
                "made by MPI_Comm_dup, _split, _create, MPI_Cart_create, _sub or MPI_Graph_create"
            )
    known = np.array([number[handle] for handle in handles.tolist()], dtype=np.int64)
    return known[inverse.reshape(-1)] if len(known) else comm


def _world(rank: _Rank, peer: Ints, comm: Ints, members: list[Ints], own: int) -> Ints:
    """World ranks of partners; below 0 they stay."""
    world = peer.copy()
    for number in np.unique(comm).tolist():
        mine = np.flatnonzero((comm == number) & (peer >= 0))
        inside = members[number] if number != 1 else np.array([own])
        if len(mine) and peer[mine].max() >= len(inside):
            raise TraceError(
                f"{rank.file}: partner {peer[mine].max()}: expected one below {len(inside)}"
            )
        world[mine] = inside[peer[mine]]
    return world


def _requests(rank: _Rank, status_at: Any) -> list[tuple[Any, ...]]:
    """List what waits, tests, starts and frees name: one entry a request."""
    entries: list[tuple[Any, ...]] = []

    def note(which: Ints, key: Ints, part: Part, status: Ints | None = None) -> None:
        none = np.full(len(which), -1, dtype=np.int64)
        entries.append(
            (which, key, np.full(len(which), part), none, none if status is None else status)
        )

    def many(which: Ints, at: Ints | int) -> tuple[Ints, Ints, Ints]:
        """Call, turn and place of each number in arrays."""
        length = rank.get(which, at)
        call, turn = np.repeat(which, length), np.arange(int(length.sum()))
        turn -= np.repeat(np.cumsum(length) - length, length)
        return (
            call,
            turn,
            rank.calls[call, 3] + np.repeat(np.broadcast_to(at, len(which)), length) + 1 + turn,
        )

    for name, part in (
        ("Wait", Part.END),
        ("Start", Part.START),
        ("Request_free", Part.FORGET),
        ("Cancel", Part.FORGET),
    ):
        which = rank.of(name)
        note(which, rank.get(which, 0), part, status_at(which, 1) if name == "Wait" else None)
    which = rank.of("Test")
    which = which[rank.get(which, 1) != 0]
    note(which, rank.get(which, 0), Part.END, status_at(which, 2))
    for name in ("Waitall", "Testall", "Startall"):
        which = rank.of(name)
        length = rank.get(which, 1)
        if name == "Testall":
            which, length = (column[rank.get(which, length + 2) != 0] for column in (which, length))
        call, turn, place = many(which, 1)
        first = np.repeat(status_at(which, length + 2 + (name == "Testall")), length)
        several = np.where(first >= 0, first + 4 * turn, -1) if name != "Startall" else None
        note(call, rank.values[place], Part.START if name == "Startall" else Part.END, several)
    for name in ("Waitany", "Testany"):
        which = rank.of(name)
        length = rank.get(which, 1)
        index = rank.get(which, length + 2)
        found = (index >= 0) & (index < length)
        if name == "Testany":
            found &= rank.get(which, length + 3) != 0
        which, index, length = which[found], index[found], length[found]
        note(
            which,
            rank.get(which, 2 + index),
            Part.END,
            status_at(which, length + 3 + (name == "Testany")),
        )
    for name in ("Waitsome", "Testsome"):
        which = rank.of(name)
        length = rank.get(which, 1)
        call, turn, place = many(which, length + 3)
        index, limit = rank.values[place], rank.get(call, 1)
        outs = rank.get(call, rank.get(call, 1) + 3)
        first = status_at(call, limit + 4 + outs)
        good = (index >= 0) & (index < limit)
        call, index, first, turn = call[good], index[good], first[good], turn[good]
        note(call, rank.get(call, 2 + index), Part.END, np.where(first >= 0, first + 4 * turn, -1))
    return entries


def _collectives(
    rank: _Rank, own: int, number: dict[int, int], members: list[Ints], first: int
) -> Acts:
    """List collectives of one rank."""
    parts = []

    def add(
        which: Ints,
        comm: Ints | int,
        root: Ints | None,
        operation: Collective,
        part: Ints,
        total: Ints,
    ) -> None:
        if not len(which):
            return
        handle = (
            np.full(len(which), 2) if isinstance(comm, int) and comm < 0 else rank.get(which, comm)
        )
        numbers = _number(rank, handle, number)
        size = np.array([len(each) or 1 for each in members])[numbers]
        place = np.array(
            [int(np.flatnonzero(each == own)[0]) if own in each else 0 for each in members]
        )[numbers]
        roots = np.full(len(which), -1) if root is None else root
        if root is not None and ((root < 0) | (root >= size)).any():
            odd = root[(root < 0) | (root >= size)][0]
            what = operation.name.lower()
            raise TraceError(f"{rank.file}: {what} with root {odd}: expected a member")
        sent, received = account(
            np.full(len(which), int(operation)), size, place, roots == place, part, total
        )
        peer = _world(rank, roots, numbers, members, own)
        about = {"comm": numbers, "operation": int(operation), "size": sent, "received": received}
        parts.append(acts(which + first, Kind.COLLECTIVE_END, peer=peer, **about))

    for name, (count, root, comm, operation) in _SIMPLE.items():
        which = rank.of(name)
        part = (
            rank.bytes(which, count, count + 1)
            if count >= 0
            else np.zeros(len(which), dtype=np.int64)
        )
        add(which, comm, rank.get(which, root) if root >= 0 else None, operation, part, part)
    which = rank.of("Gatherv")
    there = rank.get(which, 0) == rank.get(which, 4)
    total = np.zeros(len(which), dtype=np.int64)
    if there.any():
        sums, length = rank.sums(which[there], 6)
        total[there] = sums * _size(rank, which[there], 8 + 2 * length)
    add(which, 5, rank.get(which, 4), Collective.GATHERV, rank.bytes(which, 2, 3), total)
    which = rank.of("Scatterv")
    there = rank.get(which, 0) == rank.get(which, 5)
    total = np.zeros(len(which), dtype=np.int64)
    if there.any():
        total[there] = rank.sums(which[there], 7)[0] * _size(rank, which[there], 2)
    add(which, 6, rank.get(which, 5), Collective.SCATTERV, rank.bytes(which, 3, 4), total)
    which = rank.of("Allgatherv")
    sums, length = rank.sums(which, 3)
    total = sums * _size(rank, which, 5 + 2 * length)
    add(which, 6 + 2 * length, None, Collective.ALLGATHERV, rank.bytes(which, 1, 2), total)
    which = rank.of("Alltoallv")
    sums, length = rank.sums(which, 1)
    behind = 1 + 2 * (length + 1)
    gets = rank.sums(which, behind + 1)[0] * _size(rank, which, behind + 3 + 2 * length)
    add(
        which,
        behind + 4 + 2 * length,
        None,
        Collective.ALLTOALLV,
        sums * _size(rank, which, behind),
        gets,
    )
    which = rank.of("Alltoallw")
    sums, length = rank.sums(which, 1)
    gets = rank.sums(which, 1 + 3 * (length + 1))[0]
    add(which, 1 + 6 * (length + 1), None, Collective.ALLTOALLW, sums, gets)
    which = rank.of("Reduce_scatter")
    sums, length = rank.sums(which, 1)
    numbers = _number(rank, rank.get(which, length + 4), number)
    place = np.array(
        [int(np.flatnonzero(each == own)[0]) if own in each else 0 for each in members]
    )[numbers]
    width = _size(rank, which, length + 2)
    add(
        which,
        length + 4,
        None,
        Collective.REDUCE_SCATTER,
        rank.get(which, 2 + np.minimum(place, np.maximum(length - 1, 0))) * width,
        sums * width,
    )
    for name, operation in (
        ("Init", Collective.CREATE_HANDLE),
        ("Init_thread", Collective.CREATE_HANDLE),
        ("Finalize", Collective.DESTROY_HANDLE),
    ):
        which = rank.of(name)
        none = np.zeros(len(which), dtype=np.int64)
        add(which, -1, None, operation, none, none)
    empty = acts(np.zeros(0, dtype=np.int64), 0)
    return Acts(*map(np.concatenate, zip(empty, *parts, strict=True)))


def _size(rank: _Rank, which: Ints, at: Ints | int) -> Ints:
    """Bytes of the types at a place."""
    kind = rank.get(which, at)
    if ((kind < 0) | (kind >= len(rank.sizes))).any():
        raise TraceError(f"{rank.file}: type {kind.max()}: expected one of {len(rank.sizes)}")
    return rank.sizes[kind]


def _made(rank: _Rank) -> list[Made]:
    """List calls that make communicators and groups, in order."""
    made = []
    edges = np.append(np.sort(rank.calls[:, 3]), len(rank.values))
    for name in FUNCTIONS:
        for call in rank.of(name).tolist():
            first = int(rank.calls[call, 3])
            behind = int(edges[np.searchsorted(edges, first, side="right")])
            made.append((call, Made(name, rank.values[first:behind].tolist())))
    return [each for _, each in sorted(made, key=lambda pair: pair[0])]

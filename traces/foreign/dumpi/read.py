"""Read DUMPI traces: a file a rank, and a meta file that names them.

Requests are known. Statuses say what a receive that left something open took; waits, tests, starts
and frees, what each of them found complete.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from hopmap.arrays import Ints
from hopmap.traces.foreign.messages import Listed, Part, settle
from hopmap.traces.foreign.recognition import Recording
from hopmap.traces.foreign.text import read_whole
from hopmap.traces.foreign.trace_builder import COLLECTIVES, Acts, Calls, Groups, acts, trace_of
from hopmap.traces.matching import ANY, Messages
from hopmap.traces.trace import Trace, TraceError

from .communicators import WORLD, list_created, members_of, numbers_of
from .rank import MARK, NAMES, Rank, read_rank, times

_META = re.compile(rb"^(hostname|numprocs|username|startime|fileprefix|version)=", re.MULTILINE)


def files_of_meta(meta: Path) -> tuple[Path, ...]:
    """Return the files of all ranks that a meta file names."""
    lines = (
        line.partition("=") for line in read_whole(meta, 1).decode("utf-8", "replace").splitlines()
    )
    values = {key.strip(): value.strip() for key, _, value in lines}
    count, prefix = values["numprocs"], Path(values["fileprefix"]).name
    if not re.fullmatch("[0-9]{1,8}", count) or not 0 < int(count) <= 2**24:
        raise TraceError(f"{meta}: numprocs={count[:40]}: expected a number of ranks")
    files = {}
    for file in meta.parent.iterdir():
        match = re.fullmatch(re.escape(prefix) + r"-(\d+)\.bin", file.name)
        if match:
            files[int(match[1])] = file
    for rank in range(int(count)):
        if rank not in files:
            raise TraceError(f"{meta}: {prefix}-{rank:04}.bin of {count} ranks: no such file")
    if len(files) > int(count):
        raise TraceError(
            f"{meta}: numprocs={count}, and {len(files)} files {prefix}-*.bin in its folder: "
            "expected as many"
        )
    return tuple(files[rank] for rank in range(int(count)))


class DumpiSource(Recording):
    """Files of DUMPI."""

    tool = "dumpi"
    about = "DUMPI's binary files, one a rank, and their meta file"

    @staticmethod
    def matches(_: Path, start: bytes) -> bool:
        """Whether a file that begins like this is of one rank, or names the files of all."""
        is_meta = len(start) < 1 << 14 and {b"numprocs", b"fileprefix"} <= set(_META.findall(start))
        return start.startswith(MARK) or is_meta

    @staticmethod
    def is_index(file: Path) -> bool:
        """Whether a file names the files of all ranks."""
        return file.suffix == ".meta"

    @staticmethod
    def files_of_index(index: Path) -> tuple[Path, ...]:
        """Return the files that a meta file names."""
        return files_of_meta(index)

    def calls(self) -> Trace:
        """Read the files of all ranks, in order."""
        return read_dumpi(self.files(), self.name)


def read_dumpi(files: list[Path], name: str) -> Trace:
    """Read the files of all ranks, in order."""
    ranks = [read_rank(file) for file in files]
    members, numbers, untold_order = members_of([list_created(rank) for rank in ranks], files)
    offsets = np.concatenate(([0], np.cumsum([len(rank.calls) for rank in ranks]))).astype(np.int64)
    bias = min(rank.bias for rank in ranks)
    begin, end = zip(*(times(rank, bias) for rank in ranks), strict=True)
    function = np.concatenate([rank.calls[:, 0] for rank in ranks])
    calls = Calls(offsets, function, np.concatenate(begin), np.concatenate(end))
    tables, collectives, cancelled = [], [], 0
    for own, (rank, first) in enumerate(zip(ranks, offsets.tolist(), strict=False)):
        groups = Groups(members, own, rank.file)
        table, gone = messages_of(rank, groups, numbers[own])
        tables.append(table)
        cancelled += gone
        collectives.append(collectives_of(rank, groups, numbers[own], first))
    messages, unknown = settle(tables, calls, calls.since_first())
    ignored = {
        "Function_enter and Function_exit": sum(rank.profiled for rank in ranks),
        **unknown,
        "cancelled receives, left out, in": cancelled,
        "unknown rank order of communicators (parent's order assumed), in": untold_order,
        "MPI_Alltoallw (types treated as bytes), in": int(
            (function == NAMES.index("MPI_Alltoallw")).sum()
        ),
    }
    return trace_of(name, calls, (*messages, *collectives), NAMES, members, ignored=ignored)


def _note_requests(rank: Rank, listed: Listed) -> None:
    """Note what waits, tests, starts and frees name: one entry a request."""

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
        status = rank.status_at(which, 1) if name == "Wait" else -1
        listed.note(which, rank.get(which, 0), part, status=status)
    which = rank.of("Test")
    which = which[rank.get(which, 1) != 0]
    listed.note(which, rank.get(which, 0), Part.END, status=rank.status_at(which, 2))
    for name in ("Waitall", "Testall", "Startall"):
        which = rank.of(name)
        length = rank.get(which, 1)
        if name == "Testall":
            which, length = (column[rank.get(which, length + 2) != 0] for column in (which, length))
        call, turn, place = many(which, 1)
        first = np.repeat(rank.status_at(which, length + 2 + (name == "Testall")), length)
        several = np.where(first >= 0, first + 4 * turn, -1) if name != "Startall" else -1
        part = Part.START if name == "Startall" else Part.END
        listed.note(call, rank.values[place], part, status=several)
    for name in ("Waitany", "Testany"):
        which = rank.of(name)
        length = rank.get(which, 1)
        index = rank.get(which, length + 2)
        found = (index >= 0) & (index < length)
        if name == "Testany":
            found &= rank.get(which, length + 3) != 0
        which, index, length = which[found], index[found], length[found]
        status = rank.status_at(which, length + 3 + (name == "Testany"))
        listed.note(which, rank.get(which, 2 + index), Part.END, status=status)
    for name in ("Waitsome", "Testsome"):
        which = rank.of(name)
        length = rank.get(which, 1)
        call, turn, place = many(which, length + 3)
        index, limit = rank.values[place], rank.get(call, 1)
        outs = rank.get(call, rank.get(call, 1) + 3)
        first = rank.status_at(call, limit + 4 + outs)
        good = (index >= 0) & (index < limit)
        call, index, first, turn = call[good], index[good], first[good], turn[good]
        status = np.where(first >= 0, first + 4 * turn, -1)
        listed.note(call, rank.get(call, 2 + index), Part.END, status=status)


def messages_of(rank: Rank, groups: Groups, number: dict[int, int]) -> tuple[Messages, int]:
    """List sends and receives of one rank, with world ranks of their partners; count cancelled."""
    listed = _list_partners(rank)
    _note_requests(rank, listed)
    table, status = listed.messages()
    receives = ~table.sends
    has_status = receives & (status >= 0) & (table.peer >= ANY)
    place = np.where(has_status, status, 0)
    cancelled = np.zeros(len(has_status), dtype=np.bool_)
    if has_status.any():
        source, label = rank.values[place + 1], rank.values[place + 3]
        cancelled = has_status & (rank.values[place + 2] != 0)
        has_status &= source >= 0
        table = table._replace(
            peer=np.where(has_status & (table.peer == ANY), source, table.peer),
            tag=np.where(has_status & (table.tag == ANY), label, table.tag),
        )
    real = ((table.peer >= 0) | (receives & (table.peer == ANY))) & ~cancelled
    table = Messages(*(column[real] for column in table))
    comm = numbers_of(rank, table.comm, number)
    return table._replace(peer=groups.world(table.peer, comm), comm=comm), int(cancelled.sum())


def _list_partners(rank: Rank) -> Listed:
    """List the calls that name a partner, and the requests that they make."""
    listed = Listed()

    def add(
        name: str,
        sends: bool,
        at: tuple[int, ...] = (0, 1, 2, 3, 4),  # count, type, partner, tag and communicator
        status: int | None = None,
        part: Part | None = None,
    ) -> None:
        which = rank.of(name)
        peer, tag, comm = (rank.get(which, k) for k in at[2:])
        named = (peer, tag, comm, rank.bytes(which, at[0], at[1]))
        if part is not None:
            listed.add(which, named, sends, request=rank.get(which, 5), part=part)
        else:
            place = -1 if status is None else rank.status_at(which, status)
            listed.add(which, named, sends, status=place)

    for prefix in ("", "b", "s", "r"):
        add(f"{prefix}send".capitalize(), True)
        add(f"I{prefix}send", True, part=Part.BEGIN)
        add(f"{prefix}send_init".capitalize(), True, part=Part.INIT)
    add("Recv", False, status=5)
    add("Irecv", False, part=Part.BEGIN)
    add("Recv_init", False, part=Part.INIT)
    add("Sendrecv", True, (0, 1, 2, 3, 8))
    add("Sendrecv", False, (4, 5, 6, 7, 8), status=9)
    add("Sendrecv_replace", True, (0, 1, 2, 3, 6))
    add("Sendrecv_replace", False, (0, 1, 4, 5, 6), status=7)
    return listed


# What a collective's own bytes are, where its root and communicator stand; -1 where it has none.
_SIMPLE = {
    "Bcast": (0, 2, 3),
    "Reduce": (0, 3, 4),
    **dict.fromkeys(("Allreduce", "Scan", "Exscan"), (0, -1, 3)),
    **dict.fromkeys(("Gather", "Scatter"), (1, 3, 4)),
    **dict.fromkeys(("Allgather", "Alltoall"), (0, -1, 4)),
    **dict.fromkeys(("Barrier", "Comm_dup", "Comm_create", "Comm_split"), (-1, -1, 0)),
    "Cart_create": (-1, -1, 0),
    **dict.fromkeys(("Cart_sub", "Graph_create"), (-1, -1, 1)),
    **dict.fromkeys(("Init", "Init_thread", "Finalize"), (-1, -1, -1)),
}


def collectives_of(rank: Rank, groups: Groups, number: dict[int, int], first: int) -> Acts:
    """List collectives of one rank, whose calls are numbered from `first`."""
    parts = [acts(np.zeros(0, dtype=np.int64), 0)]

    def add(name: str, which: Ints, comm: Ints | int, root: int, part: Ints, total: Ints) -> None:
        if len(which):
            world = isinstance(comm, int) and comm < 0
            handle = np.full(len(which), WORLD) if world else rank.get(which, comm)
            numbers = numbers_of(rank, handle, number)
            roots = rank.get(which, root) if root >= 0 else None
            operation = COLLECTIVES[name.lower()]
            parts.append(groups.collectives(which + first, operation, numbers, part, total, roots))

    for name, (count, root, comm) in _SIMPLE.items():
        which = rank.of(name)
        none = np.zeros(len(which), dtype=np.int64)
        part = rank.bytes(which, count, count + 1) if count >= 0 else none
        add(name, which, comm, root, part, part)
    which = rank.of("Gatherv")
    there = rank.get(which, 0) == rank.get(which, 4)
    total = np.zeros(len(which), dtype=np.int64)
    if there.any():
        sums, length = rank.sums(which[there], 6)
        total[there] = rank.blocks(which[there], sums, 8 + 2 * length)
    add("Gatherv", which, 5, 4, rank.bytes(which, 2, 3), total)
    which = rank.of("Scatterv")
    there = rank.get(which, 0) == rank.get(which, 5)
    total = np.zeros(len(which), dtype=np.int64)
    if there.any():
        total[there] = rank.blocks(which[there], rank.sums(which[there], 7)[0], 2)
    add("Scatterv", which, 6, 5, rank.bytes(which, 3, 4), total)
    which = rank.of("Allgatherv")
    sums, length = rank.sums(which, 3)
    total = rank.blocks(which, sums, 5 + 2 * length)
    add("Allgatherv", which, 6 + 2 * length, -1, rank.bytes(which, 1, 2), total)
    which = rank.of("Alltoallv")
    sums, length = rank.sums(which, 1)
    behind = 1 + 2 * (length + 1)
    gets = rank.blocks(which, rank.sums(which, behind + 1)[0], behind + 3 + 2 * length)
    add("Alltoallv", which, behind + 4 + 2 * length, -1, rank.blocks(which, sums, behind), gets)
    which = rank.of("Alltoallw")
    sums, length = rank.sums(which, 1)
    gets = rank.sums(which, 1 + 3 * (length + 1))[0]
    add("Alltoallw", which, 1 + 6 * (length + 1), -1, sums, gets)
    which = rank.of("Reduce_scatter")
    sums, length = rank.sums(which, 1)
    place = groups.place[numbers_of(rank, rank.get(which, length + 4), number)]
    part = rank.bytes(which, 2 + np.minimum(place, np.maximum(length - 1, 0)), length + 2)
    add("Reduce_scatter", which, length + 4, -1, part, rank.blocks(which, sums, length + 2))
    return Acts(*map(np.concatenate, zip(*parts, strict=True)))

"""Read traces of liballprof, one text a rank, as LogGOPSim's Schedgen does.

Lines are calls, see `lines.py`; ranks are the last number in the names of files. A tag of -1 is
any; so is a source of -1 in Open MPI, and of -2 in MPICH, which is known by its MPI_COMM_WORLD.
Other partners below 0 are MPI_PROC_NULL. What the text does not say is taken as follows:

* who sent what a receive with MPI_ANY_SOURCE took, and how much: see `matching.py`;
* which request, named by address, MPI_Waitany, MPI_Test and others found: see `requests.py`;
* who is in a communicator: see `communicators.py`;
* types of MPI_Alltoallw: a byte each.

Sources: spcl/LogGOPSim, src/liballprof (recording) and src/Schedgen/process_trace.cpp (reading).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopmap.traces.foreign.recognition import Recording
from hopmap.traces.foreign.requests import Entries, Part, begun_and_done, entries
from hopmap.traces.foreign.trace_builder import (
    Acts,
    Calls,
    acts,
    acts_of,
    collective_bytes,
    trace_of,
)
from hopmap.traces.matching import ANY, Messages, matched
from hopmap.traces.trace import Collective, Kind, PairCounts, Trace, TraceError

from .communicators import Key, Resolved, communicators_of, is_of_mpich, numbers_of, world_of
from .lines import OPERATIONS, SIGNATURES, Lines, Rank, calls_of, is_liballprof, read_rank, times

Ints = NDArray[np.int64]

_SENDS = ("Send", "Bsend", "Ssend", "Rsend", "Isend", "Ibsend", "Issend", "Irsend")
_PART = {
    **dict.fromkeys(("MPI_Start", "MPI_Startall"), Part.START),
    **dict.fromkeys(("MPI_Wait", "MPI_Waitall"), Part.END),
    **{f"MPI_{a}{b}": Part.ASK for a in ("Wait", "Test") for b in ("any", "some")},
    **dict.fromkeys(("MPI_Test", "MPI_Testall"), Part.ASK),
    **dict.fromkeys(("MPI_Request_free", "MPI_Cancel"), Part.FORGET),
}


def messages_of(rank: Rank, numbers: dict[Key, int], first: int, anyone: int) -> Messages:
    """List sends and receives of one rank, partners as ranks in communicators."""
    rows: list[tuple[Any, ...]] = []  # call, sends, peer, tag, comm, size, blocking
    parts: list[Entries] = []
    begun = 0

    def add(lines: Lines, sends: bool, peer: str, tag: str, size: Ints, blocking: bool) -> Ints:
        nonlocal begun
        comm, to = numbers_of(lines, numbers), lines.get(peer)
        count = len(lines.calls)
        rows.append(
            (
                lines.calls,
                np.full(count, sends),
                to,
                lines.get(tag),
                comm,
                size,
                np.full(count, blocking),
            )
        )
        begun += count
        return np.arange(begun - count, begun)

    for function in rank.names:
        short = function.removeprefix("MPI_")
        persistent = short.endswith("_init") and function in SIGNATURES
        if function in _PART or function not in SIGNATURES:
            continue
        lines = Lines(rank, function)
        if short in ("Sendrecv", "Sendrecv_replace"):
            size = lines.sizes("count", "type")
            add(lines, True, "peer", "tag", size, True)
            if short == "Sendrecv":
                size = lines.sizes("rcount", "rtype")
            add(lines, False, "source", "rtag", size, True)
        elif short.removesuffix("_init").capitalize() in (*_SENDS, "Recv", "Irecv"):
            out = "send" in short.lower()
            at_once = not persistent and not short.startswith("I")
            at = add(lines, out, "peer", "tag", lines.sizes("count", "type"), at_once)
            if not at_once:
                how = Part.INIT if persistent else Part.BEGIN
                parts.append(entries(lines.calls, lines.get("request"), how, at))
    if not rows:
        none = np.zeros(0, dtype=np.int64)
        return Messages(none, none, none > 0, none, none, none, none)
    call, sends, peer, tag, comm, size, blocking = (
        np.concatenate(column) for column in zip(*rows, strict=True)
    )
    none = np.full(len(call), -1)
    row, call, done, _ = begun_and_done(call, blocking, none, [*parts, _asked(rank, parts)])
    sends, peer, tag, comm, size = (column[row] for column in (sends, peer, tag, comm, size))
    open_ = ~sends & (peer == anyone)
    real = (peer >= 0) | open_  # others are MPI_PROC_NULL
    peer = np.where(open_, ANY, peer)
    table = (call + first, np.where(done >= 0, done + first, -1), sends, peer, tag, comm, size)
    return Messages(*(column[real] for column in table))


def _asked(rank: Rank, begun: list[Entries]) -> Entries:
    """List what waits, tests, starts and frees name: one entry a request."""
    keys = np.concatenate([np.zeros(0, dtype=np.int64), *(each.key for each in begun)])
    lists = []
    for function, how in _PART.items():
        lines = Lines(rank, function)
        many = any(name == "number" for name, _ in SIGNATURES[function])
        count = lines.get("number") if many else np.ones(len(lines.calls), dtype=np.int64)
        bad = np.flatnonzero((count < 0) | (count > max(len(rank.rows), 1 << 16)))
        if bad.size:
            raise lines.wrong(int(bad[0]))
        call, base = np.repeat(lines.calls, count), np.repeat(lines.get("request"), count)
        turn = np.arange(len(call)) - np.repeat(np.cumsum(count) - count, count)
        lists.append((call, base, turn, np.full(len(call), how)))
    # A request takes 8 bytes in Open MPI's C, 4 in Fortran: what meets more of them is right.
    call, base, turn, part = (np.concatenate(column) for column in zip(*lists, strict=True))
    hits = {step: int(np.isin(base + step * turn, keys).sum()) for step in (8, 4)}
    step = max(hits, key=hits.__getitem__)
    none = np.full(len(call), -1)
    return Entries(call, base + step * turn, part, none, none)


def collectives_of(
    ranks: list[Rank], found: Resolved, offsets: Ints
) -> tuple[Acts, PairCounts | None]:
    """List collectives of all ranks; a communicator of one member moves nothing."""
    parts = []
    pairs: list[tuple[Any, ...]] = []
    for number, rank in enumerate(ranks):
        vectors = []
        place_of = np.array(
            [int((each == number).argmax()) if len(each) else 0 for each in found.members]
        )
        for function, operation in OPERATIONS.items():
            lines = Lines(rank, function) if function in SIGNATURES else None
            if lines is None or not len(lines.calls):
                continue
            comm = numbers_of(lines, found.number[number])
            members = lines.get("comm", 2)
            own = place_of[comm]
            names = [name for name, _ in SIGNATURES[function]]
            root = lines.get("root") if "root" in names else np.full_like(comm, -1)
            if ((root >= members) | ((root < 0) & ("root" in names))).any():
                raise lines.wrong(int(np.flatnonzero((root >= members) | (root < 0))[0]))
            if (lines.members[:] != members).any() and lines.members.any():
                raise lines.wrong(int(np.flatnonzero(lines.members != members)[0]))
            part, total = _bytes(lines, operation, own)
            sent, received = collective_bytes(
                *(rank.fields.file, operation + 0 * comm, members, own, root == own, part, total)
            )
            world = [
                int(found.members[c][r])
                if r >= 0 and len(found.members[c])
                else (number, -1)[r < 0]
                for c, r in zip(comm.tolist(), root.tolist(), strict=True)
            ]
            call = lines.calls + offsets[number]
            about = {"comm": comm, "operation": int(operation), "size": sent, "received": received}
            parts.append(acts(call, Kind.COLLECTIVE_END, peer=np.array(world, np.int64), **about))
            if function == "MPI_Alltoallv":
                width = lines.get("stype", 1)
                rows = zip(lines.counts("scounts"), width, strict=True)
                vectors += [row * size for row, size in rows if len(row) > 1]
        pairs += [
            (np.full(len(row), number), np.full(len(row), turn), np.arange(len(row)), row)
            for turn, row in enumerate(vectors)
        ]
        handles = [f for f in ("MPI_Init", "MPI_Init_thread", "MPI_Finalize") if f in rank.names]
        for function in handles:
            call = calls_of(rank, function) + offsets[number]
            ends = function == "MPI_Finalize"
            operation = Collective.DESTROY_HANDLE if ends else Collective.CREATE_HANDLE
            parts.append(acts(call, Kind.COLLECTIVE_END, comm=0, operation=int(operation)))
    none = acts(np.zeros(0, dtype=np.int64), 0)
    counts = None
    wide = any("MPI_Alltoallw" in rank.names for rank in ranks)  # whose turns are counted, too
    if pairs and not wide:
        counts = PairCounts(
            str(ranks[0].fields.file.parent), *map(np.concatenate, zip(*pairs, strict=True))
        )
    return Acts(*map(np.concatenate, zip(none, *parts, strict=True))), counts


def _bytes(lines: Lines, operation: Collective, own: Ints) -> tuple[Ints, Ints]:
    """Bytes of each call's own part, and of all, as `collective_bytes` wants them."""
    none = np.zeros(len(lines.calls), dtype=np.int64)
    match operation:
        case Collective.BARRIER | Collective.CREATE_HANDLE:
            return none, none
        case Collective.ALLTOALLV:
            return lines.blocks("scounts", "stype"), lines.blocks("rcounts", "rtype")
        case Collective.ALLTOALLW:
            return lines.blocks("scounts"), lines.blocks("rcounts")
        case Collective.REDUCE_SCATTER:
            total = lines.blocks("counts", "type")
            mine = [row[k] for row, k in zip(lines.counts("counts"), own.tolist(), strict=True)]
            return np.array(mine, np.int64).reshape(-1) * lines.get("type", 1), total
        case Collective.GATHERV | Collective.ALLGATHERV:
            return lines.sizes("count", "type"), lines.blocks("counts", "rtype")
        case Collective.SCATTERV:
            return lines.sizes("count", "type"), lines.blocks("counts", "stype")
        case Collective.SCATTER:
            return lines.sizes("rcount", "rtype"), none
        case _:
            return lines.sizes("count", "type"), none


_IMMEDIATE = re.compile(
    r"MPI_I(barrier|bcast|reduce|allreduce|allgather|gather|scatter|alltoall|scan|exscan)\w*"
)


class LiballprofSource(Recording):
    """Files of liballprof."""

    tool = "liballprof"
    about = "liballprof's text, one file a rank"

    @staticmethod
    def matches(_: Path, start: bytes) -> bool:
        """Whether a file that begins like this is of a rank."""
        return is_liballprof(start)

    def read(self, files: list[Path]) -> Trace:
        """Read the files of all ranks, in order."""
        return read_liballprof(files, self.name)


def read_liballprof(files: list[Path], name: str) -> Trace:
    """Read the files of all ranks, in order."""
    ranks = [read_rank(file) for file in files]
    regions = tuple(dict.fromkeys(name for rank in ranks for name in rank.names))
    found = communicators_of(ranks)
    offsets = np.concatenate(([0], np.cumsum([len(rank.rows) for rank in ranks]))).astype(np.int64)
    region = [
        np.array([regions.index(n) for n in rank.names], dtype=np.int64)[rank.function]
        for rank in ranks
    ]
    begin, end = zip(*(times(rank) for rank in ranks), strict=True)
    calls = Calls(offsets, *(np.concatenate(column) for column in (region, begin, end)))
    anyone = -2 if any(is_of_mpich(numbers) for numbers in found.number) else -1
    tables = [
        messages_of(rank, found.number[number], int(offsets[number]), anyone)
        for number, rank in enumerate(ranks)
    ]
    messages = Messages(*map(np.concatenate, zip(*tables, strict=True)))
    if found.copies and len(messages.call):
        raise TraceError(
            f"{files[1]}: says that it is of rank 0, as {files[0].name} does: expected the file of "
            "rank 1, or no messages, but collectives alone"
        )
    members = found.members
    messages = messages._replace(peer=world_of(messages.peer, messages.comm, members, name))
    of_call = calls.ranks()
    own = np.where(messages.comm == 1, of_call[messages.call], -1)
    messages = messages._replace(peer=np.where(own >= 0, own, messages.peer))
    when = calls.since_first()[messages.call]
    messages, guessed, untold = matched(messages, of_call[messages.call], when)
    collectives, counts = collectives_of(ranks, found, offsets)
    ignored = {
        "MPI_ANY_SOURCE or MPI_ANY_TAG, given to senders in order of time, in": guessed,
        "receives that no message fits, left out, in": untold,
        "MPI_Alltoallw, types taken for bytes, in": int(
            np.isin(calls.region, _at(regions, "MPI_Alltoallw")).sum()
        ),
        "non-blocking collectives of libNBC, in": sum(
            int((calls.region == k).sum()) for k, n in enumerate(regions) if n.startswith("NBC_")
        ),
    }
    ends = [rank for rank in ranks if not calls_of(rank, "MPI_Finalize").size]
    ignored["files that say that they are of rank 0, taken for the ranks of their names, in"] = (
        len(ranks) - 1
    ) * found.copies
    ignored["non-blocking collectives, left out, in"] = sum(
        int((calls.region == k).sum()) for k, n in enumerate(regions) if _IMMEDIATE.fullmatch(n)
    )
    ignored["ends of ranks (no MPI_Finalize: cut or killed), which are not among the"] = len(ends)
    parts = (*acts_of(messages), collectives)
    return trace_of(
        name, calls, parts, regions, members, resolution=1e6, ignored=ignored, counts=counts
    )


def _at(regions: tuple[str, ...], name: str) -> list[int]:
    return [k for k, region in enumerate(regions) if region == name]

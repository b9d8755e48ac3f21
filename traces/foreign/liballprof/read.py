"""Read traces of liballprof, one text a rank, as LogGOPSim's Schedgen does.

Lines are calls, see `lines.py`; ranks are the last number in the names of files. A tag of -1 is
any; so is a source of -1 in Open MPI, and of -2 in MPICH, which is known by its MPI_COMM_WORLD.
Other partners below 0 are MPI_PROC_NULL. What the text does not say is taken as follows:

* who sent what a receive with MPI_ANY_SOURCE took, and how much: see `matching.py`;
* which request, named by address, MPI_Waitany, MPI_Test and others found: see `messages.py`;
* who is in a communicator: see `communicators.py`;
* types of MPI_Alltoallw: a byte each.

Sources: spcl/LogGOPSim, src/liballprof (recording) and src/Schedgen/process_trace.cpp (reading).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from hopmap.arrays import Ints
from hopmap.traces.foreign.messages import Listed, Part, settle
from hopmap.traces.foreign.recognition import Recording
from hopmap.traces.foreign.trace_builder import COLLECTIVES, Acts, Calls, Groups, acts, trace_of
from hopmap.traces.matching import ANY, Messages
from hopmap.traces.trace import Collective, Kind, PairCounts, Trace, TraceError

from .communicators import SELF, Key, Resolved, communicators_of, is_of_mpich, numbers_of
from .lines import SIGNATURES, Lines, Rank, calls_of, read_rank, times

_SENDS = ("Send", "Bsend", "Ssend", "Rsend", "Isend", "Ibsend", "Issend", "Irsend")
_PART = {
    **dict.fromkeys(("MPI_Start", "MPI_Startall"), Part.START),
    **dict.fromkeys(("MPI_Wait", "MPI_Waitall"), Part.END),
    **{f"MPI_{a}{b}": Part.ASK for a in ("Wait", "Test") for b in ("any", "some")},
    **dict.fromkeys(("MPI_Test", "MPI_Testall"), Part.ASK),
    **dict.fromkeys(("MPI_Request_free", "MPI_Cancel"), Part.FORGET),
}


def messages_of(rank: Rank, groups: Groups, numbers: dict[Key, int], anyone: int) -> Messages:
    """List sends and receives of one rank, with world ranks of their partners."""
    listed, keys = Listed(), [np.zeros(0, dtype=np.int64)]

    def add(lines: Lines, sends: bool, named: str, size: Ints, **request: Any) -> None:
        peer, tag = (lines.get(argument) for argument in named.split())
        listed.add(lines.calls, (peer, tag, numbers_of(lines, numbers), size), sends, **request)

    for function in rank.names:
        if function in _PART or function not in SIGNATURES:
            continue
        short = function.removeprefix("MPI_")
        lines = Lines(rank, function)
        if short in ("Sendrecv", "Sendrecv_replace"):
            size = lines.sizes("count", "type")
            add(lines, True, "peer tag", size)
            if short == "Sendrecv":
                size = lines.sizes("rcount", "rtype")
            add(lines, False, "source rtag", size)
        elif short.removesuffix("_init").capitalize() in (*_SENDS, "Recv", "Irecv"):
            request: dict[str, Any] = {}
            if short.endswith("_init") or short.startswith("I"):
                keys.append(lines.get("request"))
                part = Part.INIT if short.endswith("_init") else Part.BEGIN
                request = {"request": keys[-1], "part": part}
            sends = "send" in short.lower()
            add(lines, sends, "peer tag", lines.sizes("count", "type"), **request)
    listed.note(*_read_requests(rank, np.concatenate(keys)))
    table, _ = listed.messages()
    open_ = ~table.sends & (table.peer == anyone)
    table = table._replace(peer=np.where(open_, ANY, table.peer))
    table = Messages(*(column[(table.peer >= 0) | open_] for column in table))
    alone = table.comm == SELF
    return table._replace(peer=np.where(alone, groups.own, groups.world(table.peer, table.comm)))


def _read_requests(rank: Rank, keys: Ints) -> tuple[Ints, Ints, Ints]:
    """Call, key and part of what waits, tests, starts and frees name: one entry a request."""
    lists = []
    for function, how in _PART.items():
        lines = Lines(rank, function)
        many = "number" in SIGNATURES[function]
        count = lines.get("number") if many else np.ones(len(lines.calls), dtype=np.int64)
        lines.refuse((count < 0) | (count > max(len(rank.rows), 1 << 16)))
        call, base = np.repeat(lines.calls, count), np.repeat(lines.get("request"), count)
        turn = np.arange(len(call)) - np.repeat(np.cumsum(count) - count, count)
        lists.append((call, base, turn, np.full(len(call), how)))
    # A request takes 8 bytes in Open MPI's C, 4 in Fortran: what meets more of them is right.
    call, base, turn, part = (np.concatenate(column) for column in zip(*lists, strict=True))
    hits = {step: int(np.isin(base + step * turn, keys).sum()) for step in (8, 4)}
    step = max(hits, key=hits.__getitem__)
    return call, base + step * turn, part


def collectives_of(
    ranks: list[Rank], groups: list[Groups], handles: Resolved, offsets: Ints
) -> tuple[Acts, PairCounts | None]:
    """List collectives of all ranks; a communicator of one member moves nothing."""
    parts = [acts(np.zeros(0, dtype=np.int64), 0)]
    pairs: list[tuple[Any, ...]] = []
    for number, rank in enumerate(ranks):
        vectors = []
        for name, operation in COLLECTIVES.items():
            function = f"MPI_{name.capitalize()}"
            call = calls_of(rank, function) + offsets[number]
            if name in ("init", "init_thread", "finalize"):
                parts.append(acts(call, Kind.COLLECTIVE_END, comm=0, operation=int(operation)))
            if not len(call) or function not in SIGNATURES:
                continue
            lines = Lines(rank, function)
            comm = numbers_of(lines, handles.number[number])
            members = groups[number].size[comm]
            if lines.members.any():
                lines.refuse(lines.members != members)
            rooted = "root" in SIGNATURES[function]
            parts.append(
                groups[number].collectives(
                    *(call, operation, comm),
                    *_bytes(lines, operation, groups[number].place[comm]),
                    root=lines.get("root") if rooted else None,
                    wrong=lines.wrong,
                )
            )
            if function == "MPI_Alltoallv":
                width = lines.get("stype", 1)
                rows = zip(lines.counts("scounts"), width, strict=True)
                vectors += [row * size for row, size in rows if len(row) > 1]
        pairs += [
            (np.full(len(row), number), np.full(len(row), turn), np.arange(len(row)), row)
            for turn, row in enumerate(vectors)
        ]
    counts = None
    wide = any("MPI_Alltoallw" in rank.names for rank in ranks)  # whose turns are counted, too
    if pairs and not wide:
        counts = PairCounts(
            str(ranks[0].fields.file.parent), *map(np.concatenate, zip(*pairs, strict=True))
        )
    return Acts(*map(np.concatenate, zip(*parts, strict=True))), counts


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


_LINE = re.compile(rb"MPI_[A-Za-z_]+:(-|\d+(\.\d+)?):")
_IMMEDIATE = (
    r"MPI_I(barrier|bcast|reduce|allreduce|allgather|gather|scatter|alltoall|scan|exscan)\w*"
)


class LiballprofSource(Recording):
    """Files of liballprof."""

    tool = "liballprof"
    about = "liballprof's text, one file a rank"

    @staticmethod
    def matches(_: Path, start: bytes) -> bool:
        """Whether a file that begins like this is of a rank."""
        lines = [line for line in start.splitlines()[:50] if line and not line.startswith(b"#")]
        return bool(lines) and _LINE.match(lines[0]) is not None

    def calls(self) -> Trace:
        """Read the files of all ranks, in order."""
        return read_liballprof(self.files(), self.name)


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
    groups = [Groups(found.members, r, rank.fields.file) for r, rank in enumerate(ranks)]
    tables = [
        messages_of(rank, groups[number], found.number[number], anyone)
        for number, rank in enumerate(ranks)
    ]
    if found.copies and any(len(table.call) for table in tables):
        raise TraceError(
            f"{files[1]}: says that it is of rank 0, as {files[0].name} does: expected the file of "
            "rank 1, or no messages, but collectives alone"
        )
    messages, unknown = settle(tables, calls, calls.since_first())
    collectives, counts = collectives_of(ranks, groups, found, offsets)

    def count_calls(names: str) -> int:
        matching = [k for k, region in enumerate(regions) if re.fullmatch(names, region)]
        return int(np.isin(calls.region, matching).sum())

    ends = [rank for rank in ranks if not calls_of(rank, "MPI_Finalize").size]
    copies = (len(ranks) - 1) * found.copies
    ignored = {
        **unknown,
        "MPI_Alltoallw (types treated as bytes), in": count_calls("MPI_Alltoallw"),
        "non-blocking collectives of libNBC, in": count_calls(r"NBC_\w+"),
        "files that claim rank 0 (rank of the file name used), in": copies,
        "non-blocking collectives, left out, in": count_calls(_IMMEDIATE),
        "ends of ranks (no MPI_Finalize: cut or killed), which are not among the": len(ends),
    }
    parts = (*messages, collectives)
    return trace_of(
        name, calls, parts, regions, found.members, resolution=1e6, ignored=ignored, counts=counts
    )

"""Collectives of all ranks, and the bytes of each."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopmap.traces.foreign.collective_bytes import account
from hopmap.traces.foreign.trace_builder import Acts, acts
from hopmap.traces.trace import Collective, Kind, PairCounts

from .handles import numbers_of
from .lines import Lines, Rank, calls_of
from .members import Resolved
from .signatures import OPERATIONS, SIGNATURES

Ints = NDArray[np.int64]


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
            sent, received = account(
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
    """Bytes of each call's own part, and of all, as `account` wants them."""
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

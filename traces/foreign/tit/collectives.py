"""Collectives of a rank, all on MPI_COMM_WORLD, and the bytes of each."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopmap.traces.foreign.collective_bytes import account
from hopmap.traces.foreign.text import Fields
from hopmap.traces.foreign.trace_builder import Acts, acts
from hopmap.traces.trace import Collective, Kind

from .actions import sizes_of, whole_at, widths_of

Ints = NDArray[np.int64]


def collectives_of(
    own: int, fields: Fields, rows: Ints, lines: Any, number: Ints, width: int, ranks: int
) -> list[Acts]:
    """List collectives of a rank, all on MPI_COMM_WORLD."""
    made = []

    def add(word: str, operation: Collective, part: Ints, total: Ints, root: Ints | None) -> None:
        which = lines(word)
        if not which.size:
            return
        roots = np.full(len(which), -1) if root is None else root
        if root is not None and ((root < 0) | (root >= ranks)).any():
            raise fields.wrong(
                int(rows[which[np.flatnonzero((root < 0) | (root >= ranks))[0]]]),
                f"a root below {ranks}",
            )
        members = np.full(len(which), ranks)
        ids = np.full(len(which), int(operation))
        at = np.full(len(which), own)
        sent, received = account(fields.file, ids, members, at, roots == own, part, total)
        about = {"comm": 0, "operation": int(operation), "size": sent, "received": received}
        made.append(acts(number[which], Kind.COLLECTIVE_END, peer=roots, **about))

    def given(word: str, at: int, kind: int) -> Ints:
        line = rows[lines(word)]
        widths = widths_of(fields, line, kind, width)
        return sizes_of(fields, line, at, widths, f"{word} with bytes")

    def rooted(word: str, at: int) -> Ints:
        line = rows[lines(word)]
        root = np.zeros(len(line), dtype=np.int64)
        there = np.flatnonzero(fields.counts[line] > at)
        root[there] = whole_at(fields, line[there], at, f"{word} with a root")
        return root

    def summed(word: str, first: int) -> Ints:
        line = rows[lines(word)]
        return sum(
            (given_plain(line, word, first + k) for k in range(ranks)),
            np.zeros(len(line), np.int64),
        )

    def given_plain(line: Ints, word: str, at: int) -> Ints:
        return sizes_of(
            fields,
            line,
            at,
            np.ones(len(line), dtype=np.int64),
            f"{word} with a number for each rank",
        )

    none = np.zeros(len(lines("barrier")), dtype=np.int64)
    add("barrier", Collective.BARRIER, none, none, None)
    add("bcast", Collective.BCAST, part := given("bcast", 2, 4), part, rooted("bcast", 3))
    add("reduce", Collective.REDUCE, part := given("reduce", 2, 5), part, rooted("reduce", 4))
    add("allreduce", Collective.ALLREDUCE, part := given("allreduce", 2, 4), part, None)
    for word in ("scan", "exscan"):
        add(word, Collective[word.upper()], part := given(word, 2, 4), part, None)
    add("alltoall", Collective.ALLTOALL, part := given("alltoall", 2, 4), part, None)
    add("allgather", Collective.ALLGATHER, part := given("allgather", 2, 4), part, None)
    add("gather", Collective.GATHER, part := given("gather", 2, 5), part, rooted("gather", 4))
    add("scatter", Collective.SCATTER, part := given("scatter", 3, 6), part, rooted("scatter", 4))
    # Counts of all ranks: type numbers stand behind them.
    for word, first, behind in (
        ("gatherv", 3, 3 + ranks),
        ("allgatherv", 3, 3 + ranks),
        ("scatterv", 2, 3 + ranks),
    ):
        line = rows[lines(word)]
        last = behind if word == "allgatherv" else behind + 1
        widths = widths_of(fields, line, last, width), widths_of(fields, line, last + 1, width)
        mine = 2 if word != "scatterv" else 2 + ranks
        many, one = (widths[1], widths[0]) if word != "scatterv" else widths
        part = sizes_of(fields, line, mine, one, f"{word} with bytes")
        add(
            word,
            Collective[word.upper()],
            part,
            summed(word, first) * many,
            rooted(word, behind) if word != "allgatherv" else None,
        )
    line = rows[lines("reducescatter")]
    widths_ = widths_of(fields, line, 3 + ranks, width)
    part = given_plain(line, "reducescatter", 2 + own) * widths_
    add(
        "reducescatter", Collective.REDUCE_SCATTER, part, summed("reducescatter", 2) * widths_, None
    )
    line = rows[lines("alltoallv")]
    kinds = (widths_of(fields, line, 4 + 2 * ranks + k, width) for k in range(2))
    sent, received = (
        summed("alltoallv", first) * kind for first, kind in zip((3, 4 + ranks), kinds, strict=True)
    )
    add("alltoallv", Collective.ALLTOALLV, sent, received, None)
    return made

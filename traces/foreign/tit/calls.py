"""Actions of a rank as messages and collectives, and the calls that complete them.

All collectives are on MPI_COMM_WORLD.

Source: SimGrid, src/smpi/internals/smpi_replay.cpp and smpi_datatype.cpp.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopmap.traces.foreign.text import Fields
from hopmap.traces.foreign.trace_builder import Acts, acts, collective_bytes
from hopmap.traces.trace import Collective, Kind

Ints = NDArray[np.int64]

# Bytes of types by number; what is not listed has none that are known.
TYPES = (
    *(8, 4, 1, 2, 8, 4, 1, 8, 1, 1, 2, 4, 8, 8, 16, 4, 1, 1, 2, 4, 8, 1, 2, 4, 8, 8, 16, 32),
    *(8, 8, 8, 16, 16, 8, 8, 8, 16, 16, 4, 4, 8, 16, 8, 16),
)
# Regions, and the action that each stands for.
REGIONS = {
    "init": "MPI_Init",
    "finalize": "MPI_Finalize",
    "send": "MPI_Send",
    "isend": "MPI_Isend",
    "recv": "MPI_Recv",
    "irecv": "MPI_Irecv",
    "wait": "MPI_Wait",
    "waitall": "MPI_Waitall",
    "test": "MPI_Test",
    "sendrecv": "MPI_Sendrecv",
    "barrier": "MPI_Barrier",
    "bcast": "MPI_Bcast",
    "reduce": "MPI_Reduce",
    "allreduce": "MPI_Allreduce",
    "alltoall": "MPI_Alltoall",
    "alltoallv": "MPI_Alltoallv",
    "gather": "MPI_Gather",
    "gatherv": "MPI_Gatherv",
    "scatter": "MPI_Scatter",
    "scatterv": "MPI_Scatterv",
    "allgather": "MPI_Allgather",
    "allgatherv": "MPI_Allgatherv",
    "reducescatter": "MPI_Reduce_scatter",
    "scan": "MPI_Scan",
    "exscan": "MPI_Exscan",
}
SILENT = ("compute", "sleep", "location", "comm_size", "comm_split", "comm_dup")
_WORDS = "|".join((*REGIONS, *SILENT))
LINE = re.compile(rf"\s*\d+\s+({_WORDS})(\s|$)".encode(), re.IGNORECASE)


def reals(fields: Fields, lines: Ints, at: int, word: str) -> NDArray[np.float64]:
    """Numbers with points and exponents."""
    if (fields.counts[lines] <= at).any():
        raise fields.wrong(int(lines[np.argmin(fields.counts[lines])]), f"a number behind {word}")
    values = fields.reals(lines, at)
    bad = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if bad.size:
        raise fields.wrong(int(lines[bad[0]]), f"a number >= 0 behind {word}")
    return values


def whole_at(fields: Fields, lines: Ints, at: int, what: str) -> Ints:
    """Whole numbers, each line's argument at a place; reals without a fraction are some, too."""
    from hopmap.traces.foreign.text_kernels import INTEGER

    if (fields.counts[lines] <= at).any():
        raise fields.wrong(int(lines[np.argmin(fields.counts[lines])]), what)
    place = fields.lines[lines] + at
    values = fields.values[place]
    odd = np.flatnonzero(fields.kinds[place] != INTEGER)
    if odd.size:
        real = fields.reals(lines[odd], at)
        bad = np.flatnonzero(~((np.abs(real) <= 2**53) & (real == np.floor(real))))
        if bad.size:
            raise fields.wrong(int(lines[odd[bad[0]]]), what)
        values[odd] = real.astype(np.int64)
    return values


def widths_of(fields: Fields, lines: Ints, at: int, width: int) -> Ints:
    """Bytes of the types that stand at a place, where there is one."""
    widths = np.full(len(lines), width, dtype=np.int64)
    there = np.flatnonzero(fields.counts[lines] > at)
    if there.size:
        kind = whole_at(fields, lines[there], at, "the number of a type")
        bad = np.flatnonzero((kind < 0) | (kind >= len(TYPES)))
        if bad.size:
            raise fields.wrong(int(lines[there[bad[0]]]), f"a type below {len(TYPES)}")
        widths[there] = np.array(TYPES)[kind]
    return widths


def sizes_of(fields: Fields, lines: Ints, at: int, widths: Ints, what: str) -> Ints:
    """Bytes of buffers, from their numbers of a type."""
    number = whole_at(fields, lines, at, what)
    bad = np.flatnonzero((number < 0) | (number > 2**53 // np.maximum(widths, 1)))
    if bad.size:
        raise fields.wrong(int(lines[bad[0]]), f"{what} >= 0")
    return number * widths


def messages_of(
    own: int, fields: Fields, rows: Ints, lines: Any, number: Ints, width: int, ranks: int
) -> tuple[Any, ...]:
    """List sends and receives of a rank, and the calls that complete them."""
    parts: list[tuple[Any, ...]] = []  # place, sends, peer, tag, size, blocking
    for word in ("send", "isend", "recv", "irecv"):
        which = lines(word)
        at = rows[which]
        what = f"{word} partner tag bytes"
        sizes = sizes_of(fields, at, 4, widths_of(fields, at, 5, width), what)
        peer, tag = (whole_at(fields, at, k, what) for k in (2, 3))
        parts.append(
            (
                which,
                np.full(len(which), "send" in word),
                peer,
                tag,
                sizes,
                np.full(len(which), word[0] != "i"),
            )
        )
    which = lines("sendrecv")
    at = rows[which]
    what = "sendrecv bytes target bytes source"
    for out, first, other, kind in ((True, 2, 3, 6), (False, 4, 5, 7)):
        sizes = sizes_of(fields, at, first, widths_of(fields, at, kind, width), what)
        none = np.zeros(len(which), dtype=np.int64)
        parts.append(
            (
                which,
                np.full(len(which), out),
                whole_at(fields, at, other, what),
                none,
                sizes,
                np.full(len(which), True),
            )
        )
    place, sends, peer, tag, size, blocking = (
        np.concatenate(column) for column in zip(*parts, strict=True)
    )
    order = np.argsort(place, kind="stable")
    place, sends, peer, tag, size, blocking = (
        c[order] for c in (place, sends, peer, tag, size, blocking)
    )
    bad = np.flatnonzero((peer >= ranks) | (sends & (peer < -2)))
    if bad.size:
        raise fields.wrong(int(rows[place[bad[0]]]), f"a partner below {ranks}")
    done = np.where(blocking, number[place], -1)
    open_ = np.flatnonzero(~blocking)
    if open_.size or len(lines("wait")) or len(lines("test")):
        done[open_] = _completed(
            own, fields, rows, lines, number, place[open_], sends[open_], peer[open_], tag[open_]
        )
    real: Any = (peer >= -1) & ~(sends & (peer < 0))
    zeros = np.zeros(len(place), dtype=np.int64)
    return tuple(c[real] for c in (number[place], done, sends, peer, tag, zeros, size))


def _completed(
    own: int,
    fields: Fields,
    rows: Ints,
    lines: Any,
    number: Ints,
    place: Ints,
    sends: Any,
    peer: Ints,
    tag: Ints,
) -> Ints:
    """Call that completes each request: the waits of its ends and tag in order, or a waitall."""
    waits, tests, alls = lines("wait"), lines("test"), lines("waitall")
    some = np.sort(np.concatenate((waits, tests)))
    what = "source, target and tag of a request"
    source, target, label = (whole_at(fields, rows[some], k, what) for k in (2, 3, 4))
    done = np.full(len(place), -1, dtype=np.int64)
    out = source == own
    ends = {
        "keys": np.stack((np.where(out, 1, 0), np.where(out, target, source), label)),
        "begun": np.stack((np.where(sends, 1, 0), peer, tag)),
    }
    # To oneself both a send and a receive may be meant: the receive is, if it is open.
    both = np.concatenate((ends["begun"], ends["keys"]), axis=1)
    _, key = np.unique(both, axis=1, return_inverse=True)
    key = key.reshape(-1)
    events = sorted(
        [(int(at), 0, k) for k, at in enumerate(place)]
        + [(int(at), 1, k) for k, at in enumerate(some)]
        + [(int(at), 2, k) for k, at in enumerate(alls)]
    )
    queues: dict[int, list[int]] = {}
    heads: dict[int, int] = {}
    for at, what_, k in events:
        if what_ == 0:
            queues.setdefault(int(key[k]), []).append(k)
        elif what_ == 1:
            mine = int(key[len(place) + k])
            if own == source[k] == target[k]:
                mine = _of_self(both, key, mine, queues, heads, own, int(label[k]))
            head, queue = heads.get(mine, 0), queues.get(mine, [])
            if head < len(queue):
                done[queue[head]] = number[at]
                heads[mine] = head + 1
        else:
            for mine, queue in queues.items():
                done[queue[heads.get(mine, 0) :]] = number[at]
            queues.clear()
            heads.clear()
    return done


def _of_self(
    both: Ints,
    key: Ints,
    mine: int,
    queues: dict[int, list[int]],
    heads: dict[int, int],
    own: int,
    label: int,
) -> int:
    """Key of the receive of a message to oneself, if one is open."""
    same = np.flatnonzero((both[0] == 0) & (both[1] == own) & (both[2] == label))
    other = int(key[same[0]]) if same.size else mine
    return other if heads.get(other, 0) < len(queues.get(other, [])) else mine


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
        sent, received = collective_bytes(fields.file, ids, members, at, roots == own, part, total)
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

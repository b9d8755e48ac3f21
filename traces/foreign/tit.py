"""Read SimGrid's time-independent traces: an index of the ranks' files, or one file of all ranks.

A line is ``rank action arguments``. Computation is in floating point operations, at 10^9 a second
as hopmap writes them; sizes are bytes, or numbers of a type behind them (`_TYPES`), which is
double if ``init`` has an argument. A rank's ``wait`` and ``test`` name source, target and tag, and
are for the oldest such request; ``waitall`` is for all that are open. All collectives are of
MPI_COMM_WORLD; ``init`` and ``finalize`` wait for nobody.

Source: SimGrid, src/smpi/internals/smpi_replay.cpp and smpi_datatype.cpp; documentation,
"Replaying traces".
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopmap.traces.trace import Collective, Kind, Trace, TraceError

from .accounts import account
from .messages import Messages, acts_of, matched
from .recorded import Acts, Calls, acts, trace_of
from .text import Fields, read_fields
from .text_kernels import INTEGER

Ints = NDArray[np.int64]

FLOPS = 1e9  # a second, as hopmap writes computation
# Bytes of types by number; what is not listed has none that are known.
_TYPES = (
    *(8, 4, 1, 2, 8, 4, 1, 8, 1, 1, 2, 4, 8, 8, 16, 4, 1, 1, 2, 4, 8, 1, 2, 4, 8, 8, 16, 32),
    *(8, 8, 8, 16, 16, 8, 8, 8, 16, 16, 4, 4, 8, 16, 8, 16),
)
# Regions, and the action that each stands for.
_REGIONS = {
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
_SILENT = ("compute", "sleep", "location", "comm_size", "comm_split", "comm_dup")
_WORDS = "|".join((*_REGIONS, *_SILENT))
_LINE = re.compile(rf"\s*\d+\s+({_WORDS})(\s|$)".encode(), re.IGNORECASE)
_INDEX = re.compile(rb"[^\s#:]+")


def is_tit(start: bytes) -> bool:
    """Whether a file that begins like this has actions."""
    lines = [line for line in start.splitlines()[:20] if line.strip() and line[:1] != b"#"]
    return bool(lines) and all(_LINE.match(line) for line in lines[: max(len(lines) - 1, 1)])


def files_of_index(index: Path, start: bytes) -> tuple[Path, ...]:
    """Return the files that an index names, or none if this is no index."""
    lines = [line.strip() for line in start.splitlines() if line.strip()]
    if not lines or not all(_INDEX.fullmatch(line) for line in lines[: max(len(lines) - 1, 1)]):
        return ()
    files = []
    for line in lines[:1]:
        file = index.parent / line.decode("utf-8", "replace")
        if not file.is_file() or file == index:
            return ()
        with file.open("rb") as stream:
            if not is_tit(stream.read(1 << 12)):
                return ()
    try:
        names = index.read_text("utf-8", "replace").split()
    except OSError as error:
        raise TraceError(f"{index}: cannot be read ({error.strerror})") from None
    for number, name in enumerate(names, 1):
        file = index.parent / name
        if not file.is_file():
            raise TraceError(f"{index}: line {number} is {name[:60]!r}: expected a file beside it")
        files.append(file)
    return tuple(files)


def read_tit(files: list[Path], name: str) -> Trace:
    """Read the files of all ranks.

    Raises
    ------
    TraceError
        An action that is not understood, ranks that are missing, a file that is cut; the message
        names file and line.
    """
    tables = [_table(file) for file in files]
    rank = np.concatenate([table[0] for table in tables])
    ranks = int(rank.max()) + 1
    present = np.bincount(rank, minlength=ranks) if ranks <= len(rank) else np.zeros(1)
    if (present == 0).any():
        missing = int(np.argmin(present))
        raise TraceError(f"{name}: rank {missing} has no actions: expected all below {ranks}")
    parts = []
    for r, of in _by_rank(tables, ranks):
        parts.append(_rank(r, of, ranks))
    regions = tuple(_REGIONS.values())
    offsets = np.concatenate(([0], np.cumsum([len(part[0]) for part in parts]))).astype(np.int64)
    region, time = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
    calls = Calls(offsets, region, time, time)
    rows = []
    for part, first in zip(parts, offsets.tolist(), strict=False):
        call, done, *others = part[2]
        rows.append((call + first, np.where(done >= 0, done + first, -1), *others))
    messages = Messages(*map(np.concatenate, zip(*rows, strict=True)))
    messages, guessed, untold = matched(messages, calls.ranks()[messages.call], time[messages.call])
    collectives = [
        acts_
        for part, first in zip(parts, offsets.tolist(), strict=False)
        for acts_ in _shifted(part[3], first)
    ]
    ignored = {
        "MPI_ANY_SOURCE or MPI_ANY_TAG, given to senders in order of time, in": guessed,
        "receives that no message fits, left out, in": untold,
        "comm_size, comm_split and comm_dup action": sum(part[4] for part in parts),
    }
    finalize = list(_REGIONS).index("finalize")
    ended = sum(bool((part[0] == finalize).any()) for part in parts)
    told = "ends of ranks (no finalize: cut or killed), which are not among the"
    ignored[told] = (ranks - ended) * bool(ended)
    everybody = [np.arange(ranks), np.zeros(0, dtype=np.int64)]
    return trace_of(
        name, calls, (*acts_of(messages), *collectives), regions, everybody, ignored=ignored
    )


def _shifted(parts: list[Acts], first: int) -> list[Acts]:
    return [each._replace(call=each.call + first) for each in parts]


def _table(file: Path) -> tuple[Ints, Fields, Ints]:
    """Rank of each action of a file, its fields, and the lines of the actions."""
    fields = read_fields(file, " \t", squeeze=True)
    if fields.text and not fields.text.endswith(b"\n"):
        raise fields.wrong(len(fields.lines) - 2, "a whole line, which ends: the file is cut")
    rows = np.flatnonzero(fields.counts > 0)
    marks = np.frombuffer(fields.text, dtype=np.uint8)
    rows = rows[marks[fields.begins[fields.lines[rows]]] != ord("#")]
    if not rows.size:
        raise TraceError(f"{file}: no actions: expected lines like 0 send 1 0 100")
    expected = "a rank and an action"
    short = np.flatnonzero(fields.counts[rows] < 2)
    if short.size:
        raise fields.wrong(int(rows[short[0]]), expected)
    rank = fields.numbers(rows, 0, expected)
    bad = np.flatnonzero((rank < 0) | (rank >= 2**24))
    if bad.size:
        raise fields.wrong(int(rows[bad[0]]), "a rank below 2^24")
    return rank, fields, rows


def _by_rank(tables: list[tuple[Ints, Fields, Ints]], ranks: int) -> Any:
    """Go through ranks: each with its fields and lines.

    Raises
    ------
    TraceError
        Actions of a rank in several files.
    """
    where: dict[int, tuple[Fields, Ints]] = {}
    for rank, fields, rows in tables:
        order = np.argsort(rank, kind="stable")
        edges = np.searchsorted(rank[order], np.arange(ranks + 1))
        for r in np.unique(rank).tolist():
            if r in where:
                raise TraceError(
                    f"{fields.file}: rank {r}, as in {where[r][0].file.name}: expected it once"
                )
            where[r] = fields, rows[order[edges[r] : edges[r + 1]]]
    for r in range(ranks):
        yield r, where[r]


def _rank(own: int, of: tuple[Fields, Ints], ranks: int) -> tuple[Any, ...]:
    """Region and time of each call of a rank, its messages, its collectives, actions left out."""
    fields, rows = of
    action = fields.values[fields.lines[rows] + 1]
    _, example, inverse = np.unique(action, return_index=True, return_inverse=True)
    inverse = inverse.reshape(-1)
    words = [fields.word(int(fields.lines[rows[k]]) + 1).lower() for k in example]
    for word, k in zip(words, example.tolist(), strict=True):
        if word not in _REGIONS and word not in _SILENT:
            raise fields.wrong(int(rows[k]), f"one of {', '.join(_REGIONS)}, compute or sleep")

    def lines(word: str) -> Ints:
        if word not in words:
            return np.zeros(0, dtype=np.int64)
        return np.flatnonzero(inverse == words.index(word))

    places = list(_REGIONS)
    region = np.array([places.index(word) if word in _REGIONS else -1 for word in words])[inverse]
    pause = np.zeros(len(rows))
    for word, unit in (("compute", 1 / FLOPS), ("sleep", 1.0)):
        which = lines(word)
        pause[which] = _reals(fields, rows[which], 2, word) * unit
    passed = np.cumsum(pause)
    is_call = region >= 0
    number = np.cumsum(is_call) - 1
    width = 1
    inits = lines("init")
    if inits.size and (fields.counts[rows[inits]] > 2).any():
        width = _TYPES[0]
    messages = _messages(own, fields, rows, lines, number, width, ranks)
    collectives = _collectives(own, fields, rows, lines, number, width, ranks)
    left = sum(len(lines(word)) for word in ("comm_size", "comm_split", "comm_dup"))
    return region[is_call], passed[is_call], messages, collectives, left


def _reals(fields: Fields, lines: Ints, at: int, word: str) -> NDArray[np.float64]:
    """Numbers with points and exponents."""
    if (fields.counts[lines] <= at).any():
        raise fields.wrong(int(lines[np.argmin(fields.counts[lines])]), f"a number behind {word}")
    place = fields.lines[lines] + at
    values = np.where(fields.kinds[place] == INTEGER, fields.values[place], -1).astype(np.float64)
    real = np.flatnonzero(fields.kinds[place] != INTEGER)
    ends = zip(fields.begins[place[real]].tolist(), fields.ends[place[real]].tolist(), strict=True)
    texts = [fields.text[begin:end] for begin, end in ends]
    try:
        values[real] = list(map(float, texts))
    except ValueError:
        values[real] = [_real(text) for text in texts]
    bad = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if bad.size:
        raise fields.wrong(int(lines[bad[0]]), f"a number >= 0 behind {word}")
    return values


def _real(text: bytes) -> float:
    try:
        return float(text)
    except ValueError:
        return -1.0


def _at(fields: Fields, lines: Ints, at: int, what: str) -> Ints:
    """Whole numbers, each line's argument at a place; reals without a fraction are some, too."""
    if (fields.counts[lines] <= at).any():
        raise fields.wrong(int(lines[np.argmin(fields.counts[lines])]), what)
    place = fields.lines[lines] + at
    values = fields.values[place].copy()
    for k in np.flatnonzero(fields.kinds[place] != INTEGER).tolist():
        text = fields.word(int(place[k]))
        try:
            real = float(text)
        except ValueError:
            real = 0.5
        if not real.is_integer() or abs(real) > 2**53:
            raise fields.wrong(int(lines[k]), what)
        values[k] = int(real)
    return values


def _widths(fields: Fields, lines: Ints, at: int, width: int) -> Ints:
    """Bytes of the types that stand at a place, where there is one."""
    widths = np.full(len(lines), width, dtype=np.int64)
    there = np.flatnonzero(fields.counts[lines] > at)
    if there.size:
        kind = _at(fields, lines[there], at, "the number of a type")
        bad = np.flatnonzero((kind < 0) | (kind >= len(_TYPES)))
        if bad.size:
            raise fields.wrong(int(lines[there[bad[0]]]), f"a type below {len(_TYPES)}")
        widths[there] = np.array(_TYPES)[kind]
    return widths


def _sizes(fields: Fields, lines: Ints, at: int, widths: Ints, what: str) -> Ints:
    number = _at(fields, lines, at, what)
    bad = np.flatnonzero((number < 0) | (number > 2**53 // np.maximum(widths, 1)))
    if bad.size:
        raise fields.wrong(int(lines[bad[0]]), f"{what} >= 0")
    return number * widths


def _messages(
    own: int, fields: Fields, rows: Ints, lines: Any, number: Ints, width: int, ranks: int
) -> tuple[Any, ...]:
    """List sends and receives of a rank, and the calls that complete them."""
    parts: list[tuple[Any, ...]] = []  # place, sends, peer, tag, size, blocking
    for word in ("send", "isend", "recv", "irecv"):
        which = lines(word)
        at = rows[which]
        what = f"{word} partner tag bytes"
        sizes = _sizes(fields, at, 4, _widths(fields, at, 5, width), what)
        peer, tag = (_at(fields, at, k, what) for k in (2, 3))
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
        sizes = _sizes(fields, at, first, _widths(fields, at, kind, width), what)
        none = np.zeros(len(which), dtype=np.int64)
        parts.append(
            (
                which,
                np.full(len(which), out),
                _at(fields, at, other, what),
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
    source, target, label = (_at(fields, rows[some], k, what) for k in (2, 3, 4))
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


def _collectives(
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
        sent, received = account(ids, members, np.full(len(which), own), roots == own, part, total)
        about = {"comm": 0, "operation": int(operation), "size": sent, "received": received}
        made.append(acts(number[which], Kind.COLLECTIVE_END, peer=roots, **about))

    def given(word: str, at: int, kind: int) -> Ints:
        line = rows[lines(word)]
        return _sizes(fields, line, at, _widths(fields, line, kind, width), f"{word} with bytes")

    def rooted(word: str, at: int) -> Ints:
        line = rows[lines(word)]
        root = np.zeros(len(line), dtype=np.int64)
        there = np.flatnonzero(fields.counts[line] > at)
        root[there] = _at(fields, line[there], at, f"{word} with a root")
        return root

    def summed(word: str, first: int) -> Ints:
        line = rows[lines(word)]
        return sum(
            (given_plain(line, word, first + k) for k in range(ranks)),
            np.zeros(len(line), np.int64),
        )

    def given_plain(line: Ints, word: str, at: int) -> Ints:
        return _sizes(
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
        widths = _widths(fields, line, last, width), _widths(fields, line, last + 1, width)
        mine = 2 if word != "scatterv" else 2 + ranks
        many, one = (widths[1], widths[0]) if word != "scatterv" else widths
        part = _sizes(fields, line, mine, one, f"{word} with bytes")
        add(
            word,
            Collective[word.upper()],
            part,
            summed(word, first) * many,
            rooted(word, behind) if word != "allgatherv" else None,
        )
    line = rows[lines("reducescatter")]
    widths_ = _widths(fields, line, 3 + ranks, width)
    part = given_plain(line, "reducescatter", 2 + own) * widths_
    add(
        "reducescatter", Collective.REDUCE_SCATTER, part, summed("reducescatter", 2) * widths_, None
    )
    line = rows[lines("alltoallv")]
    kinds = (_widths(fields, line, 4 + 2 * ranks + k, width) for k in range(2))
    sent, received = (
        summed("alltoallv", first) * kind for first, kind in zip((3, 4 + ranks), kinds, strict=True)
    )
    add("alltoallv", Collective.ALLTOALLV, sent, received, None)
    return made

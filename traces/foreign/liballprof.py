"""Read traces of liballprof, one text a rank, as LogGOPSim's Schedgen does.

A line is a call: ``MPI_Send:begin:arguments:end``, times in microseconds, see `signatures.py`;
lines that begin with # are comments, and empty ones are allowed. Ranks are the last number in the
names of files. Wildcards and request numbers are Open MPI's: -1 is any source or tag, other
partners below 0 are MPI_PROC_NULL. What the text does not say is taken as follows:

* who sent what a receive with MPI_ANY_SOURCE took, and how much: see `messages.py`;
* which request MPI_Waitany, MPI_Test and others found complete: see `requests.py`;
* who is in a communicator: see `communicators.py`;
* types of MPI_Alltoallw: a byte each.

Sources: spcl/LogGOPSim, src/liballprof (recording) and src/Schedgen/process_trace.cpp (reading).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.traces.trace import Collective, Kind, PairCounts, Trace, TraceError

from .accounts import account
from .communicators import Key, Resolved, resolve
from .messages import ANY, Messages, acts_of, matched
from .recorded import Acts, Calls, acts, trace_of
from .requests import Part, completions
from .signatures import OPERATIONS, SIGNATURES, place, widths
from .text import Fields, read_fields
from .text_kernels import TEXT

Ints = NDArray[np.int64]

_LINE = re.compile(rb"MPI_[A-Za-z_]+:(-|\d+(\.\d+)?):")
_SENDS = ("Send", "Bsend", "Ssend", "Rsend", "Isend", "Ibsend", "Issend", "Irsend")
_ONE_SIDED = ("MPI_Put", "MPI_Get", "MPI_Accumulate")
_PART = {
    **dict.fromkeys(("MPI_Start", "MPI_Startall"), Part.START),
    **dict.fromkeys(("MPI_Wait", "MPI_Waitall"), Part.END),
    **{f"MPI_{a}{b}": Part.ASK for a in ("Wait", "Test") for b in ("any", "some")},
    **dict.fromkeys(("MPI_Test", "MPI_Testall"), Part.ASK),
    **dict.fromkeys(("MPI_Request_free", "MPI_Cancel"), Part.FORGET),
}


def is_liballprof(start: bytes) -> bool:
    """Whether a file that begins like this is one."""
    lines = [line for line in start.splitlines()[:50] if line and not line.startswith(b"#")]
    return bool(lines) and _LINE.match(lines[0]) is not None


class _Rank(NamedTuple):
    """What one file holds."""

    fields: Fields
    rows: Ints  # lines that are calls
    names: tuple[str, ...]
    function: Ints  # of each call, among these names


def read_liballprof(files: list[Path], name: str) -> Trace:
    """Read the files of all ranks, in order.

    Raises
    ------
    TraceError
        A line that is not understood, a communicator whose members cannot be told, files of some
        ranks only; the message names file and line.
    """
    ranks = [_read(file) for file in files]
    regions = tuple(dict.fromkeys(name for rank in ranks for name in rank.names))
    found = _communicators(ranks)
    offsets = np.concatenate(([0], np.cumsum([len(rank.rows) for rank in ranks]))).astype(np.int64)
    region = [
        np.array([regions.index(n) for n in rank.names], dtype=np.int64)[rank.function]
        for rank in ranks
    ]
    begin, end = zip(*(_times(rank) for rank in ranks), strict=True)
    calls = Calls(offsets, *(np.concatenate(column) for column in (region, begin, end)))
    tables = [
        _messages(rank, found.number[number], int(offsets[number]))
        for number, rank in enumerate(ranks)
    ]
    messages = Messages(*map(np.concatenate, zip(*tables, strict=True)))
    members = found.members
    messages = messages._replace(peer=_world(messages.peer, messages.comm, members, name))
    of_call = calls.ranks()
    own = np.where(messages.comm == 1, of_call[messages.call], -1)
    messages = messages._replace(peer=np.where(own >= 0, own, messages.peer))
    messages, guessed, untold = matched(messages, of_call[messages.call], begun(calls, messages))
    collectives, counts = _collectives(ranks, found, offsets)
    ignored = {
        "MPI_ANY_SOURCE or MPI_ANY_TAG, given to senders in order of time, in": guessed,
        "receives that no message fits, left out, in": untold,
        **{f"{f} calls": int(np.isin(calls.region, _at(regions, f)).sum()) for f in _ONE_SIDED},
        "MPI_Alltoallw, types taken for bytes, in": int(
            np.isin(calls.region, _at(regions, "MPI_Alltoallw")).sum()
        ),
        "non-blocking collectives of libNBC, in": sum(
            int((calls.region == k).sum()) for k, n in enumerate(regions) if n.startswith("NBC_")
        ),
    }
    ends = [rank for rank in ranks if not _of(rank, "MPI_Finalize").size]
    ignored["ends of ranks (no MPI_Finalize: cut or killed), which are not among the"] = len(ends)
    parts = (*acts_of(messages), collectives)
    return trace_of(
        name, calls, parts, regions, members, resolution=1e6, ignored=ignored, counts=counts
    )


def begun(calls: Calls, messages: Messages) -> NDArray[np.float64]:
    """When each message's call began, by its rank's clock since the rank's first call."""
    some = np.minimum(calls.offsets[:-1], max(len(calls.begin) - 1, 0))
    start = np.repeat(calls.begin[some], np.diff(calls.offsets))
    return np.asarray((calls.begin - start)[messages.call])


def _at(regions: tuple[str, ...], name: str) -> list[int]:
    return [k for k, region in enumerate(regions) if region == name]


def _read(file: Path) -> _Rank:
    """Read one file and find its calls."""
    fields = read_fields(file, ":,")
    first = fields.lines[:-1]
    marks = np.frombuffer(fields.text, dtype=np.uint8)
    blank = fields.ends[first] == fields.begins[first]
    comment = ~blank
    comment[~blank] = marks[fields.begins[first[~blank]]] == ord("#")
    rows = np.flatnonzero(~blank & ~comment)
    odd = rows[(fields.kinds[first[rows]] != TEXT) | (fields.counts[rows] < 3)]
    expected = "a call like MPI_Send:begin:arguments:end"
    if odd.size:
        raise fields.wrong(int(odd[0]), expected)
    if not rows.size:
        raise TraceError(f"{file}: no calls in it: expected lines like MPI_Send:begin:...:end")
    if not fields.text.endswith(b"\n"):
        raise fields.wrong(int(rows[-1]), "a whole line, which ends: the file is cut")
    _, example, function = np.unique(
        fields.values[first[rows]], return_index=True, return_inverse=True
    )
    names = tuple(fields.word(int(first[rows[k]])) for k in example)
    for name, k in zip(names, example, strict=True):
        if not re.fullmatch(r"(MPI|NBC)_\w+", name):
            raise fields.wrong(int(rows[k]), expected)
    return _Rank(fields, rows, names, function.reshape(-1))


def _times(rank: _Rank) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Begin and end of each call in seconds; MPI_Init has no begin, MPI_Finalize no end."""
    fields, rows = rank.fields, rank.rows
    marks = np.frombuffer(fields.text, dtype=np.uint8)
    begin, end = fields.lines[rows] + 1, fields.lines[rows + 1] - 1
    dash = []
    for at in (begin, end):
        single = fields.ends[at] - fields.begins[at] == 1
        dash.append(single & (marks[np.minimum(fields.begins[at], len(marks) - 1)] == ord("-")))
    both = np.flatnonzero(dash[0] & dash[1])
    if both.size:
        raise fields.wrong(int(rows[both[0]]), "a time, in microseconds, of the call")
    begin, end = np.where(dash[0], end, begin), np.where(dash[1], begin, end)
    what = "times in microseconds"
    columns = (fields.micros(rows, at - fields.lines[rows], what) for at in (begin, end))
    first, last = (np.multiply(column, 1e-9, dtype=np.float64) for column in columns)
    return first, last


def _of(rank: _Rank, name: str) -> Ints:
    """Find the calls of a function in a rank's file."""
    if name not in rank.names:
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero(rank.function == rank.names.index(name))


class _Lines:
    """The calls of one function in one file, and their arguments."""

    def __init__(self, rank: _Rank, function: str) -> None:
        self.function, self.fields, self.calls = function, rank.fields, _of(rank, function)
        self.rows = rank.rows[self.calls]
        fixed, lists = widths(function)
        # The name, two times and the arguments.
        spare = self.fields.counts[self.rows] - 3 - fixed
        bad = (spare != 0) if not lists else (spare < lists) | (spare % lists != 0)
        if bad.any():
            raise self.wrong(int(np.flatnonzero(bad)[0]))
        self.members = spare // lists if lists else np.zeros_like(spare)

    def wrong(self, call: int) -> TraceError:
        """Return the error of a call among these."""
        arguments = ", ".join(name for name, _ in SIGNATURES[self.function])
        return self.fields.wrong(
            int(self.rows[call]), f"{self.function} with {arguments} between two times"
        )

    def get(self, argument: str, offset: int = 0) -> Ints:
        """Return a number of each call; of a type, the second is its size."""
        at = place(self.function, argument)
        step = place(self.function, argument, 1)
        assert at is not None and step is not None
        where = 2 + at + (step - at) * self.members + offset
        what = f"{self.function} with a whole number for {argument}"
        return self.fields.numbers(self.rows, where, what)

    def sums(self, argument: str) -> Ints:
        """Return the sum of counts of each call."""
        return np.array([int(row.sum()) for row in self.counts(argument)], dtype=np.int64)

    def counts(self, argument: str) -> list[Ints]:
        """Return the counts of each call, one a member."""
        at, step = place(self.function, argument), place(self.function, argument, 1)
        assert at is not None and step is not None
        lists = []
        for row, members in zip(self.rows.tolist(), self.members.tolist(), strict=True):
            first = 2 + at + (step - at) * members + 1
            line = np.full(members, row)
            what = f"{self.function} with counts for {argument}"
            lists.append(self.fields.numbers(line, first + np.arange(members), what))
        return lists

    def sizes(self, count: str, kind: str) -> Ints:
        """Bytes of a buffer.

        Raises
        ------
        TraceError
            Below 0, or beyond 2^53.
        """
        number, width = self.get(count), self.get(kind, 1)
        bad = np.flatnonzero((number < 0) | (width < 0) | (number * width.astype(float) > 2**53))
        if bad.size:
            raise self.wrong(int(bad[0]))
        return number * width


def _communicators(ranks: list[_Rank]) -> Resolved:
    """Find out who is in which communicator."""
    used, splits = [], []
    for rank in ranks:
        seen: dict[Key, int] = {}
        for function in rank.names:
            if place_of_comm(function) is None:
                continue
            lines = _Lines(rank, function)
            keys = np.stack([lines.get("comm", k) for k in range(3)], axis=1)
            rows, at = np.unique(keys, axis=0, return_index=True)
            for key, k in zip(map(tuple, rows.tolist()), at.tolist(), strict=True):
                call = int(lines.calls[k])
                if not 0 <= key[1] < key[2]:
                    raise lines.wrong(k)
                if key[2] > len(ranks):
                    raise TraceError(
                        f"{rank.fields.file}: a communicator of {key[2]} ranks, and {len(ranks)} "
                        "files: expected the files of all ranks"
                    )
                seen[key] = min(call, seen.get(key, call))
        used.append(sorted(seen, key=seen.__getitem__))
        lines = _Lines(rank, "MPI_Comm_split")
        parents = zip(*(lines.get("comm", k).tolist() for k in range(3)), strict=True)
        colours = lines.get("color").tolist(), lines.get("key").tolist()
        splits.append(list(zip(parents, *colours, strict=True)))
    found = resolve(used, splits)
    for number, of_rank in enumerate(used):
        for key in of_rank:
            if key not in found.number[number]:
                raise TraceError(
                    f"{ranks[number].fields.file}: communicator {key[0]}, rank {key[1]} of "
                    f"{key[2]}: its members cannot be told: expected MPI_COMM_WORLD, or one made "
                    "by MPI_Comm_split"
                )
    return found


def place_of_comm(function: str) -> int | None:
    """Place of the communicator among the arguments, if there is one."""
    return place(function, "comm") if function in SIGNATURES else None


def _comm(lines: _Lines, numbers: dict[Key, int]) -> Ints:
    """Communicator of each call."""
    keys = np.stack([lines.get("comm", k) for k in range(3)], axis=1)
    rows, inverse = np.unique(keys, axis=0, return_inverse=True)
    known = [numbers[a, b, c] for a, b, c in rows.tolist()]
    return np.array(known, dtype=np.int64)[inverse.reshape(-1)]


def _world(peer: Ints, comm: Ints, members: list[Ints], name: str) -> Ints:
    """World ranks of partners given as ranks in communicators; below 0 they stay."""
    size = np.array([len(each) for each in members])
    size[1] = 1
    first = np.concatenate(([0], np.cumsum(size)))
    table = np.concatenate([each if len(each) else np.zeros(1, np.int64) for each in members])
    if (peer >= size[comm]).any():
        k = int(np.flatnonzero(peer >= size[comm])[0])
        raise TraceError(f"{name}: partner {peer[k]}: expected a rank below {size[comm[k]]}")
    return np.where(peer >= 0, table[first[comm] + np.maximum(peer, 0)], peer)


def _messages(rank: _Rank, numbers: dict[Key, int], first: int) -> tuple[Any, ...]:
    """List sends and receives of one rank, partners as ranks in communicators."""
    rows: list[tuple[Any, ...]] = []  # call, sends, peer, tag, comm, size, blocking
    entries: list[tuple[Any, ...]] = []  # call, key, part, entry of `rows` or -1
    begun = 0

    def add(lines: _Lines, sends: bool, peer: str, tag: str, size: Ints, blocking: bool) -> Ints:
        nonlocal begun
        comm, to = _comm(lines, numbers), lines.get(peer)
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
        lines = _Lines(rank, function)
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
                entries.append((lines.calls, lines.get("request"), np.full(len(at), how), at))
    asked = _asked(rank, entries)
    table = [np.concatenate(column) for column in zip(*rows, strict=True)] if rows else []
    if not table:
        return tuple(np.zeros(0, dtype=t) for t in (int, int, bool, int, int, int, int))
    call, sends, peer, tag, comm, size, blocking = table
    done = np.where(blocking, call, -1)
    whole = [*entries, *asked]
    source = np.arange(len(call))
    if whole:
        when, key, part, entry = (np.concatenate(column) for column in zip(*whole, strict=True))
        order = np.argsort(when, kind="stable")
        when, key, part, entry = when[order], key[order], part[order], entry[order]
        made, ended = completions(np.zeros_like(key), key, part)
        begins = np.flatnonzero((part == Part.BEGIN) | ((part == Part.START) & (made >= 0)))
        of = entry[made[begins]]
        over = np.where(ended[begins] >= 0, when[ended[begins]], -1)
        kept = np.flatnonzero(blocking)
        source = np.concatenate((kept, of))
        call = np.concatenate((call[kept], when[begins]))
        done = np.concatenate((done[kept], over))
    order = np.argsort(call, kind="stable")
    source, call, done = source[order], call[order], done[order]
    sends, peer, tag, comm, size = (c[source] for c in (sends, peer, tag, comm, size))
    real = (peer >= 0) | (~sends & (peer == ANY))  # others are MPI_PROC_NULL
    columns = (call + first, np.where(done >= 0, done + first, -1), sends, peer, tag, comm, size)
    return tuple(column[real] for column in columns)


def _asked(rank: _Rank, begun: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """List what waits, tests, starts and frees name: one entry a request."""
    keys = np.concatenate([np.zeros(0, dtype=np.int64), *(key for _, key, *_ in begun)])
    entries = []
    lists = []
    for function, how in _PART.items():
        lines = _Lines(rank, function)
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
    order = np.argsort(call, kind="stable")
    call, key, part = call[order], (base + step * turn)[order], part[order]
    entries.append((call, key, part, np.full(len(call), -1)))
    return entries


def _collectives(
    ranks: list[_Rank], found: Resolved, offsets: Ints
) -> tuple[Acts, PairCounts | None]:
    """List collectives of all ranks; a communicator of one member moves nothing."""
    parts = []
    pairs: list[tuple[Any, ...]] = []
    for number, rank in enumerate(ranks):
        vectors = []
        for function, operation in OPERATIONS.items():
            lines = _Lines(rank, function) if function in SIGNATURES else None
            if lines is None or not len(lines.calls):
                continue
            comm = _comm(lines, found.number[number])
            own, members = lines.get("comm", 1), lines.get("comm", 2)
            names = [name for name, _ in SIGNATURES[function]]
            root = lines.get("root") if "root" in names else np.full_like(comm, -1)
            if ((root >= members) | ((root < 0) & ("root" in names))).any():
                raise lines.wrong(int(np.flatnonzero((root >= members) | (root < 0))[0]))
            if (lines.members[:] != members).any() and lines.members.any():
                raise lines.wrong(int(np.flatnonzero(lines.members != members)[0]))
            part, total = _bytes(lines, operation, own)
            sent, received = account(operation + 0 * comm, members, own, root == own, part, total)
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
                rows = zip(lines.calls.tolist(), lines.counts("scounts"), width, strict=True)
                vectors += [(call, row * size) for call, row, size in rows if len(row) > 1]
        vectors.sort(key=lambda vector: vector[0])
        pairs += [
            (np.full(len(row), number), np.full(len(row), turn), np.arange(len(row)), row)
            for turn, (_, row) in enumerate(vectors)
        ]
        handles = [f for f in ("MPI_Init", "MPI_Init_thread", "MPI_Finalize") if f in rank.names]
        for function in handles:
            call = _of(rank, function) + offsets[number]
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


def _bytes(lines: _Lines, operation: Collective, own: Ints) -> tuple[Ints, Ints]:
    """Bytes of each call's own part, and of all, as `account` wants them."""
    none = np.zeros(len(lines.calls), dtype=np.int64)
    match operation:
        case Collective.BARRIER | Collective.CREATE_HANDLE:
            return none, none
        case Collective.ALLTOALLV:
            out, in_ = lines.get("stype", 1), lines.get("rtype", 1)
            return lines.sums("scounts") * out, lines.sums("rcounts") * in_
        case Collective.ALLTOALLW:
            return lines.sums("scounts"), lines.sums("rcounts")
        case Collective.REDUCE_SCATTER:
            width = lines.get("type", 1)
            mine = [row[k] for row, k in zip(lines.counts("counts"), own.tolist(), strict=True)]
            return np.array(mine, np.int64).reshape(-1) * width, lines.sums("counts") * width
        case Collective.GATHERV | Collective.ALLGATHERV:
            return lines.sizes("count", "type"), lines.sums("counts") * lines.get("rtype", 1)
        case Collective.SCATTERV:
            return lines.sizes("count", "type"), lines.sums("counts") * lines.get("stype", 1)
        case Collective.SCATTER:
            return lines.sizes("rcount", "rtype"), none
        case _:
            return lines.sizes("count", "type"), none

"""Read GOAL schedules: the text that txt2bin reads, or the binary that it writes.

The text is ``num_ranks N``, then for every rank ``rank R { ... }`` with one statement a line:
``label: send SIZEb to RANK tag T cpu C nic N``, ``recv ... from``, ``calc NANOSECONDS cpu C``, and
``label requires label`` or ``label irequires label``. Labels stand before they are named; a source
or tag of -1 is any, tags count modulo 2^32. Comments are ``//`` and ``/* */``.

The binary, in little-endian numbers, is 64 bits with 4223; ranks (32 bits), largest cpu and nic (8
bits each); for each rank where its part begins and ends, counted from behind the first number (64
bits each). A part: operations and how many wait for nothing (32 bits each), which these are,
operations of 39 bytes, and the lists of who waits for whom. LogGOPSim2 writes operations of 56,
then 104 bytes: what stands behind the first 39 is for its puts, gets and handlers, which are not
read.

Sources: Hoefler, Siebert and Lumsdaine, Group operation assembly language, ICPP 2009;
spcl/LogGOPSim, src/LogGOPSim/txt2bin.re and Parser.hpp; spcl/LogGOPSim2, src/simulator/Parser.hpp.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopmap.arrays import Bools, Ints, Table
from hopmap.traces.foreign.recognition import Recording
from hopmap.traces.foreign.text import read_whole
from hopmap.traces.schedule import Schedule, Task
from hopmap.traces.trace import Trace, TraceError
from hopmap.traces.traffic import MOST_RANKS, Traffic

_PER_BYTE = 8  # bytes of memory that a byte of text takes at least
_TEXT = re.compile(rb"(\s|//[^\n]*\n|/\*.*?\*/)*num_ranks\s", re.DOTALL)


class GoalSource(Recording):
    """A GOAL schedule: operations that wait for each other, in place of calls."""

    kind = "schedule"
    has_calls = False
    is_recorded = False
    tool = "goal"
    about = "GOAL schedules, text or LogGOPSim's binary"
    is_one_file = True

    @staticmethod
    def matches(_: Path, start: bytes) -> bool:
        """Whether a file that begins like this is a schedule."""
        return is_binary(start) or _TEXT.match(start) is not None

    def schedule(self) -> Schedule:
        """Read the operations."""
        return read_goal(self.files()[0])

    def traffic(self) -> Traffic:
        """Read who sends how much to whom."""
        return self.schedule().traffic()

    def calls(self) -> Trace:
        """Say that calls are not known."""
        raise TraceError(f"{self.path}: a schedule, whose calls are unknown: expected a trace")


def read_goal(file: Path) -> Schedule:
    """Read a schedule, text or binary."""
    data = read_whole(file, _PER_BYTE)
    return schedule_of_binary(file, data) if is_binary(data) else schedule_of_text(file, data)


def schedule_of_text(file: Path, data: bytes) -> Schedule:
    """Return the schedule that a text says."""
    from . import parse_kernels as kernels

    text = np.frombuffer(data, dtype=np.uint8)
    most, named, listed = kernels.room(text)
    sorts: list[Any] = [np.uint8, *[np.int64] * 3, np.uint16, np.uint16, *[np.int64] * 3]
    columns: Any = [np.empty(most, dtype=sort) for sort in sorts]
    rows = kernels.Operations(*columns)
    columns = [np.empty(most, dtype=sort) for sort in (np.int64, np.int64, np.bool_)]
    edges = kernels.Edges(*columns)
    labels = np.full(1 << (2 * named + 1).bit_length(), -1, dtype=np.int64)
    summary = np.zeros(5, dtype=np.int64)
    order_of = np.zeros(listed + 1, dtype=np.int64)
    code, place, rank = kernels.parse(text, rows, edges, labels, order_of, summary)
    if code != kernels.FINE:
        raise _describe_error(file, data, code, place, rank)
    ranks, count, dependencies, again, listed = summary.tolist()
    if ranks < 0:
        raise TraceError(f"{file}: no ranks: expected num_ranks and how many there are")
    if ranks > MOST_RANKS:
        raise TraceError(f"{file}: num_ranks {ranks}: expected at most {MOST_RANKS}")
    blocks = np.bincount(order_of[:listed], minlength=ranks)
    if (blocks != 1).any():
        odd = int(np.flatnonzero(blocks != 1)[0])
        raise TraceError(
            f"{file}: rank {odd} stands there {blocks[odd]} times: expected each of {ranks} ranks "
            "once"
        )
    if again:
        raise TraceError(f"{file}: {again} labels stand twice in a rank: expected each once")
    columns = [column[:count] for column in rows]
    rows = kernels.Operations(*columns)
    after, before = edges.after[:dependencies], edges.before[:dependencies]
    begun = edges.begun[:dependencies]
    if (rows.rank[1:] < rows.rank[:-1]).any():
        order = np.argsort(rows.rank, kind="stable")
        place_of = np.empty(count, dtype=np.int64)
        place_of[order] = np.arange(count)
        columns = [column[order] for column in rows]
        rows = kernels.Operations(*columns)
        after, before = place_of[after], place_of[before]
    offsets = np.searchsorted(rows.rank, np.arange(ranks + 1)).astype(np.int64)
    kind, size, peer, tag, cpu, nic, *_ = rows
    return Schedule(str(file), offsets, kind, size, peer, tag, cpu, nic, after, before, begun)


_OPERATION = "send SIZEb to RANK, recv SIZEb from RANK or calc NANOSECONDS"


def _describe_error(file: Path, data: bytes, code: int, place: int, rank: int) -> TraceError:
    """Say what is wrong in a text."""
    from . import parse_kernels as kernels

    expected = {
        kernels.WRONG_STATEMENT: f"a label and a colon, requires or irequires; or {_OPERATION}",
        kernels.WRONG_OPERATION: _OPERATION,
        kernels.WRONG_NUMBER: f"a whole number >= 0 in {_OPERATION}",
        kernels.WRONG_LABEL: "labels of operations that stand above in this rank",
        kernels.WRONG_END: "tag, cpu or nic with a number, or the end of the line",
        kernels.TOO_LARGE: "at most 2^53 bytes or nanoseconds, and cpu and nic of 16 bits",
        kernels.OUTSIDE: "num_ranks, or rank R {",
        kernels.WRONG_RANK: "num_ranks N, then rank R { with R below N, and partners below N",
    }[code]
    if place >= len(data):
        return TraceError(f"{file}: ends within rank {rank}: expected a closing bracket: it is cut")
    line = data.count(b"\n", 0, place) + 1
    text = data[place:].split(b"\n", 1)[0][:60].decode("ascii", "replace").strip()
    inside = f" of rank {rank}" if rank >= 0 else ""
    return TraceError(f"{file}: line {line}{inside} is {text!r}: expected {expected}")


COOKIE, USED_UP = 4223, 2342  # what a binary begins with, and one that a run destroyed
_HEADER = np.dtype([("ranks", "<u4"), ("cpus", "u1"), ("nics", "u1")])
_FIELDS = [
    ("waits", "<u4"),
    ("kind", "u1"),
    ("peer", "<u4"),
    ("size", "<u8"),
    ("tag", "<u4"),
    ("cpu", "u1"),
    ("nic", "u1"),
    ("ends", "<u4"),
    ("first_end", "<u4"),
    ("begins", "<u4"),
    ("first_begin", "<u4"),
]
_NODES = [np.dtype([*_FIELDS, ("more", "u1", (more,))]) for more in (0, 17, 65)]
_ANY = 2**32 - 1


def is_binary(start: bytes) -> bool:
    """Whether a file that begins like this is a binary one."""
    return len(start) >= 8 and int.from_bytes(start[:8], "little") in (COOKIE, USED_UP)


def schedule_of_binary(file: Path, data: bytes) -> Schedule:
    """Return the schedule that a binary holds."""
    if int.from_bytes(data[:8], "little") == USED_UP:
        raise TraceError(f"{file}: a run with --save-mem has used it up: expected a fresh one")
    body = memoryview(data)[8:]
    if len(body) < _HEADER.itemsize:
        raise TraceError(f"{file}: {len(data)} bytes: expected a header of 14: it is cut")
    ranks = int(np.frombuffer(body, _HEADER, 1)["ranks"][0])
    first = _HEADER.itemsize
    if not 0 < ranks <= MOST_RANKS or first + 16 * ranks > len(body):
        raise TraceError(f"{file}: {ranks} ranks in {len(data)} bytes: expected fewer: it is cut")
    parts = np.frombuffer(body, "<u8", 2 * ranks, first).reshape(ranks, 2)
    node = _width(body, parts)
    tables, lists = [], []
    counts: list[int] = []
    for rank, (begin, end) in enumerate(parts.tolist()):
        if not first + 16 * ranks <= begin <= end <= len(body):
            raise TraceError(
                f"{file}: rank {rank} from byte {begin} to {end} of {len(body)}: expected a part "
                "of the file: it is cut"
            )
        nodes, edges = _part(file, rank, body[begin:end], node)
        tables.append(nodes)
        lists.append((edges[0] + sum(counts), edges[1] + sum(counts), edges[2]))
        counts.append(len(nodes))
    nodes = np.concatenate(tables)
    after, before, begun = (np.concatenate(column) for column in zip(*lists, strict=True))
    kind = nodes["kind"]
    sends, calc = kind == Task.SEND, kind == Task.CALC
    peer, tag = nodes["peer"].astype(np.int64), nodes["tag"].astype(np.int64)
    peer[~sends & (peer == _ANY)] = -1
    peer[calc] = -1
    tag[~sends & (tag == _ANY)] = -1
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    odd = np.flatnonzero((kind < 1) | (kind > 3) | (peer >= ranks) | (nodes["size"] > 2**53))
    if odd.size:
        at = int(odd[0])
        rank = int(np.searchsorted(offsets, at, side="right")) - 1
        raise TraceError(
            f"{file}: rank {rank}, operation {at - offsets[rank]}: kind {kind[at]}, partner "
            f"{nodes['peer'][at]}, size {nodes['size'][at]}: expected a send, receive or calc (1 "
            f"to 3), a partner below {ranks} and at most 2^53"
        )
    return Schedule(
        name=str(file),
        offsets=offsets,
        kind=kind.copy(),
        size=nodes["size"].astype(np.int64),
        peer=peer,
        tag=tag,
        cpu=nodes["cpu"].astype(np.uint16),
        nic=nodes["nic"].astype(np.uint16),
        after=after,
        before=before,
        begun=begun,
    )


def _width(body: memoryview, parts: NDArray[np.uint64]) -> np.dtype[Any]:
    """Layout of the operations: that with which the lists fill what a part leaves."""
    for begin, end in parts.tolist():
        part = body[begin:end]
        if len(part) < 8 or not int.from_bytes(part[:4], "little"):
            continue
        count, roots = np.frombuffer(part, "<u4", 2).tolist()
        first = 8 + 4 * roots
        for node in _NODES:
            if first + node.itemsize * count <= len(part):
                nodes = np.frombuffer(part, node, count, first)
                listed = int(
                    nodes["ends"].sum(dtype=np.int64) + nodes["begins"].sum(dtype=np.int64)
                )
                if first + node.itemsize * count + 4 * listed == len(part):
                    return node
    return _NODES[0]


def _part(
    file: Path, rank: int, part: memoryview, node: np.dtype[Any]
) -> tuple[Table, tuple[Ints, Ints, Bools]]:
    """Operations of a rank, and its edges."""
    where = f"{file}: rank {rank}"
    if len(part) < 8:
        raise TraceError(f"{where}: {len(part)} bytes: expected its number of operations")
    count, roots = np.frombuffer(part, "<u4", 2).tolist()
    first = 8 + 4 * roots
    behind = first + node.itemsize * count
    if behind > len(part):
        raise TraceError(f"{where}: {count} operations in {len(part)} bytes: it is cut")
    nodes = np.frombuffer(part, node, count, first)
    appendix = np.frombuffer(part, "<u4", (len(part) - behind) // 4, behind).astype(np.int64)
    after, before, begun = [], [], []
    for number, start, is_begin in (("ends", "first_end", 0), ("begins", "first_begin", 1)):
        many = nodes[number].astype(np.int64)
        from_ = np.where(many > 0, nodes[start], 0).astype(np.int64)
        if count and (from_ + many).max() > len(appendix):
            raise TraceError(f"{where}: lists of {len(appendix)} numbers: expected more: it is cut")
        total = int(many.sum())
        if total > len(appendix):
            raise TraceError(f"{where}: lists of {len(appendix)} numbers that overlap")
        source = np.repeat(np.arange(count), many)
        at = np.repeat(from_ - np.cumsum(many) + many, many) + np.arange(total)
        target = appendix[at]
        if (target >= count).any():
            raise TraceError(f"{where}: operation {target.max()}: expected one below {count}")
        after.append(target)
        before.append(source)
        begun.append(np.full(total, bool(is_begin)))
    waits = np.bincount(np.concatenate(after), minlength=count)
    if (waits != nodes["waits"]).any():
        odd = int(np.flatnonzero(waits != nodes["waits"])[0])
        raise TraceError(
            f"{where}: operation {odd} waits for {nodes['waits'][odd]} and {waits[odd]} are "
            "listed: expected the same"
        )
    return nodes, (np.concatenate(after), np.concatenate(before), np.concatenate(begun))

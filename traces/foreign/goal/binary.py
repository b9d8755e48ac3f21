"""LogGOPSim's binary of a GOAL schedule, in little-endian numbers.

64 bits with 4223; ranks (32 bits), largest cpu and nic (8 bits each); for each rank where its part
begins and ends, counted from behind the first number (64 bits each). A part: operations and how
many wait for nothing (32 bits each), which these are, operations of 39 bytes, and the lists of who
waits for whom. LogGOPSim2 writes operations of 56, then 104 bytes: what stands behind the first 39
is for its puts, gets and handlers, which are not read.

Sources: spcl/LogGOPSim, src/LogGOPSim/Parser.hpp; spcl/LogGOPSim2, src/simulator/Parser.hpp.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopmap.traces.schedule import Schedule, Task
from hopmap.traces.trace import TraceError
from hopmap.traces.traffic import MOST_RANKS

Ints = NDArray[np.int64]

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
    """Return the schedule that a binary holds.

    Raises
    ------
    TraceError
        A part that lies outside the file, or does not fit together; the message names the rank.
    """
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
) -> tuple[NDArray[np.void], tuple[Ints, Ints, NDArray[np.bool_]]]:
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

"""What a trace that was read has, as rows to compare with."""

import numpy as np

from hopmap.traces import Collective, Kind, Trace, traffic_of


def pairs(trace: Trace) -> list[tuple[int, ...]]:
    """Sender, receiver, messages and bytes of all pairs that talk."""
    traffic = traffic_of(trace)
    columns = (traffic.src, traffic.dst, traffic.messages, traffic.bytes)
    return [tuple(map(int, row)) for row in zip(*columns, strict=True)]


def collectives(trace: Trace, operation: Collective) -> list[tuple[int, ...]]:
    """Root, bytes sent and bytes received of every rank's calls of an operation."""
    rows = np.flatnonzero(trace.records.operation == operation)
    columns = (trace.records.peer, trace.records.size, trace.records.received)
    return [tuple(int(column[row]) for column in columns) for row in rows]


def kinds(trace: Trace, rank: int) -> list[str]:
    """Calls of a rank, and behind each what happens in it."""
    mine = slice(trace.offsets[rank], trace.offsets[rank + 1])
    return [
        trace.regions[ref] if kind == Kind.ENTER else Kind(kind).name
        for kind, ref in zip(trace.kind[mine].tolist(), trace.ref[mine].tolist(), strict=True)
        if kind != Kind.LEAVE
    ]

"""Traffic as Scotch's source graphs (.grf), undirected: edge loads in bytes, both directions added.

An edge that is read is one message from the lower to the higher rank, as METIS' are (`metis.py`).
Source: Pellegrini, Scotch and libScotch 7.0 user's guide, section "Graph format": version 0, then
vertices and arcs, then base and three flags (labels, edge loads, vertex loads), then a line a
vertex: its label and load if flagged, its degree, and for each arc its load if flagged and its end.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hopmap.traces.trace import TraceError
from hopmap.traces.traffic import Traffic


def write_scotch(file: Path, traffic: Traffic) -> None:
    """Write a graph of base 0 with edge loads, which are > 0: pairs without bytes are left out."""
    both = traffic.without_self().undirected()
    keep = both.bytes > 0
    low, high, load = both.src[keep], both.dst[keep], both.bytes[keep]
    source, target = np.concatenate((low, high)), np.concatenate((high, low))
    order = np.lexsort((target, source))
    arcs = np.stack((np.concatenate((load, load)), target), axis=1)[order]
    starts = np.searchsorted(source[order], np.arange(traffic.ranks + 1))
    with file.open("w", encoding="ascii") as stream:
        stream.write(f"0\n{traffic.ranks} {len(arcs)}\n0 010\n")
        for rank in range(traffic.ranks):
            row = arcs[starts[rank] : starts[rank + 1]]
            stream.write(" ".join(map(str, (len(row), *row.ravel().tolist()))) + "\n")


def read_scotch(file: Path) -> Traffic:
    """Read a graph, whose numbers may stand on any lines.

    Raises
    ------
    TraceError
        Another version, flags that are not three bits, a vertex or arc that is not there.
    """
    words = file.read_text(encoding="ascii").split()
    if len(words) < 5 or words[0] != "0" or words[4].zfill(3).strip("01"):
        raise TraceError(
            f"{file}: begins with {' '.join(words[:5])!r}: expected 0, vertices, arcs, base, flags"
        )
    numbers = np.array(words, dtype=np.int64)
    vertices, arcs, base = (int(n) for n in numbers[1:4])
    labelled, loaded, weighted = (flag == "1" for flag in words[4].zfill(3)[-3:])
    width, skipped, at = 1 + loaded, int(labelled) + int(weighted), 5
    if not 0 <= vertices <= len(words):
        raise TraceError(f"{file}: {vertices} vertices in {len(words)} numbers: expected fewer")
    labels = np.arange(vertices) + base
    rows = []
    for vertex in range(vertices):
        begin = at + skipped + 1
        degree = int(numbers[begin - 1]) if begin <= len(numbers) else -1
        at = begin + degree * width
        if degree < 0 or at > len(numbers):
            raise TraceError(f"{file}: vertex {vertex + base}: expected its degree and arcs")
        labels[vertex] = numbers[begin - 1 - skipped] if labelled else vertex + base
        rows.append(numbers[begin:at].reshape(degree, width))
    table = np.concatenate([np.empty((0, width), dtype=np.int64), *rows])
    if len(table) != arcs or at != len(numbers):
        raise TraceError(f"{file}: {len(table)} arcs: expected {arcs}, and nothing behind them")
    order = np.argsort(labels, kind="stable")
    place = np.searchsorted(labels[order], table[:, -1])
    known = place < vertices
    known[known] = labels[order][place[known]] == table[:, -1][known]
    if not known.all():
        raise TraceError(f"{file}: arc to {table[~known][0, -1]}: expected a vertex of the graph")
    source = np.repeat(np.arange(vertices), [len(row) for row in rows])
    target = order[place]
    load = table[:, 0] if loaded else np.ones(arcs, dtype=np.int64)
    up, down = source < target, source > target
    if sorted(zip(source[up], target[up], load[up], strict=True)) != sorted(
        zip(target[down], source[down], load[down], strict=True)
    ):
        raise TraceError(f"{file}: an edge is not alike at both its ends: expected each arc twice")
    kept = up & (load != 0)
    once = np.ones(kept.sum(), dtype=np.int64)
    return Traffic.from_pairs(
        vertices, source[kept], target[kept], once, load[kept], name=str(file)
    )

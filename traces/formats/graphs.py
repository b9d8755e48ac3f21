"""Traffic as undirected graphs of METIS (.graph) and Scotch (.grf), both directions added.

An edge that is read is one message from the lower to the higher rank.

METIS: header ``n m [fmt [ncon]]``, then a line of neighbours for every vertex, from 1. Source:
METIS 5 manual, section 4.5.

Scotch: version 0, then vertices and arcs, then base and three flags (labels, edge loads, vertex
loads), then a line a vertex: its label and load if flagged, its degree, and for each arc its load
if flagged and its end. Source: Pellegrini, Scotch and libScotch 7.0 user's guide, section "Graph
format".
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np

from hopmap.arrays import Ints, Ints32
from hopmap.traces.trace import TraceError
from hopmap.traces.traffic import Traffic


def read_metis(file: Path) -> Traffic:
    """Read a graph: an edge is a message from its lower vertex, of as many bytes as it weighs."""
    lines = [
        line
        for line in file.read_text(encoding="ascii", errors="replace").splitlines()
        if not line.lstrip().startswith("%")
    ]
    header = lines[0].split() if lines else []
    if not 2 <= len(header) <= 4 or not all(cell.isdecimal() for cell in header):
        raise TraceError(
            f"{file}: header {' '.join(header)!r}: expected vertices edges [fmt [ncon]]"
        )
    if any(len(cell) > 18 for cell in header):
        raise TraceError(f"{file}: header {' '.join(header)!r}: expected numbers below 10^18")
    vertices, edges = int(header[0]), int(header[1])
    fmt = header[2].zfill(3) if len(header) > 2 else "000"
    constraints = int(header[3]) if len(header) > 3 else int(fmt[1] == "1")
    skipped = int(fmt[0] == "1") + constraints
    weighted = fmt[2] == "1"
    body = lines[1:]
    while len(body) > vertices and not body[-1].strip():
        body.pop()
    if len(body) != vertices:
        raise TraceError(f"{file}: {len(body)} vertex lines: expected {vertices}")
    width = 2 if weighted else 1
    cells = [np.array(line.split()[skipped:], dtype=np.int64) for line in body]
    for vertex, row in enumerate(cells, 1):
        if len(row) % width:
            raise TraceError(f"{file}: vertex {vertex}: a neighbour without a weight")
    neighbours = np.concatenate([row[::width] for row in cells] or [np.empty(0, np.int64)])
    degree = np.array([len(row) // width for row in cells], dtype=np.int64)
    weight = (
        np.concatenate([row[1::2] for row in cells]) if weighted else np.ones(len(neighbours), int)
    )
    src = np.repeat(np.arange(vertices), degree)
    outside = np.flatnonzero((neighbours < 1) | (neighbours > vertices))
    if outside.size:
        raise TraceError(
            f"{file}: vertex {src[outside[0]] + 1} has neighbour {neighbours[outside[0]]}: "
            f"expected 1..{vertices}"
        )
    if len(neighbours) != 2 * edges:
        raise TraceError(
            f"{file}: {len(neighbours)} entries for {edges} edges: expected each edge twice"
        )
    return _of_arcs(file, vertices, src, neighbours - 1, weight)


def _of_arcs(file: Path, vertices: int, source: Ints, target: Ints, weight: Ints) -> Traffic:
    """Traffic of edges that stand at both their ends; of those without a weight there is none."""
    ends = [np.stack((source, target, weight)), np.stack((target, source, weight))]  # as u < v
    forth, back = (rows[:, rows[0] < rows[1]].T for rows in ends)
    for columns, what in ((2, "is listed at one of its ends only"), (3, "has two weights")):
        one, other = (rows[np.lexsort(rows.T[::-1]), :columns] for rows in (forth, back))
        if not np.array_equal(one, other):
            raise TraceError(f"{file}: an edge {what}: expected the same at both its ends")
    src, dst, size = forth[forth[:, 2] != 0].T
    return Traffic.from_pairs(vertices, src, dst, np.ones_like(size), size, name=str(file))


def _arcs(traffic: Traffic) -> tuple[Ints32, Ints, list[int]]:
    """Neighbours and bytes of all ranks in order, and where each rank's begin.

    Bytes are the sum of both directions, and pairs without any are left out: METIS and Scotch know
    no edge of weight 0.
    """
    both = traffic.without_self().undirected()
    keep = both.bytes > 0
    low, high, weight = both.src[keep], both.dst[keep], both.bytes[keep]
    source, target = np.concatenate((low, high)), np.concatenate((high, low))
    order = np.lexsort((target, source))
    starts = np.searchsorted(source[order], np.arange(traffic.ranks + 1))
    return target[order], np.concatenate((weight, weight))[order], starts.tolist()


def write_metis(file: Path, traffic: Traffic) -> None:
    """Write the bytes of both directions as weights; edges without any are left out."""
    target, weight, starts = _arcs(traffic)
    pairs = np.stack((target + 1, weight), axis=1)
    with file.open("w", encoding="ascii") as stream:
        stream.write(f"{traffic.ranks} {len(target) // 2} 001\n")
        written = 0
        for rank in np.flatnonzero(np.diff(starts)).tolist():
            row = pairs[starts[rank] : starts[rank + 1]].ravel()
            stream.write("\n" * (rank - written) + " ".join(map(str, row)) + "\n")
            written = rank + 1
        stream.write("\n" * (traffic.ranks - written))  # ranks without peers, fast


def write_scotch(file: Path, traffic: Traffic) -> None:
    """Write a graph of base 0 with edge loads, which are > 0: pairs without bytes are left out."""
    target, load, starts = _arcs(traffic)
    arcs = np.stack((load, target), axis=1)
    with file.open("w", encoding="ascii") as stream:
        stream.write(f"0\n{traffic.ranks} {len(arcs)}\n0 010\n")
        for first, end in pairwise(starts):
            row = arcs[first:end]
            stream.write(" ".join(map(str, (len(row), *row.ravel().tolist()))) + "\n")


def read_scotch(file: Path) -> Traffic:
    """Read a graph, whose numbers may stand on any lines."""
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
    load = table[:, 0] if loaded else np.ones(arcs, dtype=np.int64)
    return _of_arcs(file, vertices, source, order[place], load)

"""Profiles for Hatchet: the calls of a trace as a tree, with times of each rank.

Source: llnl/hatchet, hatchet/graphframe.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from hopmap.errors import needs
from hopmap.traces.otf2.read import read_trace
from hopmap.traces.trace import Kind, Trace, TraceError

TIME, INCLUSIVE, CALLS = "time", "time (inc)", "calls"


def to_hatchet(trace: Trace | str | Path) -> Any:
    """Return the calling context tree of a trace as Hatchet's frame.

    Parameters
    ----------
    trace : Trace, str or Path
        A trace, or an OTF2 archive.

    Returns
    -------
    hatchet.GraphFrame
        Rows are (node, rank); ``time`` and ``time (inc)`` are seconds, ``calls`` counts.

    Raises
    ------
    TraceError
        No calls, or calls that are left without having been entered.
    MissingExtraError
        Hatchet is not installed.
    """
    with needs("hatchet", "to_hatchet"):
        import hatchet  # noqa: F401 so that it is what is missing
        from hatchet.frame import Frame
        from hatchet.graph import Graph
        from hatchet.graphframe import GraphFrame
        from hatchet.node import Node
    import pandas as pd

    trace = trace if isinstance(trace, Trace) else read_trace(trace)
    paths, totals = _profile(trace)
    if not paths:
        raise TraceError(f"{trace.name}: no calls: expected some for a profile")
    nodes: list[Node] = []
    for parent, region in paths:
        above = nodes[parent] if parent >= 0 else None
        nodes.append(Node(Frame({"name": trace.regions[region], "type": "region"}), above))
        if above is not None:
            above.add_child(nodes[-1])
    graph = Graph([node for node, (parent, _) in zip(nodes, paths, strict=True) if parent < 0])
    graph.enumerate_traverse()
    # Hatchet expects a row for every rank of every node.
    rows = [
        (node, rank, *totals.get((path, rank), (0.0, 0.0, 0)), trace.regions[paths[path][1]])
        for path, node in enumerate(nodes)
        for rank in range(trace.ranks)
    ]
    frame = pd.DataFrame(rows, columns=["node", "rank", TIME, INCLUSIVE, CALLS, "name"])
    frame = frame.set_index(["node", "rank"]).sort_index()
    return GraphFrame(graph, frame, [TIME], [INCLUSIVE], default_metric=TIME)


def _profile(
    trace: Trace,
) -> tuple[list[tuple[int, int]], dict[tuple[int, int], tuple[float, float, int]]]:
    """Return paths of calls as (path above or -1, region); by path and rank: times and calls."""
    paths: dict[tuple[int, int], int] = {}
    totals: dict[tuple[int, int], tuple[float, float, int]] = {}
    bracket = trace.kind <= Kind.LEAVE
    for rank in range(trace.ranks):
        own = slice(int(trace.offsets[rank]), int(trace.offsets[rank + 1]))
        rows = np.flatnonzero(bracket[own]) + own.start
        stack: list[list[float]] = []  # path, entered, inside of calls below
        for entered, time, region in zip(
            (trace.kind[rows] == Kind.ENTER).tolist(),
            trace.time[rows].tolist(),
            trace.ref[rows].tolist(),
            strict=True,
        ):
            if entered:
                above = int(stack[-1][0]) if stack else -1
                stack.append([paths.setdefault((above, region), len(paths)), time, 0.0])
                continue
            if not stack:
                raise TraceError(
                    f"{trace.name}: rank {rank}: {trace.regions[region]} is left: expected it to "
                    "be entered before"
                )
            path, begin, below = stack.pop()
            inside = time - begin
            before = totals.get((int(path), rank), (0.0, 0.0, 0))
            totals[int(path), rank] = (
                before[0] + inside - below,
                before[1] + inside,
                before[2] + 1,
            )
            if stack:
                stack[-1][2] += inside
    return list(paths), totals

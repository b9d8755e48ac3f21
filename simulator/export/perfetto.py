"""A simulated run as JSON that Perfetto (ui.perfetto.dev) and chrome://tracing show.

Ranks are processes, their background collectives threads. Slices: computation, MPI calls,
collectives with their messages inside, and the waiting within each. Arrows are messages; counters
are the use of links, if it was kept.
"""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hopmap.errors import HopmapError
from hopmap.simulator.programs.program import Op, Program
from hopmap.simulator.result import Result
from hopmap.topologies import Topology
from hopmap.traces.safety.atomic_files import replacing

from .perfetto_events import counters, messages, names, operations, slices_of
from .retimed_trace import recorded

MOST = 5_000_000  # events; about what browsers can hold


class ViewerError(HopmapError, ValueError):
    """A timeline too long for its viewers."""


def write_perfetto(
    path: str | Path,
    program: Program,
    result: Result,
    topology: Topology,
    node_of: NDArray[np.int64],
) -> int:
    """Write a run whose operations were recorded; return the number of events.

    Raises
    ------
    TraceError
        Operations were not recorded.
    ViewerError
        Too many events, see `expect_viewable`; nothing is written.
    OSError
        The file cannot be written.
    """
    expect_viewable(path, program)
    ops = recorded(program, result)
    slices = slices_of(program, result)
    written = 0
    with replacing(path) as partial, partial.open("w", encoding="utf-8") as out:
        out.write('{"displayTimeUnit": "ns", "otherData": ')
        about = {"name": program.name, "topology": topology.spec, "engine": result.engine}
        out.write(json.dumps({**about, "makespan": str(result.makespan)}))
        out.write(', "traceEvents": [')
        use = result.link_use
        events = chain(
            names(program, node_of),
            operations(program, ops, slices),
            messages(program, ops, slices),
            () if use is None else counters(use, topology, program.ranks),
        )
        for event in events:
            out.write((",\n" if written else "\n") + json.dumps(event))
            written += 1
        out.write("\n]}\n")
    return written


def expect_viewable(path: str | Path, program: Program) -> None:
    """Refuse programs of more than `MOST` operations and ends of messages, which are events.

    Raises
    ------
    ViewerError
        The program has more.
    """
    times = program.trips()
    events = int(times[program.kind != Op.REPEAT].sum() + 2 * times[program.sends()].sum())
    if events > MOST:
        raise ViewerError(
            f"{path}: {events:,} events or more: expected at most {MOST:,}, which viewers can "
            f"open: take fewer steps, or an OTF2 archive"
        )

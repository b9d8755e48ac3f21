"""All that a replay of a trace leaves out, in plain lines."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from hopmap.traces import Kind, Trace
from hopmap.traces.omissions import LeftOut, of_records

from .program import Op, Program

Ints = NDArray[np.int64]


def left_out_of(
    trace: Trace, timed: tuple[LeftOut, ...], dropped: Mapping[str, int]
) -> tuple[LeftOut, ...]:
    """List what lowering leaves out of a trace, or takes for something else.

    First what takes time, most of it first; then what was dropped, and records that were ignored.
    """
    probes = np.flatnonzero(trace.kind == Kind.PROBE)
    plain = int((trace.records.request[trace.ref[probes]] < 0).sum())
    return (
        *sorted(timed, key=lambda entry: -(entry.seconds or 0.0)),
        *(LeftOut(what, count) for what, count in dropped.items()),
        *([LeftOut("probes, not simulated", plain)] if plain else ()),
        *of_records(trace.ignored, told=("BufferFlush", "MeasurementOnOff")),
    )


def left_out(
    program: Program, channel: Ints | None = None, trips: Ints | None = None
) -> tuple[LeftOut, ...]:
    """List what a program leaves out, and the messages that none of its receives takes.

    Parameters
    ----------
    channel, trips : ndarray(int64, shape=(operations,)), optional
        `Program.channels` and `Program.trips`, where they are known.

    Returns
    -------
    tuple of LeftOut
        What takes time comes first.
    """
    channel = program.channels() if channel is None else channel
    trips = program.trips() if trips is None else trips
    rows = np.flatnonzero(channel >= 0)
    if program.jobs:  # what others send beside them is for nobody to receive
        others = np.repeat(
            [each.background for each in program.jobs], [each.ranks for each in program.jobs]
        )
        rows = rows[~others[program.rank_of_row()[rows]]]
    takes = program.kind[rows] >= Op.RECV
    excess = np.bincount(channel[rows], np.where(takes, -trips[rows], trips[rows]))
    untaken = int(excess[excess > 0].sum())
    unmatched = [LeftOut("messages that nobody receives", untaken)] if untaken else ()
    return (*program.left_out, *unmatched)

"""All that a replay of a trace leaves out, in plain lines."""

from __future__ import annotations

import numpy as np

from hopmap.traces import Folded, Kind, Trace
from hopmap.traces.left_out import LeftOut, of_records

from .program import Op, Program


def left_out(calls: Trace | Folded | None, program: Program) -> list[LeftOut]:
    """List what a program leaves out of what was recorded, or takes for something else.

    Parameters
    ----------
    calls : Trace or Folded or None
        What the program was lowered from; None of traffic.
    program : Program

    Returns
    -------
    list of LeftOut
        First what takes time, most of it first; then what was dropped, what nobody receives, and
        records that were ignored, with their counts. `substantial` picks what is worth a warning.
    """
    timed = sorted(program.left_out, key=lambda entry: -(entry.seconds or 0.0))
    counted = [LeftOut(what, count) for what, count in program.dropped.items()]
    if not (program.kind == Op.REPEAT).any():
        counted.append(
            LeftOut("messages that nobody receives", int((program.receives() < 0).sum()))
        )
    trace = calls.trace if isinstance(calls, Folded) else calls
    if trace is not None:
        probes = np.flatnonzero(trace.kind == Kind.PROBE)
        plain = int((trace.records.request[trace.ref[probes]] < 0).sum())
        counted.append(LeftOut("probes, not simulated", plain))
        counted += of_records(trace.ignored, told=("BufferFlush", "MeasurementOnOff"))
    return timed + [entry for entry in counted if entry.count]

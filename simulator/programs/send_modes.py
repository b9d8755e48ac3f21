"""MPI's modes of sending, and which one a call has by its name."""

from __future__ import annotations

import re
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from hopmap.simulator import model
from hopmap.traces import Kind, Trace, mpi_name
from hopmap.traces.regions import is_call

Ints = NDArray[np.int64]


class SendMode(IntEnum):
    """How MPI sends a message (MPI 4.1, 3.4), or not MPI; what that means is in `model.py`."""

    STANDARD = model.STANDARD
    BUFFERED = model.BUFFERED
    SYNCHRONOUS = model.SYNCHRONOUS
    READY = model.READY
    PUT = model.PUT
    HARDWARE = model.HARDWARE


LETTERS = {
    "": SendMode.STANDARD,
    "b": SendMode.BUFFERED,
    "s": SendMode.SYNCHRONOUS,
    "r": SendMode.READY,
}
"""What stands before "send" in the names of calls."""

_CALL = re.compile(r"i?([bsr])send(_c)?")


def mode_of(name: str) -> SendMode:
    """Mode in which a region of this name sends.

    Examples
    --------
    >>> mode_of("MPI_Issend").name, mode_of("mpi_rsend_").name, mode_of("MPI_Send").name
    ('SYNCHRONOUS', 'READY', 'STANDARD')
    """
    found = _CALL.fullmatch(mpi_name(name))
    return LETTERS[found[1]] if found else SendMode.STANDARD


def modes_of(trace: Trace, events: Ints) -> NDArray[np.uint8]:
    """Modes of the sends recorded by these events: those of the calls that they stand in."""
    of_region = np.array([mode_of(name) for name in trace.regions], dtype=np.uint8)
    of_region[~is_call(trace.roles)] = SendMode.STANDARD
    modes = np.zeros(len(events), dtype=np.uint8)
    if not of_region.any():
        return modes
    brackets = np.flatnonzero(trace.kind <= Kind.LEAVE)
    brackets = brackets[of_region[trace.ref[brackets]] > 0]
    last = np.searchsorted(brackets, events) - 1
    inside = np.flatnonzero(last >= 0)
    bracket = brackets[last[inside]]
    ranks = np.searchsorted(trace.offsets, np.stack((bracket, events[inside])), side="right")
    inside = inside[(trace.kind[bracket] == Kind.ENTER) & (ranks[0] == ranks[1])]
    modes[inside] = of_region[trace.ref[brackets[last[inside]]]]
    return modes

"""Calls of MPI: events bracket them, the .pcf beside the trace names them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hopmap.traces.foreign.files import read_whole
from hopmap.traces.foreign.trace_builder import Calls

from .header import LAST_CALL, Head
from .records import THREADS

Ints = NDArray[np.int64]
_IS_NUMBER = re.compile("[0-9]{1,18}")

# Names of calls by value, where there is no .pcf.
_NAMES = [
    "Send",
    "Recv",
    "Isend",
    "Irecv",
    "Wait",
    "Waitall",
    "Bcast",
    "Barrier",
    "Reduce",
    "Allreduce",
    "Alltoall",
    "Alltoallv",
    "Gather",
    "Gatherv",
    "Scatter",
    "Scatterv",
    "Allgather",
    "Allgatherv",
    "Comm_rank",
    "Comm_size",
    "Comm_create",
    "Comm_dup",
    "Comm_split",
    "Comm_group",
    "Comm_free",
    "Comm_remote_group",
    "Comm_remote_size",
    "Comm_test_inter",
    "Comm_compare",
    "Scan",
    "Init",
    "Finalize",
    "Bsend",
    "Ssend",
    "Rsend",
    "Ibsend",
    "Issend",
    "Irsend",
    "Test",
    "Cancel",
    "Sendrecv",
    "Sendrecv_replace",
]


_NAMELESS = "MPI_call_"


def is_nameless(region: str) -> bool:
    """Whether a region stands for a value that has no name."""
    return region.startswith(_NAMELESS)


def labels_of(trace: Path) -> dict[tuple[int, int], str]:
    """Names of values by type, from the .pcf beside a trace."""
    file = trace.with_suffix(".pcf")
    labels: dict[tuple[int, int], str] = {}
    if not file.is_file():
        return labels
    types: list[int] = []
    inside = ""
    for line in read_whole(file, 1).decode("utf-8", "replace").splitlines():
        words = line.split()
        if not words or words[0] in ("EVENT_TYPE", "VALUES"):
            inside = words[0] if words else ""
            types = [] if inside == "EVENT_TYPE" else types
        elif inside == "EVENT_TYPE" and len(words) > 1 and _IS_NUMBER.fullmatch(words[1]):
            types.append(int(words[1]))
        elif inside == "VALUES" and _IS_NUMBER.fullmatch(words[0]) and len(words) > 1:
            labels |= {(kind, int(words[0])): words[1] for kind in types}
    return labels


def calls_of(
    strand: Ints,
    time: NDArray[np.float64],
    kind: Ints,
    value: Ints,
    head: Head,
    labels: dict[tuple[int, int], str],
) -> tuple[Calls, tuple[str, ...], tuple[Ints, Ints], int]:
    """Return calls, names of regions, entry and first event of each call, and open ones."""
    brackets = np.flatnonzero(kind <= LAST_CALL)
    # What ends at a time stands before what begins then.
    order = brackets[np.lexsort((brackets, value[brackets] != 0, time[brackets], strand[brackets]))]
    opens = value[order] != 0
    starts = np.flatnonzero(opens)
    follows = np.minimum(starts + 1, max(len(order) - 1, 0))
    together = strand[order[follows]] == strand[order[starts]]
    closed = (starts + 1 < len(order)) & ~opens[follows] & together
    end = np.where(closed, time[order[follows]], time[order[starts]])
    begin, task = order[starts], strand[order[starts]] // THREADS
    # Calls of a task's threads may lie within each other.
    rising = np.lexsort((time[begin], task))
    begin, end, task = begin[rising], end[rising], task[rising]
    keys, inverse = np.unique(np.stack((kind[begin], value[begin])), axis=1, return_inverse=True)
    names = []
    for type_, number in keys.T.tolist():
        known = f"MPI_{_NAMES[number - 1]}" if 0 < number <= len(_NAMES) else f"{_NAMELESS}{number}"
        names.append(labels.get((type_, number), known))
    calls = Calls(
        np.searchsorted(task, np.arange(head.tasks + 1)).astype(np.int64),
        inverse.reshape(-1).astype(np.int64),
        time[begin],
        end,
    )
    return calls, tuple(names), (np.arange(len(begin)), begin), int((~closed).sum())

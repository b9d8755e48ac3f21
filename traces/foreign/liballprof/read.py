"""Read traces of liballprof, one text a rank, as LogGOPSim's Schedgen does.

Lines are calls, see `lines.py`; ranks are the last number in the names of files. A tag of -1 is
any; so is a source of -1 in Open MPI, and of -2 in MPICH, which is known by its MPI_COMM_WORLD.
Other partners below 0 are MPI_PROC_NULL. What the text does not say is taken as follows:

* who sent what a receive with MPI_ANY_SOURCE took, and how much: see `messages.py`;
* which request MPI_Waitany, MPI_Test and others found complete: see `requests.py`;
* who is in a communicator: see `members.py`;
* types of MPI_Alltoallw: a byte each.

Sources: spcl/LogGOPSim, src/liballprof (recording) and src/Schedgen/process_trace.cpp (reading).
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from hopmap.traces.foreign.recognition import Recording
from hopmap.traces.foreign.trace_builder import Calls, acts_of, trace_of
from hopmap.traces.matching import Messages, matched
from hopmap.traces.trace import Trace, TraceError

from .collectives import collectives_of
from .handles import communicators_of, is_of_mpich, world_of
from .lines import calls_of, is_liballprof, read_rank, times
from .messages import messages_of

_IMMEDIATE = re.compile(
    r"MPI_I(barrier|bcast|reduce|allreduce|allgather|gather|scatter|alltoall|scan|exscan)\w*"
)


class LiballprofSource(Recording):
    """Files of liballprof."""

    tool = "liballprof"
    about = "liballprof's text, one file a rank"

    @staticmethod
    def matches(_: Path, start: bytes) -> bool:
        """Whether a file that begins like this is of a rank."""
        return is_liballprof(start)

    def read(self, files: list[Path]) -> Trace:
        """Read the files of all ranks, in order."""
        return read_liballprof(files, self.name)


def read_liballprof(files: list[Path], name: str) -> Trace:
    """Read the files of all ranks, in order.

    Raises
    ------
    TraceError
        A line that is not understood, a communicator whose members cannot be told, files of some
        ranks only; the message names file and line.
    """
    ranks = [read_rank(file) for file in files]
    regions = tuple(dict.fromkeys(name for rank in ranks for name in rank.names))
    found = communicators_of(ranks)
    offsets = np.concatenate(([0], np.cumsum([len(rank.rows) for rank in ranks]))).astype(np.int64)
    region = [
        np.array([regions.index(n) for n in rank.names], dtype=np.int64)[rank.function]
        for rank in ranks
    ]
    begin, end = zip(*(times(rank) for rank in ranks), strict=True)
    calls = Calls(offsets, *(np.concatenate(column) for column in (region, begin, end)))
    anyone = -2 if any(is_of_mpich(numbers) for numbers in found.number) else -1
    tables = [
        messages_of(rank, found.number[number], int(offsets[number]), anyone)
        for number, rank in enumerate(ranks)
    ]
    messages = Messages(*map(np.concatenate, zip(*tables, strict=True)))
    if found.copies and len(messages.call):
        raise TraceError(
            f"{files[1]}: says that it is of rank 0, as {files[0].name} does: expected the file of "
            "rank 1, or no messages, but collectives alone"
        )
    members = found.members
    messages = messages._replace(peer=world_of(messages.peer, messages.comm, members, name))
    of_call = calls.ranks()
    own = np.where(messages.comm == 1, of_call[messages.call], -1)
    messages = messages._replace(peer=np.where(own >= 0, own, messages.peer))
    when = calls.since_first()[messages.call]
    messages, guessed, untold = matched(messages, of_call[messages.call], when)
    collectives, counts = collectives_of(ranks, found, offsets)
    ignored = {
        "MPI_ANY_SOURCE or MPI_ANY_TAG, given to senders in order of time, in": guessed,
        "receives that no message fits, left out, in": untold,
        "MPI_Alltoallw, types taken for bytes, in": int(
            np.isin(calls.region, _at(regions, "MPI_Alltoallw")).sum()
        ),
        "non-blocking collectives of libNBC, in": sum(
            int((calls.region == k).sum()) for k, n in enumerate(regions) if n.startswith("NBC_")
        ),
    }
    ends = [rank for rank in ranks if not calls_of(rank, "MPI_Finalize").size]
    ignored["files that say that they are of rank 0, taken for the ranks of their names, in"] = (
        len(ranks) - 1
    ) * found.copies
    ignored["non-blocking collectives, left out, in"] = sum(
        int((calls.region == k).sum()) for k, n in enumerate(regions) if _IMMEDIATE.fullmatch(n)
    )
    ignored["ends of ranks (no MPI_Finalize: cut or killed), which are not among the"] = len(ends)
    parts = (*acts_of(messages), collectives)
    return trace_of(
        name, calls, parts, regions, members, resolution=1e6, ignored=ignored, counts=counts
    )


def _at(regions: tuple[str, ...], name: str) -> list[int]:
    return [k for k, region in enumerate(regions) if region == name]

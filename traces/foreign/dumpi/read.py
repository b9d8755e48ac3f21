"""Read DUMPI traces. Requests are known, and so is what MPI_Test and MPI_Waitany found."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hopmap.traces.foreign.recognition import Recording
from hopmap.traces.foreign.trace_builder import Calls, acts_of, trace_of
from hopmap.traces.matching import Messages, matched
from hopmap.traces.trace import Trace

from .collectives import collectives_of
from .communicators import members_of
from .handles import made_by
from .layouts import NAMES
from .messages import messages_of
from .meta import files_of_meta, is_meta
from .rank import is_dumpi, read_rank, times


class DumpiSource(Recording):
    """Files of DUMPI."""

    tool = "dumpi"
    about = "DUMPI's binary files, one a rank, and their meta file"

    @staticmethod
    def matches(_: Path, start: bytes) -> bool:
        """Whether a file that begins like this is of one rank, or names the files of all."""
        return is_dumpi(start) or is_meta(start)

    @staticmethod
    def is_index(file: Path) -> bool:
        """Whether a file names the files of all ranks."""
        return file.suffix == ".meta"

    @staticmethod
    def indexed(index: Path) -> tuple[Path, ...]:
        """Return the files that a meta file names."""
        return files_of_meta(index)

    def read(self, files: list[Path]) -> Trace:
        """Read the files of all ranks, in order."""
        return read_dumpi(files, self.name)


def read_dumpi(files: list[Path], name: str) -> Trace:
    """Read the files of all ranks, in order.

    Raises
    ------
    TraceError
        A file that is cut or foreign, a function or type that is not known, messages on
        communicators whose members are not; the message names file and place.
    """
    ranks = [read_rank(file) for file in files]
    members, numbers, untold_order = members_of([made_by(rank) for rank in ranks], files)
    offsets = np.concatenate(([0], np.cumsum([len(rank.calls) for rank in ranks]))).astype(np.int64)
    bias = min(rank.bias for rank in ranks)
    begin, end = zip(*(times(rank, bias) for rank in ranks), strict=True)
    function = np.concatenate([rank.calls[:, 0] for rank in ranks])
    calls = Calls(offsets, function, np.concatenate(begin), np.concatenate(end))
    tables, collectives, cancelled = [], [], 0
    for own, (rank, first) in enumerate(zip(ranks, offsets.tolist(), strict=False)):
        table, gone = messages_of(rank, own, numbers[own], members, first)
        tables.append(table)
        cancelled += gone
        collectives.append(collectives_of(rank, own, numbers[own], members, first))
    messages = Messages(*map(np.concatenate, zip(*tables, strict=True)))
    of = messages.call
    messages, guessed, untold = matched(messages, calls.ranks()[of], calls.since_first()[of])
    ignored = {
        "Function_enter and Function_exit": sum(rank.profiled for rank in ranks),
        "MPI_ANY_SOURCE or MPI_ANY_TAG, given to senders in order of time, in": guessed,
        "receives that no message fits, left out, in": untold,
        "cancelled receives, left out, in": cancelled,
        "communicators whose order of ranks is not told, taken for that before, in": untold_order,
        "MPI_Alltoallw, types taken for bytes, in": int(
            (function == NAMES.index("MPI_Alltoallw")).sum()
        ),
    }
    parts = (*acts_of(messages), *collectives)
    return trace_of(name, calls, parts, NAMES, members, ignored=ignored)

"""Read DUMPI traces: a file a rank, and a meta file that names them.

Requests are known, and so is what MPI_Test and MPI_Waitany found.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from hopmap.traces.foreign.collectives import Groups
from hopmap.traces.foreign.messages import settled
from hopmap.traces.foreign.recognition import Recording
from hopmap.traces.foreign.text import read_whole
from hopmap.traces.foreign.trace_builder import Calls, trace_of
from hopmap.traces.trace import Trace, TraceError

from .calls import collectives_of, messages_of
from .communicators import made_by, members_of
from .rank import NAMES, is_dumpi, read_rank, times

_META = re.compile(rb"^(hostname|numprocs|username|startime|fileprefix|version)=", re.MULTILINE)


def is_meta(start: bytes) -> bool:
    """Whether a file that begins like this names the files of a run."""
    return len(start) < 1 << 14 and {b"numprocs", b"fileprefix"} <= set(_META.findall(start))


def files_of_meta(meta: Path) -> tuple[Path, ...]:
    """Return the files of all ranks that a meta file names."""
    lines = (
        line.partition("=") for line in read_whole(meta, 1).decode("utf-8", "replace").splitlines()
    )
    values = {key.strip(): value.strip() for key, _, value in lines}
    count, prefix = values["numprocs"], Path(values["fileprefix"]).name
    if not re.fullmatch("[0-9]{1,8}", count) or not 0 < int(count) <= 2**24:
        raise TraceError(f"{meta}: numprocs={count[:40]}: expected a number of ranks")
    files = {}
    for file in meta.parent.iterdir():
        match = re.fullmatch(re.escape(prefix) + r"-(\d+)\.bin", file.name)
        if match:
            files[int(match[1])] = file
    for rank in range(int(count)):
        if rank not in files:
            raise TraceError(f"{meta}: {prefix}-{rank:04}.bin of {count} ranks is not beside it")
    if len(files) > int(count):
        raise TraceError(
            f"{meta}: numprocs={count}, and {len(files)} files {prefix}-*.bin are beside it: "
            "expected as many"
        )
    return tuple(files[rank] for rank in range(int(count)))


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
    """Read the files of all ranks, in order."""
    ranks = [read_rank(file) for file in files]
    members, numbers, untold_order = members_of([made_by(rank) for rank in ranks], files)
    offsets = np.concatenate(([0], np.cumsum([len(rank.calls) for rank in ranks]))).astype(np.int64)
    bias = min(rank.bias for rank in ranks)
    begin, end = zip(*(times(rank, bias) for rank in ranks), strict=True)
    function = np.concatenate([rank.calls[:, 0] for rank in ranks])
    calls = Calls(offsets, function, np.concatenate(begin), np.concatenate(end))
    tables, collectives, cancelled = [], [], 0
    for own, (rank, first) in enumerate(zip(ranks, offsets.tolist(), strict=False)):
        groups = Groups(members, own, rank.file)
        table, gone = messages_of(rank, groups, numbers[own])
        tables.append(table)
        cancelled += gone
        collectives.append(collectives_of(rank, groups, numbers[own], first))
    messages, unknown = settled(tables, calls, calls.since_first())
    ignored = {
        "Function_enter and Function_exit": sum(rank.profiled for rank in ranks),
        **unknown,
        "cancelled receives, left out, in": cancelled,
        "communicators whose order of ranks is not told, taken for that before, in": untold_order,
        "MPI_Alltoallw, types taken for bytes, in": int(
            (function == NAMES.index("MPI_Alltoallw")).sum()
        ),
    }
    return trace_of(name, calls, (*messages, *collectives), NAMES, members, ignored=ignored)

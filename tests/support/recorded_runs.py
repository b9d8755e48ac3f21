"""Programs that are recorded: compiled, their files made by hand, and what a recording tells."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hopmap.traces import Kind, Trace, Traffic
from hopmap.traces.recorder.raw import HEADER, MAGIC, PAGE, RECORD, VERSION, Extra, Process
from support import ROOT
from support.real_mpi import Mpi

PROGRAMS = ROOT / "tests" / "traces" / "recorder" / "programs"
ALL = "COLLECTIVE_END 0/0"
"""What a call of everybody that moves nothing is told as."""


class Recorded(NamedTuple):
    """What a run left, and how it ended."""

    trace: Trace
    processes: list[Process]
    done: subprocess.CompletedProcess[str]

    def total(self, name: str) -> int:
        return sum(each.counts[name] for each in self.processes)

    def group(self, *members: int) -> int:
        """Number of the group of these ranks that synchronises windows."""
        return [group.tolist() for group in self.trace.groups].index(list(members))

    def told(self, rank: int) -> list[str]:
        """Every call of a rank with what it did, like "Send SEND>1 t7 40"."""
        return told(self.trace, rank)


def told(trace: Trace, rank: int) -> list[str]:
    lines: list[str] = []
    for row in range(trace.offsets[rank], trace.offsets[rank + 1]):
        kind, ref = Kind(trace.kind[row]), trace.ref[row]
        if kind == Kind.ENTER:
            lines.append(trace.regions[ref].removeprefix("MPI_"))
        elif kind == Kind.LEAVE and lines[-1].startswith("/"):
            lines.append("/" + trace.regions[ref])
        elif kind not in (Kind.LEAVE, Kind.COLLECTIVE_BEGIN, Kind.RMA_COLLECTIVE_BEGIN):
            columns = {name: int(column[ref]) for name, column in trace.records._asdict().items()}
            if columns["peer"] >= 0:
                lines[-1] += f" {kind.name}>{columns['peer']}"
            else:
                lines[-1] += f" {kind.name}"
            if columns["tag"] >= 0:
                lines[-1] += f" t{columns['tag']}"
            lines[-1] += f" {columns['size']}" * (columns["size"] >= 0)
            lines[-1] += f"/{columns['received']}" * (columns["received"] >= 0)
    return lines


def pairs(traffic: Traffic) -> dict[tuple[int, int], tuple[int, int]]:
    """Messages and bytes by pair of ranks."""
    columns = (traffic.src, traffic.dst, traffic.messages, traffic.bytes)
    return {(s, d): (n, b) for s, d, n, b in zip(*(c.tolist() for c in columns), strict=True)}


def compiled(mpi: Mpi, source: str | Path, folder: Path) -> list[Path]:
    """Return the words that start a program, compiled where it is not Python."""
    file = PROGRAMS / source
    if file.suffix == ".py":
        return [Path(sys.executable), file]
    how = ["mpifort"] if file.suffix == ".f90" else ["mpicc", "-pthread"]
    words = [mpi.command(how[0]), *how[1:], file, "-o", folder / file.stem]
    subprocess.run(words, check=True, cwd=folder)
    return [folder / file.stem]


SEND, RECV, WAITALL, ALLTOALLV = range(4)
REGIONS = ("MPI_Send", "MPI_Recv", "MPI_Waitall", "MPI_Alltoallv")


def row(begin, end, region, kind=Extra.NOTHING, peer=-1, size=-1, request=-1, **columns):
    record = np.zeros((), RECORD)
    for name in ("comm", "tag", "received"):
        record[name] = -1
    record["operation"] = 255
    given = {"begin": begin, "end": end, "region": region, "kind": kind, "peer": peer}
    for name, value in (given | {"size": size, "request": request} | columns).items():
        record[name] = value
    return record


def written(folder, *programs, names=(), **header):
    """Write the files of a run, one list of rows a process."""
    everyone = f"group w 0-{len(programs) - 1}\ncomm 0 w 0\n"
    for rank, rows in enumerate(programs):
        head = np.zeros((), HEADER)
        head["magic"], head["version"], head["record_size"] = MAGIC, VERSION, RECORD.itemsize
        head["rank"], head["ranks"], head["run"], head["open"] = rank, len(programs), 5, -1
        head["finished"] = 1
        for name, value in header.items():
            head[name] = value[rank] if isinstance(value, list) else value
        body = np.array(rows, RECORD).tobytes() + bytes(3 * RECORD.itemsize)
        (folder / f"{rank}.events").write_bytes(head.tobytes().ljust(PAGE, b"\0") + body)
        lines = "".join(f"region {k} {name}\n" for k, name in enumerate(REGIONS))
        more = "".join(f"{line}\n" for line in (names[rank] if names else ()))
        (folder / f"{rank}.names").write_text(everyone + "comm 1 s 0\n" + lines + more)
    return folder


def one_message(folder, **header):
    return written(
        folder,
        [row(100, 200, SEND, Kind.SEND, peer=1, comm=0, tag=7, size=40)],
        [row(150, 250, RECV, Kind.RECV, peer=0, comm=0, tag=7, size=40)],
        **header,
    )

"""Programs that are recorded: compiled, and what a recording of them tells."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from hopmap.traces import Kind, Trace, Traffic
from hopmap.traces.recorder.raw import Process
from support import ROOT
from support.real_mpi import Mpi

PROGRAMS = ROOT / "tests" / "traces" / "recorder"
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

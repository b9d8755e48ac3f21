"""Programs that are really run and recorded, under each MPI that is installed."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from hopmap.traces import Kind, Trace
from hopmap.traces.recorder.build import build
from hopmap.traces.recorder.merge import trace_of
from hopmap.traces.recorder.raw import Process, read_processes
from support.real_mpi import SAYS, Mpi, installed

HERE = Path(__file__).parent
WARNINGS = ("-Wall", "-Wextra", "-Wno-unused-parameter", "-Wno-unused-function", "-Werror")


class Recorded(NamedTuple):
    """What a run left, and how it ended."""

    trace: Trace
    processes: list[Process]
    done: subprocess.CompletedProcess[str]

    def total(self, name: str) -> int:
        return sum(each.counts[name] for each in self.processes)

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
        elif kind not in (Kind.LEAVE, Kind.COLLECTIVE_BEGIN):
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


@pytest.fixture(scope="module", params=list(SAYS))
def mpi(request: pytest.FixtureRequest) -> Mpi:
    return installed(request.param)


@pytest.fixture(scope="module")
def library(mpi: Mpi) -> Path:
    """The recorder, built without a warning."""
    return build(mpi.command("mpicc"), WARNINGS).path


@pytest.fixture(scope="module")
def recorded(
    mpi: Mpi, library: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Recorded]:
    """Run a program under the recorder; one in C or Fortran is compiled before."""

    def run(processes: int, source: str, *words: object, code: int = 0, **env: object) -> Recorded:
        folder = tmp_path_factory.mktemp("raw")
        program = [HERE / source]
        if not source.startswith("/"):
            compiler = "mpifort" if source.endswith(".f90") else "mpicc"
            program = [folder.parent / f"{folder.name}.{source}"]
            flags = ["-pthread"] if compiler == "mpicc" else []
            subprocess.run(
                [mpi.command(compiler), *flags, HERE / source, "-o", program[0]],
                check=True, cwd=folder.parent,
            )  # fmt: skip
        given = {"LD_PRELOAD": library, "HOPMAP_RECORD_DIR": folder} | env
        done = mpi.run(processes, *program, *words, **given)
        assert bool(done.returncode) == bool(code), done.stderr
        found = read_processes(folder)
        return Recorded(trace_of(found, source), found, done)

    return run

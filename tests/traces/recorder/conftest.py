"""Programs that are really run and recorded, under each MPI that is installed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hopmap.traces.recorder.build import build
from hopmap.traces.recorder.merge import trace_of
from hopmap.traces.recorder.raw import read_processes
from support.real_mpi import SAYS, Mpi, installed
from support.recorded_runs import Recorded, compiled

WARNINGS = ("-Wall", "-Wextra", "-Wno-unused-parameter", "-Wno-unused-function", "-Werror")


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

    runs: dict[tuple[object, ...], Recorded] = {}

    def run(processes: int, source: str, *words: str, code: int = 0, **env: object) -> Recorded:
        key = (processes, source, *words, *sorted(env.items()))
        if key in runs:
            return runs[key]
        folder = tmp_path_factory.mktemp("raw")
        program = compiled(mpi, source, tmp_path_factory.mktemp("program"))
        given = {"LD_PRELOAD": library, "HOPMAP_RECORD_DIR": folder} | env
        done = mpi.run(processes, *program, *words, **given)
        assert bool(done.returncode) == bool(code), done.stderr
        found = read_processes(folder)
        runs[key] = Recorded(trace_of(found, str(source)), found, done)
        return runs[key]

    return run

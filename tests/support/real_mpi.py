"""Real MPIs: those that are installed, to compile and run programs with."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from typing import NamedTuple

import pytest

SAYS = {"openmpi": "Open MPI", "mpich": "HYDRA"}
ROOT_MAY = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


class Mpi(NamedTuple):
    """An MPI: its command of a name ("mpicc"), and how it runs on few cores."""

    command: Callable[[str], str]
    run: Callable[..., subprocess.CompletedProcess[str]]


def installed(name: str) -> Mpi:
    """Return the MPI, or skip."""

    def command(word: str) -> str:
        found = shutil.which(f"{word}.{name}")
        if found is None and (found := shutil.which(word)) is not None:
            version = subprocess.run(["mpirun", "--version"], capture_output=True, text=True)
            found = found if SAYS[name] in version.stdout else None
        if found is None:
            pytest.skip(f"no {name}: no command {word}")
        return found

    crowded = ["--oversubscribe", "--bind-to", "none"] if name == "openmpi" else []

    def run(processes: int, *words: object, **env: object) -> subprocess.CompletedProcess[str]:
        # By env, as a library to preload is for the program and not for mpirun.
        given = ["env", *(f"{key}={value}" for key, value in env.items())] if env else []
        return subprocess.run(
            [command("mpirun"), *crowded, "-np", str(processes), *given, *map(str, words)],
            capture_output=True, text=True, timeout=120, env=os.environ | ROOT_MAY,
        )  # fmt: skip

    command("mpicc")
    command("mpirun")
    return Mpi(command, run)

"""How a launcher is told to give its processes the recorder's library."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from .build import Built, RecorderError

_SAYS = {
    "openmpi": re.compile(r"Open MPI|OpenRTE|Open RTE|PRRTE|prterun"),
    "hydra": re.compile(r"HYDRA|Intel\(R\) MPI", re.IGNORECASE),
}
_ASKED = re.compile(r"(mpirun|mpiexec|prterun|orterun)([.-]\w+)?")


def launcher_of(words: Sequence[str]) -> str:
    """Whose launcher a command begins with: "openmpi", "hydra" (MPICH's), "slurm" or ""."""
    name = Path(words[0]).name
    if name == "srun":
        return "slurm"
    if not _ASKED.fullmatch(name) or shutil.which(words[0]) is None:
        return ""
    done = subprocess.run([words[0], "--version"], capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    return next((kind for kind, pattern in _SAYS.items() if pattern.search(said)), "")


def compiler_beside(words: Sequence[str]) -> str:
    """Return the mpicc beside a launcher with its suffix, or the first on the path."""
    found, name = shutil.which(words[0]), Path(words[0]).name
    match = _ASKED.fullmatch(name)
    if found is not None and match is not None:
        for ending in (match[2] or "", ""):
            beside = Path(found).with_name(f"mpicc{ending}")
            if os.access(beside, os.X_OK):
                return str(beside)
    return "mpicc"


def with_library(
    words: Sequence[str], built: Built, settings: Mapping[str, str], environment: Mapping[str, str]
) -> tuple[list[str], dict[str, str]]:
    """Return a command that records, and what is new in its environment.

    Parameters
    ----------
    words : sequence of str
        The user's command.
    settings : mapping of str to str
        What the library has to know, by variables' names.
    environment : mapping of str to str
        Ours, in which something may be preloaded already: that stays before the recorder.

    Raises
    ------
    RecorderError
        The launcher is another MPI's than the library, or is told what to export already.
    """
    kind = launcher_of(words)
    if (kind, built.mpi) in (("openmpi", "mpich"), ("hydra", "openmpi")):
        raise RecorderError(
            f"{words[0]}: of {'Open MPI' if kind == 'openmpi' else 'MPICH'}, and the library is "
            f"for {built.mpi}: expected --mpicc of the same MPI"
        )
    before = [environment["LD_PRELOAD"]] if environment.get("LD_PRELOAD") else []
    given = {"LD_PRELOAD": ":".join([*before, str(built.path)]), **settings}
    first, rest = words[0], list(words[1:])
    match kind:
        case "openmpi":
            told = [word for name, value in given.items() for word in ("-x", f"{name}={value}")]
        case "hydra":
            told = [word for name, value in given.items() for word in ("-genv", name, value)]
        case "slurm":
            if any(word.startswith("--export") for word in rest):
                raise RecorderError(
                    "srun --export: given already: expected the variables in the environment"
                )
            told = ["--export=" + ",".join(["ALL", *(f"{n}={v}" for n, v in given.items())])]
        case _:
            return [first, *rest], given
    return [first, *told, *rest], {}


def as_line(words: Sequence[str], environment: Mapping[str, str]) -> str:
    """Write a command for a shell."""
    before = [f"{name}={shlex.quote(value)}" for name, value in environment.items()]
    return " ".join([*before, shlex.join(words)])

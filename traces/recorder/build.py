"""Build the recorder's library with the user's compiler for MPI, once for every MPI."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from hopmap.errors import HopmapError
from hopmap.traces import recorder

from .numbers import numbers_text
from .wrappers import wrappers_text

LIBRARY = "libhopmaprecord.so"
_FLAGS = ("-std=gnu11", "-O2", "-fPIC", "-shared")
_BEHIND = ("-ldl", "-lpthread")


class RecorderError(HopmapError):
    """A program cannot be recorded."""


class Built(NamedTuple):
    """A library that is built.

    Attributes
    ----------
    path : Path
        The library.
    mpi : {"openmpi", "mpich", "other"}
        Whose mpi.h it is made for; MPICH's has many descendants.
    """

    path: Path
    mpi: str


def build(mpicc: str = "mpicc", flags: Sequence[str] = ()) -> Built:
    """Build the library, or take the one that was built from the same sources and mpi.h.

    Parameters
    ----------
    mpicc : str
        Command that compiles C for the MPI of the program.
    flags : sequence of str
        More for the compiler.

    Raises
    ------
    RecorderError
        No such command, or it cannot compile for MPI; the message holds the compiler's first
        complaint.
    """
    from hopmap.compilation import cache_folder

    command = shutil.which(mpicc)
    if command is None:
        raise RecorderError(f"--mpicc {mpicc}: no such command: expected the compiler of your MPI")
    with tempfile.TemporaryDirectory() as scratch:
        asking = Path(scratch) / "asking.c"
        asking.write_text("#include <mpi.h>\nint hopmap_open_mpi = OPEN_MPI;\n", encoding="utf-8")
        header = _run([command, "-E", "-P", str(asking)], mpicc)
    functions, regions = wrappers_text(header)
    if "int MPI_Send(" not in functions:
        raise RecorderError(f"--mpicc {mpicc}: no MPI_Send in its mpi.h: expected one of MPI 3")
    mpi = "openmpi" if "hopmap_open_mpi = 1" in header else "other"
    mpi = "mpich" if mpi == "other" and "MPIX_" in header else mpi
    texts = {
        each.name: each.read_text(encoding="utf-8")
        for each in (files(recorder) / "c").iterdir()
        if each.name.endswith((".c", ".h"))
    }
    texts |= {"wrappers.h": functions, "numbers.h": numbers_text() + regions}
    how = [command, *_FLAGS, *flags]
    linked = _run([command, "-show"], mpicc)
    folder = cache_folder() / f"recorder-{_digest(texts, (*how, linked))}"
    library = folder / LIBRARY
    if not library.exists():
        _compile(folder, texts, how, mpicc)
    return Built(library, mpi)


def _digest(texts: dict[str, str], words: Sequence[str]) -> str:
    digest = hashlib.blake2b(digest_size=12)
    for text in (*(part for pair in sorted(texts.items()) for part in pair), *words):
        digest.update(text.encode() + b"\0")
    return digest.hexdigest()


def _compile(folder: Path, texts: dict[str, str], how: Sequence[str], mpicc: str) -> None:
    """Compile beside the place of the folder and move it there, as others may do the same."""
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="recorder-") as scratch:
        made = Path(scratch) / "made"
        made.mkdir()
        for name, text in texts.items():
            (made / name).write_text(text, encoding="utf-8")
        source = str(made / "hopmap_record.c")
        _run([*how, source, "-o", str(made / LIBRARY), *_BEHIND], mpicc)
        try:
            made.rename(folder)
        except OSError:
            if not (folder / LIBRARY).exists():
                raise


def _run(words: Sequence[str], mpicc: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "error" in line] or ["no message"]
        raise RecorderError(f"--mpicc {mpicc}: it fails: {lines[0].strip()}")
    return done.stdout

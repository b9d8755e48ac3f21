"""What launchers are told, by launchers that are no more than their names and versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from hopmap.traces.recorder.build import Built, RecorderError, build
from hopmap.traces.recorder.launch import as_line, find_compiler, launcher_of, with_library

GIVEN = {"HOPMAP_RECORD_DIR": "/scratch/raw"}
LIBRARY = Path("/cache/lib.so")


@pytest.fixture
def commands(tmp_path, monkeypatch):
    """Commands that say which version they are."""

    def make(**versions):
        for name, said in versions.items():
            file = tmp_path / name.replace("_", ".")
            file.write_text(f"#!/bin/sh\necho '{said}'\n")
            file.chmod(0o755)

    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return make


def told(words, mpi="other", environment=None):
    return with_library(words.split(), Built(LIBRARY, mpi), GIVEN, environment or {})


@pytest.mark.parametrize(
    ("version", "options"),
    [
        (
            "mpirun (Open MPI) 5.0.3",
            "-x LD_PRELOAD=/cache/lib.so -x HOPMAP_RECORD_DIR=/scratch/raw",
        ),
        (
            "HYDRA build details:",
            "-genv LD_PRELOAD /cache/lib.so -genv HOPMAP_RECORD_DIR /scratch/raw",
        ),
        (
            "Intel(R) MPI Library for Linux* OS, Version 2021.10",
            "-genv LD_PRELOAD /cache/lib.so -genv HOPMAP_RECORD_DIR /scratch/raw",
        ),
    ],
)
def test_mpirun_is_told_in_its_own_words(commands, version, options):
    commands(mpirun=version)
    words, new = told("mpirun -np 16 ./app -x 3")
    assert " ".join(words) == f"mpirun {options} -np 16 ./app -x 3"
    assert new == {}


def test_srun_exports_all_and_what_is_new():
    words, new = told("srun -n 16 ./app")
    assert words == [
        "srun",
        "--export=ALL,LD_PRELOAD=/cache/lib.so,HOPMAP_RECORD_DIR=/scratch/raw",
        *["-n", "16", "./app"],
    ]
    assert new == {}
    with pytest.raises(RecorderError, match="srun --export: reserved for hopmap"):
        told("srun --export=NONE -n 16 ./app")


def test_other_commands_get_it_in_their_environment():
    words, new = told("./app 7")
    assert words == ["./app", "7"]
    assert new == {"LD_PRELOAD": str(LIBRARY), **GIVEN}
    assert as_line(words, new) == (
        "LD_PRELOAD=/cache/lib.so HOPMAP_RECORD_DIR=/scratch/raw ./app 7"
    )


def test_what_is_preloaded_already_stays_before_it():
    """So that the recorder sees what hopmapcart.c makes of a program's calls."""
    _, new = told("./app", environment={"LD_PRELOAD": "/home/me/libhopmapcart.so"})
    assert new["LD_PRELOAD"] == "/home/me/libhopmapcart.so:/cache/lib.so"


@pytest.mark.parametrize(
    ("version", "mpi", "line"),
    [
        ("mpirun (Open MPI) 4.1.4", "mpich", "mpirun: of Open MPI, and the library is for mpich"),
        ("HYDRA build details:", "openmpi", "mpirun: of MPICH, and the library is for openmpi"),
    ],
)
def test_a_library_for_another_mpi_is_refused(commands, version, mpi, line):
    commands(mpirun=version)
    with pytest.raises(RecorderError, match=f"{line}: expected --mpicc of the same MPI"):
        told("mpirun -np 2 ./app", mpi)


def test_the_compiler_beside_the_launcher_is_taken(commands, tmp_path):
    commands(mpirun_mpich="HYDRA", mpicc_mpich="", mpicc="", mpirun="HYDRA")
    assert find_compiler(["mpirun.mpich"]) == str(tmp_path / "mpicc.mpich")
    assert find_compiler(["mpirun"]) == str(tmp_path / "mpicc")
    assert find_compiler(["./app"]) == "mpicc"
    assert launcher_of(["mpirun.mpich"]) == "hydra"
    assert launcher_of(["no_such_mpirun"]) == ""


def test_a_compiler_that_cannot_is_one_line(commands):
    with pytest.raises(RecorderError, match="--mpicc no_such_cc: no such command"):
        build("no_such_cc")
    commands(mpicc_none="int main;")
    with pytest.raises(RecorderError, match=r"--mpicc mpicc.none: no MPI_Send in its mpi.h"):
        build("mpicc.none")

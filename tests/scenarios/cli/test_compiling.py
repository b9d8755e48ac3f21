"""The first run after installation says that it compiles."""

import os
import subprocess
import sys

from support import DATA

LU = str(DATA / "lu.S.4")
COMMAND = "from hopmap.scenarios.cli.app import main; main()"
SAID = "hopmap: compiling for this machine, once\n"


def stderr_of(cache, *words):
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *words],
        capture_output=True,
        text=True,
        env=os.environ | {"NUMBA_CACHE_DIR": str(cache)},
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_a_first_run_says_once_that_it_compiles_and_a_second_says_nothing(tmp_path):
    words = ("map", LU, "--topology", "mesh:2x2", "--mapper", "sweep")
    assert stderr_of(tmp_path, *words) == SAID
    assert stderr_of(tmp_path, *words) == ""


def test_what_compiles_nothing_says_nothing(tmp_path):
    assert stderr_of(tmp_path, "list", "mappers") == ""

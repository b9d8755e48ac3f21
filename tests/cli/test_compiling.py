"""The first run after installation says that it compiles."""

import io
import os
import re
import runpy
import subprocess
import sys
from collections import defaultdict
from contextlib import contextmanager

import numba
import numpy as np
import pytest
from numba.core import event

from hopmap.cli import console, listing
from hopmap.cli.console import announce_compilation, watch_compiler, working
from hopmap.compilation import cache_folder, subroutine
from support import DATA
from support.commands import as_json, failed, hopmap

LU = str(DATA / "lu.S.4")
COMMAND = "from hopmap.cli.app import main; main()"
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


KERNEL = """
from hopmap.compilation import njit

@njit
def kernel(x):
    return x + 1
"""


def test_what_compiles_for_long_is_said_once_and_not_what_was_compiled_before(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(console, "PATIENCE", -1.0)
    monkeypatch.setattr(event, "_registered", defaultdict(list))  # another test may have asked, too
    announce_compilation.__wrapped__()
    ((announcer,),) = event._registered.values()
    (tmp_path / "some_kernels.py").write_text(KERNEL)
    for said in (SAID, ""):  # the second reads what the first has kept
        kernel = runpy.run_path(str(tmp_path / "some_kernels.py"))["kernel"]
        assert kernel(1) == kernel(2) - 1 == 2
        assert capsys.readouterr().err == said
        announcer.spent = 0.0  # as in another process


def test_commands_ask_for_it(monkeypatch):
    asked = []
    monkeypatch.setattr(console, "announce_compilation", lambda: asked.append(1))
    hopmap("map", LU, "-t", "mesh:2x2", "-m", "sweep")
    assert asked


@pytest.mark.slow
def test_a_first_run_says_once_that_it_compiles_and_a_second_says_nothing(tmp_path):
    words = ("map", LU, "--topology", "mesh:2x2", "--mapper", "sweep")
    assert stderr_of(tmp_path, *words) == SAID
    assert stderr_of(tmp_path, *words) == ""
    assert stderr_of(tmp_path / "none", "list", "mappers") == ""


def test_while_functions_compile_it_is_said_which_and_how_many_are_done():
    """Those that are compiled into a kernel come within it; a second call waits for none."""

    @subroutine
    def inner(x):
        return x + 1

    @numba.njit  # ours would be cached from the second run of this test on
    def outer(x):
        return 2 * inner(x)

    shown = []
    with watch_compiler(lambda *what: shown.append(what)):
        assert outer(np.int32(1)) == 4
        assert shown == [("outer", 0), ("inner", 0), ("", 2)]
        outer(np.int32(2))
    assert len(shown) == 3


def test_on_a_terminal_a_bar_moves_while_something_compiles(monkeypatch):
    """It goes with the last function; the other bar stays."""
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(console, "announce_compilation", lambda: None)
    monkeypatch.setenv("COLUMNS", "120")
    shown = {}

    @contextmanager
    def watching(show):
        shown["show"] = show
        yield

    monkeypatch.setattr(console, "watch_compiler", watching)
    bars = []
    for name in ("advance", ""):
        terminal.truncate(0)
        with working("mapping"):
            shown["show"](name, 3)
        bars.append(re.sub(r"\x1b\[[0-9;?]*\w", "", terminal.getvalue()))
    assert re.search(r"compiling advance, 3 functions done ━", bars[0])
    assert "mapping" in bars[1]
    assert "compiling" not in bars[1]


def test_what_is_refused_is_refused_before_compiling():
    """Kernels small or large: none is asked for, compiled or not."""
    for words, said in {
        "map lu.S.4 -t mesh:3": "4 ranks do not fit on mesh:3",
        "map lu.S.4 -t mesh:4 -m bokari": "did you mean bokhari?",
        f"simulate {LU} gone.csv -t mesh:4": "gone.csv: cannot be read as a mapping",
        f"simulate {LU} gone.csv --engine x": "unknown engine 'x'",
        f"explain {LU} gone.csv -t mesh:4": "gone.csv: cannot be read as a mapping",
        f"evaluate {LU} gone.csv -t mesh:4": "gone.csv: cannot be read as a mapping",
        f"map {LU} -t mesh:4 --objective makespan --engine x": "unknown engine 'x'",
        f"map {LU} -t mesh:4 --initial gone.csv": "gone.csv: cannot be read",
    }.items():
        with event.install_recorder("numba:compiler_lock") as heard:
            assert said in failed(*words.split())
        assert not heard.buffer, words


def test_precompile_runs_its_commands_and_says_where_compiled_code_is_kept(monkeypatch):
    monkeypatch.setattr(listing, "COMMANDS", ("info TRACE", "list mappers"))
    assert hopmap("precompile").rstrip().endswith(f" kernels in {cache_folder()}")
    assert as_json("precompile")["folder"] == str(cache_folder())


def test_what_precompile_cannot_run_is_named(monkeypatch):
    monkeypatch.setattr(listing, "COMMANDS", ("info gone",))
    assert "hopmap info gone: " in failed("precompile")


@pytest.mark.slow
def test_after_precompile_usual_commands_compile_nothing(tmp_path):
    stderr_of(tmp_path, "precompile")
    assert stderr_of(tmp_path, "map", LU, "-t", "torus:2x2", "-m", "auto", "--seconds", "0.1") == ""

"""The first run after installation says that it compiles."""

import io
import os
import re
import subprocess
import sys
from contextlib import contextmanager

import pytest
from numba.core import event

from hopmap.carried import VARIABLE
from hopmap.compilation import cache_folder, folder_of, njit
from hopmap.errors import HopmapError
from hopmap.scenarios.cli import console, warm_up
from hopmap.scenarios.cli.compiling import counting_kernels
from hopmap.scenarios.cli.console import working
from hopmap.simulator import ENGINES
from hopmap.source_files import PACKAGE
from support import DATA
from support.commands import as_json, failed, hopmap

LU = str(DATA / "lu.S.4")
COMMAND = "from hopmap.scenarios.cli.app import main; main()"
SAID = "hopmap: compiling for this machine, once\n"


def stderr_of(cache, *words):
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *words],
        capture_output=True,
        text=True,
        env=os.environ | {"NUMBA_CACHE_DIR": str(cache), VARIABLE: "0"},
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_a_first_run_says_once_that_it_compiles_and_a_second_says_nothing(tmp_path):
    words = ("map", LU, "--topology", "mesh:2x2", "--mapper", "sweep")
    assert stderr_of(tmp_path, *words) == SAID
    assert stderr_of(tmp_path, *words) == ""


def test_while_kernels_compile_it_is_said_how_many_of_those_that_are_known_are_there():
    """A kernel is there when those that are compiled into it are; a second call waits for none."""

    @njit(cache=False)
    def first(x):
        return x + 1

    @njit(cache=False)
    def second(x):
        return first(x) + 1

    @njit(cache=False)
    def both(x):
        return first(x) * second(x)

    said = []
    with counting_kernels(lambda *words: said.append(words)):
        first(1)
        assert said == [(0, 1), (None, 1)]
        said.clear()
        assert both(1) == 6
        assert said == [(1, 3), (1, 3), (2, 3), (None, 3)]
        said.clear()
        both(2)
    assert not said


def test_on_a_terminal_a_bar_says_how_much_is_still_to_compile(monkeypatch):
    """It goes with the last kernel; the other bar stays."""
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(console, "announce_compilation", lambda: None)
    monkeypatch.setenv("COLUMNS", "120")
    shown = {}

    @contextmanager
    def counting(show):
        shown["show"] = show
        yield

    monkeypatch.setattr(console, "counting_kernels", counting)
    bars = []
    for done, known in ((3, 7), (None, 7)):
        terminal.truncate(0)
        with working("mapping"):
            shown["show"](done, known)
        bars.append(re.sub(r"\x1b\[[0-9;?]*\w", "", terminal.getvalue()))
    assert re.search(r"compiling, 3 of 7 kernels ━+╸?╺?━* +43%", bars[0])
    assert "mapping" in bars[1]
    assert "compiling" not in bars[1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("map", "lu.S.4", "-t", "mesh:3"), "4 ranks do not fit on mesh:3"),
        (("map", "lu.S.4", "-t", "mesh:4", "-m", "bokari"), "did you mean bokhari?"),
        (("simulate", LU, "gone.csv", "-t", "mesh:4"), "gone.csv: cannot be read as a mapping"),
        (("simulate", LU, "gone.csv", "--engine", "x"), "unknown engine 'x'"),
        (("explain", LU, "gone.csv", "-t", "mesh:4"), "gone.csv: cannot be read as a mapping"),
        (("evaluate", LU, "gone.csv", "-t", "mesh:4"), "gone.csv: cannot be read as a mapping"),
        (
            ("map", LU, "-t", "mesh:4", "--objective", "makespan", "--engine", "x"),
            "unknown engine 'x'",
        ),
        (("map", LU, "-t", "mesh:4", "--initial", "gone.csv"), "gone.csv: cannot be read"),
    ],
)
def test_what_is_refused_is_refused_before_compiling(words, said):
    """Kernels small or large: none is asked for, compiled or not."""
    with event.install_recorder("numba:compiler_lock") as heard:
        assert said in failed(*words)
    assert not heard.buffer


def test_warm_up_compiles_step_by_step_and_says_where_it_is_kept(monkeypatch):
    done = []
    listed = [(name, lambda name=name: done.append(name)) for name in ("one", "two")]
    monkeypatch.setattr(warm_up, "steps", lambda: iter(listed))
    assert hopmap("warm-up").startswith("compiled: ")
    assert hopmap("warm-up").rstrip().endswith(f" kernels in {cache_folder()}")
    assert as_json("warm-up")["folder"] == str(cache_folder())
    assert done == 3 * ["one", "two"]


def test_the_steps_of_warm_up_are_what_users_ask_for():
    names = [name for name, _ in warm_up.steps()]
    assert {f"simulate, {engine}" for engine in ENGINES} <= {*names}
    assert {"reading", "explain", "map, torus:4x4, hop_bytes"} <= {*names}


def test_what_is_carried_goes_when_its_sources_are_others(tmp_path):
    now = folder_of(PACKAGE / "simulator" / "model.py").name
    for name in (now, "simulator.model-0123456789abcdef", "simulator.gone-0123456789abcdef"):
        (tmp_path / name).mkdir()
    warm_up.remove_stale(tmp_path)
    assert [folder.name for folder in tmp_path.iterdir()] == [now]


def test_code_is_carried_only_for_processors_that_are_known(monkeypatch):
    monkeypatch.delenv("HOPMAP_CARRIED", raising=False)
    monkeypatch.setattr("hopmap.carried.portable_cpu", lambda: None)
    assert "no code can be carried" in failed("warm-up", "--carry")


def test_a_first_call_that_fails_says_which():
    with pytest.raises(HopmapError, match=r"hopmap info gone: .*gone"):
        warm_up.first_call("info gone")


def test_what_compiles_nothing_says_nothing(tmp_path):
    assert stderr_of(tmp_path, "list", "mappers") == ""

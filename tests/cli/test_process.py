"""The command in a process of its own: what it loads, real streams, exit codes, closed pipes, `-`.

One process does all of it, one command after another, and tells what came of each.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hopmap.report import report
from hopmap.report.report import digest_of_report
from hopmap.source_files import PACKAGE
from support.commands import LITTLE, LU, as_json, hopmap, invoke

PROGRAM = """
import json, os, sys, tempfile

told = []

def run(words, closed=False, **environment):
    os.environ |= environment
    streams = [tempfile.TemporaryFile() for _ in (1, 2)]
    for number, stream in zip((1, 2), streams):
        os.dup2(stream.fileno(), number)
    if closed:
        reading, writing = os.pipe()
        os.close(reading)
        os.dup2(writing, 1)
        os.close(writing)
    sys.stdout = open(1, "w", closefd=False)
    sys.argv = ["hopmap", *words]
    code = 0
    try:
        main()
    except SystemExit as stop:
        code = stop.code
    sys.stdout.flush()
    os.environ.pop("_HOPMAP_COMPLETE", None)
    for stream in streams:
        stream.seek(0)
    told.append([code, *(stream.read().decode() for stream in streams)])

def loaded():
    files = [getattr(module, "__file__", None) for module in sys.modules.values()]
    told.append([sorted(sys.modules), [file for file in files if file]])

from hopmap import cli
from hopmap.cli.app import main

result, new, lu = sys.argv[1:4]
loaded()
run([], _HOPMAP_COMPLETE="complete_bash", COMP_CWORD="6",
    COMP_WORDS="hopmap map lu.S.16 -t torus:4x4 -m recur")
run(["run", f"{result}/little.toml", "--out", f"{result}/out"])
loaded()
run(["info", "nothing"])
run(["info", lu, "--json"])
for words in (["list", "mappers"], ["list", "engines", "--json"], ["map", "--help"]):
    run(words, closed=True)
run(["run", f"{result}/little.toml", "--out", new])
loaded()
with open(f"{result}/told.json", "w") as file:
    json.dump(told, file)
run(["list", "mappers"], closed=True)
sys.exit(told[-1][0])
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a little scenario that has been run."""
    made = tmp_path_factory.mktemp("process")
    (made / "little.toml").write_text(LITTLE)
    hopmap("run", made / "little.toml", "--out", made / "out")
    return made


def files_of(folder):
    files = [*(folder / "figures").iterdir(), folder / "report.html", folder / "cases.csv"]
    return {file: file.stat().st_mtime_ns for file in files}


@pytest.fixture(scope="module")
def told(folder):
    """What the process has told, and how it ended: its last command writes to a closed pipe."""
    before = files_of(folder / "out")
    words = [sys.executable, "-c", PROGRAM, folder, folder / "new", LU]
    done = subprocess.run(words, capture_output=True, text=True, env=os.environ | {"COLUMNS": "80"})
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert files_of(folder / "out") == before
    names = ("at first", "completed", "again", "undrawn", "refused", "info", *"abc", "new", "drawn")
    return dict(zip(names, json.loads((folder / "told.json").read_text()), strict=True))


def test_help_does_not_wait_for_the_compiler(told):
    heavy = {"numba", "numpy", "pandas", "pyarrow", "matplotlib", "pydantic", "rich"}
    assert not heavy.intersection(told["at first"][0])


def test_a_shell_is_answered(told):
    assert told["completed"][1].split() == ["recursive_bisection"]


def test_errors_and_results_go_to_their_streams_with_their_exit_codes(told):
    code, output, errors = told["refused"]
    assert (code, output) == (2, "")
    assert errors.startswith("hopmap: nothing: no such file")
    assert errors.count("\n") == 1
    code, output, errors = told["info"]
    assert (code, errors) == (0, "")
    assert json.loads(output)["messages"] == 4520


def test_a_pipe_that_is_closed_is_no_error(told):
    """As by ``| head -1``, here before the first line."""
    assert [told[name] for name in "abc"] == [[0, "", ""]] * 3


def test_a_run_with_nothing_to_do_draws_nothing_and_imports_no_drawing(told, folder, monkeypatch):
    """Its digest is of all the code that had drawn it."""
    assert "0 done now, 2 before" in told["again"][1]
    assert not {"matplotlib", "scipy.special", "jinja2"}.intersection(told["undrawn"][0])
    assert "2 done now, 0 before" in told["new"][1]
    monkeypatch.setattr(report, "digest_of", lambda files, _: "\n".join(map(str, files)))
    known = set(map(Path, digest_of_report(folder / "out").split()))
    parts = [PACKAGE / part for part in ("report", "figures", "scenarios/studies")]
    used = set(map(Path, told["drawn"][1]))
    wanted = {file for file in used if file.parent in parts and file.name != "__init__.py"}
    assert len(wanted) > 15
    assert wanted <= known
    assert {file.suffix for file in known} == {".py", ".toml", ".j2", ".css", ".js"}


def piped(text, *words):
    done = invoke(words, typed=text)
    assert done.exit_code == 0, done.stderr
    return done.stdout


def test_a_dash_is_stdin_and_stdout(mapping):
    text = mapping.read_text()
    printed = invoke(["map", LU, "-t", "mesh:2x2", "-m", "scan", "--out", "-"])
    assert (printed.exit_code, printed.stdout) == (0, text)
    assert piped(text, "export", "-", "--to", "csv") == text
    assert piped(text, "export", "-", "--to", "csv", "--out", "-") == text
    by_file = hopmap("evaluate", LU, mapping)
    assert piped(text, "evaluate", LU, "-").splitlines()[1:] == by_file.splitlines()[1:]
    traffic = hopmap("matrix", LU, "--out", "-")
    assert traffic.startswith("src,dst,messages,bytes\n0,1,564,413040\n")
    assert json.loads(piped(traffic, "info", "-", "--json"))["messages"] == 4520
    for made in (
        "lu --class S --ranks 4",
        "tornado --dims 4x4",
        "stencil --dims 4x4 --stencil 5pt",
    ):
        traffic = hopmap("generate", *made.split(), "--out", "-")
        facts = as_json(
            "generate", *made.split(), "--out", mapping.with_name("made.npz"), "--force"
        )
        assert json.loads(piped(traffic, "info", "-", "--json"))["bytes"] == facts["bytes"]


def test_what_is_wrong_on_stdin_is_said_of_the_dash(mapping):
    text = mapping.read_text()
    for words, said in {
        "map - -t mesh:4": "-: a mapping, where a trace or traffic is expected",
        "evaluate - - -t mesh:4": "-: expected at most one argument that reads stdin",
    }.items():
        done = invoke(words.split(), typed=text)
        assert done.exit_code == 2
        assert said in done.stderr

"""Standard input and output as pipes: closed ones, and `-` for a file."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from hopmap.scenarios.cli.app import app
from support.commands import LU, as_json, hopmap

COMMAND = "from hopmap.scenarios.cli.app import main; main()"


def started(*words, **streams):
    return subprocess.Popen([sys.executable, "-c", COMMAND, *map(str, words)], **streams)


@pytest.mark.parametrize("words", ["list mappers", "list engines --json", "map --help"])
def test_a_pipe_that_is_closed_is_no_error(words):
    """As by ``| head -1``, here before the first line."""
    run = started(*words.split(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    run.stdout.close()
    assert run.stderr.read() == b""
    assert run.wait() == 0


def piped(text, *words):
    done = CliRunner().invoke(app, [*map(str, words)], input=text)
    assert done.exit_code == 0, done.stderr
    return done.stdout


def test_a_dash_is_stdin_and_stdout(mapping):
    text = mapping.read_text()
    assert hopmap("map", LU, "-t", "mesh:2x2", "-m", "scan", "--out", "-") == text
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
        facts = as_json("generate", *made.split(), "--out", mapping.with_name("made.npz"))
        assert json.loads(piped(traffic, "info", "-", "--json"))["bytes"] == facts["bytes"]


def test_what_is_wrong_on_stdin_is_said_of_the_dash(mapping):
    text = mapping.read_text()
    for words, said in {
        "map - -t mesh:4": "-: a mapping, where a trace or traffic is expected",
        "evaluate - - -t mesh:4": "-: given twice: expected stdin for one argument",
    }.items():
        done = CliRunner().invoke(app, words.split(), input=text)
        assert done.exit_code == 2
        assert said in done.stderr

"""Standard input and output as pipes: closed ones, and `-` for a file."""

import json

from support.commands import LU, as_json, hopmap, invoke

COMMAND = "from hopmap.cli.app import main; main()"


def piped(text, *words):
    done = invoke(words, typed=text)
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

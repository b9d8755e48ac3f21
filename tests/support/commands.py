"""The command line as users type it, in this process."""

import json
from functools import cache

from typer import testing
from typer.main import get_command

from hopmap.scenarios.cli.app import app
from support import DATA

LU = str(DATA / "lu.S.4")
COMPILING = "hopmap: compiling for this machine, once"  # said by whichever test comes first
testing._get_command = cache(get_command)  # making one for each call takes longer than the call


def invoke(words, **streams):
    """Run a command; return its exit code and what it says."""
    return testing.CliRunner().invoke(app, [*map(str, words)], **streams)


def hopmap(*words):
    """Run a command that works; return what it prints."""
    result = invoke(words)
    assert result.exit_code == 0, result.output
    assert result.stderr.replace(f"{COMPILING}\n", "") == "", result.stderr
    return result.stdout


def noted(*words):
    """Run a command that works; return what it says beside its result."""
    result = invoke(words)
    assert result.exit_code == 0, result.output
    return [line for line in result.stderr.splitlines() if line != COMPILING]


def as_json(*words):
    return json.loads(hopmap(*words, "--json"))


def failed(*words):
    """Run a command that is refused; return the one line that it says."""
    result = invoke(words)
    assert result.exit_code == 2, result.output
    assert result.stderr.count("\n") == 1, result.stderr
    return result.stderr

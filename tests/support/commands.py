"""The command line as users type it, in this process."""

import json
import sys
from typing import NamedTuple

from typer.main import get_command
from typer.testing import CliRunner

from hopmap.scenarios.cli.app import app
from support import DATA

LU = str(DATA / "lu.S.4")
COMPILING = "hopmap: compiling for this machine, once"  # said by whichever test comes first
LITTLE = """
name = "Little"
traces = ["stencil:2x2,5pt,bytes=1000"]
topologies = ["mesh:2x2"]
mappers = ["sweep", "random"]
[replay]
engine = "simpy"
"""
COMMAND = get_command(app)  # CliRunner.invoke builds it again for each call


class Said(NamedTuple):
    exit_code: int
    stdout: str
    stderr: str
    output: str
    exception: Exception | None


def invoke(words, *, typed=None, env=None):
    """Run a command; return its exit code and what it says."""
    exit_code, exception = 0, None
    with CliRunner().isolation(typed, env) as streams:
        try:
            COMMAND.main([*map(str, words)], prog_name="hopmap")
        except SystemExit as stop:
            exit_code = stop.code
        except Exception as error:
            exit_code, exception = 1, error
        sys.stdout.flush()
        sys.stderr.flush()
        said = [stream.getvalue().decode() for stream in streams]
    return Said(exit_code, *said, exception)


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

"""Standard input and output as pipes: closed ones, and `-` for a file."""

import subprocess
import sys

import pytest

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

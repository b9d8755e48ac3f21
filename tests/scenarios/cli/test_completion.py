"""What TAB completes, as a shell asks for it."""

import os
import subprocess
import sys

import pytest

from hopmap.scenarios.cli import listing

COMMAND = "from hopmap.scenarios.cli.app import main; main()"


@pytest.mark.parametrize(
    ("complete", "begun", "completed"),
    [
        (listing.complete_mappers, "recur", ["recursive_bisection"]),
        (listing.complete_mappers, "minmd | bokh", ["minmd | bokhari"]),
        (listing.complete_topologies, "tor", ["torus:"]),
        (listing.complete_topologies, "preset:haec", ["preset:haec-box-4x4x4"]),
        (listing.complete_engines, "com", ["compiled"]),
        (listing.complete_scenarios, "fir", ["first"]),
        (listing.complete_launchers, "sl", ["slurm"]),
    ],
)
def test_names_are_completed(complete, begun, completed):
    assert complete(begun) == completed


def test_a_shell_is_answered():
    words = "hopmap map lu.S.16 -t torus:4x4 -m recur"
    asked = {"_HOPMAP_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": "6"}
    code = f"import sys; sys.argv[0] = 'hopmap'; {COMMAND}"
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | asked, capture_output=True, text=True
    )
    assert done.stdout.split() == ["recursive_bisection"]

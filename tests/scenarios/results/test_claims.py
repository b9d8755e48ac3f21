"""Claims: one process at a time, and none after its death."""

import fcntl
import os
import signal
import subprocess
import sys

import pytest

from hopmap.scenarios.results import claims
from hopmap.scenarios.results.claims import claim

HOLD = """
import sys, time
from pathlib import Path
from hopmap.scenarios.results.claims import claim
with claim(Path(sys.argv[1]), "a") as mine:
    print(mine, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that has claimed "a"."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, tmp_path], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "True\n"
    yield process
    process.kill()
    process.communicate()


def test_what_another_process_has_claimed_is_not_ours_and_other_work_is(holder, tmp_path):
    with claim(tmp_path, "a") as mine:
        assert not mine
    with claim(tmp_path, "b") as mine:
        assert mine


def test_a_claim_ends_with_its_process_even_when_that_is_killed(holder, tmp_path):
    os.kill(holder.pid, signal.SIGKILL)
    with claim(tmp_path, "a", wait=True) as mine:
        assert mine


def test_without_locks_every_claim_is_granted(holder, tmp_path, monkeypatch):
    def no_locks(*_):
        raise OSError(claims.NO_LOCKS[0], "No locks available")

    monkeypatch.setattr(fcntl, "lockf", no_locks)
    with claim(tmp_path, "a") as mine:
        assert mine


def test_a_folder_made_anew_has_new_claims(tmp_path):
    folder = tmp_path / "results"
    for _ in range(2):
        folder.mkdir()
        with claim(folder, "a") as mine:
            assert mine
        (folder / ".lock").unlink()
        folder.rmdir()

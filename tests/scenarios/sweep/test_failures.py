"""The sweep: runs that fail, traces that cannot be read, Ctrl-C."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from fingerprint import fingerprint

from hopmap.scenarios.results import store
from hopmap.scenarios.results.stored_runs import read_errors
from hopmap.scenarios.sweep import measure as measure_module
from hopmap.scenarios.sweep.plan import plan
from hopmap.scenarios.sweep.run import missing
from hopmap.scenarios.sweep.scenario_files import load_scenario
from hopmap.traces import TraceError, Traffic, save_traffic

from .studies import LU, files_of, sweep, write


def test_sums_that_no_table_holds_fail_their_run_in_words(tmp_path):
    half = np.arange(64)
    heavy = Traffic.from_pairs(128, half, half + 64, [1] * 64, [160_000_000_000] * 64)
    save_traffic(tmp_path / "heavy.npz", heavy)
    file = tmp_path / "study.toml"
    file.write_text(
        f'name = "s"\ntraces = ["{tmp_path / "heavy.npz"}"]\ntopologies = ["tree:2:2:2:2:2:2:2"]\n'
        'mappers = ["identity"]\n[replay]\nengine = false'
    )
    ((_, error),) = sweep(file, tmp_path / "out").failed.items()
    assert "hop_bytes 10,240,000,000,000,000,000: expected below 2^63" in error


def test_a_run_that_fails_is_kept_with_its_error_and_tried_again_when_asked(tmp_path):
    file = tmp_path / "study.toml"
    file.write_text(
        f'name="s"\ntraces=["{LU}"]\ntopologies=["fattree:2x2", "mesh:4"]\n'
        'mappers=["bokhari(jumps=side)"]\n[replay]\nengine = false'
    )
    outcome = sweep(file, tmp_path / "out")
    ((name, error),) = outcome.failed.items()
    assert "fattree:2x2" in name
    assert "jumps=side: fattree:2x2 has no sides" in error
    runs = store.load_results(tmp_path / "out")
    assert runs["error"].isna().tolist() == [False, True]
    left = sweep(file, tmp_path / "out")
    assert (left.done, left.skipped, left.failed, left.left) == (0, 2, outcome.failed, 1)
    again = sweep(file, tmp_path / "out", retry=True)
    assert (again.done, again.skipped, len(again.failed), again.left) == (1, 1, 1, 0)


def test_a_failed_run_that_does_well_when_tried_again_is_stored_as_such(tmp_path, monkeypatch):
    file = write(tmp_path, ["sweep"], "[replay]\nengine = false")
    with monkeypatch.context() as broken:
        broken.setattr(measure_module, "evaluate", None)
        assert len(sweep(file, tmp_path / "out").failed) == 2
    assert not sweep(file, tmp_path / "out", retry=True).failed
    assert sweep(file, tmp_path / "whole").done == 2
    assert fingerprint(tmp_path / "out") == fingerprint(tmp_path / "whole")


def test_a_mistake_of_ours_fails_one_run_and_says_that_it_is_one(tmp_path, monkeypatch):
    def broken(*_, **__):
        raise IndexError("oops")

    monkeypatch.setattr(measure_module, "evaluate", broken)
    outcome = sweep(write(tmp_path, ["sweep"], "[replay]\nengine = false"), tmp_path / "out")
    assert outcome.failed
    assert all("a bug in hopmap: IndexError: oops" in error for error in outcome.failed.values())


def test_a_trace_that_cannot_be_read_stops_before_anything_is_written(tmp_path):
    (tmp_path / "bad.csv").write_text("1,2\n3,-4\n")
    file = tmp_path / "study.toml"
    file.write_text('name="s"\ntraces=["bad.csv"]\ntopologies=["mesh:2"]\nmappers=["sweep"]\n')
    with pytest.raises(TraceError, match="-4"):
        sweep(file, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_loses_runs_in_flight_only_and_the_next_call_resumes(tmp_path, workers):
    slow = [f"random_sampling(samples={count})" for count in range(30_000, 30_012)]
    file = write(tmp_path, slow, "[replay]\nengine = false")
    results = tmp_path / "out"
    code = "from hopmap.cli.app import main; main()"
    command = [sys.executable, "-c", code, "run", file, "--out", results, "--no-report"]
    process = subprocess.Popen(
        [*command, "--workers", str(workers)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A test run in the background is started with Ctrl-C ignored, and would hand that on.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 100
    while len(read_errors(results)) < 2:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does, to every process
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, output) == (130, "")
    assert errors.splitlines()[-1].startswith("hopmap: interrupted: ")  # it may compile before
    assert not [name for name in files_of(results) if ".partial" in name]
    runs = plan(load_scenario(file), tmp_path)
    done = read_errors(results)
    assert 2 <= len(done) < len(runs)
    assert all(error is None for error in done.values())
    assert len(missing(runs, results)) == len(runs) - len(done)

"""Sweeps that are killed, shared by processes that know nothing of each other, or spread."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import psutil
import pytest
from fingerprint import fingerprint

from hopmap.scenarios.results.stored_runs import read_errors
from hopmap.scenarios.sweep import workers
from hopmap.scenarios.sweep.plan import plan
from hopmap.scenarios.sweep.run import run_scenario
from hopmap.scenarios.sweep.scenario_files import load_scenario
from hopmap.scenarios.sweep.workers import WorkerError, Workers, distribute
from support import DATA
from support.commands import failed, invoke
from support.slow import SHARE

LU = DATA / "lu.S.4"
RUNS = 24
HOLD = """
import sys, time
from pathlib import Path
from hopmap.scenarios.results.claims import claim
with claim(Path(sys.argv[1]), sys.argv[2]) as mine:
    print(mine, flush=True)
    time.sleep(600)
"""


def write(folder, mappers=("random", "random | bokhari"), seeds=RUNS // 4):
    file = folder / "study.toml"
    file.write_text(
        f'name = "s"\ntraces = ["{LU}"]\ntopologies = ["mesh:2x2", "torus:3x2"]\n'
        f"mappers = {json.dumps(list(mappers))}\nseeds = {list(range(seeds))}\n"
        '[replay]\nengine = "analytic"\n'
    )
    return file


def sweep(file, results, **keywords):
    return run_scenario(file, load_scenario(file), results, **keywords)


def start(file, results, *words):
    command = [sys.executable, "-m", "hopmap", "run", file, "--out", results]
    return subprocess.Popen(
        [*command, "--no-report", "--json", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_until(true, seconds=100):
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    assert sweep(write(folder), folder / "out").done == RUNS
    return fingerprint(folder / "out")


def test_killed_at_any_moment_it_resumes_and_ends_the_same(undisturbed, tmp_path):
    file, results = write(tmp_path), tmp_path / "out"
    for _ in range(2 if SHARE["of"] == 1 else 1):
        begun = len(read_errors(results)) + 1
        process = start(file, results)
        wait_until(lambda more=begun: len(read_errors(results)) >= more)
        process.kill()
        process.communicate()
    found = len(read_errors(results))
    assert sweep(file, results).done == RUNS - found
    assert fingerprint(results) == undisturbed


@pytest.mark.slow
def test_workers_do_not_outlive_a_killed_parent_even_while_compiled_code_runs(tmp_path):
    forever = [f"random_sampling(samples={count})" for count in (10**9, 10**9 + 1)]
    file, results = write(tmp_path, forever, 1), tmp_path / "out"
    process = start(file, results, "--workers", "2")
    parent = psutil.Process(process.pid)
    spent = lambda child: sum(child.cpu_times()[:2])  # noqa: E731
    # Importing takes a worker less; now they are in a mapper that takes minutes.
    wait_until(lambda: sum(spent(child) > 6 for child in parent.children()) == 2)
    children = parent.children(recursive=True)
    process.kill()
    process.communicate()
    _, alive = psutil.wait_procs(children, timeout=5)
    assert not alive


@pytest.mark.slow
def test_two_processes_share_the_runs_and_find_what_one_does(undisturbed, tmp_path):
    file, results = write(tmp_path), tmp_path / "out"
    other = start(file, results)
    wait_until(lambda: read_errors(results))
    ours = sweep(file, results)
    output, errors = other.communicate(timeout=100)
    assert other.returncode == 0, errors
    assert ours.done + json.loads(output)["done"] == RUNS
    assert ours.done + ours.skipped == RUNS
    assert fingerprint(results) == undisturbed


def test_a_run_that_another_process_has_is_waited_for_and_taken_over_when_that_dies(
    undisturbed, tmp_path
):
    file, results = write(tmp_path), tmp_path / "out"
    results.mkdir()
    held = plan(load_scenario(file), tmp_path)[3].run_id
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, results, held], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout.readline() == "True\n"
    seen = []

    def kill_it():
        wait_until(lambda: len(read_errors(results)) == RUNS - 1)
        seen.append(held in read_errors(results))
        os.kill(holder.pid, signal.SIGKILL)

    killer = threading.Thread(target=kill_it)
    killer.start()
    assert sweep(file, results).done == RUNS
    killer.join()
    holder.communicate()
    assert seen == [False]
    assert fingerprint(results) == undisturbed


@pytest.mark.slow
def test_a_dask_cluster_finds_the_same(undisturbed, tmp_path):
    distributed = pytest.importorskip("distributed", reason="needs the extra cluster")
    file, results = write(tmp_path), tmp_path / "out"
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address=":0"
    ) as cluster:
        outcome = sweep(file, results, workers=Workers(1, cluster.scheduler_address))
    assert outcome.done == RUNS
    assert fingerprint(results) == undisturbed


def test_workers_of_dask_have_one_thread(tmp_path):
    distributed = pytest.importorskip("distributed", reason="needs the extra cluster")
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0"
        ) as cluster,
        pytest.raises(WorkerError, match="a worker with 2 threads: expected dask worker --nth"),
    ):
        sweep(write(tmp_path), tmp_path / "out", workers=Workers(1, cluster.scheduler_address))


def test_a_scheduler_file_that_never_comes_is_not_waited_for_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(workers, "FILE_SECONDS", 0.1)
    with pytest.raises(WorkerError, match=r"gone\.json: no such file after 0\.1 s"):
        sweep(write(tmp_path), tmp_path / "out", workers=Workers(1, str(tmp_path / "gone.json")))


def test_a_scheduler_that_is_not_there_is_an_error_of_one_line(tmp_path):
    dask = pytest.importorskip("dask", reason="needs the extra cluster")
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "0.2s"}),
        pytest.raises(WorkerError, match=r"tcp://127\.0\.0\.1:9: no Dask scheduler there"),
    ):
        sweep(write(tmp_path), tmp_path / "out", workers=Workers(1, "tcp://127.0.0.1:9"))
    assert not (tmp_path / "out").exists()


def test_a_worker_with_other_code_does_nothing(tmp_path, monkeypatch):
    codes = iter(["1", "2", "2"])
    monkeypatch.setattr("hopmap.scenarios.sweep.run.reading_code", lambda: next(codes))
    with pytest.raises(WorkerError, match="a worker has another hopmap"):
        sweep(write(tmp_path), tmp_path / "out")
    assert not read_errors(tmp_path / "out")


def test_a_worker_that_dies_is_an_error_of_one_line():
    with pytest.raises(WorkerError, match="a worker was lost"):
        list(distribute(os._exit, [3, 4], Workers(2)))


@pytest.mark.slow
def test_each_task_of_a_job_array_does_its_share_of_what_is_missing(undisturbed, tmp_path):
    file, results = write(tmp_path), tmp_path / "out"
    words = ["run", str(file), "--out", str(results), "--slurm-array", "--tasks", "2", "--json"]
    words += ["--workers", "2"]
    written = json.loads(invoke(words).stdout)
    assert written == {"script": str(results / "slurm-array.sh"), "missing": RUNS}
    assert not read_errors(results)
    script = (results / "slurm-array.sh").read_text()
    assert "#SBATCH --array=0-1\n" in script
    assert "#SBATCH --cpus-per-task=2\n" in script
    for task in (0, 1):
        done = subprocess.run(
            ["bash", written["script"]],
            env=os.environ | {"SLURM_ARRAY_TASK_ID": str(task)},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        assert f"{RUNS // 2} runs: {RUNS // 2} done now, 0 before" in done.stdout
        assert len(read_errors(results)) == RUNS // 2 * (task + 1)
    assert sweep(file, results).done == 0  # which gathers what they found
    assert fingerprint(results) == undisturbed
    again = invoke(words)
    assert again.exit_code == 2
    assert "no runs are missing" in again.stderr


def test_a_share_that_is_none_is_named(tmp_path):
    file = write(tmp_path)
    for asked in ("2/2", "a/2", "1", "-1/2", "0/0"):
        said = failed("run", file, "--out", tmp_path, f"--shard={asked}")
        assert said.startswith(f"hopmap: --shard {asked}: expected I/N")

"""A sweep of 1,000 runs, killed and shared.

``python benchmarks/sweeps/kill_test.py [RUNS] [KILLS]``

The same scenario is run undisturbed; killed with -9 at random moments, in turns the parent alone
and the whole session, and resumed; by two processes at once, one of which is killed; and by a Dask
cluster of two processes. All have to end with the same tables (`fingerprint`). Printed: how long
each took, how many runs were lost to the kills, and how long orphans outlived their parent.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
from fingerprint import fingerprint

from hopmap.scenarios.results.stored_runs import loose_ids, read_errors

ROOT = Path(__file__).parents[2]
MAPPERS = ["random", "random | bokhari", "random_sampling", "recursive_bisection"]
SEED = 2026


def write_scenario(folder: Path, runs: int) -> Path:
    file = folder / "many.toml"
    file.write_text(
        f'name = "many"\ntraces = [{json.dumps(str(ROOT / "tests/data/mg.S.16"))}]\n'
        f'topologies = ["torus:4x2x2", "mesh:4x4"]\nmappers = {json.dumps(MAPPERS)}\n'
        f"seeds = {list(range(runs // (2 * len(MAPPERS))))}\n"
        '[replay]\nengine = "compiled"\nmessages = false\n[parameters]\n"compute.scale" = 0\n'
    )
    return file


def start(file: Path, out: Path, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "hopmap", "run", str(file), "--out", str(out)]
    command += ["--no-report", "--json", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)


def finish(process: subprocess.Popen[str]) -> int:
    """Wait for a call and return how many runs it did."""
    output, _ = process.communicate()
    assert process.returncode == 0, output
    return int(json.loads(output)["done"])


def kill(process: subprocess.Popen[str], out: Path, found: int, *, alone: bool) -> float:
    """Kill a call soon after so many runs are there; return how long its workers outlived it."""
    while len(loose_ids(out)) < found:
        assert process.poll() is None
        time.sleep(0.01)
    time.sleep(random.uniform(0, 0.1))
    children = psutil.Process(process.pid).children(recursive=True)
    begin = time.monotonic()
    if alone:
        process.kill()
    else:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    psutil.wait_procs(children, timeout=60)
    return time.monotonic() - begin


def main() -> None:
    runs, kills = (int(word) for word in (*sys.argv[1:], *("1000", "5")[len(sys.argv) - 1 :]))
    random.seed(SEED)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = write_scenario(folder, runs)
        begin = time.monotonic()
        total = finish(start(file, folder / "whole", "--workers", "2"))
        print(f"undisturbed: {total} runs in {time.monotonic() - begin:.1f} s")
        expected = fingerprint(folder / "whole")
        print(f"tables: {', '.join(expected)}")

        out, lived = folder / "killed", []
        for turn, moment in enumerate(sorted(random.sample(range(1, runs - 9), kills))):
            process = start(file, out, "--workers", "2")
            lived.append(kill(process, out, moment, alone=turn % 2 == 0))
            found = len(read_errors(out))
            print(f"killed {'alone' if turn % 2 == 0 else 'all'}: {found} runs are there")
        last = finish(start(file, out, "--workers", "2"))
        assert fingerprint(out) == expected
        print(f"resumed, {last} runs done at last: the same tables")
        print(f"workers outlived their parent by {max(lived):.2f} s at most")

        out = folder / "shared"
        pair = [start(file, out) for _ in range(2)]
        done = [finish(process) for process in pair]
        assert fingerprint(out) == expected
        print(f"two processes: {done[0]} + {done[1]} = {sum(done)} runs: the same tables")

        out = folder / "widowed"
        pair = [start(file, out) for _ in range(2)]
        kill(pair[0], out, random.randrange(1, runs - 9), alone=True)
        done = finish(pair[1])
        assert fingerprint(out) == expected
        print(f"two processes, one killed, the other did {done} runs: the same tables")

        from distributed import LocalCluster

        with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
            begin = time.monotonic()
            total = finish(start(file, folder / "dask", "--scheduler", cluster.scheduler_address))
            print(f"Dask, two workers: {total} runs in {time.monotonic() - begin:.1f} s", end="")
        assert fingerprint(folder / "dask") == expected
        print(": the same tables")


if __name__ == "__main__":
    main()

"""What a sweep costs beyond its work: ``python benchmarks/sweeps/sweep.py [RUNS]``.

Small runs (NAS MG on 16 ranks, placed at random, replayed by the compiled engine) are first done in
a loop that calls mapper, metrics and replay and keeps nothing; then by `run_scenario` in one
process, in two, by the command line as a whole, and by a Dask cluster of two processes. Wall and
processor seconds per run include child processes; "beyond" is the processor time that the loop does
not have. All compiled code is in numba's cache before. Starting and ending a cluster and its
workers is in its line; the next one has 16 runs less, and so is without it.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from kill_test import finish, start, write_scenario

from hopmap.mappers import map_ranks
from hopmap.scenarios.sweep.plan import plan
from hopmap.scenarios.sweep.run import run_scenario
from hopmap.scenarios.sweep.scenario_files import load_scenario
from hopmap.scenarios.sweep.workers import Workers
from hopmap.simulator import evaluate, link_loads, lower, simulate
from hopmap.simulator.parameters.settings import configure
from hopmap.topologies import topology_from_spec

FEW = 16


def processor() -> float:
    """Seconds of processor of this process and of its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def loop(file: Path) -> None:
    """Do the work of every run and keep nothing."""
    runs = plan(load_scenario(file), file.parent)
    source = runs[0].trace
    traffic, program = source.traffic(), lower(source.calls())
    for run in runs:
        topology, parameters = configure(topology_from_spec(run.topology), run.settings)
        node_of = map_ranks(traffic, topology, run.mapper, seed=run.seed)
        for convention in ("hopmap", "maplib"):
            evaluate(traffic, topology, node_of, convention)
        _, size = link_loads(traffic, topology, node_of)
        assert np.sum(size) > 0
        simulate(program, topology, node_of, parameters=parameters, engine="compiled")


def by_dask(file: Path, out: Path) -> None:
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
        finish(start(file, out, "--scheduler", cluster.scheduler_address))


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "few").mkdir()
        few = write_scenario(folder / "few", FEW)
        loop(few)
        run_scenario(few, load_scenario(few), folder / "few_by_one")
        file = write_scenario(folder, runs)
        scenario = load_scenario(file)
        ways: dict[str, Callable[[], object]] = {
            "loop": lambda: loop(file),
            "run_scenario": lambda: run_scenario(file, scenario, folder / "one"),
            "run_scenario, again": lambda: run_scenario(file, scenario, folder / "one"),
            "run_scenario, 2 workers": lambda: run_scenario(
                file, scenario, folder / "two", workers=Workers(2)
            ),
            "hopmap run": lambda: finish(start(file, folder / "cli")),
            "Dask, 2 workers": lambda: by_dask(file, folder / "dask"),
        }
        print(f"{runs} runs, ms a run      wall  processor  beyond the loop")
        wall, work = measured(ways["loop"])
        row("loop", runs, wall, work, 0.0)
        for way, do in list(ways.items())[1:]:
            wall, used = measured(do)
            row(way, runs, wall, used, used - work)
        started = measured(lambda: by_dask(few, folder / "few_by_dask"))
        less = runs - FEW
        wall, used = wall - started[0], used - started[1]
        row("  without its start", less, wall, used, used - work * less / runs)


def measured(do: Callable[[], object]) -> tuple[float, float]:
    """Seconds of wall and of processor."""
    begin, used = time.perf_counter(), processor()
    do()
    return time.perf_counter() - begin, processor() - used


def row(way: str, runs: int, *seconds: float) -> None:
    wall, used, beyond = (1e3 * t / runs for t in seconds)
    print(f"{way:24} {wall:8.2f} {used:10.2f} {beyond:12.2f}", flush=True)


if __name__ == "__main__":
    main()

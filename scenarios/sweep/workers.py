"""Who does the runs: this process, several of this machine, a Dask cluster, or a Slurm job array.

Processes and clusters have the interface of `concurrent.futures`. Each task of an array does its
share of what is missing, with no more than a shell.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from hopmap.errors import HopmapError, needs
from hopmap.plugins import add_plugin, plugins
from hopmap.scenarios.results.stored_runs import handling
from hopmap.traces.safety.atomic_files import write_text

from . import ScenarioError

T = TypeVar("T")
R = TypeVar("R")

PATIENCE = 5.0
"""Seconds that workers have to stop by themselves."""
FILE_SECONDS = 30.0
"""Seconds that a Dask scheduler has to write its file."""
BATCHES, BATCH = 64, 16
"""Tasks that a Dask cluster gets at least where there are as many runs; most runs in one."""
SCRIPT, LIST = "slurm-array.sh", "slurm-array.txt"
TASKS = 100
"""Default of the most tasks of an array."""
LOST = ("BrokenProcessPool", "KilledWorker", "CancelledError", "FutureCancelledError")
"""What executors raise when a worker is gone, or the scheduler."""
PR_SET_PDEATHSIG = 1  # of <linux/prctl.h>


class WorkerError(HopmapError, RuntimeError):
    """Those who were to do the work cannot be reached, or died."""


class Workers(NamedTuple):
    """Who does the work."""

    processes: int = 1  # Of this machine; one works here.
    # Address of a Dask scheduler, whose workers do it in place of those.
    scheduler: str | None = None
    # Every process of this machine calls it first, to say what it compiles.
    begin: Callable[[], None] | None = None


HERE = Workers()


def distribute(
    do: Callable[[T], R], items: Sequence[T], workers: Workers = HERE
) -> Iterator[tuple[T, R]]:
    """Yield every item with what ``do(item)`` returned, in order of completion.

    `do` must be picklable. On any exception, Ctrl-C included, the work in progress is cancelled
    and its files removed.
    """
    count, scheduler, begin = workers
    count = min(count, len(items))
    if not items:
        return
    if count <= 1 and scheduler is None:
        for item in items:
            yield item, do(item)
        return
    # Dask takes some 20 ms for a task: many runs go in batches, enough of them for big clusters.
    size = 1 if scheduler is None else min(max(len(items) // BATCHES, 1), BATCH)
    batches = [items[first : first + size] for first in range(0, len(items), size)]
    with _local(count, begin) if scheduler is None else _dask(scheduler) as executor:
        futures: dict[Future[list[R]], Sequence[T]] = {}
        try:
            # Ctrl-C goes to every process of a terminal; this one tells workers to stop.
            with handling(signal.SIGINT, signal.SIG_IGN):
                for batch in batches:
                    futures[executor.submit(_iterate, do, batch, plugins())] = batch
            for future in as_completed(list(futures)):
                batch = futures.pop(future)  # with its result, which is not needed any more
                yield from zip(batch, future.result(), strict=True)
        except Exception as error:
            if type(error).__name__ not in LOST:
                raise
            raise WorkerError(
                f"a worker was lost ({type(error).__name__}): expected enough memory for each, or "
                f"fewer of them; the next call resumes"
            ) from None
        finally:
            for future in futures:
                future.cancel()


def expect_scheduler(workers: Workers) -> None:
    """Raise `WorkerError` if the scheduler of some workers, if any, does not answer."""
    if workers.scheduler is not None:
        with _dask(workers.scheduler):
            pass


def _iterate(do: Callable[[T], R], batch: Sequence[T], named: Sequence[str]) -> list[R]:
    for plugin in named:  # workers of Dask are not our children
        add_plugin(plugin)
    return [do(item) for item in batch]


@contextmanager
def _local(workers: int, begin: Callable[[], None] | None) -> Iterator[Executor]:
    """Start processes of this machine: new interpreters, as forking threads is not safe."""
    pool = ProcessPoolExecutor(
        workers,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_start,
        initargs=(os.getpid(), begin),
    )
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        children = multiprocessing.active_children()
        for child in children:
            child.terminate()
        for child in children:
            child.join(PATIENCE)
            child.kill()
        raise
    finally:
        pool.shutdown()


def _await_file(path: Path) -> None:
    """Give a scheduler that has just been started time to write its file; Dask waits for ever."""
    end = time.monotonic() + FILE_SECONDS
    while not path.exists():
        if time.monotonic() > end:
            raise WorkerError(
                f"--scheduler {path}: no such file after {FILE_SECONDS:g} s: expected the JSON "
                f"file that dask scheduler --scheduler-file writes"
            )
        time.sleep(0.05)


@contextmanager
def _dask(scheduler: str) -> Iterator[Executor]:
    """Ask a Dask cluster; what is running there when we leave comes to its end."""
    with needs("cluster", "--scheduler"):
        from distributed import Client
    key = "scheduler_file" if scheduler.endswith(".json") else "address"
    if key == "scheduler_file":
        _await_file(Path(scheduler))
    try:
        client: Any = Client(**{key: scheduler})  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise WorkerError(
            f"--scheduler {scheduler}: no Dask scheduler there ({error}): expected an address like "
            f"tcp://host:8786, or the JSON file that dask scheduler wrote"
        ) from None
    with client:
        threads = [worker["nthreads"] for worker in client.scheduler_info()["workers"].values()]
        if max(threads, default=1) > 1:
            raise WorkerError(
                f"--scheduler {scheduler}: a worker with {max(threads)} threads: expected dask "
                "worker --nthreads 1, or runs would disturb each other's times"
            )
        yield client.get_executor(pure=False)


def _start(parent: int, begin: Callable[[], None] | None) -> None:
    """Begin a worker, which ends on a signal or when its parent is gone."""
    if begin is not None:
        begin()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # at once, also out of compiled code
    with suppress(OSError, AttributeError):  # Linux: the kernel kills us when the parent dies
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(1)


def write_slurm_array(
    results: Path,
    run_ids: Sequence[str],
    words: Sequence[str],
    tasks: int | None = None,
    workers: int = 1,
) -> Path:
    """Write the list of runs to do and the script that does them; return the script.

    All nodes see `results`. Missing runs are dealt out by turns, to at most one task a run. Each
    task has so many `workers`, and asks for as many processors. `words` are the arguments of
    ``hopmap run`` that name scenario and folder.
    """
    if not run_ids:
        raise ScenarioError(f"{results}: no runs are missing: nothing for a job array to do")
    count = min(tasks or TASKS, len(run_ids))
    loaded = [word for plugin in plugins() for word in ("--plugin", plugin)]
    command = shlex.join([sys.executable, "-m", "hopmap", *loaded, "run", *words])
    each = f" --workers {workers}" if workers > 1 else ""
    script = f"""#!/bin/bash
# {len(run_ids)} runs of {LIST} in {count} tasks, written by hopmap run --slurm-array.
# Add what your site wants (partition, time, account, modules), then: sbatch {SCRIPT}
# Exit code 3 of a task: some of its runs failed, the others are stored.
#SBATCH --job-name=hopmap
#SBATCH --array=0-{count - 1}
#SBATCH --ntasks=1
#SBATCH --cpus-per-task={workers}
#SBATCH --output={_quote(results / "slurm-%a.out")}
exec {command} --shard "$SLURM_ARRAY_TASK_ID/{count}"{each} --no-report
"""
    write_text(results / LIST, "".join(f"{run_id}\n" for run_id in run_ids))
    path = results / SCRIPT
    write_text(path, script)
    path.chmod(0o755)
    return path


def shard_of(results: Path, shard: str) -> list[str]:
    """Return the runs of a shard "I/N": every N-th of the list, from the I-th, counted from 0."""
    first, slash, every = shard.partition("/")
    if not (slash and first.isdecimal() and every.isdecimal() and int(first) < int(every)):
        raise ScenarioError(f"--shard {shard}: expected I/N, I from 0 to N - 1, like 0/4")
    try:
        run_ids = (results / LIST).read_text().split()
    except OSError:
        raise ScenarioError(
            f"--shard {shard}: no {results / LIST}: expected the list of --slurm-array"
        ) from None
    return run_ids[int(first) :: int(every)]


def _quote(path: Path) -> str:
    """Quote a path for a comment of sbatch, where a shell's quotes count but % is a field."""
    text = str(path.parent).replace("%", "%%") + f"/{path.name}"
    return f'"{text}"' if " " in text else text

"""The sweep: every run of a scenario once, finished runs never again.

Runs are independent, so that several processes can work on them, also such that know nothing of
each other: each claims a run before it does it. What a run found appears whole or not at all, so
that a sweep can be killed at any time and loses the runs in flight.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import tomli_w

from hopmap.errors import debugging, one_line
from hopmap.plugins import add_plugin, plugins
from hopmap.progress import Progress
from hopmap.scenarios.results import store
from hopmap.scenarios.results.claims import claimed
from hopmap.scenarios.results.gather import gather
from hopmap.scenarios.results.plan_file import known_auto_expanded, save_plan
from hopmap.scenarios.results.store_index import error_of, finished
from hopmap.traces import Traffic
from hopmap.traces.safety.atomic_files import replacing

from . import ScenarioError
from .feasibility import possible
from .inputs import planned_traffic
from .lock_file import write_lock
from .measure import measure
from .plan import Run, auto_expanded, plan, reading_code
from .scenario import Scenario
from .scenario_files import changed, read_toml
from .workers import WorkerError, share

if TYPE_CHECKING:
    import pandas as pd

GATHER_EVERY = 4096
"""Runs after which loose files are gathered, so that they do not become too many."""


@dataclass(frozen=True)
class SweepOutcome:
    """What a sweep did.

    Attributes
    ----------
    runs : int
        Of the scenario, or of this process' share of it.
    done : int
        By this call.
    skipped : int
        Found finished, or done meanwhile by another process.
    failed : dict of str to str
        Errors of those runs that have failed, now or before.
    left : int
        How many of them had failed before and were left alone.
    results : Path
        The folder.
    impossible : dict of str to int
        How many runs were left out since they cannot be, by the reason.
    """

    runs: int
    done: int
    skipped: int
    failed: dict[str, str]
    left: int
    results: Path
    impossible: dict[str, int] = field(default_factory=dict)

    def to_frame(self) -> pd.DataFrame:
        """Return the finished runs of the scenario, a row each; see `load_runs`."""
        return store.load_runs(self.results)


class Done(NamedTuple):
    """What became of a run: its error, if any; whether it was done here, or is not done yet."""

    error: str | None = None
    here: bool = False
    busy: bool = False


def missing(runs: Sequence[Run], results: Path, *, retry: bool = False) -> list[Run]:
    """Return the runs that have not finished; with `retry` those that have failed as well."""
    errors = finished(results)
    return [
        run
        for run in runs
        if run.run_id not in errors or (retry and errors[run.run_id] is not None)
    ]


def run_scenario(
    path: Path,
    scenario: Scenario,
    results: Path,
    *,
    workers: int = 1,
    scheduler: str | None = None,
    retry: bool = False,
    only: Sequence[str] | None = None,
    changes: Sequence[str] = (),
    progress: Progress | None = None,
    begin: Callable[[], None] | None = None,
    warn: Callable[[Mapping[str, int]], None] | None = None,
) -> SweepOutcome:
    """Do what is missing of a scenario.

    Parameters
    ----------
    path : Path
        The scenario file, which is copied to the results.
    results : Path
        Folder of results; made if it is not there.
    workers : int
        Processes to share the runs.
    scheduler : str, optional
        Address of a Dask scheduler, to share them among its workers instead, which see the same
        file system.
    retry : bool
        Whether to do again what has failed before.
    only : sequence of str, optional
        Ids of the runs to do; all when left out.
    changes : sequence of str
        What `load_scenario` has set over the file.
    progress : callable, optional
        ``progress(done, total, text)`` after every run.
    begin : callable, optional
        What every worker of this machine calls first.
    warn : callable, optional
        Called before the first run with the number of runs that cannot be, by the reason.

    Raises
    ------
    TraceError
        A trace that cannot be read; errors of single runs are kept in their rows instead.
    ScenarioError
        Something in `only` is not in the scenario.
    WorkerError
        Workers cannot be reached or died.
    MappingError
        No run can be done.
    OSError
        The folder cannot be written.
    """
    results = results.absolute()  # for workers elsewhere
    runs = plan(scenario, path.parent, known_auto_expanded(results))
    traffic = new_traffic(runs, results)
    runs, impossible = possible(runs, results, traffic)
    if impossible and warn is not None:
        warn(impossible)
    if only is not None:
        wanted = set(only)
        some = [run for run in runs if run.run_id in wanted]
        if len(some) < len(wanted):
            raise ScenarioError(
                f"{path}: {len(wanted) - len(some)} of {len(wanted)} runs of its list are not in "
                f"the scenario: it has changed, or a trace or hopmap has: write the list again"
            )
    save_inputs(path, scenario, runs, results, changes, traffic, impossible)
    runs = runs if only is None else some
    todo = missing(runs, results, retry=retry)
    own = tuple(plugins())
    work = partial(_do, results=results, code=reading_code(), retry=retry, own=own)
    done = 0
    for place, (run, what) in enumerate(_each(work, todo, workers, scheduler, begin), 1):
        done += what.here
        if progress is not None:
            progress(place, len(todo), str(run))
        if what.here and done % GATHER_EVERY == 0:
            gather(results)
    if only is None:  # the tasks of a job array would do it all at once
        gather(results)
    errors = finished(results)
    failed = {str(run): error for run in runs if (error := errors.get(run.run_id)) is not None}
    tried = {run.run_id for run in todo}
    before = [run for run in runs if run.run_id not in tried and errors.get(run.run_id) is not None]
    counts = (len(runs), done, len(runs) - done)
    return SweepOutcome(*counts, failed, len(before), results, impossible)


def _each(
    work: Callable[..., Done],
    todo: list[Run],
    workers: int,
    scheduler: str | None,
    begin: Callable[[], None] | None,
) -> Iterator[tuple[Run, Done]]:
    """Yield what became of every run; last of those that another process had."""
    busy = []
    for run, what in share(work, todo, workers, scheduler, begin):
        if what.busy:
            busy.append(run)
        else:
            yield run, what
    for run in busy:  # if the other process is killed, we do it
        yield run, work(run, wait=True)


def save_inputs(
    path: Path,
    scenario: Scenario,
    runs: list[Run],
    results: Path,
    changes: Sequence[str] = (),
    traffic: Mapping[str, Traffic] | None = None,
    impossible: Mapping[str, int] | None = None,
) -> None:
    """Write what the runs need and were made from: traffic, scenario, published numbers, plan.

    Parameters
    ----------
    traffic : mapping, optional
        What `new_traffic` has read.
    impossible : mapping, optional
        What reports say of runs that cannot be, see `possible`.

    Raises
    ------
    TraceError
        A trace that cannot be read; then nothing is written.
    OSError
        The folder cannot be written.
    """
    traffic = new_traffic(runs, results) if traffic is None else traffic
    (results / "traffic").mkdir(parents=True, exist_ok=True)
    made_of = {run.trace.name: run.traffic_of for run in runs}
    for name, new in traffic.items():
        if name in made_of:
            store.save_traffic(results, name, new, made_of[name])
    if not scenario.published:
        (results / "published.csv").unlink(missing_ok=True)
    else:
        with replacing(results / "published.csv") as file:
            shutil.copyfile(path.parent / scenario.published.file, file)
    with replacing(results / "scenario.toml") as file:
        if changes:
            head = "".join(f"# --set {change}\n" for change in changes)
            file.write_text(head + tomli_w.dumps(changed(read_toml(path), changes, path)), "utf-8")
        else:
            shutil.copyfile(path, file)
    write_lock(results / "scenario.lock.toml", scenario, runs)
    settings: dict[str, dict[str, Any]] = {}
    for run in runs:
        settings.setdefault(run.variant, {}).update(run.settings)
    save_plan(
        results,
        [run.run_id for run in runs],
        [run.variant for run in runs],
        settings,
        [run.called for run in runs],
        {run.called: run.topology for run in runs if run.network},
        impossible,
        list(dict.fromkeys(run.trace.name for run in runs if run.expanded)),
        auto_expanded(scenario, runs),
        scenario.description,
    )


def new_traffic(runs: list[Run], results: Path) -> dict[str, Traffic]:
    """Read the traffic of every trace that the results do not hold as it is now."""
    return {
        name: planned_traffic(run.trace, run.digest, run.algorithms if run.expanded else None)
        for name, run in {run.trace.name: run for run in runs}.items()
        if not store.has_traffic(results, name, run.traffic_of)
    }


def _do(
    run: Run,
    *,
    results: Path,
    code: str,
    retry: bool,
    own: Sequence[str] = (),
    wait: bool = False,
) -> Done:
    """Do one run and write its files, unless another process does it or has done it."""
    for plugin in own:  # a worker of Dask was not started by us
        add_plugin(plugin)
    if reading_code() != code:
        raise WorkerError("a worker has another hopmap than this process: expected the same")
    with claimed(results, run.run_id, wait=wait) as mine:
        if not mine:
            return Done(busy=True)
        try:
            error = error_of(results, run.run_id)
        except KeyError:
            pass
        else:
            if error is None or not retry:
                return Done(error)
        row: dict[str, Any] = {}
        try:
            measure(run, results, row)
        except OSError:
            raise  # a full disk would fail every run
        except Exception as error:
            if debugging():
                raise
            row["error"] = one_line(error)
        store.save_run(results, row)
        return Done(row.get("error"), here=True)

"""The sweep: every run of a scenario once, finished runs never again.

Runs are independent, so that several processes can work on them, also such that know nothing of
each other: each claims a run before it does it. What a run found appears whole or not at all, so
that a sweep can be killed at any time and loses the runs in flight.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hopmap.errors import AboveDefaultOrderWarning, debugging, one_line
from hopmap.progress import Progress
from hopmap.scenarios.results import store
from hopmap.scenarios.results.claims import claim
from hopmap.scenarios.results.gather import gather
from hopmap.scenarios.results.plan_file import expect_results_folder, read_auto_expanded
from hopmap.scenarios.results.stored_runs import error_of, errors_in, part_files, read_errors

from . import ScenarioError
from .default_order import above_default_order, shorten
from .measure import measure
from .plan import Run, plan, reading_code
from .prepare import new_traffic, save_inputs, select_runs
from .scenario import Scenario
from .workers import HERE, WorkerError, Workers, distribute, expect_scheduler

if TYPE_CHECKING:
    import pandas as pd

GATHER_EVERY = 4096
"""Runs after which loose files are gathered, so that they do not become too many."""


@dataclass(frozen=True)
class SweepOutcome:
    """What a sweep did."""

    runs: int  # Of the scenario, or of this process' share of it.
    done: int  # By this call.
    skipped: int  # Found finished, or done meanwhile by another process.
    failed: dict[str, str]  # Errors by run, of now or before.
    left: int  # How many had failed before and were left alone.
    results: Path
    # How many runs were left out since they cannot be, by the reason.
    infeasible: dict[str, int] = field(default_factory=dict)
    earlier: int = 0  # Runs of other versions of the scenario, which the folder keeps.
    warnings: Sequence[str] = ()  # Which mappers end above the default order.

    def to_dict(self) -> dict[str, Any]:
        """Return what ``run --json`` prints, apart from the report."""
        names = ("runs", "done", "skipped", "failed", "infeasible", "earlier", "warnings")
        return {"out": str(self.results)} | {name: getattr(self, name) for name in names}

    def to_frame(self) -> pd.DataFrame:
        """Return the finished runs of the scenario, a row each; see `load_results`."""
        return store.load_results(self.results)


class Done(NamedTuple):
    """What became of a run: its error, if any; whether it was done here, or is not done yet."""

    error: str | None = None
    here: bool = False
    busy: bool = False


def missing(runs: Sequence[Run], results: Path, *, retry: bool = False) -> list[Run]:
    """Return the runs that have not finished; with `retry` those that have failed as well."""
    errors = read_errors(results)
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
    workers: Workers = HERE,
    retry: bool = False,
    only: Sequence[str] | None = None,
    changes: Sequence[str] = (),
    progress: Progress | None = None,
    warn: Callable[[Mapping[str, int]], None] | None = None,
) -> SweepOutcome:
    """Do what is missing of a scenario.

    Errors of single runs are kept in their rows; a trace that cannot be read is a `TraceError`. The
    scenario file at `path` is copied to the results; `changes` is what `load_scenario` has set over
    it. All workers see the same file system. `retry` does again what has failed before, and `only`
    no more than the runs of these ids. ``progress(done, total, text)`` is called after every run,
    `warn` before the first with the number of runs that cannot be, by the reason. Mappers that end
    above the default order are an `AboveDefaultOrderWarning` each, except in tasks of a job array.
    """
    results = results.absolute()  # for workers elsewhere
    expect_results_folder(results, path, changes)
    runs = plan(scenario, path.parent, read_auto_expanded(results))
    traffic = new_traffic(runs, results)
    runs, infeasible = select_runs(runs, results, traffic)
    if infeasible and warn is not None:
        warn(infeasible)
    if only is not None:
        wanted = set(only)
        some = [run for run in runs if run.run_id in wanted]
        if len(some) < len(wanted):
            raise ScenarioError(
                f"{path}: {len(wanted) - len(some)} of {len(wanted)} runs of its list are not in "
                f"the scenario: it has changed, or a trace or hopmap has: write the list again"
            )
    if not results.exists():  # a folder of a sweep that has not begun would be in the way
        expect_scheduler(workers)
    save_inputs(path, scenario, runs, results, changes, traffic, infeasible)
    runs = runs if only is None else some
    todo = missing(runs, results, retry=retry)
    work = partial(_do, results=results, code=reading_code(), retry=retry)
    done = 0
    for place, (run, what) in enumerate(_iterate(work, todo, workers), 1):
        done += what.here
        if progress is not None:
            progress(place, len(todo), str(run))
        if what.here and done % GATHER_EVERY == 0:
            gather(results)
    if only is None:  # the tasks of a job array would do it all at once
        gather(results)
    errors = read_errors(results)
    failed = {str(run): error for run in runs if (error := errors.get(run.run_id)) is not None}
    ids = {run.run_id for run in todo}
    before = [run for run in runs if run.run_id not in ids and errors.get(run.run_id) is not None]
    counts = (len(runs), done, len(runs) - done)
    earlier = sum(map(len, map(errors_in, part_files(results / "earlier", "runs"))))
    above = above_default_order(runs, results) if only is None else []
    for line in shorten(above):
        warnings.warn(line, AboveDefaultOrderWarning, stacklevel=2)
    return SweepOutcome(*counts, failed, len(before), results, infeasible, earlier, above)


def _iterate(
    work: Callable[..., Done], todo: list[Run], workers: Workers
) -> Iterator[tuple[Run, Done]]:
    """Yield what became of every run; last of those that another process had."""
    busy = []
    for run, what in distribute(work, todo, workers):
        if what.busy:
            busy.append(run)
        else:
            yield run, what
    for run in busy:  # if the other process is killed, we do it
        yield run, work(run, wait=True)


def _do(run: Run, *, results: Path, code: str, retry: bool, wait: bool = False) -> Done:
    """Do one run and write its files, unless another process does it or has done it."""
    if reading_code() != code:
        raise WorkerError("a worker has another hopmap than this process: expected the same")
    with claim(results, run.run_id, wait=wait) as mine:
        if not mine:
            return Done(busy=True)
        with suppress(KeyError):  # of a run that is not there
            error = error_of(results, run.run_id)
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

"""The command run: a scenario's sweep."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .console import (
    INTERRUPTED,
    announce_compilation,
    excess_in_result,
    in_assumed_rounds,
    print_json,
    say,
    warn,
    warn_of,
    working,
)
from .options import AsJson, check_folder, complete_scenarios
from .results import print_published, print_runs, write_report_of

if TYPE_CHECKING:
    from hopmap.scenarios.sweep.plan import Run
    from hopmap.scenarios.sweep.run import SweepOutcome
    from hopmap.scenarios.sweep.scenario import Scenario

SOME_FAILED = 3
SHOWN = 10
"""Errors that are printed; the others are in the results."""
SPREAD = "Other machines"


@dataclass(frozen=True)
class SpreadOptions:
    """Other machines that share the runs."""

    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Dask scheduler (tcp://host:8786, or its JSON file) whose workers do the runs.",
            rich_help_panel=SPREAD,
        ),
    ] = None
    slurm_array: Annotated[
        bool,
        typer.Option(
            "--slurm-array",
            help="Only write a Slurm job array for the missing runs.",
            rich_help_panel=SPREAD,
        ),
    ] = False
    tasks: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Tasks of the array; default: one a run, at most 100.",
            rich_help_panel=SPREAD,
        ),
    ] = None
    shard: Annotated[
        str | None,
        typer.Option(
            metavar="I/N",
            help="Run only shard I of N of the array's list.",
            rich_help_panel=SPREAD,
        ),
    ] = None


def run(
    scenario: Annotated[
        Path,
        typer.Argument(
            metavar="SCENARIO",
            help="A TOML file, or a shipped scenario's name.",
            autocompletion=complete_scenarios,
        ),
    ],
    spread: SpreadOptions,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Folder of results; results/ and the file's name when left out."
        ),
    ] = None,
    workers: Annotated[
        int,
        typer.Option(
            min=1,
            metavar="N",
            help="Processes that share the runs; in a Slurm job array, processes of each task.",
        ),
    ] = 1,
    sets: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A key of the scenario, like replay.engine=flow or seeds=[0,1], or a parameter, "
            "like link.bandwidth=10GB/s; may be repeated.",
        ),
    ] = None,
    failed: Annotated[
        bool, typer.Option("--retry-failed", help="Also repeat runs that failed before.")
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Only list the runs that are missing; exit code 2 if none can be done.",
        ),
    ] = False,
    with_report: Annotated[
        bool, typer.Option("--report/--no-report", help="Write the report at the end.")
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Run a scenario's sweep; what has finished before is not run again.

    Stopped or killed at any time, it loses the runs in flight only, and the next call resumes.

    Several calls on one folder share the work.

    Exit code 3: some runs have failed. Their errors are kept; --retry-failed tries them again.
    """
    from hopmap.scenarios.results.plan_file import (
        expect_results_folder,
        read_auto_expanded,
        read_plan,
    )
    from hopmap.scenarios.results.store import load_results
    from hopmap.scenarios.results.study import collectives_dominate, omissions_by_trace
    from hopmap.scenarios.sweep.plan import plan
    from hopmap.scenarios.sweep.prepare import new_traffic, save_inputs, select_runs
    from hopmap.scenarios.sweep.run import missing, run_scenario
    from hopmap.scenarios.sweep.scenario_files import load_scenario, scenario_path
    from hopmap.scenarios.sweep.workers import Workers, shard_of, write_slurm_array

    scheduler, shard = spread.scheduler, spread.shard
    if spread.tasks is not None and not spread.slurm_array:
        raise typer.BadParameter("--tasks requires --slurm-array")
    if spread.slurm_array and (scheduler is not None or shard is not None):
        raise typer.BadParameter("--slurm-array is mutually exclusive with --scheduler and --shard")
    if scheduler is not None and workers > 1:
        raise typer.BadParameter("--workers and --scheduler are mutually exclusive")
    check_folder("--out", out)
    path = scenario_path(scenario)
    changes = sets or []
    loaded = load_scenario(path, changes)
    results = out or Path("results") / path.stem
    expect_results_folder(results, path, changes)
    if dry_run or spread.slurm_array:
        runs = plan(loaded, path.parent, read_auto_expanded(results))
        traffic = new_traffic(runs, results)
        runs, infeasible = select_runs(runs, results, traffic)
        if not as_json:
            _warn_of_infeasible(infeasible)
        todo = missing(runs, results, retry=failed)
        if dry_run:
            _print_missing(runs, todo, results, as_json, infeasible)
            return
        save_inputs(path, loaded, runs, results.absolute(), changes, traffic, infeasible)
        words = [str(path.absolute()), "--out", str(results.absolute())]
        for change in changes:  # a file's path means the same in another folder
            words += ["--set", change if "=" in change else str(Path(change).absolute())]
        words += ["--retry-failed"] if failed else []
        ids = [run.run_id for run in todo]
        script = write_slurm_array(results.absolute(), ids, words, spread.tasks, workers)
        if as_json:
            print_json({"script": str(script), "missing": len(todo)})
        else:
            say(f"written: {script}")
            say(f"use it:  sbatch {shlex.quote(str(script))}   ({_runs(len(todo))})")
        return
    only = None if shard is None else shard_of(results, shard)
    try:
        with working("running") as progress, excess_in_result():
            outcome = run_scenario(
                path,
                loaded,
                results,
                workers=Workers(workers, scheduler, announce_compilation),
                retry=failed,
                only=only,
                changes=changes,
                progress=progress,
                warn=None if as_json else _warn_of_infeasible,
            )
    except KeyboardInterrupt:
        _report_kept(results, as_json)
        raise SystemExit(INTERRUPTED) from None
    page = write_report_of(results) if with_report else None
    table = load_results(results)
    if as_json:
        print_json(outcome.to_dict() | {"report": None if page is None else str(page)})
    else:
        for name, entries in omissions_by_trace(table).items():
            warn_of(name, entries)
        print_runs(table, loaded.relevance)
        if loaded.published:
            print_published(results)
        _say_done(outcome)
        if outcome.earlier:
            kept = _runs(outcome.earlier)
            say(f"{kept} that the scenario no longer has: in {results / 'earlier'}")
        say(f"results: {results}" if page is None else f"report: {page}")
    _warn_of_traffic_alone(loaded, path.parent)
    expanded = read_plan(results).expanded
    if expanded and loaded.collectives == "auto":
        warn(
            f"{', '.join(expanded)}: mapped and measured with what collectives send, which is more "
            'than the messages: collectives = "ignore" leaves it out'
        )
    if names := collectives_dominate(table, loaded.replay.rounds, expanded):
        warn(
            f"{', '.join(names)}: collectives send more than the messages that were mapped: "
            'collectives = "expand" counts them'
        )
    if outcome.failed:
        _warn_of_failed(outcome, results)
        raise typer.Exit(SOME_FAILED)


def _warn_of_traffic_alone(scenario: Scenario, folder: Path) -> None:
    sources = scenario.sources(folder).values()
    alone = ", ".join(source.name for source in sources if source.needs_rounds)
    if alone and scenario.replay.engine:
        said = in_assumed_rounds(scenario.replay.rounds)
        other = "traffic alone, not replayed: [replay] rounds = 1 sends it at once"
        warn(f"{alone}: replayed: {said}" if said else f"{alone}: {other}")


def _report_kept(results: Path, as_json: bool) -> None:
    """Say what an interrupted sweep leaves, and how it goes on."""
    from hopmap.scenarios.results.plan_file import read_plan
    from hopmap.scenarios.results.stored_runs import read_errors
    from hopmap.scenarios.results.tables import StoreError

    try:
        planned = set(read_plan(results).runs)
    except StoreError:  # not so far
        raise KeyboardInterrupt from None
    kept = len(planned.intersection(read_errors(results)))
    warn(
        f"interrupted: {kept} of {_runs(len(planned))} are kept in {results}: "
        "the same command does the others"
    )
    if as_json:
        print_json({"error": "interrupted", "out": str(results), "kept": kept})


def _runs(number: int) -> str:
    return f"{number} run{'s' * (number != 1)}"


def _say_done(outcome: SweepOutcome) -> None:
    """Print which mappers end above the default order, and how many runs there are."""
    from hopmap.scenarios.sweep.default_order import shorten

    for line in shorten(outcome.warnings):
        say(line)
    say(f"{_runs(outcome.runs)}: {outcome.done} done now, {outcome.skipped} before")


def _warn_of_infeasible(infeasible: Mapping[str, int]) -> None:
    for reason, number in list(infeasible.items())[:SHOWN]:
        warn(f"left out, {_runs(number)}: {reason}")
    if len(infeasible) > SHOWN:
        more = sum(list(infeasible.values())[SHOWN:])
        warn(f"left out, {_runs(more)} more: the report lists them")


def _print_missing(
    runs: list[Run],
    todo: list[Run],
    results: Path,
    as_json: bool,
    infeasible: Mapping[str, int],
) -> None:
    from hopmap.scenarios.results.stored_runs import read_errors

    errors = read_errors(results)
    started = {run.run_id for run in todo}
    left = sum(errors.get(r.run_id) is not None for r in runs if r.run_id not in started)
    if as_json:
        listed = [{"run_id": r.run_id, "run": str(r)} for r in todo]
        print_json({"missing": listed, "failed": left, "infeasible": infeasible})
        return
    say("\n".join([*map(str, todo), f"{_runs(len(todo))} missing in {results}"]))
    if left:
        say(f"{left} more have failed before: --retry-failed does them again")


def _warn_of_failed(outcome: SweepOutcome, results: Path) -> None:
    for name, error in list(outcome.failed.items())[:SHOWN]:
        warn(f"{name}: {error}")
    if len(outcome.failed) > SHOWN:
        ask = f'hopmap query {results} "FROM runs WHERE error IS NOT NULL"'
        warn(f"{len(outcome.failed) - SHOWN} more: {ask}")
    before = f", {outcome.left} of them before and not tried again" if outcome.left else ""
    warn(
        f"{len(outcome.failed)} of {outcome.runs} runs have failed{before}: --retry-failed repeats "
        "them"
    )

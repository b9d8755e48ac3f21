"""Commands on scenarios: run, report; and list."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .cli_arguments import AsJson
from .console import print_json, print_table, say, warn, working
from .units import show_seconds

if TYPE_CHECKING:
    import pandas as pd

SOME_FAILED = 3


class Listed(StrEnum):
    """What can be listed."""

    BENCHMARKS = "benchmarks"
    MAPPERS = "mappers"
    TOPOLOGIES = "topologies"
    ENGINES = "engines"
    PRESETS = "presets"
    FORMATS = "formats"
    PARAMETERS = "parameters"
    ALGORITHMS = "algorithms"
    SCENARIOS = "scenarios"


def run(
    scenario: Annotated[Path, typer.Argument(help="A TOML file, or a shipped scenario's name.")],
    out: Annotated[
        Path | None, typer.Option(help="Folder of results; results/NAME when left out.")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes that share the runs.")] = 1,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only list the runs that are missing.")
    ] = False,
    with_report: Annotated[
        bool, typer.Option("--report/--no-report", help="Write the report at the end.")
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Run a scenario's sweep; what has finished before is not run again."""
    from .run import missing, plan, run_scenario
    from .scenario import load_scenario, scenario_path
    from .store import load_runs

    path = scenario_path(scenario)
    loaded = load_scenario(path)
    results = out or Path("results") / path.stem
    if dry_run:
        todo = missing(plan(loaded, path.parent), results)
        if as_json:
            print_json({"missing": [{"run_id": r.run_id, "run": str(r)} for r in todo]})
        else:
            say("\n".join([*map(str, todo), f"{len(todo)} runs are missing in {results}"]))
        return
    with working("running") as progress:
        outcome = run_scenario(path, loaded, results, workers=workers, progress=progress)
    page = _write_report(results) if with_report else None
    runs = load_runs(results)
    if as_json:
        print_json(
            {
                "out": str(results),
                "runs": outcome.runs,
                "done": outcome.done,
                "skipped": outcome.skipped,
                "failed": outcome.failed,
                "report": None if page is None else str(page),
            }
        )
    else:
        _print_runs(runs)
        say(f"{outcome.runs} runs: {outcome.done} done now, {outcome.skipped} before")
        say(f"results: {results}" if page is None else f"report: {page}")
    for name, error in outcome.failed.items():
        warn(f"{name}: {error}")
    if outcome.failed:
        raise typer.Exit(SOME_FAILED)


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Results of hopmap run.")],
    as_json: AsJson = False,
) -> None:
    """Write one self-contained HTML page, and its figures as SVG, into a folder of results."""
    page = _write_report(folder)
    if as_json:
        print_json({"report": str(page)})
    else:
        say(f"report: {page}")


def list_(
    what: Annotated[Listed, typer.Argument(help="What to list.")], as_json: AsJson = False
) -> None:
    """List what there is: benchmarks, mappers, topologies, engines, presets, formats, ..."""
    from .catalogue import CATALOGUE

    entries = CATALOGUE[what.value]()
    if as_json:
        print_json(entries)
        return
    for entry in entries:
        say(f"{entry['name']}: {entry['summary']}")
        for parameter in entry["parameters"]:
            default = "" if parameter.get("default") is None else f" = {parameter['default']}"
            say(f"    {parameter['name']}{default}  ({parameter['type']})")
        if entry["source"]:
            say(f"    source: {entry['source']}")
    if not entries:
        say(f"no {what.value} yet")


def _write_report(folder: Path) -> Path:
    from .report import write_report
    from .store import load_plan

    load_plan(folder)  # says so when it holds no results
    with working("drawing the report") as progress:
        return write_report(folder, progress=progress)


def _print_runs(runs: pd.DataFrame) -> None:
    """Print one line per mapper, the best of its seeds, on each trace and topology."""
    runs = runs[runs["error"].isna()]
    for key, group in runs.groupby(["trace", "topology", "variant"], sort=False):
        trace, *where = (str(word) for word in key if word)
        rows: list[tuple[Any, ...]] = []
        for mapper, seeds in group.groupby("mapper", sort=False):
            best = seeds.sort_values("hop_bytes", kind="stable").iloc[0]
            replayed = seeds["makespan"].notna().any()
            rows.append(
                (
                    mapper,
                    len(seeds),
                    int(best["hop_messages"]),
                    int(best["hop_bytes"]),
                    float(best["bytes_dilation_avg"]),
                    int(best["bytes_congestion_max"]),
                    show_seconds(seeds["makespan"].min()) if replayed else None,
                    show_seconds(float(seeds["mapping_seconds"].mean())),
                )
            )
        columns = ["mapper", "runs", "hop-messages", "hop-bytes", "mean hops", "busiest link, B"]
        columns += ["runtime", "mapping time"]
        print_table(columns, rows, title=f"{trace} on {', '.join(where)}")
        say()

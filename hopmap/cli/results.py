"""Commands on results, report and query; and what a sweep prints of its results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hopmap.plugins import load_named
from hopmap.units import change, show_seconds

from .console import print_csv, print_json, print_table, say, working
from .options import AsJson

if TYPE_CHECKING:
    import pandas as pd

    from hopmap.scenarios.results.study import Entry


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Results of hopmap run.")],
    as_json: AsJson = False,
) -> None:
    """Write one self-contained HTML page, and its figures (SVG, PNG), into a folder of results."""
    page = write_report_of(folder)
    if as_json:
        print_json({"report": str(page)})
    else:
        say(f"report: {page}")


def write_report_of(folder: Path) -> Path:
    """Write the report of a folder of results; return the page."""
    from hopmap.report.report import write_report
    from hopmap.scenarios.results.plan_file import read_plan

    read_plan(folder)  # says so when it holds no results
    with working("drawing the report") as progress:
        return write_report(folder, progress=progress)


def query(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Results of hopmap run.")],
    sql: Annotated[
        str,
        typer.Argument(
            metavar="SQL",
            help="On the tables runs, ranks, links, messages; DuckDB's dialect. DESCRIBE runs "
            "lists the columns.",
        ),
    ],
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Print a table for spreadsheets instead of text.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Ask results a question in SQL."""
    if as_csv and as_json:
        raise typer.BadParameter("--csv and --json are mutually exclusive")
    from hopmap.scenarios.results.query import query as answer_to

    answer = answer_to(folder, sql)
    if as_json:
        print_json(answer.to_dict())
    elif as_csv:
        print_csv(answer.columns, answer.rows)
    elif answer.columns:
        print_table(answer.columns, answer.rows)


def print_runs(runs: pd.DataFrame, relevance: float) -> None:
    """Print one line per mapper, for all its seeds, on each trace and topology; who leads there."""
    from hopmap.scenarios.results.ranking import describe_one_replay, name_leaders, standing
    from hopmap.scenarios.results.study import NO_PRACTICAL, by_median, cases_of

    several = single = False
    same = 0
    found = cases_of(by_median(runs[runs["error"].isna()]), relevance)
    for case in found:
        repeated = case.times is not None
        rows: list[tuple[Any, ...]] = []
        for entry in case.entries:
            mapper, seeds = entry.mapper, entry.runs
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
                    *([_interval_text(entry)] if repeated else []),
                    show_seconds(float(seeds["mapping_seconds"].mean())),
                )
            )
        columns = ["mapper", "runs", "hop-messages", "hop-bytes", "mean hops", "busiest link, B"]
        between = "95 % of models" if case.by_models else "95 % interval"
        columns += ["runtime", *([between] if repeated else []), "mapping time"]
        print_table(columns, rows, title=f"{case.trace} on {case.where}")
        if 1 < len(case.entries) == len(case.leaders) and case.likeness == NO_PRACTICAL:
            same += 1
        elif words := standing(case):
            say(name_leaders(case) + words)
        say()
        single = single or (case.replayed and not repeated and len(case.entries) > 1)
        several = several or any(row[1] > 1 for row in rows)
    if same:
        say(f"{NO_PRACTICAL} between the mappers in {same} of {len(found)} cases")
    if several:
        say("of runs: hops and link of the best in hop-bytes, least runtime, mean mapping time")
    if single:
        say(f"runtimes: {describe_one_replay(runs)}")


def print_published(results: Path) -> None:
    """Print published totals of IeNPC, ours in the same way, and what the right routes make it."""
    from hopmap.scenarios.results.study import load_study

    compared = load_named("hopmap.scenarios", "studies.published:compare_published")
    study = load_study(results)
    for trace in study.traces():
        for case, found in compared(study, trace):
            rows = [
                (
                    row.mapper,
                    *map(_whole, (row.paper[0], row.maplib[0])),
                    f"{sum(row.same)} of 4 the same" if any(row.same) else "",
                    change(row.maplib[0], row.paper[0]),
                    _whole(row.hopmap[0]),
                    row.reason,
                )
                for row in found
            ]
            print_table(
                ("IeNPC", "published", "ours", "numbers", "difference", "true routes", "reason"),
                rows,
                title=f"published: {case.trace} on {case.where}",
            )
            say()


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _interval_text(entry: Entry) -> str:
    """Write the interval of a mapper's best run."""
    from hopmap.simulator.uncertainty import Interval, format_interval

    ends = (entry.value(f"makespan_{end}") or 0.0 for end in ("median", "low", "high"))
    return format_interval(Interval(*ends))[1]

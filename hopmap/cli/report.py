"""Commands on results: report; and list."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from .console import print_json, say, working
from .options import AsJson


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


def list_(
    what: Annotated[Listed, typer.Argument(help="What to list.")], as_json: AsJson = False
) -> None:
    """List what there is: benchmarks, mappers, topologies, engines, presets, formats, ..."""
    from .listing import CATALOGUE

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


def write_report_of(folder: Path) -> Path:
    """Write the report of a folder of results; return the page."""
    from hopmap.report.report import write_report
    from hopmap.scenarios.results.plan_file import read_plan

    read_plan(folder)  # says so when it holds no results
    with working("drawing the report") as progress:
        return write_report(folder, progress=progress)

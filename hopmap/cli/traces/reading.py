"""Commands that read traces and traffic: info, matrix; what all commands say of these."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hopmap.units import show_bytes, show_seconds

from ..console import (
    chosen_rows,
    print_json,
    print_table,
    say,
    say_omissions,
    say_written,
    warn_of,
    working,
)
from ..options import (
    AsJson,
    Collectives,
    Sets,
    Trace,
    TrafficOptions,
    check_out,
    check_picture,
    settings_of,
)

if TYPE_CHECKING:
    from hopmap.api.workload import Workload, WorkloadLike
    from hopmap.progress import Progress
    from hopmap.traces import Traffic


Workers = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Processes that read an OTF2 archive; one for every 64 MiB of it when left out, as "
        "far as there are processors.",
    ),
]


@dataclass(frozen=True)
class MatrixOptions(TrafficOptions):
    """The same options; point-to-point messages only by default."""

    collectives: Collectives = Collectives.IGNORE


def info(trace: Trace, workers: Workers = None, as_json: AsJson = False) -> None:
    """Say what is in a trace or a traffic file."""
    from hopmap.api.workload import Workload

    workload = Workload(trace)
    with working(f"reading {workload.name}", compiles=workload.has_order) as progress:
        facts = _read(workload, progress, workers)
    print_facts(workload.name, facts, as_json)


def matrix(
    trace: Trace,
    options: MatrixOptions,
    out: Annotated[
        Path | None, typer.Option(help="Traffic: .npz .mtx .csv .graph .grf; - is stdout, as .csv.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Picture of the matrix: .svg .png .pdf.")
    ] = None,
    sets: Sets = None,
    workers: Workers = None,
    as_json: AsJson = False,
) -> None:
    """Reduce a trace to its traffic: point-to-point, or with the messages of collectives."""
    if out is None and plot is None and not as_json:
        raise typer.BadParameter("expected --out FILE, --plot FILE or --json")
    check_picture(plot)
    check_out(out, plot)
    from hopmap.simulator.parameters.settings import algorithms_from

    algorithms = algorithms_from(tuple(settings_of(sets).items()))
    workload = options.workload(trace)
    with working(f"reading {workload.name}") as progress:
        facts = _read(workload, progress, workers)
        begin = time.perf_counter()
        found = workload.sent(algorithms)
        facts["wall_seconds"] += time.perf_counter() - begin
        if found.one_sided:
            facts["rma"] = str(workload.rma)
        if found.expanded:
            facts |= {"algorithms": found.chosen, "notes": found.notes}
        if found.expanded or found.one_sided:
            facts |= found.traffic.to_dict()
        if out is not None:
            write_or_print(found.traffic, out)
            facts["out"] = str(out)
        if plot is not None:
            from hopmap.figures.spy import spy_plot
            from hopmap.figures.style import write_figure

            write_figure(spy_plot(found.traffic, title=workload.name), plot)
            facts["plot"] = str(plot)
    workload.warn_about(found)
    print_facts(workload.name, facts, as_json)


def _read(workload: Workload, progress: Progress, workers: int | None = None) -> dict[str, Any]:
    """Read a workload once, and return what is said of it."""
    if workers is not None and workload.archive is None:
        raise typer.BadParameter(f"--workers requires an OTF2 archive: {workload.name} is none")
    if workload.archive is not None:
        from hopmap.traces.otf2 import read_kernels

        read_kernels.time_callbacks(), read_kernels.total_callbacks()  # compiled here, untimed
    begin = time.perf_counter()
    workload.read_summary(progress, workers)
    facts = workload.to_dict()
    seconds = time.perf_counter() - begin
    return facts | {"omitted": workload.omissions(), "wall_seconds": seconds}


def write_or_print(workload: WorkloadLike, out: Path) -> Traffic:
    """Write a workload as an archive or as traffic, or print traffic as CSV for ``-``."""
    from hopmap.api.exports import write_workload
    from hopmap.api.workload import Workload
    from hopmap.traces.formats.files import traffic_text

    if str(out) != "-":
        return write_workload(workload, out)
    traffic = Workload.of(workload).sent().traffic
    say(traffic_text(traffic).rstrip("\n"))
    return traffic


def print_facts(name: str, facts: dict[str, Any], as_json: bool) -> None:
    """Print what is known of a trace or of traffic, unless the latter went to stdout."""
    if facts.get("out") == "-":
        return
    omitted = facts.get("omitted", [])
    if as_json:
        print_json(facts | {"omitted": [entry.to_dict() for entry in omitted]})
        return
    warn_of(name, omitted)
    rows: list[tuple[str, object]] = [
        (key, facts[key])
        for key in ("ranks", "events", "messages", "pairs")
        if facts.get(key) is not None
    ]
    rows.append(("bytes", f"{facts['bytes']:,} ({show_bytes(facts['bytes'])})"))
    if facts.get("duration") is not None:
        rows.append(("duration", show_seconds(facts["duration"])))
    if facts.get("thread_level") is not None:
        rows.append(("threads", f"MPI_THREAD_{facts['thread_level']}"))
    rows += [(f"{op} calls", calls) for op, calls in facts.get("collectives", {}).items()]
    if facts.get("collective_bytes"):
        rows.append(("sent in collectives", show_bytes(facts["collective_bytes"])))
    rows += one_sided_rows(facts)
    if "counts" in facts:
        rows.append(("pairs of alltoallv, in", facts["counts"]))
    rows += _rate_rows(facts.get("rate"))
    if "algorithms" in facts:
        rows += chosen_rows(facts["algorithms"])
    rows.append(("took", show_seconds(facts["wall_seconds"])))
    print_table(("", name), rows)
    say_omissions(omitted, facts.get("notes", {}))
    say_written(facts.get("out"), facts.get("plot"))


def one_sided_rows(facts: dict[str, Any]) -> list[tuple[str, object]]:
    """Say how many one-sided operations there are, and what they move."""
    total = facts.get("one_sided") or {"records": {}}
    if not total["records"]:
        return []
    rows: list[tuple[str, object]] = [
        (f"one-sided: {name}", count) for name, count in total["records"].items()
    ]
    moved = f"{total['messages']:,} messages, {total['bytes']:,} B, {total['pairs']:,} pairs"
    said = {"include": " (counted above)", "ignore": " (not counted)"}
    counted = said.get(facts.get("rma", ""), "")
    return [*rows, ("one-sided: moved", moved + counted)]


def _rate_rows(rate: dict[str, Any] | None) -> list[tuple[str, object]]:
    """Say what a fitted rate is, and how well it fits."""
    if rate is None:
        return []
    spread = f"{rate['lowest']:.3g} to {rate['highest']:.3g}, +-{100 * rate['deviation']:.2g} %"
    return [
        (f"operations/s, from {rate['of']}", f"{rate['flops']:.4g}"),
        ("  by rank", spread),
        ("  computing, all ranks", show_seconds(rate["seconds"])),
        ("  left out", show_seconds(rate["omitted_seconds"])),
    ]

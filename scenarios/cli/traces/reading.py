"""Commands on traces and traffic: generate, info, matrix."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hopmap.units import show_bytes, show_seconds

from ..arguments import (
    Algorithms,
    AsJson,
    Collectives,
    CollectivesOption,
    Rma,
    RmaOption,
    TraceOrTraffic,
    check_out,
    check_picture,
    settings_given,
)
from ..console import (
    chosen_rows,
    left_out_lines,
    print_json,
    print_table,
    say,
    warn_of,
    working,
)

if TYPE_CHECKING:
    from hopmap.progress import Progress
    from hopmap.simulator.programs.from_source import SourceTraffic
    from hopmap.traces import Traffic
    from hopmap.traces.sources import Source


Workers = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Processes that read an OTF2 archive; one for every 64 MiB of it when left out, as "
        "far as there are processors.",
    ),
]


def info(trace: TraceOrTraffic, workers: Workers = None, as_json: AsJson = False) -> None:
    """Say what is in a trace or a traffic file."""
    source = _opened(trace)
    with working(f"reading {source.name}", compiles=not source.needs_rounds) as progress:
        facts, *_ = _read(source, progress, workers=workers)
    print_facts(source.name, facts, as_json)


def matrix(
    trace: TraceOrTraffic,
    out: Annotated[
        Path | None, typer.Option(help="Traffic: .npz .mtx .csv .graph .grf; - is stdout, as .csv.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Picture of the matrix: .svg .png .pdf.")
    ] = None,
    collectives: CollectivesOption = Collectives.IGNORE,
    rma: RmaOption = Rma.INCLUDE,
    settings: Algorithms = None,
    workers: Workers = None,
    as_json: AsJson = False,
) -> None:
    """Reduce a trace to its traffic: point-to-point, or with the messages of collectives."""
    if out is None and plot is None and not as_json:
        raise typer.BadParameter("expected --out FILE, --plot FILE or --json")
    check_picture(plot)
    check_out(out, plot)
    from hopmap.scenarios.given import algorithms_of, tell_of_traffic
    from hopmap.simulator.programs.from_source import check_collectives, traffic_of_source

    algorithms = algorithms_of(settings_given(settings))
    check_collectives(collectives, algorithms)
    source = _opened(trace)
    with working(f"reading {source.name}") as progress:
        facts, messages = _read(source, progress, str(rma), workers)
        begin = time.perf_counter()
        found = traffic_of_source(source, collectives, algorithms, str(rma), messages)
        facts["wall_seconds"] += time.perf_counter() - begin
        traffic = found.traffic
        if found.one_sided:
            facts["rma"] = str(rma)
        if found.expanded:
            facts |= {"algorithms": found.chosen, "notes": found.notes}
        if found.expanded or found.one_sided:
            facts |= traffic_facts(traffic)
        if out is not None:
            put_traffic(out, traffic)
            facts["out"] = str(out)
        if plot is not None:
            _plot(traffic, plot, source.name)
            facts["plot"] = str(plot)
    tell_of_traffic(source.name, found, rma)
    print_facts(source.name, facts, as_json)


def _opened(trace: str) -> Source:
    """Say what a trace argument means; see `open_source`."""
    from hopmap.scenarios.mistaken import TRACE, expect
    from hopmap.traces.sources import open_source

    expect(TRACE, trace)
    return open_source(trace)


def _read(
    source: Source, progress: Progress, rma: str = "include", workers: int | None = None
) -> tuple[dict[str, Any], SourceTraffic]:
    """Read a source's traffic without collectives, with what else is known of it."""
    from hopmap.simulator.programs.computation import omissions
    from hopmap.simulator.programs.from_source import (
        SourceTraffic,
        left_out_of_archive,
        left_out_of_recording,
        of_summary,
        program_of_source,
        traffic_of_source,
        weighed,
    )
    from hopmap.traces.summary import summarize

    if workers is not None and source.archive is None:
        raise typer.BadParameter(f"--workers: {source.name} is no OTF2 archive: expected without")
    if source.archive is not None:
        from hopmap.traces.otf2 import read_kernels
        from hopmap.traces.otf2.files import companion_of, find_archive
        from hopmap.traces.otf2.totals import read_summary

        read_kernels.time_callbacks(), read_kernels.total_callbacks()  # compiled here, untimed
        begin = time.perf_counter()
        read = read_summary(source.archive, progress=progress, workers=workers)
        seconds = time.perf_counter() - begin
        counts = companion_of(find_archive(source.archive))
        beside: dict[str, Any] = {"counts": str(counts)} if counts.is_file() else {}
        beside["left_out"] = left_out_of_archive(source.archive, read)
        return read.to_dict() | beside | {"wall_seconds": seconds}, of_summary(source, read, rma)
    begin = time.perf_counter()
    if source.is_recorded:
        trace = source.trace()
        summary = summarize(trace)
        seconds = time.perf_counter() - begin
        told: dict[str, Any] = {"left_out": left_out_of_recording(trace)}
        facts = summary.to_dict() | told | {"wall_seconds": seconds}
        return facts, of_summary(source, summary, rma)
    if source.has_program and not source.has_calls:
        program = program_of_source(source).program
        traffic = program.traffic()
        seconds = time.perf_counter() - begin
        told = {"events": source.schedule().operations, "collectives": {}, "ignored": {}}
        told |= {"left_out": omissions(program), "collective_bytes": None, "duration": None}
        return traffic_facts(traffic) | told | {"wall_seconds": seconds}, weighed(
            source, SourceTraffic(traffic, {})
        )
    messages = traffic_of_source(source, rma=rma)
    seconds = time.perf_counter() - begin
    unknown: dict[str, Any] = dict.fromkeys(("events", "collective_bytes", "duration"))
    unknown |= {"collectives": {}, "ignored": {}, "left_out": []}
    return traffic_facts(messages.traffic) | unknown | {"wall_seconds": seconds}, messages


def traffic_facts(traffic: Traffic) -> dict[str, Any]:
    """Return what is said of all traffic, wherever it is from."""
    return {
        "ranks": traffic.ranks,
        "messages": int(traffic.messages.sum()),
        "bytes": int(traffic.bytes.sum()),
        "pairs": traffic.pairs,
    }


def _plot(traffic: Traffic, path: Path, title: str) -> None:
    from hopmap.scenarios.figures.spy import spy_plot
    from hopmap.traces.safety.atomic_files import replacing

    with replacing(path) as partial:
        spy_plot(traffic, title=title).savefig(partial, dpi=200)


def put_traffic(out: Path, traffic: Traffic) -> None:
    """Write traffic into a file, or print it as CSV for ``-``."""
    from hopmap.traces.formats.files import save_traffic, traffic_text

    if str(out) == "-":
        say(traffic_text(traffic).rstrip("\n"))
    else:
        save_traffic(out, traffic)


def print_facts(name: str, facts: dict[str, Any], as_json: bool) -> None:
    """Print what is known of a trace or of traffic, unless the latter went to stdout."""
    if facts.get("out") == "-":
        return
    left_out = facts.get("left_out", [])
    if as_json:
        print_json(facts | {"left_out": [entry.to_dict() for entry in left_out]})
        return
    warn_of(name, left_out)
    rows: list[tuple[str, object]] = [
        (key, facts[key])
        for key in ("ranks", "events", "messages", "pairs")
        if facts.get(key) is not None
    ]
    rows.append(("bytes", f"{facts['bytes']:,} ({show_bytes(facts['bytes'])})"))
    if facts.get("duration") is not None:
        rows.append(("duration", show_seconds(facts["duration"])))
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
    for line in left_out_lines(left_out, facts.get("notes", {})):
        say(line)
    for key in ("out", "plot"):
        if key in facts:
            say(f"written: {facts[key]}")


def one_sided_rows(facts: dict[str, Any]) -> list[tuple[str, object]]:
    """Say how many one-sided operations there are, and what they move."""
    told = facts.get("one_sided") or {"records": {}}
    if not told["records"]:
        return []
    rows: list[tuple[str, object]] = [
        (f"one-sided: {name}", count) for name, count in told["records"].items()
    ]
    moved = f"{told['messages']:,} messages, {told['bytes']:,} B, {told['pairs']:,} pairs"
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
        ("  left out", show_seconds(rate["left_out_seconds"])),
    ]

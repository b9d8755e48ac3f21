"""The command simulate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from .cli_arguments import AsJson, MappingArgument, Sets, Topology, TraceArgument
from .console import print_json, print_table, say, working
from .report_units import joules
from .units import show_seconds


def simulate(
    trace: TraceArgument,
    mapping: MappingArgument,
    topology: Topology,
    engine: Annotated[str, typer.Option(help="See: list engines.")] = "simpy",
    settings: Sets = None,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Time steps of a benchmark, instead of all.")
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Rounds in which a file of traffic is sent, 1 for all at once; when left out, one "
            "message of a pair in each.",
        ),
    ] = None,
    otf2: Annotated[
        Path | None, typer.Option(help="OTF2 archive to write: the run, for Vampir.")
    ] = None,
    perfetto: Annotated[
        Path | None, typer.Option(help="JSON to write: the run, for ui.perfetto.dev.")
    ] = None,
    links: Annotated[
        list[Path] | None,
        typer.Option(
            help="Use of links over time: a table (.parquet) or a figure (.svg, .png, .pdf) to "
            "write; may be repeated."
        ),
    ] = None,
    bins: Annotated[
        int, typer.Option(min=1, help="Most time steps of --links; more than half are used.")
    ] = 256,
    as_json: AsJson = False,
) -> None:
    """Replay a trace, or traffic in rounds, over the network under a mapping."""
    from ..simulator import lower, program_of_traffic
    from ..simulator import simulate as replay
    from ..topologies import topology_from_spec
    from ..traces import Folded, Trace
    from .expanded import chosen_rows
    from .mapping_files import read_mapping
    from .run_files import RunFiles
    from .settings import check_settings, configure, parse_settings
    from .sources import find_source

    files = RunFiles(otf2, perfetto, tuple(links or ()))
    files.check()
    network = topology_from_spec(topology)
    given = parse_settings(settings or [])
    check_settings(dict(given), [network])
    network, parameters = configure(network, given)
    source = find_source(trace)
    title = f"{source.name} by {mapping} on {network.spec}, engine {engine}"
    calls: Trace | Folded | None = None
    with working(f"reading {source.name}"):
        if source.has_program:
            if rounds is not None:
                raise typer.BadParameter("--rounds: only for traffic, this is a trace")
            # An archive has all that the trace has, so that loops are written out for it.
            calls = source.calls(steps) if otf2 is None else source.trace(steps)
            program = lower(calls, parameters.algorithms)
        else:
            program = program_of_traffic(source.traffic(), rounds=rounds, name=source.name)
        files.expect_writable(program)
        node_of = read_mapping(mapping, network, program.ranks)
    with working("replaying") as progress:
        result = replay(
            program,
            network,
            node_of,
            parameters=parameters,
            engine=engine,
            record_operations=files.operations,
            record_links=bins if files.links else 0,
            progress=lambda done, total: progress(done, total, "messages"),
        )
    recording = calls if isinstance(calls, Trace) else None
    with working("writing"):
        files.write(recording, program, result, network, node_of, title)
    summary = result.summary()
    if as_json:
        print_json(summary | {"algorithms": program.chosen})
        return
    rows: list[tuple[str, object]] = [
        ("makespan", show_seconds(summary["makespan"])),
        ("  computing, mean over ranks", show_seconds(float(result.compute.mean()))),
        ("  communicating", show_seconds(float(result.communicate.mean()))),
        ("  waiting", show_seconds(float(result.wait.mean()))),
        ("messages", summary["messages"]),
        ("bytes", summary["bytes"]),
        *((f"  {name}", calls) for name, calls in chosen_rows(program.chosen)),
        ("busiest link", show_seconds(summary["links"]["max_busy"])),
        ("  its share of the makespan", _share(summary)),
        ("packet hops served", summary["events"]),
        ("replayed in", show_seconds(summary["wall_seconds"])),
    ]
    if result.energy is not None:
        rows.insert(-2, ("energy", joules(result.energy.total)))
    print_table(("", f"{program.ranks} ranks"), rows, title=title)
    for path in files.paths:
        say(f"written: {path}")


def _share(summary: dict[str, Any]) -> str:
    if not summary["makespan"]:
        return "-"
    return f"{100 * summary['links']['max_busy'] / summary['makespan']:.1f} %"

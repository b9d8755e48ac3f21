"""The command simulate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hopmap.scenarios.quantities import joules
from hopmap.units import show_seconds

from .arguments import (
    AsJson,
    Engine,
    Failures,
    MappingOrJobs,
    OfMapping,
    Repeat,
    Rounds,
    Sets,
    Steps,
    TraceOrJobs,
    check_out,
    failing_of,
    replay_settings,
)
from .console import (
    chosen_rows,
    left_out_lines,
    link_lines,
    print_json,
    print_table,
    say,
    warn_of,
    working,
)
from .explain import bound_label
from .jobs import (
    OPTIONS,
    AloneOption,
    BackgroundOption,
    JobOption,
    JobsOption,
    one_run,
    simulate_several,
)

if TYPE_CHECKING:
    from hopmap.simulator import Bound, Parameters, Result
    from hopmap.topologies import LinkKind


def simulate(
    context: typer.Context,
    trace: TraceOrJobs = None,
    mapping: MappingOrJobs = None,
    topology: OfMapping = None,
    failures: Failures = None,
    engine: Engine = None,
    settings: Sets = None,
    steps: Steps = None,
    rounds: Rounds = None,
    exact: Annotated[
        bool,
        typer.Option(
            "--exact",
            help="Replay all steps. Else runs of over 20 million packet-hops end once their main "
            "loop has settled, and the other steps are extrapolated, with an error bound.",
        ),
    ] = False,
    repeat: Repeat = 0,
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
        int | None,
        typer.Option(
            min=1, help="Most time steps of --links, 256 when left out; more than half are used."
        ),
    ] = None,
    job: JobOption = None,
    jobs: JobsOption = None,
    background: BackgroundOption = None,
    alone: AloneOption = True,
    as_json: AsJson = False,
) -> None:
    """Replay a trace, or traffic in rounds, over the network under a mapping; or several jobs."""
    from hopmap.scenarios.given import configured, mapping_given, name_of, on_network, replay_given
    from hopmap.scenarios.replays import BINS, expect_engine, replayed
    from hopmap.scenarios.run_files import RunFiles
    from hopmap.simulator import DEFAULT_ENGINE, ENGINES, lower_bounds
    from hopmap.simulator.noise import without_noise

    engine = engine or DEFAULT_ENGINE
    files = RunFiles(otf2, perfetto, tuple(links or ()))
    files.check()
    if bins is not None and not links:
        raise typer.BadParameter("--bins: expected --links with it")
    check_out(otf2, folder=True)
    check_out(perfetto, *files.links)
    expect_engine(engine)
    several = bool(job or jobs or background)
    if (one := one_run(context, trace, mapping, several=several, has=OPTIONS)) is None:
        simulate_several(
            *(job or (), jobs, background or (), topology),
            engine=engine,
            settings=replay_settings(settings),
            alone=alone,
            files=files,
            bins=bins,
            as_json=as_json,
        )
        return
    trace, mapping = one
    name_of(trace)
    network, _ = on_network(failing_of(topology, mapping, failures), mapping)
    mapping_given(mapping, configured(network)[0], None)
    with working("replaying") as progress:
        given = replay_given(
            trace,
            network,
            settings=replay_settings(settings),
            steps=steps,
            rounds=rounds,
            written_out=files.written_out,
        )
        node_of = mapping_given(mapping, given.network, given.program.ranks)
        title = f"{given.name} by {mapping} on {given.network.spec}, engine {engine}"
        result = replayed(
            *(given, node_of, engine, files, bins or BINS),
            exact=exact,
            repeat=repeat,
            title=title,
            progress=progress,
        )
    summary = result.to_dict()
    if as_json:
        kinds = [_described(kind) for kind in given.network.kinds]
        print_json(summary | {"algorithms": given.program.chosen, "link_kinds": kinds})
        return
    warn_of(given.name, result.left_out)
    quiet = without_noise(given.parameters)
    bounded = bool(repeat) or quiet == given.parameters
    bounds = (
        lower_bounds(given.program, given.network, node_of, parameters=quiet) if bounded else {}
    )
    rows: list[tuple[str, object]] = [
        *_extrapolation_rows(result),
        *_bound_rows(bounds, shared=_shares(engine, given.parameters)),
        ("computing, mean over ranks", show_seconds(float(result.compute.mean()))),
        ("communicating", show_seconds(float(result.communicate.mean()))),
        ("waiting", show_seconds(float(result.wait.mean()))),
        ("messages", summary["messages"]),
        ("bytes", summary["bytes"]),
        *((f"  {name}", calls) for name, calls in chosen_rows(given.program.chosen)),
        ("busiest link", show_seconds(summary["links"]["max_busy"])),
        ("  its share of the makespan", _share(summary)),
    ]
    if ENGINES[engine].packets:
        rows.append(("packet hops served", summary["events"]))
    rows.append(("replayed in", show_seconds(summary["wall_seconds"])))
    if result.energy is not None:
        rows.insert(-2, ("energy", joules(result.energy.total)))
    seed = None if bounded else given.parameters.noise_seed
    headline = f"{_headline(result, seed)}{_validated(settings, given.network.spec)}"
    print_table(("", f"{result.ranks} ranks"), rows, title=f"{title}\n{headline}")
    for line in (*left_out_lines(result.left_out, result.notes), *link_lines(given.network.kinds)):
        say(line)
    for path in files.paths:
        say(f"written: {path}")


def _headline(result: Result, seed: int | None) -> str:
    """Say how long the run took, how sure that is, and what it rests on; `seed` is of its noise."""
    from hopmap.scenarios.assumed import in_words

    repeats = "" if seed is None else f", one with noise, of seed {seed}"
    repeats = repeats if result.ensemble is None else f", {result.ensemble}"
    rests = f"assumed: {in_words(result.assumed)}" if result.assumed else "nothing assumed"
    return f"makespan {show_seconds(result.makespan)}{repeats} ({rests})"


def _validated(settings: Sequence[str] | None, network: str) -> str:
    """Say how far off measured times the parameters were, and whether on this network."""
    from hopmap.simulator.parameters.settings import validated_in

    lines = []
    for file, topologies, error in validated_in(settings or ()):
        here = "this network" if network in topologies else ", ".join(topologies)
        other = "" if network in topologies else ", not on this network"
        lines.append(f"\nvalidated on {here}: error {100 * error:.1f} % (median; {file}){other}")
    return "".join(lines)


def _shares(engine: str, parameters: Parameters) -> bool:
    """Whether messages share servers that pass no more than their bandwidth."""
    faster = parameters.flow_bandwidth_factor > 1 or parameters.flow_cross_traffic < 1
    return engine != "analytic" and not (engine == "flow" and faster)


def _extrapolation_rows(result: Result) -> list[tuple[str, object]]:
    """Say which steps were replayed, where that is the question."""
    if result.extrapolated is not None:
        steps, error = str(result.extrapolated).split(", ")
        return [(f"  {steps}", error)]
    return [("  all steps replayed", result.whole)] if result.whole else []


def _bound_rows(bounds: Mapping[str, Bound], *, shared: bool) -> list[tuple[str, object]]:
    """Show the longest rank, and what needs longest besides where messages share servers."""
    other = next((name for name in bounds if name != "rank"), None) if shared else None
    return [
        (f"at least, {bound_label(name, bound)}", show_seconds(bound.seconds))
        for name, bound in bounds.items()
        if name in ("rank", other)
    ]


def _share(summary: dict[str, Any]) -> str:
    if not summary["makespan"]:
        return "-"
    return f"{100 * summary['links']['max_busy'] / summary['makespan']:.1f} %"


def _described(kind: LinkKind) -> dict[str, Any]:
    """Columns of a kind of links; of what it is a share only where links are degraded."""
    columns = asdict(kind)
    return columns if kind.of else {k: v for k, v in columns.items() if k not in ("of", "share")}

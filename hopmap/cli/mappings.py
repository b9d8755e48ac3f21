"""Commands on mappings: map, evaluate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hopmap.units import joules, show_seconds

from .console import (
    INTERRUPTED,
    excess_in_result,
    note,
    print_json,
    print_table,
    rests_on,
    say,
    say_written,
    warn,
    working,
)
from .options import (
    AsJson,
    Balanced,
    MachineOptions,
    MappingFile,
    Seed,
    Topology,
    TopologyOfMapping,
    Trace,
    TrafficOptions,
    check_no_picture,
    check_out,
    check_picture,
    complete_engines,
    complete_mappers,
)

if TYPE_CHECKING:
    from hopmap.api.job import Job
    from hopmap.api.mapping import Objective, Placement
    from hopmap.simulator.metrics.metrics import HotLink, Metrics
    from hopmap.topologies import Topology as Network

STOPPED = {
    "optimal": "optimal, no mapping is better",
    "stagnated": "stagnated, the last round gained next to nothing; --seconds searches on",
    "budget": "budget, more may be gained with more of it",
}


@dataclass(frozen=True)
class SearchOptions:
    """How a mapping is looked for."""

    mapper: Annotated[
        str,
        typer.Option(
            "--mapper",
            "-m",
            help='Pipeline, like "minmd | bokhari(jumps=8)"; see: list mappers.',
            autocompletion=complete_mappers,
        ),
    ] = "auto"
    objective: Annotated[
        str | None,
        typer.Option(
            help="hop_bytes, hop_messages, cardinality, max_link_load, makespan_bound; or, "
            "replayed at every evaluation, makespan or energy. Default: each mapper's own; auto "
            "has hop_bytes, on dragonflies max_link_load."
        ),
    ] = None
    engine: Annotated[
        str | None,
        typer.Option(
            help="Engine of makespan and energy: compiled, or see: list engines.",
            autocompletion=complete_engines,
        ),
    ] = None
    seconds: Annotated[float | None, typer.Option(min=0, help="Time budget of searches.")] = None
    seed: Seed = 0
    initial: Annotated[
        Path | None, typer.Option(help="Mapping file that the first mapper starts from.")
    ] = None
    balanced: Balanced = False
    imbalance: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Imbalance of a graph with more vertices than slots: how far a node may exceed "
            "its share, 0.03 is 3 %.",
        ),
    ] = None
    with_job: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TRACE,MAPPING",
            help="A co-running job, written as for simulate --job; may be repeated. Its nodes are "
            "not free. max_link_load (then the default objective of auto) and makespan count its "
            "traffic.",
        ),
    ] = None

    @property
    def co_running(self) -> tuple[Job, ...]:
        """Jobs of ``--with-job``."""
        if not self.with_job:
            return ()
        from hopmap.api.job import job_of

        return tuple(job_of(text) for text in self.with_job)

    def goal(self, machine: MachineOptions) -> Objective:
        """Return the objective; nothing that only replays use may be set without one of these."""
        from hopmap.api.simulated_objective import BOUND, SIMULATED, Replayed

        if self.objective in SIMULATED:
            return Replayed(self.objective, self.engine or Replayed.engine)
        if self.engine is not None:
            raise typer.BadParameter(f"--engine {self.engine} requires --objective makespan")
        if self.objective != BOUND:
            expect_algorithms(machine, "it takes --objective makespan or energy")
        return self.objective


def expect_algorithms(machine: MachineOptions, why: str) -> None:
    """Raise `typer.BadParameter` for a setting that no traffic depends on."""
    from hopmap.simulator.parameters.keys import names_algorithm

    for key in machine.settings:
        if not names_algorithm(key):
            raise typer.BadParameter(f"--set {key} changes nothing here: {why}")


def map_(
    trace: Trace,
    topology: Topology,
    traffic: TrafficOptions,
    machine: MachineOptions,
    search: SearchOptions,
    out: Annotated[Path | None, typer.Option(help="Mapping file to write; - is stdout.")] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            help="Figure to write (.svg, .png, .pdf): ranks on the network; of a Cartesian grid "
            "whose ranks share nodes, the grid coloured by node."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Place ranks on nodes, and compare the result with the default order.

    Ctrl-C ends a search with the best mapping so far, which is written; exit code 130.
    """
    from hopmap.api.mapping import map_ranks
    from hopmap.launchers.mapping_files import mapping_text, write_mapping
    from hopmap.mappers import parse_pipeline

    check_picture(plot)
    check_no_picture(out)
    check_out(out, plot)
    with working("mapping") as progress, excess_in_result():
        workload = traffic.workload(trace)
        place = machine.machine(
            topology,
            balanced=search.balanced,
            imbalance=search.imbalance,
            co_running=search.co_running,
        )
        placed = map_ranks(
            workload,
            place,
            search.mapper,
            objective=search.goal(machine),
            seconds=search.seconds,
            seed=search.seed,
            initial=search.initial,
            keep_interrupted=True,
            progress=progress,
        )
    network = placed.topology
    stages = parse_pipeline(search.mapper)
    if search.seconds is not None and not any(stage.info.has("seconds") for stage in stages):
        note(f"--seconds {search.seconds:g}: without effect, {placed.mapper} searches nothing")
    if search.imbalance is not None and len(placed) <= place.network.slots.sum():
        note(f"--imbalance {search.imbalance:g}: without effect, there is a slot for every rank")
    if placed.interrupted:
        note("interrupted: this is the best mapping so far")
    if str(out) == "-":
        if placed.warning:
            warn(placed.warning)
        say(mapping_text(placed.node_of, network).rstrip("\n"))
    elif out is not None:
        write_mapping(out, placed.node_of, network)
    if plot is not None:
        _plot(plot, placed, search.mapper)
    if str(out) == "-":
        pass
    elif as_json:
        print_json(placed.to_dict())
    else:
        show_placement(placed, str(search.initial or "nodes in order"))
        say_written(out, plot)
    if placed.interrupted:
        raise SystemExit(INTERRUPTED)


def show_placement(placed: Placement, began: str = "before") -> None:
    """Print what messages and bytes cross, and below each what they would in default order."""
    network = placed.topology
    where = network.spec
    if (used := int((network.slots > 0).sum())) < network.nodes:
        where = f"{used} of the {network.nodes} nodes of {where}"
    this, baseline = placed.metrics(), placed.metrics_in_default_order()
    if placed.warning:
        say(placed.warning)
    rows: list[tuple[object, ...]] = []
    for name in ("messages", "bytes"):
        label = name if baseline is None else f"{name}, mapped"
        rows.append((label, *_figures(getattr(this, name))))
        if baseline is not None:
            rows.append(("  default order", *_figures(getattr(baseline, name))))
    print_table(
        ("", "hops x amount", "mean hops", "longest", "busiest link"),
        rows,
        title=f"{placed.name}: {len(placed)} ranks on {where} by {placed.mapper}, "
        f"in {show_seconds(placed.seconds)}",
    )
    if placed.stop_reason is not None:
        say(f"stopped: {STOPPED[placed.stop_reason]}")
    if (gain := placed.expected_gain) is not None:
        from hopmap.mappers.more_time import TIMES

        part = f"about {100 * gain:.2g} %" if gain else "less than 0.1 %"
        source = "(median of benchmarks; not measured here)"
        say(f"{TIMES} times the time would lower hop-bytes by {part} {source}")
    if placed.objective is not None:
        called, *values = placed.objective
        shown = {"makespan": show_seconds, "makespan_bound": show_seconds, "energy": joules}.get(
            called, int
        )
        say()
        print_table(("objective", began, "this mapping"), [(called, *map(shown, values))])
        if (result := placed.best_replay) is not None:
            say(f"{placed.replays:,} replays by engine {result.engine} ({rests_on(result)})")


def _figures(side: Any) -> tuple[object, ...]:
    return side.dilation.sum, side.dilation.avg, side.dilation.max, side.congestion.max


def evaluate(
    trace: Trace,
    mapping: MappingFile,
    traffic: TrafficOptions,
    machine: MachineOptions,
    topology: TopologyOfMapping = None,
    seeds: Annotated[
        int | None,
        typer.Option(min=1, help="Number of samples of random --failures."),
    ] = None,
    convention: Annotated[
        str, typer.Option(help="hopmap (correct) or maplib (as the HAEC thesis published).")
    ] = "hopmap",
    top: Annotated[int, typer.Option(min=0, help="Busiest links to list.")] = 5,
    as_json: AsJson = False,
) -> None:
    """Measure a mapping: what stays on nodes, what crosses links, which links are hot."""
    from hopmap.api.simulation import evaluate as measure

    if seeds is not None and machine.failures is None:
        raise typer.BadParameter("--seeds requires --failures, like links=3")
    expect_algorithms(machine, "evaluate replays nothing")
    workload = traffic.workload(trace)
    with working("measuring"):
        metrics = measure(
            workload,
            machine.machine(topology),
            mapping,
            convention=convention,
            top=top,
            draws=seeds,
        )
    if as_json:
        print_json(metrics.to_dict())
        return
    assert metrics.network is not None
    show_metrics(metrics, f"{workload.name} by {mapping} on {metrics.network.spec}")


def show_metrics(metrics: Metrics, title: str = "") -> None:
    """Print all static metrics, what failures cost, and the busiest links."""
    network = metrics.network
    _print_metrics(title or (network.spec if network else ""), metrics.to_dict())
    if metrics.failure_impact is not None:
        say()
        print_table(
            ("what failures cost", "without", "with, mean", "worst", "loss, mean", "worst"),
            metrics.failure_impact.rows(),
        )
    if metrics.hot_links and network is not None:
        say()
        _print_hot(metrics.hot_links, network)


def _plot(path: Path, placed: Placement, mapper: str) -> None:
    """Draw a mapping and the default order next to it.

    That is a grid of ranks where the traffic has one and nodes share it, else the network.
    """
    from hopmap.figures.cartesian import drawable_dims, grid_mappings, off_node
    from hopmap.figures.mapping import mapping_view
    from hopmap.figures.style import write_figure

    title = f"{placed.name} on {placed.topology.spec}"
    dims = drawable_dims(placed.traffic)
    mappings = {mapper: placed.node_of}
    if placed.default_order is not None:
        mappings["default order"] = placed.default_order
    if dims is not None and len(set(placed.node_of.tolist())) < len(placed):
        left = {
            name: replace(placed, node_of=node_of).metrics().messages.off_node
            for name, node_of in mappings.items()
        }
        drawn = {k: (own, off_node(left[k].total, left[k].max)) for k, own in mappings.items()}
        figure = grid_mappings(dims, drawn, title=title)
    else:
        figure = mapping_view(placed.topology, mappings, placed.traffic, title=title)
    write_figure(figure, path)


def _print_metrics(title: str, metrics: dict[str, Any]) -> None:
    m, b = metrics["messages"], metrics["bytes"]
    places = {
        "rank traffic": "IePLC",
        "within nodes": "IaNLC",
        "between nodes": "IeNLC",
        "on links": "IeNPC",
    }
    rows: list[tuple[object, ...]] = [
        (place, name, q, *(side[name.lower()][part] for part in ("total", "avg", "min", "max")))
        for place, name in places.items()
        for q, side in (("messages", m), ("bytes", b))
    ]
    print_table(
        ("", "HAEC thesis", "", "total", "average", "min", "max"), rows, title=title, left=3
    )
    say()
    links = m["congestion"]
    print_table(
        ("", "messages", "bytes"),
        [
            ("dilation, mean hops", m["dilation"]["avg"], b["dilation"]["avg"]),
            ("dilation, longest", m["dilation"]["max"], b["dilation"]["max"]),
            ("dilation, hops x amount", m["dilation"]["sum"], b["dilation"]["sum"]),
            ("dilation, largest pair", m["dilation"]["max_pair"], b["dilation"]["max_pair"]),
            ("congestion, busiest link", links["max"], b["congestion"]["max"]),
            ("congestion, pairs on a link", links["pairs"], b["congestion"]["pairs"]),
            ("off-node, sum", m["off_node"]["total"], b["off_node"]["total"]),
            ("off-node, worst node", m["off_node"]["max"], b["off_node"]["max"]),
        ],
        title=f"{metrics['ranks']} ranks, {metrics['nodes']} nodes, {links['used_links']:,} of "
        f"{links['links']:,} links used, {metrics['cardinality']:,} of {metrics['pairs']:,} pairs "
        f"of ranks at most one hop apart, convention {metrics['convention']}",
    )


def _print_hot(hot: list[HotLink], network: Network) -> None:
    rows = [
        (
            f"{network.vertex_name(link.source)} -> {network.vertex_name(link.target)}",
            link.kind,
            ", ".join(f"{src}>{dst}" for src, dst, *_ in link.pairs[:4])
            + (", ..." if len(link.pairs) > 4 else ""),
            link.messages,
            link.bytes,
        )
        for link in hot
    ]
    print_table(("busiest links", "kind", "heaviest rank pairs", "messages", "bytes"), rows, left=3)

"""Commands on mappings: map, evaluate, export, header."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hopmap.simulator.parameters.shown import joules
from hopmap.simulator.parameters.units import show_seconds

from .arguments import (
    Algorithms,
    AsJson,
    Collectives,
    CollectivesOption,
    MappingArgument,
    MapSets,
    Rounds,
    Steps,
    Topology,
    TrafficArgument,
    check_out,
    check_picture,
)
from .console import note, print_json, print_table, say, working

if TYPE_CHECKING:
    from hopmap.simulator.metrics.metrics import HotLink
    from hopmap.topologies import Mapping
    from hopmap.topologies import Topology as Network
    from hopmap.traces import Traffic


def map_(
    traffic: TrafficArgument,
    topology: Topology,
    mapper: Annotated[
        str, typer.Option("--mapper", "-m", help='Pipeline, like "minmd | bokhari(jumps=8)".')
    ],
    out: Annotated[Path | None, typer.Option(help="Mapping file to write.")] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            help="Figure to write (.svg, .png, .pdf): ranks on the network; of a Cartesian grid "
            "whose ranks share nodes, the grid coloured by node."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same mapping.")] = 0,
    seconds: Annotated[float | None, typer.Option(min=0, help="Time budget of searches.")] = None,
    initial: Annotated[
        Path | None, typer.Option(help="Mapping file that the first mapper starts from.")
    ] = None,
    hosts: Annotated[
        Path | None, typer.Option(help="Nodes that the job has, one host a line; else all.")
    ] = None,
    nodelist: Annotated[
        str | None, typer.Option(help="The same as Slurm lists them: node[01-32],gpu7.")
    ] = None,
    objective: Annotated[
        str | None,
        typer.Option(
            help="hop_bytes, hop_messages, cardinality, max_link_load; or, replayed at every "
            "evaluation, makespan or energy. When left out, each mapper's own."
        ),
    ] = None,
    engine: Annotated[
        str | None, typer.Option(help="Of makespan and energy: compiled, or see: list engines.")
    ] = None,
    collectives: CollectivesOption = Collectives.IGNORE,
    settings: MapSets = None,
    steps: Steps = None,
    rounds: Rounds = None,
    as_json: AsJson = False,
) -> None:
    """Place ranks on nodes."""
    from hopmap.mappers import parse_pipeline
    from hopmap.mappers.timing import timed_mapping
    from hopmap.scenarios.launchers.mapping_files import read_mapping, write_mapping
    from hopmap.scenarios.launchers.node_names import nodes_named
    from hopmap.simulator import evaluate as measure
    from hopmap.topologies import topology_from_spec
    from hopmap.traces.sources import find_source

    from .expanded import algorithms_given, read_traffic, warn_if_silent
    from .replays import read_unplaced
    from .simulated_objective import SIMULATED, Simulated, before_and_after, check_objective

    check_picture(plot)
    check_out(out, plot)
    network = topology_from_spec(topology)
    pipeline = parse_pipeline(mapper)
    if initial is not None and pipeline[0].info.initial == "ignored":
        raise typer.BadParameter(f"--initial: {pipeline[0].info.name} starts from no mapping")
    goal: str | Callable[[Mapping], float] | None = objective
    if objective in SIMULATED:
        run = read_unplaced(traffic, topology, settings, steps, rounds)
        source, network = run.source, run.network
        goal = Simulated(objective, run, engine or "compiled")
        if collectives is Collectives.EXPAND:
            pairs, left_out = run.program.traffic(), 0
        else:
            pairs, _, left_out = read_traffic(source, collectives, {})
    else:
        other = [word for word in settings or [] if not word.startswith("collective.")]
        for option, value in (
            ("--engine", engine),
            ("--steps", steps),
            ("--rounds", rounds),
            (f"--set {' '.join(other)}", other or None),
        ):
            if value is not None:
                raise typer.BadParameter(f"{option}: expected --objective makespan with it")
        check_objective(objective)
        algorithms = algorithms_given(collectives, settings)
        source = find_source(traffic)
        with working(f"reading {source.name}"):
            pairs, _, left_out = read_traffic(source, collectives, algorithms)
    where = network.spec
    if hosts is not None or nodelist is not None:
        given = nodes_named(network, hosts, nodelist)
        network = network.only(given)
        where = f"{len(given)} of the {network.nodes} nodes of {where}"
    start = None if initial is None else read_mapping(initial, network, pairs.ranks)
    with working("mapping") as progress:
        node_of, wall = timed_mapping(
            pairs, network, mapper, seed=seed, seconds=seconds, initial=start, objective=goal,
            progress=progress,
        )  # fmt: skip
    if isinstance(goal, Simulated) and seconds is not None and goal.replays < 2:
        note(
            f"--seconds {seconds:g} was over after {goal.replays or 'no'} replay, so that no other "
            "mapping was tried: expected a longer budget, fewer --steps or a faster --engine"
        )
    values = None if goal is None else before_and_after(goal, pairs, network, start, node_of)
    metrics = measure(pairs, network, node_of).as_dict()
    if out is not None:
        write_mapping(out, node_of, network)
    if plot is not None:
        _plot(plot, f"{source.name} on {network.spec}", mapper, pairs, network, node_of, metrics)
    warn_if_silent(source, pairs, collectives, left_out)
    if as_json:
        summary = {
            "mapper": " | ".join(map(str, pipeline)),
            "topology": network.spec,
            "ranks": pairs.ranks,
            "seconds": wall,
            "hop_bytes": metrics["bytes"]["dilation"]["sum"],
            "hop_messages": metrics["messages"]["dilation"]["sum"],
            "node_of": node_of.tolist(),
        }
        if values is not None:
            summary["objective"] = {"name": objective, "before": values[0], "after": values[1]}
        print_json(summary)
        return
    rows = [
        (
            name,
            metrics[name]["dilation"]["sum"],
            metrics[name]["dilation"]["avg"],
            metrics[name]["dilation"]["max"],
            metrics[name]["congestion"]["max"],
        )
        for name in ("messages", "bytes")
    ]
    print_table(
        ("", "hops x amount", "mean hops", "longest", "busiest link"),
        rows,
        title=f"{source.name}: {pairs.ranks} ranks on {where} by {mapper}, in {show_seconds(wall)}",
    )
    if values is not None:
        shown = {"makespan": show_seconds, "energy": joules}.get(objective or "", int)
        began = "nodes in order" if initial is None else str(initial)
        say()
        print_table(("objective", began, "this mapping"), [(objective, *map(shown, values))])
    for written in filter(None, (out, plot)):
        say(f"written: {written}")


def evaluate(
    traffic: TrafficArgument,
    mapping: MappingArgument,
    topology: Topology,
    convention: Annotated[
        str, typer.Option(help="hopmap (correct) or maplib (as the HAEC thesis published).")
    ] = "hopmap",
    top: Annotated[int, typer.Option(min=0, help="Busiest links to list.")] = 5,
    collectives: CollectivesOption = Collectives.IGNORE,
    settings: Algorithms = None,
    as_json: AsJson = False,
) -> None:
    """Measure a mapping: what stays on nodes, what crosses links, which links are hot."""
    from hopmap.scenarios.launchers.mapping_files import read_mapping
    from hopmap.simulator import evaluate as measure
    from hopmap.simulator import hot_links
    from hopmap.topologies import topology_from_spec
    from hopmap.traces.sources import find_source

    from .expanded import algorithms_given, read_traffic, warn_if_silent

    network = topology_from_spec(topology)
    algorithms = algorithms_given(collectives, settings)
    source = find_source(traffic)
    with working(f"reading {source.name}"):
        pairs, _, left_out = read_traffic(source, collectives, algorithms)
    node_of = read_mapping(mapping, network, pairs.ranks)
    with working("measuring"):
        metrics = measure(pairs, network, node_of, convention).as_dict()
        hot = hot_links(pairs, network, node_of, top=top) if convention == "hopmap" else []
    warn_if_silent(source, pairs, collectives, left_out)
    if as_json:
        print_json(metrics | {"hot_links": [asdict(link) for link in hot]})
        return
    _print_metrics(f"{source.name} by {mapping} on {network.spec}", metrics)
    if hot:
        say()
        _print_hot(hot, network)


def export(
    mapping: MappingArgument,
    to: Annotated[str, typer.Option(help="Launcher, or csv (hopmap's own); see: list formats.")],
    topology: Annotated[
        str | None, typer.Option("--topology", "-t", help="If the mapping file does not name it.")
    ] = None,
    given: Annotated[
        str | None,
        typer.Option("--from", help="Launcher whose file MAPPING is, if it does not show that."),
    ] = None,
    hosts: Annotated[
        Path | None, typer.Option(help="Names of all nodes in order of their numbers, one a line.")
    ] = None,
    nodelist: Annotated[
        str | None, typer.Option(help="The same as Slurm lists them: node[01-32],gpu7.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="File to write; stdout when left out.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write a mapping as a launcher reads it, from any format."""
    from hopmap.scenarios.launchers.formats import (
        beside,
        export_mapping,
        find_launcher,
        paths_beside,
        usage,
    )
    from hopmap.scenarios.launchers.mapping_files import (
        mapping_text,
        named_hosts,
        network_of,
        read_mapping,
    )
    from hopmap.scenarios.launchers.node_names import node_names
    from hopmap.traces.safety.atomic_files import replacing

    check_out(out)
    network = network_of(mapping, topology)
    if hosts is None and nodelist is None:
        names = named_hosts(mapping)
    else:
        names = node_names(network, hosts, nodelist)
    node_of = read_mapping(mapping, network, form=None if given == "csv" else given, hosts=names)
    called = str(out or "FILE")
    files: dict[Path, str] = {}
    if to == "csv":
        text, command = mapping_text(node_of, network), ""
    else:
        names = names or node_names(network)
        text = export_mapping(to, node_of, network, names, called)
        command = usage(find_launcher(to), node_of, called, names)
        if out is not None:
            files = beside(to, network, out, names)
    if out is not None:
        files = {out: text, **files}
    for path, content in files.items():
        with replacing(path) as partial:
            partial.write_text(content, encoding="utf-8")
    other = [str(path) for path in paths_beside(to, Path(called))]
    if other and out is None:
        note(f"--out FILE writes {', '.join(other)} as well, which is needed beside it")
    if as_json:
        shown = {"out": str(out)} if files else {"text": text}
        facts = {"launcher": to, "ranks": len(node_of), "command": command, "beside": other}
        print_json(facts | shown)
        return
    if not files:
        if command and not find_launcher(to).commented:
            note(f"use it: {command}")
        say(text.rstrip("\n"))
    for path in files:
        say(f"written: {path}")
    if files and command:
        say(f"use it:  {command}")


def header(
    out: Annotated[Path | None, typer.Option(help="File to write; stdout when left out.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write hopmap_cart.h: the mappers of Cartesian grids for MPI programs in C and C++."""
    from importlib.resources import files

    from hopmap.mappers import cartesian
    from hopmap.traces.safety.atomic_files import replacing

    check_out(out)
    text = (files(cartesian) / "hopmap_cart.h").read_text(encoding="utf-8")
    if out is not None:
        with replacing(out) as partial:
            partial.write_text(text, encoding="utf-8")
    if as_json:
        print_json({"text": text} if out is None else {"out": str(out)})
    elif out is None:
        say(text.rstrip("\n"))
    else:
        say(f"written: {out}")


def _plot(
    path: Path,
    title: str,
    mapper: str,
    pairs: Traffic,
    network: Network,
    node_of: Mapping,
    metrics: dict[str, Any],
) -> None:
    """Draw a grid of ranks where the traffic has one and nodes share it, else the network."""
    import numpy as np

    from hopmap.scenarios.figures.cartesian import drawable_dims, grid_mappings, off_node
    from hopmap.scenarios.figures.mapping import mapping_view
    from hopmap.traces.safety.atomic_files import replacing

    dims = drawable_dims(pairs)
    if dims is not None and len(np.unique(node_of)) < len(node_of):
        words = off_node(**metrics["messages"]["off_node"])
        figure = grid_mappings(dims, {mapper: (node_of, words)}, title=title)
    else:
        figure = mapping_view(network, node_of, pairs, title=f"{title}: {mapper}")
    with replacing(path) as partial:
        figure.savefig(partial, dpi=200)


def _print_metrics(title: str, metrics: dict[str, Any]) -> None:
    m, b = metrics["messages"], metrics["bytes"]
    labels = {
        "ieplc": "IePLC between ranks",
        "ianlc": "IaNLC on nodes",
        "ienlc": "IeNLC between nodes",
        "ienpc": "IeNPC on links",
    }
    rows: list[tuple[object, ...]] = [
        (label, q, *(side[key][part] for part in ("total", "avg", "min", "max")))
        for key, label in labels.items()
        for q, side in (("messages", m), ("bytes", b))
    ]
    print_table(("", "", "total", "average", "min", "max"), rows, title=title, left=2)
    say()
    links = m["congestion"]
    print_table(
        ("", "messages", "bytes"),
        [
            ("dilation, mean hops", m["dilation"]["avg"], b["dilation"]["avg"]),
            ("dilation, longest", m["dilation"]["max"], b["dilation"]["max"]),
            ("dilation, hops x amount", m["dilation"]["sum"], b["dilation"]["sum"]),
            ("congestion, busiest link", links["max"], b["congestion"]["max"]),
            ("off-node, sum", m["off_node"]["total"], b["off_node"]["total"]),
            ("off-node, worst node", m["off_node"]["max"], b["off_node"]["max"]),
        ],
        title=f"{metrics['ranks']} ranks, {metrics['nodes']} nodes, {links['used_links']:,} of "
        f"{links['links']:,} links used, convention {metrics['convention']}",
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

"""The page of `hopmap view`: a mapping and the default order, replayed and put next to each other.

The page holds its data, style and script itself, and asks nothing of the network.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup

from hopmap.api.input_kinds import MappingLike
from hopmap.api.machine import MachineLike, load_mapping
from hopmap.api.provenance import format_keys, with_assumed
from hopmap.api.workload import Workload, WorkloadLike
from hopmap.arrays import Ints
from hopmap.mappers import map_ranks
from hopmap.progress import Progress, silent
from hopmap.report.report import render
from hopmap.simulator.noise import expect_no_noise
from hopmap.simulator.parameters.keys import expect_fixed_routes
from hopmap.traces.safety.atomic_files import write_text
from hopmap.units import count, percent, show_seconds
from hopmap.version import __version__

from .drawing import drawing_of
from .packing import pack
from .replays import PARTS, Replay, heaviest_pairs, links_shown, replay
from .units import levels_of

HERE = Path(__file__).parent
SCRIPTS = ("page.js", "network.js", "timeline.js", "matrix.js")
DEFAULT_ORDER = "default order"
HOSTS_MISSING = (
    "A job's hosts may have another default order: name them with --hosts or --nodelist."
)


class Section(NamedTuple):
    """What results add to a page."""

    title: str
    how: str  # a sentence on how to read it
    # caption, address, width in pixels, and a mouse's areas of each picture
    pictures: Sequence[dict[str, Any]] = ()
    regrets: Sequence[dict[str, Any]] = ()


class Explorer(NamedTuple):
    """A page, and the runs on it, the default order first where the mapping is another.

    Examples
    --------
    >>> found = explore("stencil:4x2,5pt", "torus:8", [7, 6, 5, 4, 3, 2, 1, 0])
    >>> [run.name for run in found.runs]
    ['default order', 'mapping']
    """

    title: str
    verdict: str
    page: str
    runs: list[Replay]

    def to_dict(self) -> dict[str, Any]:
        """Return what ``view --json`` prints, the file apart."""
        runs = [
            {"name": run.name, "makespan": run.result.makespan, "parts": run.content["parts"]}
            | {"leaving": run.content["leaving"]}
            for run in self.runs
        ]
        return {"title": self.title, "verdict": self.verdict, "runs": runs}

    def write(self, path: str | Path) -> None:
        """Write the page, whole or not at all."""
        write_text(Path(path), self.page)


def explore(
    workload: WorkloadLike,
    machine: MachineLike | None,
    mapping: MappingLike,
    *,
    name: str = "",
    baseline: tuple[str, Ints] | None = None,
    sections: Sequence[Section] = (),
    progress: Progress = silent,
) -> Explorer:
    """Replay a mapping and a baseline, and return the page on them.

    Parameters
    ----------
    workload, machine, mapping : see `hopmap.simulate`
    name : str
        What the page calls the mapping; the name of its file when left out.
    baseline : str and ndarray(int64, shape=(ranks,)), optional
        Name and nodes of what the mapping is compared with; the default order when left out.
    sections : sequence of Section
        Appended to the page.

    Raises
    ------
    ParameterError
        Noise, adaptive routes, or progress in calls: the critical path of a run needs none of them.
    TraceError
        A workload that cannot be read.
    MappingError
        A mapping that cannot be read, names no machine where `machine` is left out, or does not
        fit the ranks and slots.
    TopologyError, SettingError
        The spec makes no network; an unknown key or quantity.
    """
    workload = Workload.of(workload)
    place = load_mapping(machine, mapping)
    network, parameters = place.machine.network, place.machine.parameters
    expect_no_noise(parameters, "view takes a run")
    expect_fixed_routes(parameters.network_routing, "view takes a run")
    program = workload.program(parameters.algorithms)
    node_of = place.of_ranks(program.ranks)
    traffic = program.traffic()
    if baseline is None:
        baseline = DEFAULT_ORDER, map_ranks(traffic, network, "identity")
    levels = levels_of(network)
    chosen = [baseline, (name or Path(place.name).name, node_of)]
    if np.array_equal(baseline[1], node_of):
        chosen = chosen[:1]
    mappings = [nodes for _, nodes in chosen]
    pairs = heaviest_pairs(traffic, network, mappings)
    shown = links_shown(traffic, network, mappings)
    runs: list[Replay] = []
    for done, (label, nodes) in enumerate(chosen):
        progress(done, len(chosen), label)
        runs.append(replay(label, program, network, nodes, parameters, pairs, levels, shown))
    result = with_assumed(runs[-1].result, place.machine.settings, generated=workload.generated)
    content = {
        "ranks": program.ranks,
        "nodes": network.nodes,
        "names": list(network.names),
        "from": network.link_from[shown].astype(np.int64),
        "to": network.link_to[shown].astype(np.int64),
        "kind": network.link_kind[shown].astype(np.int64),
        "kinds": [kind.name for kind in network.kinds],
        "drawing": drawing_of(network, levels, shown),
        "levels": [{"name": each.name, "ofNode": each.of_node} for each in levels],
        "src": traffic.src[pairs.kept].astype(np.int64),
        "dst": traffic.dst[pairs.kept].astype(np.int64),
        "bytes": traffic.bytes[pairs.kept].astype(np.int64),
        "total": int(traffic.bytes.sum()),
        "runs": [each.content for each in runs],
    }
    notes = [f"Replayed by engine compiled with hopmap {__version__}."]
    if result.assumed:
        notes.append(f"Assumed, neither measured nor published: {format_keys(result.assumed)}.")
    if workload.steps is not None:
        notes.append(f"Time steps replayed: {workload.steps}.")
    notes += [f"{entry.kind.capitalize()}: {entry}." for entry in result.omitted]
    notes += [f"{what[:1].upper()}{what[1:]}: {n:,}." for what, n in result.notes.items()]
    if len(pairs.kept) < pairs.of:
        notes.append(
            f"Matrix and filter hold the {count(len(pairs.kept))} heaviest of {count(pairs.of)} "
            f"rank pairs, {percent(pairs.share)} of the bytes; totals count all pairs."
        )
    title, verdict = f"{workload.name} on {network.spec}", _verdict(runs)
    if (
        len(runs) == 1
        and network.names
        and not place.machine.has_hosts
        and "job:" not in network.spec
    ):
        verdict += f" {HOSTS_MISSING}"
    if len(shown) < network.links:
        notes.append(
            f"Shown are the {count(len(shown))} links that messages or answers take, of "
            f"{count(network.links)}."
        )
    page = render(
        HERE / "page.html.j2",
        title=title,
        runs=[_bar(each, max(each.result.makespan for each in runs)) for each in runs],
        parts=list(PARTS),
        levels=[each.name for each in levels],
        verdict=verdict,
        warnings=[str(entry) for entry in result.omitted if entry.substantial],
        notes=notes,
        sections=sections,
        data=Markup(pack(content)),
        style=Markup((HERE / "page.css").read_text(encoding="utf-8")),
        script=Markup("".join((HERE / name).read_text(encoding="utf-8") for name in SCRIPTS)),
    )
    return Explorer(title, verdict, page, runs)


def _bar(run: Replay, longest: float) -> dict[str, Any]:
    """Return what the template needs of a run: the width of its bar, parts in words, facts."""
    makespan = run.result.makespan or 1.0
    bar = [
        {
            "place": place,
            "share": f"{seconds / makespan:.6g}",
            "words": f"{run.name}: {part}, {show_seconds(seconds)}, {percent(seconds / makespan)} "
            "of the run",
        }
        for place, (part, seconds) in enumerate(run.content["parts"].items())
        if seconds > 0
    ]
    width = f"{100 * makespan / (longest or 1.0):.3f}"
    return {"name": run.name, "width": width, "bar": bar, "facts": run.content["facts"]}


def _verdict(runs: list[Replay]) -> str:
    """Say in a sentence how much the mapping saves in this one replay."""
    first, last = runs[0].result.makespan, runs[-1].result.makespan
    if len(runs) == 1:
        return "The mapping is the default order."
    change = (last - first) / first if first else 0.0
    if abs(change) < 0.01:
        return "The mapping makes no practical difference: the runs differ by less than 1 %."
    word = "shorter" if change < 0 else "longer"
    return f"The run is {percent(abs(change))} {word} with the mapping than in the default order."

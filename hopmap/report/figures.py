"""Which figures a study gets, one after another, as SVG."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, compress
from typing import TYPE_CHECKING, Any

import numpy as np

from hopmap.arrays import Floats, Ints
from hopmap.figures.bars import (
    SeedSpread,
    excess_strips,
    ienpc_bars,
    mapping_time,
    runtime_bars,
    variation,
)
from hopmap.figures.cartesian import drawable_dims, grid_mappings, off_node
from hopmap.figures.crossings import crossings, runtime_over
from hopmap.figures.mapping import mapping_view, turnable
from hopmap.figures.network import link_loads
from hopmap.figures.spy import spy_plot
from hopmap.scenarios.results import store
from hopmap.scenarios.results.study import PARTS, Case, Entry, Study
from hopmap.scenarios.results.tables import StoreError
from hopmap.simulator import KEYS, HotLink, hot_links
from hopmap.simulator.parameters.settings import LINK_UNITS, normalise
from hopmap.topologies import Topology
from hopmap.traces import Traffic
from hopmap.units import count, show_value

from .summary import excess, measure
from .tables import SECTIONS as OPTIONAL
from .tables import topology_of, with_figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OF_STUDY = ("compare", "lines", "grids")
SECTIONS = ("spy", "time", "ienpc", "runtime", "networks", "relations", "links", "mapping", "grids")
HOT = 5  # links that are numbered
WORST, SUM = "messages_off_node_max", "messages_off_node_total"
PICTURED = 12  # cases of which the network and the mapping are drawn


@dataclass(frozen=True)
class Picture:
    """A figure of the report: its trace, section, file name, caption, and the figure itself.

    Figures of the whole study have no trace. `turn` is what `page.js` needs to turn a mapping in
    the figure's first axes; `first` of a pair begins a row.
    """

    trace: str
    section: str
    name: str
    caption: str
    figure: Figure
    turn: dict[str, Any] | None = None
    first: bool = False


def count_figures(study: Study) -> int:
    """Return how many figures `figures` will about make."""
    if (alone := with_figures(study)) is not None:
        return 1 + alone.count(study)
    pictured = [case for trace in study.traces() for case in study.ends_of(trace)]
    bars = sum(2 if case.replayed else 1 for case in pictured)
    related = len(study.traces()) + sum(case.replayed for case in study.cases)
    return 1 + 2 * len(study.traces()) + bars + related + 4 * min(len(pictured), PICTURED)


def figures(full: Study, study: Study, traffic: dict[str, Traffic | None]) -> Iterator[Picture]:
    """Make all figures, trace after trace; for suites, which have many traces, figures per suite.

    `study` has the cases of the whole that are shown.
    """
    taken: set[str] = set()
    left = PICTURED

    def picture(trace: str, section: str, words: str, caption: str, figure: Figure) -> Picture:
        name = stem = re.sub(r"[^A-Za-z0-9]+", "-", words).strip("-")[:80] or "figure"
        number = 2
        while name.casefold() in taken:
            name, number = f"{stem}-{number}", number + 1
        taken.add(name.casefold())
        return Picture(trace, section, name, caption, figure)

    found = excess(full)
    if any(sum(map(len, cases)) > 1 for cases in found.values()):
        what = measure(full)
        words = "simulated runtime" if what == "makespan" else what.replace("_", "-")
        caption = "How far the runs of each mapper are behind the best of their case"
        strips = excess_strips(found, title="Mappers compared", what=f"more {words} than the best")
        yield picture("", "compare", "mappers compared", caption, strips)
    alone = with_figures(study)
    if alone is not None and alone.figures is not None:
        for section, words, caption, figure in alone.figures(full, traffic):
            yield picture("", section, words, caption, figure)
        return
    for trace in study.traces():
        cases = study.ends_of(trace)
        networks = list({case.topology: case for case in reversed(cases)}.values())[::-1]
        sent = traffic.get(trace)
        if sent is not None:
            caption = f"{trace}: who sends to whom, senders downwards"
            yield picture(trace, "spy", f"{trace} spy", caption, spy_plot(sent, title=trace))
        for case, figure in zip(networks, _ienpc(networks), strict=True):
            caption = f"IeNPC of {trace} on {case.topology}, messages"
            yield picture(trace, "ienpc", f"{trace} {case.topology} ienpc", caption, figure)
        replayed = [case for case in cases if case.replayed]
        for case, figure in zip(replayed, _runtime(replayed), strict=True):
            caption = f"Simulated runtime of {trace} on {case.where}"
            yield picture(trace, "runtime", f"{trace} {case.where} runtime", caption, figure)
        optional = (part.trace_figures(study, trace) for part in OPTIONAL.values())
        for words, caption, figure in chain(*optional, draw_variation(study, trace)):
            yield picture(trace, "relations", f"{trace} {words}", caption, figure)
        for words, caption, figure in draw_networks(study, trace):
            yield picture(trace, "networks", f"{trace} {words}", caption, figure)
        caption = f"Mapping time for {trace}"
        yield picture(trace, "time", f"{trace} mapping time", caption, _time(trace, networks))
        seen: set[tuple[str, str, bytes]] = set()
        for case in cases[:left]:
            for section, words, caption, figure in _network(study, case, sent, seen):
                shown = picture(trace, section, f"{trace} {case.where} {words}", caption, figure)
                if section == "mapping" and sent is not None:
                    entry = case.best if words == "mapping best" else case.default or case.best
                    view = turnable(topology_of(study, case), _node_of(entry), sent)
                    shown = replace(shown, turn=view)
                yield replace(
                    shown, first=words.endswith("best") and case.default not in (None, case.best)
                )
        left = max(0, left - len(cases))


def _ienpc(cases: list[Case]) -> Iterator[Figure]:
    """Draw IeNPC of each case of a trace, with the same abscissae."""
    column = "messages_ienpc_{}".format
    limits = {
        part: max(e.value(column(part)) or 0.0 for case in cases for e in case.entries)
        for part in PARTS
    }
    limits["total"] = max(e.worst(column("total")) or 0.0 for case in cases for e in case.entries)
    for case in cases:
        yield ienpc_bars(
            [entry.mapper for entry in case.entries],
            [{p: entry.value(column(p)) or 0.0 for p in PARTS} for entry in case.entries],
            title=f"IeNPC on {case.topology}",
            ieplc=case.best.value("messages_ieplc_total"),
            worst=[entry.worst(column("total")) or 0.0 for entry in case.entries],
            limits=limits,
            default=case.order,
        )


def _runtime(cases: list[Case]) -> Iterator[Figure]:
    """Draw the runtime of each case of a trace, with the same abscissa where the same varies."""
    limits: dict[str, float] = {}
    for case in cases:
        slowest = max(entry.worst("makespan") or 0.0 for entry in case.entries)
        limits[case.variant] = max(slowest, limits.get(case.variant, 0.0))
    for case in cases:
        entries = [entry for entry in case.entries if entry.value("makespan") is not None]
        yield runtime_bars(
            [entry.mapper for entry in entries],
            [[e.mean(part) or 0.0 for part in ("compute", "communicate", "wait")] for e in entries],
            [_spread(entry, "makespan") for entry in entries],
            title=f"runtime on {case.where}",
            limit=limits[case.variant],
        )


def draw_variation(study: Study, trace: str) -> Iterator[tuple[str, str, Figure]]:
    """Draw the runtime as something varies."""
    for cases in study.variations(trace):
        if cases[0].replayed:
            mappers = {entry.mapper: None for case in cases for entry in case.entries}
            means = [{e.mapper: e.mean("makespan") for e in case.entries} for case in cases]
            figure = variation(
                [case.variant for case in cases],
                {mapper: [mean.get(mapper) for mean in means] for mapper in mappers},
                title=f"runtime on {cases[0].topology}",
            )
            caption = f"Simulated runtime of {trace} on {cases[0].topology}, means over seeds"
            yield f"{cases[0].topology} varied", caption, figure


def draw_networks(study: Study, trace: str) -> Iterator[tuple[str, str, Figure]]:
    """Draw the shortest runtime on each network over the one parameter that varies, if it is one.

    Networks of another number of nodes are in another figure; a crossing has a practical
    difference on both of its sides.
    """
    cases = [case for case in study.cases_of(trace) if case.replayed]
    varied = _one_that_varies(study, cases)
    if varied is None:
        return
    key, value_of = varied
    values = sorted(set(value_of.values()))
    by_nodes: dict[float | None, dict[str, dict[float, float]]] = {}
    for case in cases:
        of_network = by_nodes.setdefault(case.best.value("nodes"), {}).setdefault(case.topology, {})
        of_network[value_of[case.variant]] = case.best.value("makespan") or 0.0
    unit = LINK_UNITS[key.rpartition(".")[2]] if key.startswith("link.") else KEYS[key].unit
    for nodes, networks in by_nodes.items():
        whole = {k: each for k, each in networks.items() if len(each) == len(values)}
        rows = {k: [each[value] for value in values] for k, each in whole.items()}
        if len(rows) < 2 or min(min(row) for row in rows.values()) <= 0:
            continue
        found = list(crossings(values, rows, study.relevance))

        def text(value: float, unit: str = unit) -> str:
            return show_value(value, unit)

        title = f"{count(nodes)} nodes"
        figure = runtime_over(values, rows, found, title=title, name=key, text=text)
        said = [
            f"at {text(c.at)} {c.faster_above} becomes faster than {c.faster_below}" for c in found
        ]
        words = "; ".join(said) or "no two networks change their order"
        caption = f"Shortest runtime of {trace} over {key} on {title}: {words}"
        yield f"{count(nodes)} nodes networks", caption, figure


def _one_that_varies(study: Study, cases: list[Case]) -> tuple[str, dict[str, float]] | None:
    """Return the parameter whose numbers alone tell variants apart, and its value in each."""
    settings = {case.variant: dict(study.settings_of(case)) for case in cases}
    keys = {k for each in settings.values() for k in each}
    varied = [k for k in keys if len({str(each.get(k)) for each in settings.values()}) > 1]
    if len(settings) < 2 or len(varied) != 1 or any(varied[0] not in s for s in settings.values()):
        return None
    key = varied[0]
    values = {name: normalise(((key, each[key]),))[key] for name, each in settings.items()}
    numbers = {k: float(v) for k, v in values.items() if isinstance(v, int | float) and v > 0}
    return (key, numbers) if len(numbers) == len(settings) else None


def _time(trace: str, cases: list[Case]) -> Figure:
    mappers = list(dict.fromkeys(entry.mapper for case in cases for entry in case.entries))
    seconds: list[list[SeedSpread | None]] = []
    for case in cases:
        known = {entry.mapper: _spread(entry, "mapping_seconds") for entry in case.entries}
        seconds.append([known.get(mapper) for mapper in mappers])
    return mapping_time(mappers, [case.topology for case in cases], seconds, title=trace)


def _network(
    study: Study, case: Case, traffic: Traffic | None, seen: set[tuple[str, str, bytes]]
) -> Iterator[tuple[str, str, str, Figure]]:
    """Link loads of the best mapping and of the default order, and both mappings.

    What varies moves no bytes: of a topology, mappings that were `seen` are not drawn again.
    """
    topology = topology_of(study, case)
    chosen = [(case.best, "best")]
    if case.default is not None and case.default is not case.best:
        chosen.append((case.default, "default order"))
    unit = "bytes" if case.best.value("bytes_ieplc_total") else "messages"
    mappings = {entry.mapper: _node_of(entry) for entry, _ in chosen}
    known = [(case.topology, entry.mapper, _node_of(entry).tobytes()) for entry, _ in chosen]
    loads = [_loads(study, topology, entry, traffic, unit) for entry, _ in chosen]
    new = [key not in seen for key in known]
    seen.update(known)
    if all(load is not None for load in loads):
        top = max(float(load.max(initial=0)) for load in loads if load is not None)
        for (entry, word), load in compress(zip(chosen, loads, strict=True), new):
            assert load is not None
            title = _title(case, entry, word)
            caption = f"Link loads of {case.trace} on {case.where}, {entry.mapper}"
            hot = []
            if traffic is not None:
                hot = hot_links(traffic, topology, _node_of(entry), top=HOT, by=unit, pairs=2)
                caption += _name_pairs(hot)
            links = [link.link for link in hot]
            figure = link_loads(topology, load, title=title, unit=unit, limit=top, hot=links)
            yield "links", f"links {word}", caption, figure
    for entry, word in compress(chosen, new) if traffic is not None else ():
        assert traffic is not None
        title = _title(case, entry, word)
        figure = mapping_view(topology, mappings, traffic, title=title, shown=[entry.mapper])
        caption = f"Ranks of {case.trace} on {case.where} as {entry.mapper} places them"
        yield "mapping", f"mapping {word}", caption, figure
    crowded = case.best.value("ranks") != len(np.unique(_node_of(case.best)))
    if crowded and (grids := case_grids(case, traffic)) is not None:
        yield "grids", "grids", f"Mappings of {case.trace} on {case.where}, by node", grids


def _title(case: Case, entry: Entry, word: str) -> str:
    """Name a mapping and its network; of several best ones without a difference none is best."""
    if word == "best" and len(case.leaders) > 1:
        word = "shortest run" if case.replayed else "fewest hops"
    return f"{entry.mapper} ({word}), {case.topology}"


def case_grids(case: Case, traffic: Traffic | None) -> Figure | None:
    """Draw the mappings of all mappers on the grid of a stencil; None if there is no grid."""
    dims = drawable_dims(traffic) if traffic is not None else None
    if dims is None:
        return None
    mappings = {
        entry.mapper: (
            entry.best["node_of"],
            off_node(int(entry.best[SUM]), int(entry.best[WORST])),
        )
        for entry in case.entries
    }
    return grid_mappings(dims, mappings, title=f"by node, {case.topology}")


def _name_pairs(hot: list[HotLink]) -> str:
    """Name the heaviest rank pairs behind each of the links that the picture names."""
    said = [
        f"({place}) {', '.join(f'{src} to {dst}' for src, dst, *_ in link.pairs)}"
        for place, link in enumerate(hot, 1)
    ]
    return f". Ranks that load the busiest links most: {'; '.join(said)}" if said else ""


def _loads(
    study: Study, topology: Topology, entry: Entry, traffic: Traffic | None, unit: str
) -> Floats | None:
    """Load of each link in an entry's best run: as stored, else computed again."""
    try:
        stored = store.load_rows(study.folder, "links", str(entry.best["run_id"]))
        loads = np.zeros(topology.links)
        loads[stored["link"].to_numpy()] = stored[unit].to_numpy()
        return loads
    except StoreError:
        if traffic is None:
            return None
    node_of = _node_of(entry)
    weight = traffic.bytes if unit == "bytes" else traffic.messages
    return topology.loads(node_of[traffic.src], node_of[traffic.dst], weight).astype(float)


def _node_of(entry: Entry) -> Ints:
    return np.asarray(entry.best["node_of"], dtype=np.int64)


def _spread(entry: Entry, column: str) -> SeedSpread:
    values = entry.runs[column].dropna()
    return SeedSpread(float(values.mean()), float(values.min()), float(values.max()))

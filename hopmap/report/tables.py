"""Tables of the report: what was run, the headline, all mappers, published numbers, failures.

Parts of a page that only some studies have stand at the end, by name: the template shows a part
where there is something to show. What is behind a name is imported only here, so that a part is
taken out with its row of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hopmap.plugins import Table
from hopmap.scenarios.results.plan_file import flat
from hopmap.scenarios.results.ranking import (
    matters,
    name_leaders,
    network_share,
    networks,
    standing,
    verdict,
)
from hopmap.scenarios.results.study import Case, Entry, Study, number
from hopmap.simulator.parameters.settings import configure
from hopmap.simulator.uncertainty import Standing, standings
from hopmap.simulator.uncertainty import percent as regret
from hopmap.topologies import LinkKind, Parts, Topology, parts_of, topology_from_spec
from hopmap.traces import Traffic
from hopmap.units import MISSING, change, count, data, duration, joules, percent, runtime

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FAILED = 200  # runs that are listed


class Cell(NamedTuple):
    """A cell: text, what it sorts by, a second line, and a class for its looks."""

    text: str
    sort: float | str | None = None
    note: str = ""
    look: str = ""


# Columns of text; all others hold numbers.
TEXTS = {"Trace", "Topology", "Variant", "Mapper", "Verdict", "Fastest", "Suite"}


def head_of(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return the head of a table: columns, and whether each has texts or numbers."""
    return [(name, "text" if name in TEXTS else "number") for name in names]


def topology_of(study: Study, case: Case) -> Topology:
    """Build a case's topology with the link speeds that the scenario sets."""
    return _build_network(study.spec_of(case.topology), study.settings_of(case))


def network_parts(study: Study, case: Case) -> Parts:
    """Return what a case's network is made of."""
    return _parts(study.spec_of(case.topology), study.settings_of(case))


@lru_cache(maxsize=64)
def _parts(spec: str, settings: tuple[tuple[str, Any], ...]) -> Parts:
    return parts_of(_build_network(spec, settings))


@lru_cache(maxsize=8)
def _build_network(spec: str, settings: tuple[tuple[str, Any], ...]) -> Topology:
    return configure(topology_from_spec(spec), settings)[0]


def prices_of(study: Study) -> dict[str, float]:
    """Return the prices that a scenario has, by "node", "switch", "link", "link.KIND"."""
    table = study.scenario.get("prices", {})
    prices = dict(flat(table)) if isinstance(table, dict) else {}
    return {key: float(value) for key, value in prices.items() if isinstance(value, int | float)}


def best_table(
    traces: Sequence[Sequence[Case]],
    parts: Callable[[Case], Parts] | None = None,
    prices: Mapping[str, float] | None = None,
) -> dict[str, Any] | None:
    """Return which mapping is best in each case, how surely, and what it buys; None without cases.

    Where a trace has several networks, the fastest stands first, with what each is made of: its
    `parts`, and its price.
    """
    cases = [case for those in traces for case in those]
    order = next((case.order for case in cases if case.default), "the default order")
    replayed = any(case.replayed for case in cases)
    compared = any(networks(those) for those in traces)
    made_of = {id(c): parts(c) for those in traces for c in those if parts and networks(those)}
    costs = {k: each.price(prices) for k, each in made_of.items()} if prices else {}
    names = ["Trace", "Topology", "Nodes", "Mapper", "Verdict"]
    if replayed:
        names += ["Runtime", f"Runtime of {order}", f"Runtime against {order}", "Network’s share"]
    names.append(f"Hop-bytes against {order}")
    if made_of:
        names += ["Switches", "Links", "Bisection", *(["Price"] if costs else [])]
    if compared:
        names.append("Against fastest network")
    rows = []
    for those in traces:
        of_case = {k: costs[id(case)] for k, case in enumerate(those) if id(case) in costs}
        compared_here = networks(those, of_case)
        found = {id(each.case): (place, each) for place, each in enumerate(compared_here)}
        variants = list(dict.fromkeys(case.variant for case in those))
        order_of = {k: place for k, (place, _) in found.items()}
        for case in sorted(
            those, key=lambda c: (variants.index(c.variant), order_of.get(id(c), 0))
        ):
            row = _best_row(case, replayed)
            if made_of:
                row += _parts_cells(made_of.get(id(case)), costs.get(id(case)), priced=bool(costs))
            if id(case) in found:
                place, each = found[id(case)]
                words = ", ".join(filter(None, (each.behind or "fastest", each.likeness)))
                row.append(Cell(words if each.first else "not compared", place))
            elif compared:
                row.append(Cell(MISSING))
            rows.append(row)
    return {"head": head_of(names), "rows": rows} if rows else None


def _parts_cells(made_of: Parts | None, cost: float | None, *, priced: bool) -> list[Cell]:
    """Return the cells of what a network is made of."""
    if made_of is None:
        return [Cell(MISSING)] * (3 + priced)
    total, across = sum(made_of.links.values()), made_of.bisection
    kinds = ", ".join(f"{count(n)} {kind}" for kind, n in made_of.links.items())
    return [
        Cell(count(made_of.switches), made_of.switches),
        Cell(count(total), total, kinds if len(made_of.links) > 1 else ""),
        Cell(MISSING if across is None else f"{data(across)}/s", across),
        *([Cell(count(cost), cost)] if priced else []),
    ]


def _best_row(case: Case, replayed: bool) -> list[Cell]:
    """Return the cells of a case, with runtimes where any case was replayed."""
    best, default, share = case.leaders[0], case.default, network_share(case)
    nodes, makespan = best.value("nodes"), best.value("makespan")
    mapper = Cell(name_leaders(case), name_leaders(case), standing(case).lstrip(" :"))
    quantity = "hop_bytes" if best.value("hop_bytes") else "hop_messages"
    row = [
        Cell(case.trace, case.trace),
        Cell(case.topology, case.topology, case.variant),
        Cell(count(nodes), nodes),
        mapper._replace(look="best" if case.significant and matters(case) else ""),
        # one sentence above has all in which placement does not matter
        Cell(words, words) if (words := _verdict(case)) else Cell(MISSING),
    ]
    if replayed:
        before = default.value("makespan") if default else None
        row += [Cell(runtime(makespan), makespan), Cell(runtime(before), before)]
        row += [_compare(case, best, "makespan")]
        row += [Cell(MISSING) if share is None else Cell(percent(share), share)]
    return [*row, _compare(case, best, quantity)]


def _verdict(case: Case) -> str:
    """Return what placing ranks buys; "" where it buys nothing."""
    return "" if case.replayed and case.default and not matters(case) else verdict(case)


def _compare(case: Case, entry: Entry, column: str) -> Cell:
    """Return what a mapper has more or less than the default order; the interval of noise below."""
    value, default = entry.value(column), case.default
    reference = default.value(column) if default else None
    if default is None or entry is default or value is None or not reference:
        return Cell(MISSING)
    text, note, tied = change(value, reference), "", False
    if column == "makespan" and case.times is not None:
        gap = case.against(entry, default)
        tied = gap is None or (entry in case.leaders and default in case.leaders)
        if gap is not None:
            text, low, high = (change(end, 1.0) for end in gap)
            note = f"{low} to {high}"
    look = "" if tied else {"−": "good", "+": "bad"}.get(text[:1], "")
    return Cell(text, value / reference, case.likeness if tied else note, look)


def trace_rows(traffic: dict[str, Traffic | None]) -> list[list[str]]:
    """List ranks, messages, bytes and pairs of every trace."""
    rows = []
    for name, t in traffic.items():
        cells = [MISSING] * 4
        if t is not None:
            totals = count(int(t.messages.sum())), data(int(t.bytes.sum()))
            cells = [count(t.ranks), *totals, count(t.pairs)]
        rows.append([name, *cells])
    return rows


def link_rows(study: Study) -> list[dict[str, Any]]:
    """List the links of every topology by kind, with their speeds and where these come from."""
    rows: list[dict[str, Any]] = []
    for spec in study.topologies():
        cases = {c.variant: c for c in study.cases if c.topology == spec}.values()
        topologies = [topology_of(study, case) for case in cases]
        vary = len({topology.kinds for topology in topologies}) > 1
        shown: set[LinkKind] = set()
        for case, topology in zip(cases, topologies, strict=True):
            numbers = np.bincount(topology.link_kind, minlength=len(topology.kinds))
            new = [place for place, kind in enumerate(topology.kinds) if kind not in shown]
            for place in new:
                kind, first = topology.kinds[place], place == new[0]
                # kinds that the variant leaves as they are stand there once
                name = case.where if vary else spec
                rows.append(
                    {
                        "topology": name if first else "",
                        "nodes": count(topology.nodes) if first and not shown else "",
                        "kind": kind.name,
                        "links": count(int(numbers[place])),
                        "bandwidth": f"{kind.bandwidth / 1e9:,.4g} GB/s",
                        "latency": duration(kind.latency),
                        # once where both come from the same place
                        "sources": [("", kind.sources[0])]
                        if len(set(kind.sources)) == 1
                        else list(zip(("bandwidth", "latency"), kind.sources, strict=True)),
                    }
                )
            shown.update(topology.kinds)
    return rows


THESIS = (
    *("Mapper", "Topology", "IeNPC total", "average", "minimum", "maximum"),
    *("Dilation average", "longest"),
)


def main_table(cases: Iterable[Case]) -> dict[str, Any]:
    """Every mapper on every topology of a trace, best seed, the range over seeds below."""
    cases = list(cases)
    compared = [f"against {case.order}" for case in cases if case.default][:1]
    names = ["Mapper", "Topology"]
    if replayed := any(case.replayed for case in cases):
        names += ["Simulated runtime", *compared]
    if energy := any(case.best.value("energy") is not None for case in cases):
        names.append("Energy")
    names += ["Busiest link", "Hop-bytes", *compared, "Mapping time"]
    columns = replayed, bool(compared), energy
    rows = [_main_row(case, entry, *columns) for case in cases for entry in case.entries]
    return {"head": head_of(names), "rows": rows}


def thesis_table(cases: Iterable[Case]) -> dict[str, Any]:
    """Metrics of the HAEC thesis, of every mapper on every topology of a trace: the best seed."""
    rows = [
        [
            Cell(entry.mapper, entry.mapper),
            Cell(case.topology, case.topology, case.variant),
            _cell(entry, "messages_ienpc_total", whole, spread=True),
            _cell(entry, "messages_ienpc_avg", whole),
            _cell(entry, "messages_ienpc_min", count),
            _cell(entry, "messages_ienpc_max", count),
            _cell(
                entry,
                f"{_load(entry)}_dilation_avg",
                lambda v: MISSING if v is None else f"{v:,.3f}",
            ),
            _cell(entry, "messages_dilation_max", count),
        ]
        for case in cases
        for entry in case.entries
    ]
    return {"head": head_of(THESIS), "rows": rows}


def _cell(entry: Entry, column: str, text: Any, spread: bool = False) -> Cell:
    """Return a figure of the best seed, the range over all seeds below it."""
    value, ends = entry.value(column), entry.runs[column].agg(["min", "max"])
    low, high = (text(number(end)).replace(" ", "\u00a0") for end in ends)
    return Cell(text(value), value, f"{low} to\u00a0{high}" if spread and low != high else "")


def _load(entry: Entry) -> str:
    """Return what links carry: bytes, or messages where these have none."""
    return "bytes" if entry.value("bytes_ieplc_total") else "messages"


def _main_row(case: Case, entry: Entry, replayed: bool, compared: bool, energy: bool) -> list[Cell]:
    seeds = len(entry.runs)
    load = _load(entry)
    leads = entry in case.leaders
    alone = "best" if case.significant else "shortest"
    look = "best" if leads and case.significant else ""
    notes = [alone if len(case.leaders) == 1 else case.likeness] * leads
    if (
        seeds > 1
        and len(entry.runs[["hop_bytes", "hop_messages", "makespan"]].drop_duplicates()) > 1
    ):
        notes.append(f"{seeds} seeds")
    row = [
        Cell(entry.mapper, entry.mapper, " · ".join(notes), look),
        Cell(case.topology, case.topology, case.variant),
    ]
    if replayed:
        row += [_runtime(entry) or _cell(entry, "makespan", runtime, spread=True)]
        row += [_compare(case, entry, "makespan")._replace(note="")] if compared else []
    if energy:
        row.append(_cell(entry, "energy", joules))
    seconds = entry.mean("mapping_seconds")
    return [
        *row,
        _cell(entry, f"{load}_congestion_max", data if load == "bytes" else count),
        _cell(entry, "hop_bytes", data, spread=True),
        *([_compare(case, entry, "hop_bytes")] if compared else []),
        Cell(duration(seconds), seconds),
    ]


def _runtime(entry: Entry) -> Cell | None:
    """Show the median of a run's replays with noise, and its interval; None if there were none."""
    median, low, high = (entry.value(f"makespan_{end}") for end in ("median", "low", "high"))
    if median is None:
        return None
    ends = f"{runtime(low)} to {runtime(high)}".replace(" ", "\u00a0").replace("to\u00a0", "to ")
    return Cell(runtime(median), median, ends)


def whole(value: float | None) -> str:
    """Round to a whole number, with separators."""
    return count(None if value is None else round(value))


def list_failed_runs(study: Study) -> list[list[str]]:
    """List the first failed runs: trace, topology, mapper, seed, the line of the error."""
    rows = []
    for _, run in study.failed.head(FAILED).iterrows():
        line = " ".join(str(run["error"]).split())
        rows.append(
            [run["trace"], run["topology"], run["mapper"], count(number(run["seed"])), line]
        )
    return rows


def robustness(study: Study, trace: str) -> list[dict[str, Any]]:
    """Return a table for each topology on which something varies.

    A mapping is that of a mapper and a seed, the same under all variants; of every mapper the one
    of least worst regret is shown. What was not replayed under all variants is left out.
    """
    tables = []
    for cases in study.variations(trace):
        best = _best_seeds(cases)
        if len(best) > 1:
            order = sorted(best.items(), key=lambda item: (item[1].worst, item[1].mean))
            rows = [
                [
                    Cell(mapper, mapper),
                    Cell(f"+{regret(found.mean)}", found.mean),
                    Cell(f"+{regret(found.worst)}", found.worst),
                    Cell(count(round(found.best * len(cases))), found.best),
                ]
                for mapper, found in order
            ]
            head = head_of(("Mapper", "Mean", "Worst", "Best under"))
            tables.append({"topology": cases[0].topology, "head": head, "rows": rows})
    return tables


def _best_seeds(cases: Sequence[Case]) -> dict[str, Standing]:
    """Return of every mapper how its mapping of least worst regret fares among all mappings."""
    rows: dict[tuple[str, bytes], dict[int, float]] = {}
    for place, case in enumerate(cases):
        runs = case.runs[case.runs["makespan"].notna()]
        for mapper, node_of, seconds in zip(
            runs["mapper"], runs["node_of"], runs["makespan"], strict=True
        ):
            key = str(mapper).strip(), np.asarray(node_of).tobytes()
            rows.setdefault(key, {})[place] = seconds
    whole = {key: list(row.values()) for key, row in rows.items() if len(row) == len(cases)}
    best: dict[str, Standing] = {}
    found = standings(list(whole.values())) if whole else []
    for (mapper, _), each in zip(whole, found, strict=True):
        if mapper not in best or each.worst < best[mapper].worst:
            best[mapper] = each
    return best


class Section(NamedTuple):
    """A part of a page."""

    # (study, study with the cases that are shown) -> what the template shows, nothing if it is None
    # or empty
    content: Callable[[Study, Study], Any]
    # (study, traffic by trace) -> section of the page, file name, caption, figure, one after
    # another; they replace the figures of the traces
    figures: (
        Callable[[Study, dict[str, Traffic | None]], Iterator[tuple[str, str, str, Figure]]] | None
    ) = None
    count: Callable[[Study], int] = lambda _: 0  # how many figures these are
    # (study, trace) -> words of the file name, caption, figure, among the figures of a trace
    trace_figures: Callable[[Study, str], Iterable[tuple[str, str, Figure]]] = lambda *_: ()
    # (study, trace) -> where, sentence, next to the trace's figures
    findings: Callable[[Study, str], list[tuple[str, str]]] = lambda *_: []


SECTIONS: Table[Section] = Table(
    "hopmap",
    {
        "suites": "scenarios.studies.suite_section:SECTION",
        "published": "scenarios.studies.published:PUBLISHED",
        "relations": "scenarios.studies.relations:RELATIONS",
    },
)


def with_figures(study: Study) -> Section | None:
    """Return the section whose figures replace the figures of the traces, if there is one."""
    return next((found for found in SECTIONS.values() if found.count(study)), None)

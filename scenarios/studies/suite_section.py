"""What the suites of stencils say: do edges between nodes foretell simulated time? And the figures.

Lehr's thesis asks in sections 7.3 and 8 when its metrics, off-node edges of the worst node and in
sum, predict the time of an exchange. Here each case (a stencil on a cluster) has its mappings
sorted by metric and by time, random placement left out, and Kendall's tau says how far the orders
agree. A third predictor is the time in which the busiest path of any node could do its work: what
leaves a node over the link, what stays over its memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hopmap.report.figures import SUM, WORST, case_grids
from hopmap.report.tables import Cell, Section, head_of
from hopmap.scenarios.results.study import Case, Study
from hopmap.simulator.uncertainty import RELEVANCE
from hopmap.traces import Traffic
from hopmap.units import MISSING, count, data, parse_quantity, percent

from .correlation import LEAST, Tau, distinct, kendall_tau
from .relations import median_tau
from .study_figures import Panel, suite_lines
from .suites import SUITES, SuiteCase, suite_cases

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RANDOM = "random"
PATH = "busiest_path"


class Finding(NamedTuple):
    """What one case shows; 0.05 is 5 % longer than the fastest mapping, random placement apart."""

    # Of worst node, sum and busiest path with the simulated time; empty below `LEAST` mappings.
    taus: dict[str, Tau]
    excess: float  # Of the fastest mapping of least worst node.
    spread: float  # Of the slowest.
    random: float | None  # Of random placement.
    fastest: list[str]  # Mappers within `RELEVANCE` of the fastest.


def suites_of(study: Study) -> list[str]:
    """Return the suites that the scenario names."""
    return [str(text) for text in study.scenario.get("suites", [])]


def finding(case: Case, study: Study) -> Finding | None:
    """Compare the orders of a case's mappings; None if it was not replayed."""
    settings = dict(study.settings_of(case))
    runs = case.runs[case.runs["makespan"].notna()]
    placed = distinct(runs[runs["mapper"] != RANDOM])
    if placed.empty:
        return None
    rate = {
        key: parse_quantity(settings[f"{key}.bandwidth"], "bytes/s")
        if f"{key}.bandwidth" in settings
        else np.inf
        for key in ("link", "memory")
    }
    path = np.maximum(
        placed["bytes_off_node_max"] / rate["link"], placed["bytes_ianlc_max"] / rate["memory"]
    )
    placed = placed.assign(**{PATH: path})
    time = placed["makespan"]
    least = float(time.min())
    careful = float(time[placed[WORST] == placed[WORST].min()].min())
    drawn = runs[runs["mapper"] == RANDOM]["makespan"]
    every = runs[runs["mapper"] != RANDOM]
    return Finding(
        {m: kendall_tau(placed[m], time) for m in (WORST, SUM, PATH)}
        if len(placed) >= LEAST
        else {},
        careful / least - 1,
        float(time.max()) / least - 1,
        float(drawn.mean()) / least - 1 if len(drawn) else None,
        list(dict.fromkeys(every[every["makespan"] <= least * (1 + RELEVANCE)]["mapper"])),
    )


def suite_section(study: Study) -> dict[str, Any] | None:
    """Return a table with a row for every suite, message size and variant; None without suites."""
    rows = []
    variants = list(dict.fromkeys(case.variant for case in study.cases))
    by_key = {(case.trace, case.topology, case.variant): case for case in study.cases}
    for text in suites_of(study):
        pairs = suite_cases(text)
        for size in sorted({pair.size for pair in pairs}):
            for variant in variants:
                some = [
                    found
                    for p in pairs
                    if p.size == size
                    and (case := by_key.get((p.trace, p.topology, variant))) is not None
                    and (found := finding(case, study)) is not None
                ]
                if some:
                    rows.append(_row(text, size, variant, some))
    if not rows:
        return None
    names = ["Suite", "Bytes to each", "Variant", "Cases", "τ worst node", "τ sum"]
    names += ["τ busiest path", "Least worst node fastest", "else, at most", "Slowest, at most"]
    return {"head": head_of([*names, "Random, median", "Fastest"]), "rows": rows}


def _row(text: str, size: int, variant: str, cases: Sequence[Finding]) -> list[Cell]:
    fastest = Counter(mapper for each in cases for mapper in each.fastest).most_common(3)
    right = sum(each.excess <= RELEVANCE for each in cases)
    drawn = [each.random for each in cases if each.random is not None]
    return [
        Cell(text.partition(",")[0].replace("_", " ")),
        Cell(data(size), size),
        Cell(variant or MISSING),
        Cell(count(len(cases)), len(cases)),
        *(median_tau([each.taus.get(metric) for each in cases]) for metric in (WORST, SUM, PATH)),
        Cell(f"{right} of {len(cases)}", right / len(cases)),
        _percent(max(each.excess for each in cases)),
        _percent(max(each.spread for each in cases)),
        _percent(median(drawn)) if drawn else Cell(MISSING),
        Cell(", ".join(f"{mapper} {times}" for mapper, times in fastest)),
    ]


def _percent(value: float) -> Cell:
    return Cell(f"{'−' if value < 0 else '+'}{percent(abs(value))}", value)


def count_suite_figures(study: Study) -> int:
    """Return how many figures `suite_figures` makes."""
    cells = [pair for text in suites_of(study) for pair in suite_cases(text)]
    pictured = {(p.panel, p.trace.rpartition(",")[0], p.topology) for p in cells if p.pictured}
    return len({p.panel for p in cells}) + len(pictured)


def suite_figures(
    study: Study, traffic: dict[str, Traffic | None]
) -> Iterator[tuple[str, str, str, Figure]]:
    """Draw each panel of each suite, and the mappings that the thesis draws.

    Yields section, file name, caption and figure.
    """
    for text in suites_of(study):
        name = text.partition(",")[0]
        pairs = suite_cases(text)
        for panel in dict.fromkeys(pair.panel for pair in pairs):
            some = [pair for pair in pairs if pair.panel == panel]
            figure = suite_lines(
                list(_panels(study, some)),
                varies=SUITES[name].varies,
                title=f"{name.replace('_', ' ')}: {panel}",
                logarithmic=name == "message_size",
            )
            yield "lines", f"{name} {panel}", f"{name.replace('_', ' ')}, {panel}", figure
        seen = set()
        for pair in pairs:
            cell = (pair.trace.rpartition(",")[0], pair.topology)
            case = next((c for c in study.cases if (c.trace, c.topology) == pair[2:4]), None)
            if pair.pictured and cell not in seen and case is not None:
                seen.add(cell)
                drawn = case_grids(case, traffic.get(pair.trace))
                if drawn is not None:
                    words = f"{name} {pair.panel} {pair.x:g} {pair.topology}"
                    yield "grids", f"{words} grids", f"Mappings of {case.trace}", drawn


def _panels(study: Study, pairs: Sequence[SuiteCase]) -> Iterator[Panel]:
    """Both metrics, then the time for each size and variant; in a size sweep, the time."""
    cases = {(case.trace, case.topology, case.variant): case for case in study.cases}
    variants = list(dict.fromkeys(case.variant for case in study.cases))
    sweep = len({(p.x, p.size) for p in pairs}) == len({p.size for p in pairs})
    sizes = sorted({pair.size for pair in pairs})

    def lines(
        column: str, some: Sequence[SuiteCase], variant: str
    ) -> dict[str, list[tuple[float, float]]]:
        found: dict[str, list[tuple[float, float]]] = {}
        for pair in some:
            case = cases.get((pair.trace, pair.topology, variant))
            for entry in case.entries if case else ():
                value = entry.mean(column)
                if value is not None:
                    found.setdefault(entry.mapper, []).append((pair.x, value))
        return found

    if sweep:
        for variant in variants:
            times = lines("makespan", pairs, variant)
            yield Panel(variant or "simulated time", "seconds", times)
            least: dict[float, float] = {}
            for x, value in (point for line in times.values() for point in line):
                least[x] = min(value, least.get(x, value))
            shares = {m: [(x, value / least[x]) for x, value in times[m]] for m in times}
            yield Panel("the same, over the fastest mapper's", "ratio", shares)
        return
    first = [pair for pair in pairs if pair.size == sizes[0]]
    yield Panel("off-node messages, worst node", "", lines(WORST, first, variants[0]))
    yield Panel("off-node messages, sum", "", lines(SUM, first, variants[0]))
    for size in sizes:
        for variant in dict.fromkeys((variants[0], variants[-1])):
            some = [pair for pair in pairs if pair.size == size]
            title = ", ".join(filter(None, (data(size), variant)))
            yield Panel(title, "seconds", lines("makespan", some, variant))


SECTION = Section(lambda whole, _: suite_section(whole), suite_figures, count_suite_figures)

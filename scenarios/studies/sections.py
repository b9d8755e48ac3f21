"""Parts of a page for studies: metrics with runtime, published numbers beside ours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from hopmap.api.quantities import MISSING, change, count, percent
from hopmap.report.sections import Section
from hopmap.report.tables import Cell, whole
from hopmap.scenarios.results.study import PARTS, Case, Study

from .correlation import METRICS, Relation, Tau, relations
from .findings import gap, of_variation, overall, signed
from .published import Row, compared

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def relation_section(study: Study, cases: Sequence[Case]) -> dict[str, Any] | None:
    """Return what holds over all cases of a study, medians, and a row for each case that is shown.

    Medians are over all cases, and for each variant where there are several. None if too little was
    replayed.
    """
    found = relations(study.cases)
    if not found:
        return None
    energy = any(("hop_bytes", "energy") in each.taus for each in found)
    shown = [m for m in METRICS if any(each.taus[m, "makespan"].known for each in found)]
    head = [("Trace", "text"), ("Topology", "text"), ("Mappings", "number"), ("Fastest", "text")]
    head += [("Slowest against fastest", "number"), ("Fewest hop-bytes against fastest", "number")]
    called = [METRICS[metric].replace("collectives", "collec\u00adtives") for metric in shown]
    head += [(f"τ {name}", "number") for name in called]
    head += [("τ hop-bytes, better half", "number")]
    if energy:
        head += [("Energy: τ hop-bytes", "number"), ("Energy: τ runtime", "number")]
    variants = list(dict.fromkeys(each.case.variant for each in found))
    groups = {"": found}
    if len(variants) > 1:
        groups |= {name or "nothing varies": _of_variant(found, name) for name in variants}
    rows = [_medians(name, some, shown, energy) for name, some in groups.items()]
    rows += [_row(each, shown, energy) for each in relations(cases)]
    return {"overall": overall(found), "head": head, "rows": rows}


def case_findings(study: Study, trace: str) -> list[tuple[str, str]]:
    """Return where and what was found as something varies over the cases of a trace."""
    return [
        (cases[0].topology, of_variation(cases))
        for cases in study.varied(trace)
        if cases[0].replayed and cases[-1].replayed
    ]


def _row(relation: Relation, shown: list[str], energy: bool) -> list[Cell]:
    case, costs = relation.case, gap(relation)
    row = [
        Cell(case.trace, case.trace),
        Cell(case.topology, case.topology, case.variant),
        Cell(count(len(relation.runs)), len(relation.runs)),
        Cell(costs.fastest, costs.fastest, f"+{percent(costs.more)} hop-bytes"),
        Cell(f"+{percent(costs.spread)}", costs.spread),
        Cell(
            f"+{percent(costs.most)}",
            costs.most,
            f"{costs.ties} from +{percent(costs.least)}" if costs.ties > 1 else costs.mapper,
        ),
        *(_tau(relation.taus[metric, "makespan"]) for metric in shown),
        _tau(relation.better),
    ]
    if energy:
        with_hops = relation.taus.get(("hop_bytes", "energy"))
        row += [Cell(MISSING) if with_hops is None else _tau(with_hops), _tau(relation.outcomes)]
    return row


def _of_variant(found: Sequence[Relation], variant: str) -> list[Relation]:
    return [each for each in found if each.case.variant == variant]


def _medians(
    variant: str, found: Sequence[Relation], shown: Sequence[str], energy: bool
) -> list[Cell]:
    """Return the medians over some cases, and the range below each."""
    gaps = [gap(each) for each in found]
    row = [
        Cell(f"median of {len(found)}", "", variant),
        Cell(""),
        Cell(""),
        Cell(""),
        _middle([costs.spread for costs in gaps]),
        _middle([costs.most for costs in gaps]),
        *(median_tau([each.taus[metric, "makespan"] for each in found]) for metric in shown),
        median_tau([each.better for each in found]),
    ]
    if energy:
        with_hops = [each.taus.get(("hop_bytes", "energy")) for each in found]
        row += [median_tau(with_hops), median_tau([each.outcomes for each in found])]
    return row


def _middle(values: Sequence[float]) -> Cell:
    ends = f"{percent(min(values))} to {percent(max(values))}"
    return Cell(f"+{percent(median(values))}", median(values), ends)


def median_tau(taus: Sequence[Tau | None]) -> Cell:
    """Return the median of what is known, below it the range, and how many are clearly positive."""
    known = [tau for tau in taus if tau is not None and tau.known]
    if not known:
        return Cell(MISSING)
    values = [tau.value for tau in known]
    clear = sum(tau.clear and tau.value > 0 for tau in known)
    ends = f"{signed(min(values))} to {signed(max(values))}"
    note = f"{ends}, clear in {clear} of {len(known)}"
    return Cell(signed(median(values)), median(values), note)


def _tau(tau: Tau) -> Cell:
    if not tau.known:
        return Cell(MISSING)
    return Cell(signed(tau.value), tau.value, look="clear" if tau.clear else "chance")


def published_tables(study: Study) -> list[dict[str, Any]]:
    """Set published IeNPC beside ours in both conventions; one table a trace, same cells marked."""
    tables = []
    for trace in study.traces():
        groups = compared(study, trace)
        rows = [row for group in groups for row in group.rows]
        if not rows:
            continue
        tables.append(
            {
                "trace": trace,
                "groups": [
                    {"topology": group.case.where, "rows": [_cells(row) for row in group.rows]}
                    for group in groups
                ],
                "same": sum(sum(row.same) for row in rows),
                "numbers": sum(value is not None for row in rows for value in row.paper),
                "mesh": any(group.case.topology.startswith("mesh:") for group in groups),
                "reasons": any(row.reason for row in rows),
            }
        )
    return tables


def _cells(row: Row) -> list[Cell]:
    """Return the mapper, three cells for each of `PARTS`, and why they differ."""
    other = row.ours if row.ours.casefold() != row.mapper.casefold() else ""
    cells = [Cell(row.mapper, row.mapper, other)]
    for part in range(len(PARTS)):
        value, maplib = row.paper[part], row.maplib[part]
        cells.append(Cell(count(value), value))
        if not row.ours:
            cells += [Cell("not run"), Cell(MISSING)]
            continue
        if row.same[part]:
            cells.append(Cell(f"✓ {count(maplib)}", maplib, look="same"))
        else:
            cells.append(Cell(count(maplib), maplib, change(maplib, value)))
        cells.append(Cell(whole(row.hopmap[part]), row.hopmap[part]))
    return [*cells, Cell(row.reason)]


def relation_figures(study: Study, trace: str) -> Iterator[tuple[str, str, Figure]]:
    """Draw Kendall's tau, and runtime over hop-bytes."""
    from .relation_figures import scatter, tau_map

    if found := relations(study.cases_of(trace)):
        title = f"Kendall’s τ, {trace}"
        yield "tau", f"{title}: metrics with runtime and energy", tau_map(found, title=title)
    for each in relations(study.ends_of(trace)):
        where = each.case.where
        caption = f"Each mapping of {trace} on {where}: runtime over hop-bytes and busiest link"
        yield f"{where} scatter", caption, scatter(each, title=where)


RELATIONS = Section(
    lambda whole, shown: relation_section(whole, shown.cases),
    trace_figures=relation_figures,
    findings=case_findings,
)
PUBLISHED = Section(lambda _, shown: published_tables(shown))

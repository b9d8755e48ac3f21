"""The report's section on metrics and runtime: sentences, and a table of Kendall's tau."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hopmap.scenarios.quantities import MISSING, count
from hopmap.scenarios.studies.correlation import METRICS, Relation, Tau, relations
from hopmap.scenarios.studies.findings import gap, of_case, of_variation, overall, percent, signed
from hopmap.scenarios.studies.study import Case, Study

from .tables import Cell


def relation_section(study: Study, cases: Sequence[Case]) -> dict[str, Any] | None:
    """Return what holds over all cases of a study and a row for each of the cases that are shown.

    None if too little was replayed.
    """
    found = relations(study.cases)
    if not found:
        return None
    energy = any(("hop_bytes", "energy") in each.taus for each in found)
    shown = [m for m in METRICS if any(each.taus[m, "makespan"].known for each in found)]
    head = [("Trace", "text"), ("Topology", "text"), ("Mappings", "number")]
    head += [("Slowest against fastest", "number"), ("Fewest hop-bytes against fastest", "number")]
    called = [METRICS[metric].replace("collectives", "collec\u00adtives") for metric in shown]
    head += [(f"τ {name}", "number") for name in called]
    head += [("τ hop-bytes, better half", "number")]
    if energy:
        head += [("Energy: τ hop-bytes", "number"), ("Energy: τ runtime", "number")]
    rows = [_row(each, shown, energy) for each in relations(cases)]
    return {"overall": overall(found), "head": head, "rows": rows}


def case_findings(study: Study, trace: str) -> list[tuple[str, str]]:
    """Return where and what was found, for the cases of a trace and for what varies in them."""
    found = [(each.case.where, of_case(each)) for each in relations(study.cases_of(trace))]
    return found + [
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
        Cell(f"+{percent(costs.spread)}", costs.spread),
        Cell(
            f"+{percent(costs.most)}",
            costs.most,
            f"from +{percent(costs.least)}" if costs.ties > 1 else costs.mapper,
        ),
        *(_tau(relation.taus[metric, "makespan"]) for metric in shown),
        _tau(relation.better),
    ]
    if energy:
        with_hops = relation.taus.get(("hop_bytes", "energy"))
        row += [Cell(MISSING) if with_hops is None else _tau(with_hops), _tau(relation.outcomes)]
    return row


def _tau(tau: Tau) -> Cell:
    if not tau.known:
        return Cell(MISSING)
    return Cell(signed(tau.value), tau.value, look="clear" if tau.clear else "chance")

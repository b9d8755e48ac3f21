"""How metrics go with runtime over the cases of a study: a table, sentences, figures.

Where a tau could be chance, the sentence says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from hopmap.report.tables import Cell, Section, head_of
from hopmap.scenarios.results.study import AS_FAST, Case, Study
from hopmap.units import MISSING, change, count, percent

from .correlation import METRICS, Relation, Tau, agreement, format_tau, relations

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Gap(NamedTuple):
    """What choosing by hop-bytes alone costs in a case; 0.05 is 5 %."""

    spread: float  # How much longer the slowest mapping runs than the fastest.
    # The same of those with the fewest hop-bytes: two figures where they are several.
    least: float
    most: float
    ties: int  # Mappings with the fewest hop-bytes.
    mapper: str  # Of the slowest mapping with the fewest hop-bytes.
    fastest: str  # Of the fastest mapping.
    more: float  # How many more hop-bytes the fastest mapping has.


def gap(relation: Relation) -> Gap:
    """Measure what choosing by hop-bytes alone costs."""
    runs = relation.runs.sort_values(["makespan", "hop_bytes"], kind="stable")
    fastest = runs.iloc[0]
    fewest = runs[runs["hop_bytes"] == runs["hop_bytes"].min()]
    times = runs["makespan"] / max(float(fastest["makespan"]), 1e-300) - 1
    few = max(float(fewest["hop_bytes"].iloc[0]), 1.0)
    return Gap(
        float(times.max()),
        float(times[fewest.index].min()),
        float(times[fewest.index].max()),
        len(fewest),
        str(fewest["mapper"].iloc[-1]),
        str(fastest["mapper"]),
        float(fastest["hop_bytes"]) / few - 1,
    )


def overall(relations: Sequence[Relation]) -> list[str]:
    """Answer for all cases: are fewer hop-bytes a shorter run, is choosing by them, and energy."""
    sentences = (_runtime, _choice_text, _energy)
    return [sentence for about in sentences for sentence in about(relations)]


def _runtime(relations: Sequence[Relation]) -> Iterator[str]:
    taus = [r.taus["hop_bytes", "makespan"] for r in relations]
    known = [tau for tau in taus if tau.known]
    if not known:
        return
    with_, against = (sum(tau.clear and sign * tau.value > 0 for tau in known) for sign in (1, -1))
    apart = max(gap(r).spread for r in relations)
    answer = (
        f"It makes no difference here, where runs differ by {percent(apart)} at most"
        if apart < relations[0].case.relevance
        else "Mostly yes"
        if with_ > len(taus) / 2
        else "Rather the reverse"
        if against > len(taus) / 2
        else "Sometimes"
        if with_
        else "These runs do not show it"
    )
    yield (
        f"Do fewer hop-bytes mean a shorter run? {answer}: clearly so in {with_} of "
        f"{_cases(len(taus))}, clearly the reverse in {against}; in {len(taus) - with_ - against} "
        f"the order by hop-bytes tells no more of the order by runtime than chance."
    )


def _choice_text(relations: Sequence[Relation]) -> Iterator[str]:
    right = sum(gap(r).most <= AS_FAST for r in relations)
    yield (
        f"Choosing the mapping with the fewest hop-bytes gave the shortest run (to 0.1\u00a0%) in "
        f"{right} of {_cases(len(relations))}."
    )
    if noisy := [r.case for r in relations if r.case.times is not None]:
        among = sum(any(case.fewest_hop_bytes is entry for entry in case.leaders) for case in noisy)
        yield (
            "With noise, the mapping with the fewest hop-bytes has no practical or significant "
            f"difference from the fastest in {among} of {_cases(len(noisy))}."
        )


def _energy(relations: Sequence[Relation]) -> Iterator[str]:
    shares = [
        float((r.runs["energy_transfer"] / r.runs["energy"]).median())
        for r in relations
        if ("hop_bytes", "energy") in r.taus
        and r.runs["energy_transfer"].notna().all()
        and (r.runs["energy"] > 0).all()
    ]
    if shares:
        low, high = percent(min(shares)), percent(max(shares))
        some = low if low == high else f"{low.removesuffix(chr(160) + '%')} to {high}"
        yield (
            f"{some} of the energy moves bytes over links, the rest is drawn all the time: the "
            "scenario assumes both."
        )


def of_variation(cases: Sequence[Case]) -> str:
    """Say what a trace's runtimes on a topology do as something varies, from first to last."""
    first, last = cases[0], cases[-1]
    kept = agreement(first, last)
    names = [case.variant for case in (first, last)]
    (best, before), (best_then, after) = (_fastest(case) for case in (first, last))
    run = "run" if first.times is None else "median run"
    text = f"From {names[0]} to {names[1]} the shortest {run} changes by {change(after, before)}"
    text += (
        f", by {best} throughout" if best == best_then else f", by {best_then} instead of {best}"
    )
    if kept.known:
        text += f"; the order of the mappings by runtime is kept with τ {format_tau(kept.value)}"
    return f"{text}."


def _fastest(case: Case) -> tuple[str, float]:
    row = case.runs.sort_values(["makespan", "hop_bytes"], kind="stable").iloc[0]
    return str(row["mapper"]), float(row["makespan"])


def _cases(number: int) -> str:
    return f"{number} case{'s' * (number != 1)}"


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
    names = ["Trace", "Topology", "Mappings", "Fastest", "Slowest against fastest"]
    names += ["Fewest hop-bytes against fastest"]
    called = [METRICS[metric].replace("collectives", "collec\u00adtives") for metric in shown]
    names += [*(f"τ {name}" for name in called), "τ hop-bytes, better half"]
    if energy:
        names += ["Energy: τ hop-bytes", "Energy: τ runtime"]
    variants = list(dict.fromkeys(each.case.variant for each in found))
    groups = {"": found}
    if len(variants) > 1:
        for name in variants:
            groups[name or "nothing varies"] = [r for r in found if r.case.variant == name]
    rows = [_medians(name, some, shown, energy) for name, some in groups.items()]
    rows += [_row(each, shown, energy) for each in relations(cases)]
    return {"overall": overall(found), "head": head_of(names), "rows": rows, "energy": energy}


def case_findings(study: Study, trace: str) -> list[tuple[str, str]]:
    """Return where and what was found as something varies over the cases of a trace."""
    return [
        (cases[0].topology, of_variation(cases))
        for cases in study.variations(trace)
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


def _medians(
    variant: str, relations: Sequence[Relation], shown: Sequence[str], energy: bool
) -> list[Cell]:
    """Return the medians over some cases, and the range below each."""
    gaps = [gap(each) for each in relations]
    row = [
        Cell(f"median of {len(relations)}", "", variant),
        Cell(""),
        Cell(""),
        Cell(""),
        _middle([costs.spread for costs in gaps]),
        _middle([costs.most for costs in gaps]),
        *(median_tau([each.taus[metric, "makespan"] for each in relations]) for metric in shown),
        median_tau([each.better for each in relations]),
    ]
    if energy:
        with_hops = [each.taus.get(("hop_bytes", "energy")) for each in relations]
        row += [median_tau(with_hops), median_tau([each.outcomes for each in relations])]
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
    ends = f"{format_tau(min(values))} to {format_tau(max(values))}"
    note = f"{ends}, clear in {clear} of {len(known)}"
    return Cell(format_tau(median(values)), median(values), note)


def _tau(tau: Tau) -> Cell:
    if not tau.known:
        return Cell(MISSING)
    return Cell(format_tau(tau.value), tau.value, look="clear" if tau.clear else "chance")


def relation_figures(study: Study, trace: str) -> Iterator[tuple[str, str, Figure]]:
    """Draw Kendall's tau, and runtime over hop-bytes."""
    from .study_figures import scatter, tau_map

    if found := relations(study.cases_of(trace)):
        title = f"Kendall’s τ, {trace}"
        energy = " and energy" * any(("hop_bytes", "energy") in each.taus for each in found)
        caption = f"{title}: metrics with runtime{energy}"
        if any(tau.clear for each in found for tau in each.taus.values()):
            caption += ". Bold: unlikely to be chance (p below 5 %)"
        yield "tau", caption, tau_map(found, title=title)
    for each in relations(study.ends_of(trace)):
        where = each.case.where
        caption = f"Each mapping of {trace} on {where}: runtime over hop-bytes and busiest link"
        yield f"{where} scatter", caption, scatter(each, title=where)


RELATIONS = Section(
    lambda whole, shown: relation_section(whole, shown.cases),
    trace_figures=relation_figures,
    findings=case_findings,
)

"""What a study found over all its cases, in sentences; figures of cases stand in tables.

Where a tau could be chance, the sentence says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hopmap.api.quantities import MISSING, change, percent
from hopmap.scenarios.results.ranking import LITTLE
from hopmap.scenarios.results.study import AS_FAST, Case

from .correlation import Relation, order_kept


class Gap(NamedTuple):
    """What choosing by hop-bytes alone costs in a case.

    Attributes
    ----------
    spread : float
        How much longer the slowest mapping runs than the fastest, 0.05 for 5 %.
    least, most : float
        How much longer the mappings with the fewest hop-bytes run than the fastest; two figures
        where several mappings have so few.
    ties : int
        Mappings with the fewest hop-bytes.
    mapper, fastest : str
        Of the slowest mapping with the fewest hop-bytes, and of the fastest mapping.
    more : float
        How many more hop-bytes the fastest mapping has, 0.2 for 20 %.
    """

    spread: float
    least: float
    most: float
    ties: int
    mapper: str
    fastest: str
    more: float


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


def overall(found: Sequence[Relation]) -> list[str]:
    """Answer for all cases: are fewer hop-bytes a shorter run, is choosing by them, and energy."""
    sentences = (_runtime, _choosing, _energy)
    return [sentence for about in sentences for sentence in about(found)]


def _runtime(found: Sequence[Relation]) -> Iterator[str]:
    taus = [r.taus["hop_bytes", "makespan"] for r in found]
    known = [tau for tau in taus if tau.known]
    if not known:
        return
    with_, against = (sum(tau.clear and sign * tau.value > 0 for tau in known) for sign in (1, -1))
    apart = max(gap(r).spread for r in found)
    answer = (
        f"It makes no difference here, where runs differ by {percent(apart)} at most"
        if apart < LITTLE
        else "Mostly yes"
        if with_ > len(taus) / 2
        else "Rather the reverse"
        if against > len(taus) / 2
        else "Sometimes"
        if with_
        else "Not that these runs would show"
    )
    yield (
        f"Do fewer hop-bytes mean a shorter run? {answer}: clearly so in {with_} of "
        f"{_cases(len(taus))}, clearly the reverse in {against}; in {len(taus) - with_ - against} "
        f"the order by hop-bytes tells no more of the order by runtime than chance."
    )


def _choosing(found: Sequence[Relation]) -> Iterator[str]:
    right = sum(gap(r).most <= AS_FAST for r in found)
    yield (
        f"Choosing the mapping with the fewest hop-bytes gave the shortest run (to 0.1\u00a0%) in "
        f"{right} of {_cases(len(found))}."
    )
    if noisy := [r.case for r in found if r.case.times is not None]:
        among = sum(any(case.fewest_hop_bytes is entry for entry in case.leaders) for case in noisy)
        yield (
            "With noise, the mapping with the fewest hop-bytes is among those that no other is "
            f"known to beat in {among} of {_cases(len(noisy))}."
        )


def _energy(found: Sequence[Relation]) -> Iterator[str]:
    shares = [
        float((r.runs["energy_transfer"] / r.runs["energy"]).median())
        for r in found
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
    kept = order_kept(first, last)
    names = [case.variant for case in (first, last)]
    (best, before), (best_then, after) = (_fastest(case) for case in (first, last))
    run = "run" if first.times is None else "median run"
    text = f"From {names[0]} to {names[1]} the shortest {run} changes by {change(after, before)}"
    text += (
        f", by {best} throughout" if best == best_then else f", by {best_then} instead of {best}"
    )
    if kept.known:
        text += f"; the order of the mappings by runtime is kept with τ {signed(kept.value)}"
    return f"{text}."


def _fastest(case: Case) -> tuple[str, float]:
    row = case.runs.sort_values(["makespan", "hop_bytes"], kind="stable").iloc[0]
    return str(row["mapper"]), float(row["makespan"])


def _cases(number: int) -> str:
    return f"{number} case{'s' * (number != 1)}"


def signed(value: float) -> str:
    """Write a tau: "+0.42"."""
    return MISSING if value != value else f"{value:+.2f}".replace("-", "−")

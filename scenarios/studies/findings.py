"""What a study found, in sentences that are computed from its runs.

Nothing is said that the figures do not say: where a tau could be chance, the sentence says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import NamedTuple

from hopmap.scenarios.quantities import MISSING, change

from .correlation import METRICS, Relation, Tau, order_kept
from .study import AS_FAST, Case

LITTLE = 0.01  # differences that one replay does not tell


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

    @property
    def rival(self) -> str:
        """The fastest mapping, named so that it is not taken for the one of fewest hop-bytes."""
        return self.fastest if self.fastest != self.mapper else f"another mapping of {self.mapper}"

    @property
    def extra(self) -> str:
        """How many more hop-bytes the fastest mapping has, in words."""
        return f"{percent(self.more)} more hop-bytes" if self.more >= 0.0005 else "as few hop-bytes"


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
    """Say what holds over all cases: runtime, choosing by hop-bytes, the best metric, energy."""
    sentences = (_runtime, _variants, _choosing, _metrics, _energy)
    return [sentence for about in sentences for sentence in about(found)]


def _runtime(found: Sequence[Relation]) -> Iterator[str]:
    taus = [r.taus["hop_bytes", "makespan"] for r in found]
    known = [tau for tau in taus if tau.known]
    if not known:
        return
    with_, against = (sum(tau.clear and sign * tau.value > 0 for tau in known) for sign in (1, -1))
    values = [tau.value for tau in known]
    low, middle, high = (signed(pick(values)) for pick in (min, median, max))
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
        f"the order by hop-bytes tells no more of the order by runtime than chance. Kendall’s τ is "
        f"{middle} in the median, from {low} to {high}."
    )
    halves = [r.better.value for r in found if r.better.known]
    if halves:
        clear = sum(r.better.clear and r.better.value > 0 for r in found)
        yield (
            f"Among good mappings, the half of each case with the fewest hop-bytes, τ is "
            f"{signed(median(halves))} in the median, and clearly positive in {clear} of "
            f"{_cases(len(found))}."
        )


def _variants(found: Sequence[Relation]) -> Iterator[str]:
    """Set the variants side by side, for hop-bytes and for what weighs them by link."""
    labels = list(dict.fromkeys(r.case.variant for r in found))
    if len(labels) < 2:
        return
    texts = []
    for metric in ("hop_bytes", "link_seconds_total"):
        parts = []
        for label in labels:
            taus = [r.taus[metric, "makespan"] for r in found if r.case.variant == label]
            if known := [tau.value for tau in taus if tau.known]:
                parts.append(f"{signed(median(known))} {_at(label)}")
        if parts:
            texts.append(f"of {METRICS[metric]} {', '.join(parts)}")
    if texts:
        yield f"The median τ with runtime is, {'; '.join(texts)}."


def _at(label: str) -> str:
    return f"at {label}" if label else "where nothing varies"


def _choosing(found: Sequence[Relation]) -> Iterator[str]:
    gaps = [(gap(r), r.case) for r in found]
    right = sum(g.most <= AS_FAST for g, _ in gaps)
    text = (
        f"Choosing the mapping with the fewest hop-bytes gave the shortest run (to 0.1\u00a0%) in "
        f"{right} of {_cases(len(gaps))}"
    )
    worst, case = max(gaps, key=lambda pair: pair[0].most)
    if worst.most > AS_FAST:
        text += (
            f"; it costs most for {case.trace} on {case.where}, where it ({worst.mapper}) runs "
            f"{percent(worst.most)} longer than {worst.rival}, which has {worst.extra}"
        )
    spreads = _range([g.spread for g, _ in gaps])
    yield f"{text}. The slowest mapping runs {spreads} longer than the fastest."
    if noisy := [r.case for r in found if r.case.times is not None]:
        among = sum(any(case.fewest_hop_bytes is entry for entry in case.leaders) for case in noisy)
        yield (
            "That is of medians of replays with noise: the mapping with the fewest hop-bytes is "
            f"among those that no other is known to beat in {among} of {_cases(len(noisy))}."
        )


def _metrics(found: Sequence[Relation]) -> Iterator[str]:
    medians = {
        metric: median(values)
        for metric in METRICS
        if (
            values := [
                r.taus[metric, "makespan"].value for r in found if r.taus[metric, "makespan"].known
            ]
        )
    }
    if len(medians) < 2:
        return
    order = sorted(medians, key=lambda metric: -medians[metric])
    listed = ", ".join(f"{METRICS[metric]} {signed(medians[metric])}" for metric in order)
    yield f"Which metric follows the runtime best? Median τ over the cases: {listed}."


def _energy(found: Sequence[Relation]) -> Iterator[str]:
    found = [r for r in found if ("hop_bytes", "energy") in r.taus]
    by_hops = [t.value for r in found if (t := r.taus["hop_bytes", "energy"]).known]
    by_time = [r.outcomes.value for r in found if r.outcomes.known]
    if not by_hops or not by_time:
        return
    shares = [
        float((r.runs["energy_transfer"] / r.runs["energy"]).median())
        for r in found
        if r.runs["energy_transfer"].notna().all() and (r.runs["energy"] > 0).all()
    ]
    text = (
        f"Do fewer hop-bytes mean less energy? The median τ of energy is {signed(median(by_hops))} "
        f"with hop-bytes, and {signed(median(by_time))} with runtime"
    )
    if shares:
        text += f"; {_range(shares)} of it moves bytes over links, the rest is drawn all the time"
    yield f"{text}. How these weigh is the scenario’s assumption."


def of_case(relation: Relation) -> str:
    """Say what one case shows."""
    g = gap(relation)
    tau = relation.taus["hop_bytes", "makespan"]
    case, fastest = relation.case, g.fastest
    if case.times is not None and not case.sure:
        fastest += f" by medians, one of {len(case.leaders)} that cannot be told apart"
    text = (
        f"{len(relation.runs)} mappings; the slowest runs {percent(g.spread)} longer than the "
        f"fastest ({fastest}). "
    )
    if g.ties > 1:
        text += f"The {g.ties} mappings with the fewest hop-bytes run "
        text += f"{_range([g.least, g.most])} longer than it"
    elif g.most <= AS_FAST:
        text += f"The one with the fewest hop-bytes ({g.mapper}) runs as fast"
    else:
        text += f"The one with the fewest hop-bytes ({g.mapper}) runs {percent(g.most)} longer"
    if g.more >= 0.0005 and g.most > AS_FAST:
        text += f", though {g.rival} has {g.extra}"
    text += f". {_verdict(tau)}"
    best = relation.best_metric()
    if best is not None and best != "hop_bytes":
        ahead = relation.taus[best, "makespan"]
        if not tau.known or ahead.value - tau.value >= 0.1:
            text += f" {METRICS[best].capitalize()} tells more: τ {signed(ahead.value)}."
    busiest = relation.taus["bytes_congestion_max", "makespan"]
    if tau.known and busiest.known and abs(busiest.value - tau.value) >= 0.1:
        word = "better" if busiest.value > tau.value else "worse"
        text += f" The busiest link predicts {word} than hop-bytes: τ {signed(busiest.value)}."
    return text


def _verdict(tau: Tau) -> str:
    if not tau.known:
        return "Hop-bytes are the same for all, so that they cannot tell mappings apart."
    shown = f"τ {signed(tau.value)}"
    if not tau.clear:
        return f"Hop-bytes do not tell which runs faster: {shown}, as chance might give."
    return (
        f"Fewer hop-bytes go with a shorter run: {shown}."
        if tau.value > 0
        else f"Fewer hop-bytes go with a longer run: {shown}."
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


def percent(value: float) -> str:
    """Write a share or an excess: 0.123 is "12 %", 0.0123 is "1.2 %"."""
    hundredths = 100 * value
    digits = 0 if hundredths >= 9.95 or hundredths < 0.005 else 1 if hundredths >= 0.095 else 2
    return f"{hundredths:,.{digits}f}\u00a0%"


def _range(values: Sequence[float]) -> str:
    low, high = percent(min(values)), percent(max(values))
    return low if low == high else f"{low.removesuffix(chr(160) + '%')} to {high}"

"""A study in short: every mapper over all cases, which cases a page has room for, and a CSV of all.

Mappers are compared by how much longer a run is than the fastest of its case (where nothing
was replayed: how many more hop-bytes it has than the fewest), since cases differ by magnitudes.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from hopmap.arrays import Floats
from hopmap.scenarios.results.ranking import format_list, matters, networks
from hopmap.scenarios.results.study import Case, Study
from hopmap.traces.safety.atomic_files import replacing
from hopmap.units import MISSING, count, duration, percent

from .tables import Cell, head_of

ROWS = 400  # mappers in cases that a page lists; of more, some cases are chosen
CHOSEN = 12
NAMED = 12  # traces in one sentence


def measure(study: Study) -> str:
    """Return the column by which mappers are compared."""
    if study.runs["makespan"].notna().any():
        return "makespan"
    return "hop_bytes" if study.runs["hop_bytes"].any() else "hop_messages"


def excess(study: Study) -> Mapping[str, list[Floats]]:
    """Return by mapper, for each case, how much more than the least of the case each run takes.

    0.05 is 5 % more; one array a case, one figure a seed.
    """
    column = measure(study)
    found: dict[str, list[Floats]] = {}
    for case in study.cases:
        least = case.runs[column].min()
        if least > 0:
            for entry in case.entries:
                values = entry.runs[column].dropna().to_numpy(dtype=float)
                if len(values):
                    found.setdefault(entry.mapper, []).append(values / least - 1)
    return found


def summary(study: Study) -> dict[str, Any] | None:
    """Return a table with a row for every mapper over all cases; None for fewer than two cases."""
    found = excess(study)
    if len(study.cases) < 2 or not found:
        return None
    names = ("Mapper", "Cases", "Best in", "Mean excess", "Worst", "Between seeds", "Mapping time")
    led = _count_leads(study)
    seconds = study.runs.groupby("mapper")["mapping_seconds"].mean()
    rows = []
    for mapper, cases in found.items():
        best = led[mapper]
        mean = float(np.exp(np.mean([np.log1p(each).mean() for each in cases])) - 1)
        worst = max(float(each.max()) for each in cases)
        spread = max(float((each.max() - each.min()) / (1 + each.min())) for each in cases)
        seeds = max(map(len, cases))
        rows.append(
            [
                Cell(mapper, mapper),
                Cell(count(len(cases)), len(cases)),
                Cell(count(best), best),
                Cell(f"+{percent(mean)}", mean),
                Cell(f"+{percent(worst)}", worst),
                Cell(percent(spread), spread) if seeds > 1 else Cell(MISSING),
                Cell(duration(float(seconds[mapper])), float(seconds[mapper])),
            ]
        )
    return {"head": head_of(names), "rows": rows, "replayed": measure(study) == "makespan"}


def summarise_unmoved(study: Study) -> str:
    """Say in one sentence in which cases no mapping is faster than the default order; "" for none.

    Faster is what has a practical difference that neither chance nor the models explain.
    """
    known = [case for case in study.cases if case.replayed and case.default is not None]
    same = [case for case in known if not matters(case)]
    if not same:
        return ""
    how_many = "all" if len(same) == len(known) else f"{len(same)} of"
    cases = f"{how_many} {len(known)} cases" if len(known) > 1 else "the only case"
    named = [_name_cases(trace, known, same) for trace in dict.fromkeys(c.trace for c in same)]
    more = f"; and {len(named) - NAMED} more traces" * (len(named) > NAMED)
    return (
        f"In {cases} placement does not matter: no mapping is faster than {same[0].order} by "
        f"{percent(study.relevance)} or more, and by more than chance: "
        f"{'; '.join(named[:NAMED])}{more}."
    )


def _name_cases(trace: str, known: Sequence[Case], same: Sequence[Case]) -> str:
    """Name the networks of a trace, and what varies where it is not all of it."""
    words = []
    for topology in dict.fromkeys(case.topology for case in same if case.trace == trace):
        of_all, of_same = (
            [case.variant for case in cases if (case.trace, case.topology) == (trace, topology)]
            for cases in (known, same)
        )
        variants = "" if len(of_all) == len(of_same) else f" ({', '.join(of_same)})"
        words.append(topology + variants)
    return f"{trace} on {format_list(words)}"


def _count_leads(study: Study) -> Counter[str]:
    """Count the cases in which each mapper leads; without replays, has the fewest hop-bytes."""
    column = measure(study)
    led: Counter[str] = Counter()
    for case in study.cases:
        least = case.runs[column].min()
        best = [entry for entry in case.entries if entry.runs[column].min() == least > 0]
        led.update(entry.mapper for entry in (case.leaders if case.replayed else best))
    return led


def choose_cases(study: Study) -> Sequence[Case]:
    """Return the cases that a page shows: all, or of many those in which mapping matters most.

    In turn: where the slowest mapper is furthest behind the fastest, where it is closest, and where
    the mapper with the fewest hop-bytes is furthest behind.
    """
    if sum(len(case.entries) for case in study.cases) <= ROWS:
        return study.cases
    column = measure(study)

    def spread(case: Case) -> float:
        values = case.runs[column]
        return float(values.max() / max(values.min(), 1e-300))

    def is_misled(case: Case) -> float:
        least = case.runs[column].min()
        return float(case.fewest_hop_bytes.best[column] / max(least, 1e-300))

    replayed = [case for case in study.cases if case.replayed] or list(study.cases)
    by_spread = sorted(replayed, key=spread, reverse=True)
    orders = (by_spread, by_spread[::-1], sorted(replayed, key=is_misled, reverse=True))
    first = list(dict.fromkeys(chain.from_iterable(zip_longest(*orders))))[:CHOSEN]
    return [case for case in study.cases if case in first]


def export_commands(study: Study) -> list[str]:
    """Return the command that writes the best mapping for a launcher, a line for each trace.

    Of several networks, or values that vary, it is of those with the fastest run.
    """
    lines = []
    for trace in study.traces():
        cases = study.cases_of(trace)
        best = next((each.case for each in networks(cases)), cases[0])
        flags = {"--trace": [case.trace for case in study.cases]}
        flags |= {"-t": [case.topology for case in cases], "--variant": [c.variant for c in cases]}
        values = (best.trace, best.topology, best.variant)
        words = ["hopmap", "export", str(study.folder), "--best"]
        for (option, among), value in zip(flags.items(), values, strict=True):
            words += [option, value] if len(set(among)) > 1 else []
        lines.append(shlex.join([*words, "--to", "slurm"]))
    return lines


def write_cases(study: Study, path: Path) -> None:
    """Write a CSV of every mapper in every case: figures of the best seed, and over all seeds."""
    keys = ["trace", "topology", "variant", "mapper"]
    figures = ["hop_bytes", "hop_messages", "makespan", "energy", "mapping_seconds"]
    figures += ["bytes_congestion_max", "messages_congestion_max"]
    groups = study.runs.groupby(keys, sort=False)[figures]
    table = groups.agg(["mean", "min", "max"])
    table.columns = table.columns.map("_".join)
    table.insert(0, "seeds", groups.size())
    with replacing(path) as partial:
        table.dropna(axis=1, how="all").to_csv(partial)

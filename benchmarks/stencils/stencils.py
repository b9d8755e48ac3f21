"""The tables of README.md here, over several scenarios.

``python benchmarks/stencils/stencils.py FOLDER [FOLDER ...]`` with results of `hopmap run
stencil_partitions`, `stencil_dimensions` and `stencil_shapes` prints, for every memory and size of
messages, the medians over all cases of Kendall's tau of worst node, sum and busiest path with the
time (in brackets: in how many cases it is above 0 and clear), in how many cases the least worst
node, row_major and random placement are the fastest; then the taus suite by suite.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from hopmap.scenarios.results.study import load_study
from hopmap.scenarios.studies.suite_section import (
    PATH,
    SUM,
    WORST,
    Finding,
    finding,
    suites_of,
)
from hopmap.scenarios.studies.suites import suite_cases
from hopmap.simulator.uncertainty import RELEVANCE
from hopmap.units import show_bytes


class Found(NamedTuple):
    """What a case of a suite shows, and how large its messages are."""

    suite: str
    case: tuple[str, str]
    variant: str
    size: int
    finding: Finding


def findings(folders: Iterable[Path]) -> list[Found]:
    """Compare the orders of the mappings of every case of the folders that was replayed."""
    found = []
    for folder in folders:
        study = load_study(folder)
        for text in suites_of(study):
            pairs = {(pair.trace, pair.topology): pair for pair in suite_cases(text)}
            for case in study.cases:
                pair = pairs.get((case.trace, case.topology))
                if pair is not None and (made := finding(case, study)) is not None:
                    found.append(
                        Found(
                            text.partition(",")[0],
                            (case.trace, case.topology),
                            case.variant,
                            pair.size,
                            made,
                        )
                    )
    return found


def middle(some: Sequence[Found], metric: str) -> tuple[float, int]:
    """Median tau of a metric with the time, and in how many cases it is above 0 and clear."""
    taus = [each.finding.taus[metric] for each in some if metric in each.finding.taus]
    known = [tau for tau in taus if tau.known]
    clear = sum(tau.clear and tau.value > 0 for tau in known)
    return (median(tau.value for tau in known) if known else float("nan")), clear


def show(found: Sequence[Found]) -> None:
    """Print both tables."""
    sizes = sorted({each.size for each in found})
    variants = list(dict.fromkeys(each.variant for each in found))
    print("memory, message: cases | worst node | sum | busiest path | least | row_major | random")
    for variant in variants:
        for size in sizes:
            same = [each for each in found if (each.variant, each.size) == (variant, size)]
            some = list({each.case: each for each in same}.values())  # some suites share cases
            if not some:
                continue
            taus = [middle(some, metric) for metric in (WORST, SUM, PATH)]
            fastest = (
                sum(each.finding.excess <= RELEVANCE for each in some),
                sum("row_major" in each.finding.fastest for each in some),
                sum((each.finding.random or 0) < 0 for each in some),
            )
            cells = [f"{value:+.2f} ({clear})" for value, clear in taus]
            print(
                f"{variant}, {show_bytes(size)}: {len(some)} | "
                + " | ".join([*cells, *map(str, fastest)])
            )
    print(f"\n{show_bytes(sizes[-1])}, worst node / sum / busiest path: {' | '.join(variants)}")
    for suite in dict.fromkeys(each.suite for each in found):
        part = [each for each in found if (each.suite, each.size) == (suite, sizes[-1])]
        cells = []
        for variant in variants:
            some = [each for each in part if each.variant == variant]
            taus = [middle(some, metric)[0] for metric in (WORST, SUM, PATH)]
            cells.append(" / ".join(f"{value:+.2f}" for value in taus))
        count = len([each for each in part if each.variant == variants[0]])
        print(f"{suite} ({count}): {' | '.join(cells)}")


if __name__ == "__main__":
    show(findings(map(Path, sys.argv[1:])))

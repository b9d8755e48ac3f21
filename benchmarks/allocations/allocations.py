"""What reordering buys on real allocations: tables and figure of the scenario `allocations`.

Every run is held against the same pattern on the same job with ranks in the order of the job's
list (identity); of the ratios the median and the 10th and 90th percentile over jobs are shown.

    hopmap run allocations --set folder=FOLDER --out RESULTS
    python benchmarks/allocations/allocations.py RESULTS allocations.svg > allocations.md
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
from allocations_figure import draw

from hopmap.scenarios.results.query import query

SQL = """
select runs.trace, runs.topology, runs.mapper, runs.ranks, runs.makespan as time,
    runs.bytes_congestion_max as busiest, runs.hop_bytes, loads.global_bytes
from runs left join (
    select run_id, sum(bytes) as global_bytes from links where kind = 'global' group by run_id
) loads using (run_id)
where runs.error is null
"""
QUANTITIES = {"global_bytes": "bytes on global links", "busiest": "busiest link", "time": "time"}
PATTERNS = {
    "stencil": "3-D halo",
    "recursive_doubling": "allreduce, recursive doubling",
    "ring": "allreduce, ring",
    "pairwise": "alltoall, pairwise",
    "cg.": "CG",
    "mg.": "MG",
    "lu.": "LU",
}
MACHINES = {"leonardo": "Leonardo", "nid[005000": "LUMI-G", "nid[001000": "LUMI-C"}


def ratios(results: Path) -> pd.DataFrame:
    """Return a row per run except identity's: machine, pattern, mapper, three ratios to identity.

    Nothing on global links with either is a ratio of 1; runs that have some where identity has
    none are left out of that column.
    """
    answer = query(results, SQL)
    runs = pd.DataFrame(answer.rows, columns=answer.columns).fillna({"global_bytes": 0})
    for column, words in (("trace", PATTERNS), ("topology", MACHINES)):
        named = [
            next(name for word, name in words.items() if word in text) for text in runs[column]
        ]
        runs["pattern" if column == "trace" else "machine"] = named
    key = ["topology", "trace"]
    first = runs[runs["mapper"] == "identity"][[*key, *QUANTITIES]]
    others = runs[runs["mapper"] != "identity"].merge(first, on=key, suffixes=("", "_first"))
    for quantity in QUANTITIES:
        value, base = others[quantity], others[f"{quantity}_first"]
        others[quantity] = (value / base).where(base > 0).mask((base == 0) & (value == 0), 1.0)
    return others[["machine", "pattern", "mapper", "ranks", "topology", *QUANTITIES]]


def table(found: pd.DataFrame) -> str:
    """Markdown: a row for every machine, pattern and mapper."""
    header = ["machine", "pattern", "jobs", "mapper", *QUANTITIES.values(), "faster", "slower"]
    lines = [f"| {' | '.join(header)} |", "|" + "---|" * len(header)]
    for machine in MACHINES.values():
        for pattern in PATTERNS.values():
            cell = found[(found["machine"] == machine) & (found["pattern"] == pattern)]
            for mapper, rows in cell.groupby("mapper", sort=False):
                spans = [spread(rows[quantity]) for quantity in QUANTITIES]
                faster, slower = (rows["time"] < 0.95).mean(), (rows["time"] > 1.05).mean()
                words = [machine, pattern, str(len(rows)), f"`{mapper}`", *spans]
                lines.append(f"| {' | '.join(words)} | {faster:.0%} | {slower:.0%} |")
    return "\n".join(lines)


def order(machine: str, pattern: str) -> tuple[int, int]:
    """Where a machine's pattern stands."""
    return list(MACHINES.values()).index(machine), list(PATTERNS.values()).index(pattern)


def spread(values: pd.Series) -> str:
    """Median, and 10th to 90th percentile."""
    low, middle, high = values.quantile([0.1, 0.5, 0.9])
    return f"{middle:.2f} ({low:.2f} to {high:.2f})"


if __name__ == "__main__":
    results, figure = map(Path, sys.argv[1:])
    found = ratios(results)
    draw(found, figure, order)
    print(table(found))

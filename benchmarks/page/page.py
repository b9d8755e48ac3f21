"""All that matters for speed and quality, on one page: ``python benchmarks/page/page.py``.

Compares reader, writer, metrics, engines, mappers, sweeps and the command line, each with a peer
that is measured in the same run (mappers: with the figures in ../shared/mapping/peers.csv). Writes
README.md here, and compares the ratios with baseline.json; a ratio below 0.7 of its baseline is
marked and makes the exit code 1. ``--baseline`` writes a new one. ``--only reader metrics`` prints
parts without writing. Ten minutes of one core; processor seconds, compilation apart. The scripts in
the neighbouring folders measure each area in detail.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

# The peers are what scripts of other folders measure against as well.
sys.path.extend(str(Path(__file__).parents[1] / name) for name in ("mapping", "replay", "sweeps"))

import command_rows
import engine_rows
import mapper_rows
import trace_rows

BASELINE = Path(__file__).with_name("baseline.json")
PAGE = Path(__file__).with_name("README.md")
TOLERATED = 0.7
PARTS = {
    "reader and writer": trace_rows.rows,
    "metrics": engine_rows.metrics,
    "engines": engine_rows.engines,
    "mappers": mapper_rows.rows,
    "sweeps and commands": command_rows.rows,
}


class Row(NamedTuple):
    """What one measurement found.

    Attributes
    ----------
    what : str
        Names the measurement, here and in the baseline.
    ours, peer : str
        Figures with their units.
    peer_name : str
        Who the peer is.
    ratio : float
        How many times better ours is: faster, or a lower cost.
    """

    what: str
    ours: str
    peer_name: str
    peer: str
    ratio: float


def measured(only: list[str]) -> Iterator[tuple[str, list[Row]]]:
    for part, rows in PARTS.items():
        if not only or any(word in part for word in only):
            yield part, [Row(*row) for row in rows()]


def table(rows: list[Row], baseline: dict[str, float]) -> str:
    lines = ["| | hopmap | peer | | ratio | baseline |", "|---|---:|---|---:|---:|---:|"]
    for row in rows:
        known = baseline.get(row.what)
        mark = " **slower**" if known and row.ratio < TOLERATED * known else ""
        lines.append(
            f"| {row.what} | {row.ours} | {row.peer_name} | {row.peer} | {show(row.ratio)}{mark} "
            f"| {show(known) if known else '-'} |"
        )
    return "\n".join(lines)


def show(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:,.0f}"


def machine() -> str:
    names = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    versions = ", ".join(f"{name} {version(name)}" for name in ("numba", "numpy", "simpy", "otf2"))
    return (
        f"{len(names)} cores of {names[0] if names else platform.processor()}, "
        f"load {os.getloadavg()[0]:.1f}, Python {platform.python_version()}, {versions}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD")
    parser.add_argument("--baseline", action="store_true", help="keep these ratios as the baseline")
    options = parser.parse_args()
    baseline = json.loads(BASELINE.read_text()) if BASELINE.exists() else {}
    page = [
        "# Speed and quality on one page",
        "This page compares reader, writer, metrics, engines, mappers and commands with a peer "
        "each, measured in the same run.",
        f"`python benchmarks/page/page.py` on {machine()}.",
        "A ratio says how many times faster, or lower in cost, hopmap is than its peer. Rates are "
        "per second of processor time, without compilation. VieM's seconds and\n"
        "the aims are fixed, so those rows compare machines, too.",
    ]
    ratios: dict[str, float] = {}
    for part, rows in measured(options.only):
        page += [f"## {part.capitalize()}", table(rows, baseline)]
        print("\n".join(page[-2:]), flush=True)
        ratios |= {row.what: round(row.ratio, 4) for row in rows}
    if not options.only:
        PAGE.write_text("\n\n".join(page) + "\n", encoding="utf-8")
        if options.baseline:
            BASELINE.write_text(json.dumps(ratios, indent=1) + "\n")
    return int(any(ratios[what] < TOLERATED * baseline.get(what, 0) for what in ratios))


if __name__ == "__main__":
    sys.exit(main())

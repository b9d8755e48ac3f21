"""Routers beside BookSim2: ``python benchmarks/routers/routers.py BOOKSIM OUT [PART OF]``."""

from __future__ import annotations

import csv
import sys
from itertools import product
from pathlib import Path
from typing import NamedTuple

from booksim import Measured, booksim
from buffered import hopmap

PATTERNS = ("uniform", "transpose", "tornado", "neighbor", "shuffle")
NETWORKS = {"mesh": (1, 2, 8), "torus": (2, 8)}
SIZES = ((1, 8), (1, 1), (8, 64), (8, 8), (1, 64))  # flits of a packet, and of a buffer
WINDOW = 500  # cycles; 4 of them are 2,000
SATURATED = 3.0  # mean latency in that of a load near 0
STEPS = 7


class Case(NamedTuple):
    topology: str
    pattern: str
    channels: int
    size: int
    buffer: int


class Row(NamedTuple):
    """What came of a case: latencies in cycles, loads in flits per source and cycle."""

    topology: str
    pattern: str
    channels: int
    size: int
    buffer: int
    zero: float
    saturation: float
    booksim_saturation: float
    half: float
    booksim_half: float
    most: float
    booksim_most: float


def cases() -> list[Case]:
    return [
        Case(topology, pattern, channels, *sizes)
        for sizes, (topology, many), pattern in product(SIZES, NETWORKS.items(), PATTERNS)
        for channels in many
    ]


def ours(case: Case, load: float) -> Measured:
    places = case.buffer // case.size
    given = {"size": case.size, "channels": case.channels, "buffer": places}
    return hopmap(case.topology, case.pattern, load, WINDOW, **given)


def theirs(program: Path, case: Case, load: float, most: float, **options: object) -> Measured:
    given = {
        "topology": case.topology,
        "traffic": case.pattern,
        "num_vcs": case.channels,
        "vc_buf_size": case.buffer,
        "packet_size": case.size,
        "input_speedup": case.channels,
        "hold_switch_for_packet": int(case.size > 1),
    }
    return booksim(program, given | options, load, WINDOW, most)


def compared(program: Path, case: Case, **options: object) -> Row:
    """Find where both saturate, and their latencies at 0.5 and 0.8 of where hopmap does."""
    zero = ours(case, 0.004 / case.size).latency
    limit = SATURATED * zero
    low, high = 0.0, 1.0 / case.size
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if ours(case, middle).latency < limit else (low, middle)
    mine = (low + high) / 2

    def full(part: float) -> bool:
        return theirs(program, case, part * mine, limit, **options).latency > limit

    low, high = 0.95, 1.05
    while full(low) and low > 0.2:
        low, high = low - 0.1, low
    while low == 0.95 and high < 1.8 and not full(high):
        high += 0.1
    low = max(low, high - 0.1)
    middle = (low + high) / 2
    low, high = (low, middle) if full(middle) else (middle, high)
    other = mine * (low + high) / 2
    base = min(mine, other)
    latencies = [
        f(part * base)
        for part in (0.5, 0.8)
        for f in (
            lambda load: ours(case, load).latency,
            lambda load: theirs(program, case, load, 10 * limit, **options).latency,
        )
    ]
    return Row(*case, zero, mine * case.size, other * case.size, *latencies)


def main(program: Path, out: Path, part: int, of: int) -> None:
    with out.open("a", newline="") as file:
        table = csv.writer(file)
        for case in cases()[part::of]:
            table.writerow(compared(program, case))
            file.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *map(int, sys.argv[3:5]))

"""Routers beside BookSim2: ``python benchmarks/routers/routers.py BOOKSIM OUT [PART OF]``.

BOOKSIM is its executable, OUT a table of one row a case, which is gone on with if it is there;
PART of OF takes every OF-th case. A case is a pattern on an 8x8 mesh or torus, virtual channels,
and the flits of a packet and of a buffer. hopmap's buffers are in packets, so that a buffer is
one packet at least (virtual cut-through): smaller ones, BookSim's wormholes, are outside its model.

What is made the same: a hop takes 3 cycles in BookSim (allocation of channel and switch in one by
speculation, crossing, link), which is hopmap's latency of a link; a place is taken again 7 cycles
later, a flit and two latencies, which takes `credit_delay` = 2 there and 0 here. Channels of an
input share no port of the crossbar (`input_speedup` = channels), a full channel is not allocated
(`vc_busy_when_full`), and a packet of several flits keeps the switch (`hold_switch_for_packet`).

A network saturates where the mean latency of what is made in 1,000 cycles, after 500, is three
times that of a load near 0. hopmap's is bisected; BookSim's is bracketed by loads of 0.95, 1.05,
and so on of that, so that equal ones say: within 5 %.
"""

from __future__ import annotations

import csv
import sys
from itertools import product
from pathlib import Path
from typing import NamedTuple

from booksim import Measured, booksim
from buffered import hopmap

PATTERNS = ("uniform", "transpose", "tornado", "neighbor", "shuffle")
# Packets over the busiest link for every packet of each source.
GAMMA = {
    "mesh": dict(zip(PATTERNS, (2, 7, 3, 1, 4), strict=True)),
    "torus": dict(zip(PATTERNS, (1, 3.5, 3, 1, 3.5), strict=True)),
}
NETWORKS = {"mesh": (1, 2, 8), "torus": (2, 8)}
SIZES = ((1, 8), (8, 64), (1, 1), (8, 8), (1, 64))  # flits of a packet, and of a buffer
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
    latency: float
    booksim_latency: float


def cases() -> list[Case]:
    """All of them, those that say most first."""
    found = [
        (kind + turn, Case(topology, pattern, channels, *sizes))
        for (kind, sizes), (topology, many), pattern in product(
            enumerate(SIZES), NETWORKS.items(), PATTERNS
        )
        for turn, channels in enumerate((2, 8, 1))
        if channels in many
    ]
    return [case for _, case in sorted(found, key=lambda each: each[0])]


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
    """Find where both saturate, and their latencies at 0.8 of the lower of the two."""
    zero = ours(case, 0.004 / case.size).latency
    limit = SATURATED * zero
    low, high = 0.0, min(1.25 / GAMMA[case.topology][case.pattern], 1.0) / case.size
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if ours(case, middle).latency < limit else (low, middle)
    mine = (low + high) / 2

    def full(part: float) -> bool:
        load = part * mine
        if load * case.size > 1:
            return True
        return theirs(program, case, load, limit, **options).latency > limit

    low, high = 0.95, 1.05
    while full(low) and low > 0.2:
        low, high = low - 0.1, low
    while low >= 0.95 and high < 2.0 and not full(high):
        low, high = high, high + 0.1
    other = mine * (low + high) / 2
    load = 0.8 * min(mine, other)
    here = ours(case, load).latency
    there = theirs(program, case, load, 10 * limit, **options).latency
    return Row(*case, zero, mine * case.size, other * case.size, here, there)


def main(program: Path, out: Path, part: int, of: int) -> None:
    known = (
        {tuple(line.split(",")[:5]) for line in out.read_text().splitlines()}
        if out.exists()
        else set()
    )
    with out.open("a", newline="") as file:
        table = csv.writer(file)
        for case in cases()[part::of]:
            if tuple(map(str, case)) in known:
                continue
            table.writerow(compared(program, case))
            file.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *map(int, sys.argv[3:5]))

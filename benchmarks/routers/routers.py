"""Routers against BookSim2: ``python benchmarks/routers/routers.py BOOKSIM OUT [OPTION=VALUE]...``.

BOOKSIM is its executable, with `dragonfly.diff` for the dragonfly's routings. OUT is a table of one
row a case and load, which is gone on with if it is there. What a case is, and what is made the
same, `cases.py` says; an OPTION of BookSim's is set in its place.

A network saturates where the mean latency of what is made in two windows, after one, is three times
that of a load near 0. hopmap's saturation is closed in on; then both are run at parts of that load.
BookSim's is bracketed by loads of 0.95, 1.05, and so on of it, so that equal ones say: within 5 %.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from cases import Case, cases, ours, theirs

PARTS = (0.2, 0.5, 0.8)  # of hopmap's saturation
BRACKET = (0.95, 1.05)
STEP, LEAST, MOST = 0.1, 0.3, 2.0
SATURATED = 3.0  # mean latency in that of a load near 0
EMPTY = 0.05  # part of the load at which a case may saturate that is near 0
FURTHER = 1.3  # load to load in which hopmap's saturation is looked for
CLOSE, NEAR = 0.01, 0.15  # to what part of it it is found, or with what part of the latency


class Point(NamedTuple):
    """A case at one load: loads in flits per source and cycle, latencies in cycles.

    Attributes
    ----------
    zero : float
        hopmap's latency at a load near 0.
    saturation : float
        hopmap's.
    part : float
        The offered load, in `saturation`.
    latency, booksim_latency : float
        Infinite for an aborted run, far beyond saturation.
    """

    case: Case
    zero: float
    saturation: float
    part: float
    latency: float
    booksim_latency: float


def saturation(case: Case, limit: float) -> float:
    """Close in on the load at which hopmap's latency reaches a limit, in packets."""

    def beyond(load: float) -> float:
        return ours(case, load, case.window) / limit - 1

    low = high = case.guess / case.size
    below = above = beyond(low)
    while below > 0:
        high, above, low = low, below, low / FURTHER
        below = beyond(low)
    while above < 0 and high * case.size < 1:
        low, below, high = high, above, min(high * FURTHER, 1 / case.size)
        above = beyond(high)
    while above > 0 and high - low > CLOSE * high:
        # where a straight line says, but a third of the way from either end at least
        share = min(max(-below / (above - below), 1 / 3), 2 / 3)
        middle = low + share * (high - low)
        there = beyond(middle)
        if abs(there) < NEAR:
            return middle
        low, below, high, above = (
            (middle, there, high, above) if there < 0 else (low, below, middle, there)
        )
    return (low + high) / 2 if above > 0 else high


def compared(program: Path, case: Case, **options: object) -> Iterator[Point]:
    """Run both at parts of hopmap's saturation, until BookSim's is bracketed."""
    zero = ours(case, EMPTY * case.guess / case.size, case.window)
    limit = SATURATED * zero
    mine = saturation(case, limit)

    def point(part: float) -> Point:
        load = part * mine
        if load * case.size > 1:
            return Point(case, zero, mine * case.size, part, float("inf"), float("inf"))
        here = ours(case, load, case.window)
        most = limit * (10 if part < min(BRACKET) else 2)  # packets in flight count, too
        there = theirs(program, case, load, case.window, most, **options).latency
        return Point(case, zero, mine * case.size, part, here, there)

    yield from map(point, PARTS)
    low, high = map(point, BRACKET)
    yield from (low, high)
    while low.booksim_latency > limit and low.part > LEAST:
        yield (low := point(round(low.part - STEP, 2)))
    while high.booksim_latency < limit and high.part < MOST:
        yield (high := point(round(high.part + STEP, 2)))


def read(files: list[Path]) -> list[Point]:
    """Read the points of all files; the points of a case are adjacent."""
    points = []
    for file in files:
        with file.open(newline="") as lines:
            for network, routing, pattern, channels, size, buffer, *values in csv.reader(lines):
                case = Case(network, routing, pattern, int(channels), int(size), int(buffer))
                points.append(Point(case, *map(float, values)))
    return points


def main(program: Path, out: Path, *words: str) -> None:
    options = dict(word.split("=") for word in words)
    known = {point.case for point in read([out])} if out.exists() else set()
    with out.open("a", newline="") as file:
        table = csv.writer(file)
        for case in cases():
            if case not in known:
                table.writerows([*p.case, *p[1:]] for p in list(compared(program, case, **options)))
                file.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])

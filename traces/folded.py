"""Folded traces: what repeats is listed once, with the number of its trips.

A full NAS run has hundreds of millions of messages but few different ones. Its folded trace has
them once; the simulator lowers it to a program with loops.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .calls import CALL, count_calls, trace_of_calls
from .trace import Kind, Trace

Ints = NDArray[np.int64]


class Repeat(NamedTuple):
    """Calls that a rank makes `times` times over: tables of calls, and loops."""

    times: int
    body: list[NDArray[np.void] | Repeat]


Parts = list[NDArray[np.void] | Repeat]


class Folded(NamedTuple):
    """A trace in which the bodies of loops stand once, and these loops, inner ones first.

    Attributes
    ----------
    trace : Trace
        Its times are of no use across loops.
    begin, end : ndarray(int64, shape=(loops,))
        The body of a loop is events ``begin`` to ``end - 1``: whole calls of one rank.
    times : ndarray(int64, shape=(loops,))
    """

    trace: Trace
    begin: Ints
    end: Ints
    times: Ints

    def trips(self, events: Ints) -> Ints:
        """How often each of these events takes place; given in rising order."""
        trips = np.ones(len(events), dtype=np.int64)
        begin, end = np.searchsorted(events, (self.begin, self.end))
        for first, behind, times in zip(begin, end, self.times, strict=True):
            trips[first:behind] *= times
        return trips


def written_out(parts: Parts) -> NDArray[np.void]:
    """Table of all calls, trip by trip."""
    return np.concatenate(
        [
            np.tile(written_out(part.body), part.times) if isinstance(part, Repeat) else part
            for part in parts
        ]
    )


def once(parts: Parts, at: int = 0) -> tuple[NDArray[np.void], list[tuple[int, int, int]]]:
    """Table in which every body stands once, and (first call, call behind it, times) of loops."""
    tables, loops = [], []
    for part in parts:
        if isinstance(part, Repeat):
            table, inner = once(part.body, at)
            loops += [*inner, (at, at + count_calls(table), part.times)]
        else:
            table = part
        tables.append(table)
        at += count_calls(table)
    # Told the type, numpy does not find it out table by table, which would take half of the time.
    return np.concatenate(tables, dtype=CALL), loops


def folded_of_calls(
    name: str,
    ranks: int,
    programs: Iterable[tuple[NDArray[np.void], list[tuple[int, int, int]]]],
    communicators: Sequence[NDArray[np.int32]] = (),
) -> Folded:
    """Build the folded trace of a program given per rank as by `once`; see `trace_of_calls`."""
    tables, loops = zip(*programs, strict=True)
    trace = trace_of_calls(name, ranks, tables, communicators)
    # Every call begins with its ENTER.
    calls = np.append(np.flatnonzero(trace.kind == Kind.ENTER), trace.events)
    first = np.cumsum([0] + [count_calls(table) for table in tables])
    rows = [
        (first[rank] + begin, first[rank] + end, times)
        for rank, of_rank in enumerate(loops)
        for begin, end, times in of_rank
    ]
    begin, end, times = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    return Folded(trace, calls[begin], calls[end], times)

"""Operations into place: strand by strand, each with the computation before it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.traces import Trace

from .from_collectives import Carried, Worked
from .mpi_calls import Calls
from .operation_rows import REST, Rows
from .program import LocalWork, Op, Program
from .send_modes import SendMode

Ints = NDArray[np.int64]


class Background(NamedTuple):
    """Rank and computation of each strand that is not a rank's own, and what collectives became."""

    rank: Ints
    compute: NDArray[np.float64]
    carried: Carried


def assemble(
    trace: Trace,
    calls: Calls,
    rows: Rows,
    worked: Worked,
    background: Background,
    bodies: Ints,
) -> Program:
    """Sort the operations into strands and give each the computation before it.

    The first rows are REPEATs, of the bodies that begin at these events.
    """
    others = np.bincount(background.rank, minlength=trace.ranks)
    main = np.arange(trace.ranks) + np.cumsum(others) - others
    strands = trace.ranks + len(background.rank)
    rank_of = np.repeat(np.arange(trace.ranks, dtype=np.int32), others + 1)
    owner = np.searchsorted(trace.offsets, rows.event, side="right") - 1
    strand = np.where(rows.strand < 0, main[owner], rows.strand)

    # Every strand ends with FINISH: behind the rank's last call, behind a strand's own rows.
    call = np.concatenate((calls.of_event[rows.event], np.full(strands, len(calls.gap))))
    call[len(rows.event) + main] = calls.finish
    event = np.concatenate((rows.event, np.zeros(strands, dtype=np.int64)))
    strand = np.concatenate((strand, np.arange(strands)))
    phase = np.concatenate((rows.phase, np.full(strands, REST)))
    order = np.lexsort((event, call * np.int64(4) + phase, strand))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))

    def column(values: NDArray[Any], filler: int) -> NDArray[Any]:
        return np.concatenate((values, np.full(strands, filler, dtype=values.dtype)))[order]

    kind = column(rows.kind, Op.FINISH)
    target = column(rows.target, -1)
    waits = kind == Op.WAIT
    target[waits] = place[target[waits]]

    # A body begins with the first row of its first call, or of a later one.
    strand, call = strand[order], call[order]
    repeats = place[: len(bodies)]
    calls_in_all = len(calls.gap) + 1
    target[repeats] = np.searchsorted(
        strand * calls_in_all + call, strand[repeats] * calls_in_all + _next_call(calls, bodies)
    )

    # Gaps before calls without operations add up until the next call that has some.
    in_main = np.zeros(strands, dtype=np.bool_)
    in_main[main] = True
    mine = np.flatnonzero(in_main[strand])
    leading = mine[np.flatnonzero(np.diff(call[mine], prepend=-1))]
    compute = np.zeros(len(order))
    compute[leading] = np.add.reduceat(calls.gap, np.append(0, call[leading][:-1] + 1))
    compute[place[len(rows.event) + np.flatnonzero(~in_main)]] = background.compute
    return Program(
        name=trace.name,
        offsets=np.searchsorted(strand, np.arange(strands + 1)).astype(np.int64),
        rank_of=rank_of,
        kind=kind.astype(np.uint8),
        compute=compute,
        peer=column(rows.peer, -1).astype(np.int32),
        tag=column(rows.tag, -1).astype(np.int32),
        context=column(rows.context, -1).astype(np.int32),
        size=column(rows.size, 0),
        target=target,
        mode=column(rows.mode, SendMode.STANDARD),
        work=local_work(worked, place),
        event=column(rows.event, -1),
        communicators=len(trace.communicators),
        collectives=background.carried.operations,
        chosen=background.carried.chosen,
        notes=background.carried.notes,
    )


def _next_call(calls: Calls, events: Ints) -> Ints:
    """Call that each of these events belongs to, or that comes next."""
    found = calls.of_event[events].astype(np.int64)
    between = np.flatnonzero(found < 0)
    if between.size:
        inside = np.flatnonzero(calls.of_event >= 0)
        behind = np.searchsorted(inside, events[between])
        found[between] = calls.of_event[inside[behind]]
    return found


def local_work(worked: Worked, place: Ints) -> LocalWork:
    """Add up what is done before each row, when all rows are in their places.

    Parameters
    ----------
    place : ndarray(int64)
        Row of the program of each row that `worked` counts.
    """
    before, of = np.unique(place[worked.row] + worked.behind, return_inverse=True)
    sums = (np.bincount(of, each, len(before)).astype(np.int64) for each in worked[2:])
    return LocalWork(before, *sums)

"""A program several times over: a job that begins anew when it has ended, rank by rank.

What repeats is a loop, so that it stands in memory once. Background strands are begun outside of
loops only; a program that has some is written out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopmap.simulator.parameters.keys import ParameterError
from hopmap.simulator.programs.program import LocalWork, Op, Program

Ints = NDArray[np.int64]


def repeated(program: Program, times: int) -> Program:
    """Return a program whose ranks do all that they do so many times, one behind the other.

    There is no barrier in between. Events of the trace are not kept.

    Raises
    ------
    ParameterError
        Less than once; or messages that nobody receives, or receives that get none, which the next
        time would meet.
    """
    if times < 1:
        raise ParameterError(f"{program.name}: repeat {times}: expected at least 1")
    if times == 1 or not program.strands:
        return program
    _expect_balance(program, times)
    copies = times if (program.kind == Op.START).any() else 1
    old, copy = _order(program, copies)
    place = np.full((copies, program.operations), -1, dtype=np.int64)
    body = old >= 0
    place[copy[body], old[body]] = np.flatnonzero(body)

    kind = np.where(body, program.kind[old], Op.FINISH).astype(np.uint8)
    target = np.where(body, program.target[old], -1)
    row_targets = body & ((kind == Op.WAIT) | (kind == Op.REPEAT))
    target[row_targets] = place[copy[row_targets], target[row_targets]]
    starts = body & (kind == Op.START)
    target[starts] = _strands(program, copies)[copy[starts], target[starts]]

    # Where a rank ended it goes on, or back, with what it computed before its end.
    main = program.main()
    ends = np.stack([place[k, program.offsets[main + 1] - 1] for k in range(copies)])
    kind[ends] = Op.REPEAT
    target[ends] = ends if copies > 1 else place[0, program.offsets[main]]
    size = np.where(body, program.size[old], 0)
    size[ends] = 1 if copies > 1 else times

    def column(values: NDArray[Any], missing: float) -> NDArray[Any]:
        return np.where(body, values[old], missing).astype(values.dtype)

    finishes = np.flatnonzero(kind == Op.FINISH)
    others = np.bincount(program.rank_of, minlength=program.ranks) - 1
    return replace(
        program,
        offsets=np.concatenate(([0], finishes + 1)).astype(np.int64),
        rank_of=np.repeat(np.arange(program.ranks, dtype=np.int32), 1 + copies * others),
        kind=kind,
        compute=column(program.compute, 0.0),
        peer=column(program.peer, -1),
        tag=column(program.tag, -1),
        context=column(program.context, -1),
        mode=column(program.mode, 0),
        size=size,
        target=target,
        work=_work(program.work, place),
        event=np.zeros(0, dtype=np.int64),
        chosen={op: _times(calls, times) for op, calls in program.chosen.items()},
        dropped=_times(program.dropped, times),
        notes=_times(program.notes, times),
    )


def _order(program: Program, copies: int) -> tuple[Ints, Ints]:
    """Row of the program that each row comes from, -1 of a new FINISH, and which copy it is."""
    parts: list[Ints] = []
    of: list[Ints] = []
    offsets = program.offsets.tolist()
    first = [*program.main().tolist(), program.strands]
    for main, behind in pairwise(first):
        own = np.arange(offsets[main], offsets[main + 1])
        parts += [np.tile(own, copies), np.array([-1])]
        of += [np.repeat(np.arange(copies), len(own)), np.array([0])]
        sides = np.arange(offsets[main + 1], offsets[behind])
        parts.append(np.tile(sides, copies))
        of.append(np.repeat(np.arange(copies), len(sides)))
    return np.concatenate(parts), np.concatenate(of)


def _strands(program: Program, copies: int) -> Ints:
    """Return the number of each background strand in each copy, shape (copies, strands)."""
    main = program.main()
    number = np.full((copies, program.strands), -1, dtype=np.int64)
    begin = 0
    for first, behind in zip(main, np.append(main[1:], program.strands), strict=True):
        sides = behind - first - 1
        for k in range(copies):
            number[k, first + 1 : behind] = begin + 1 + k * sides + np.arange(sides)
        begin += 1 + copies * sides
    return number


def _work(work: LocalWork, place: Ints) -> LocalWork:
    rows = place[:, work.row].ravel()
    order = np.argsort(rows, kind="stable")
    return LocalWork(rows[order], *(np.tile(each, len(place))[order] for each in work[1:]))


def _times(counts: Mapping[str, int], times: int) -> dict[str, int]:
    return {what: count * times for what, count in counts.items()}


def _expect_balance(program: Program, times: int) -> None:
    channel, trips = program.channels(), program.trips()
    rows = np.flatnonzero(channel >= 0)
    takes = program.kind[rows] >= Op.RECV
    if np.bincount(channel[rows], np.where(takes, -trips[rows], trips[rows])).any():
        raise ParameterError(
            f"{program.name}: repeat {times}: it has messages that nobody receives, or receives "
            "that get none: expected 1"
        )

"""Find the steps of a program without loops: what every rank of a recorded run repeats.

Operations are the same if all but their computing times are: kind, partner, tag, size, mode, and of
a WAIT how many rows ago its request began. The tag of a collective's message counts calls, so it
does not matter. A period of a rank is the distance between two places of an operation that is rare
there; the steps are the longest stretch that agrees with itself a period later.
"""

from __future__ import annotations

import numpy as np

from hopmap.arrays import Bools, Floats, Ints

from .program import Op, Program, number_keys

EXACT = 1e-8  # largest difference that rounding explains, relative to the run
# Counts of operations, places of one in a step, and parts of a period, to look at.
COUNTS, PLACES, PARTS = 32, 4, (2, 3, 5, 7)


def find_steps(program: Program) -> Ints | str:
    """Find the steps that all ranks repeat, as many of each rank, or say why there are none.

    Returns the rows at which each step begins, and the one behind the last, shape (ranks, steps +
    1). No request is under way there, and every step of all ranks together receives what it sends.
    The program keeps the result.
    """
    found: Ints | str | None = program.__dict__.get("_steps")
    if found is None:
        found = _find(program)
        object.__setattr__(program, "_steps", found)
    return found


def _find(program: Program) -> Ints | str:
    clean, cuts = _clean(program), []
    for rank in range(program.ranks):
        own = _steps_of(program, rank, clean)
        if not len(own):
            return (
                f"rank {rank} repeats nothing: expected steps with the same partners, tags and "
                "sizes, and no request under way between them"
            )
        cuts.append(own)
    counts = [len(own) - 1 for own in cuts]
    if min(counts) < max(counts):
        few, most = counts.index(min(counts)), counts.index(max(counts))
        return f"rank {few} repeats {counts[few]:,} steps, rank {most} {counts[most]:,}"
    found = np.array(cuts)
    if not _is_balanced(program, found):
        return "its steps receive other messages than they send"
    return found


def vary(program: Program, compute: Floats) -> bool:
    """Whether the first rank computes longer in some of its steps, by more than rounding.

    `compute` are seconds before each operation. The answer takes a small part of `find_steps`.
    """
    cuts = _steps_of(program, 0, _clean(program))
    if not len(cuts):
        return False
    seconds = np.add.reduceat(compute, cuts)[:-1]
    return bool(np.ptp(seconds) > EXACT * seconds.sum())


def _steps_of(program: Program, rank: int, clean: Bools) -> Ints:
    """Return the rows at which the steps of a rank begin, and the one behind the last."""
    task = program.main()[rank]
    begin, end = program.offsets[task : task + 2].tolist()
    own = slice(begin, end)
    cuts: Ints = begin + _cuts(_words(program, own), clean[own])
    return cuts


def _words(program: Program, own: slice) -> Ints:
    """Return a number for each operation of a rank, the same for the same ones."""
    kind, context = program.kind[own], program.context[own]
    rows = np.arange(own.start, own.stop)
    back = np.where(kind == Op.WAIT, rows - program.target[own], 0)
    # What begins or ends a task is like nothing else.
    apart = (kind == Op.START) | (kind == Op.FINISH)
    word = np.where(apart, rows - own.start, -1)
    tag = np.where(context >= program.communicators, -1, program.tag[own])
    others = (getattr(program, name)[own] for name in ("peer", "size", "mode"))
    for column in (kind, context, tag, back, *others):
        _, number = number_keys(column.astype(np.int64))
        _, word = number_keys((word + 1) * (int(number.max(initial=0)) + 1) + number)
    return word


def _clean(program: Program) -> Bools:
    """Whether no request is under way before a row that is waited for there or later."""
    waits, rows = np.flatnonzero(program.kind == Op.WAIT), program.operations
    change = np.bincount(program.target[waits] + 1, minlength=rows + 1)
    change -= np.bincount(waits + 1, minlength=rows + 1)
    clean: Bools = np.cumsum(change)[:rows] == 0
    return clean


def _cuts(word: Ints, clean: Bools) -> Ints:
    """Places at which the steps of a rank begin and the last one ends; empty if there are none."""
    order = np.argsort(word, kind="stable")
    first = np.flatnonzero(np.diff(word[order], prepend=-1))
    count = np.diff(first, append=len(word))
    span = order[first + count - 1] - order[first]
    best, begin, period = 0, 0, 1
    for times in np.unique(count[count > 1])[:COUNTS]:
        # Of operations that are as rare, the one whose places are furthest apart.
        at = first[np.argmax(np.where(count == times, span, -1))]
        places = order[at : at + times]
        for turns in range(1, min(PLACES, times - 1) + 1):
            apart, often = np.unique(places[turns:] - places[:-turns], return_counts=True)
            distance = int(apart[np.argmax(often)])
            low, high = _longest(word[distance:] == word[:-distance])
            if high - low >= distance and high - low + distance > best:
                best, begin, period = high - low + distance, low, distance
        if 2 * best > len(word):
            break
    for parts in PARTS:  # the operation may come once in several steps
        while period % parts == 0 and _repeats(word[begin : begin + best], period // parts):
            period //= parts
    for steps in range(best // period, max(best // period - 2, 1), -1):
        for shift in range(min(period, best - steps * period + 1)):
            cuts = begin + shift + period * np.arange(steps + 1)
            if clean[cuts].all():
                return cuts
    return np.zeros(0, dtype=np.int64)


def _repeats(word: Ints, period: int) -> bool:
    return bool(np.array_equal(word[period:], word[:-period]))


def _longest(same: Bools) -> tuple[int, int]:
    """Begin and end of the longest stretch that is true."""
    edges = np.flatnonzero(np.diff(same, prepend=False, append=False)).reshape(-1, 2)
    if not len(edges):
        return 0, 0
    low, high = edges[np.argmax(edges[:, 1] - edges[:, 0])].tolist()
    return low, high


def _is_balanced(program: Program, cuts: Ints) -> bool:
    """Whether in every step as many messages are received as sent on every channel."""
    steps = cuts.shape[1] - 1
    step = np.full(program.operations, -1, dtype=np.int64)
    for own in cuts:
        step[own[0] : own[-1]] = np.repeat(np.arange(steps), np.diff(own))
    key = program.channels() * steps + step
    inside = step >= 0
    sends, receives = (
        np.sort(key[inside & np.isin(program.kind, kinds)])
        for kinds in ((Op.SEND, Op.ISEND), (Op.RECV, Op.IRECV))
    )
    return bool(np.array_equal(sends, receives))

"""Programs as steps: what ranks do one after the other, in a form that rank counts can share.

A step is an event, or the begin or end of a loop. What it is has a number in a vocabulary that all
programs share; what it carries stands in columns. Requests are counted back from where they are
named, so that they mean the same wherever a rank is in its program.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hopmap.arrays import Floats, Ints
from hopmap.traces.folded import Folded
from hopmap.traces.trace import (
    ENDS,
    NO_OPERATION,
    POSTS,
    RECORD_TYPES,
    Kind,
    Records,
    Trace,
    TraceError,
    is_call,
)

from .event_tokens import column_of, requests_of

LOOP, LOOP_END = 254, 255  # kinds in addition to `Kind`
NUMBERS = ("tag", "size", "received", "request", "times")

_STRANGE = (
    (Kind.REQUEST_TEST, "tests for requests"),
    (Kind.REQUEST_CANCELLED, "cancelled requests"),
    (Kind.PROBE, "probes"),
    (Kind.MRECV, "matched receives"),
    (Kind.IMRECV_REQUEST, "matched receives"),
    (Kind.IMRECV, "matched receives"),
)

Word = tuple[int, str, int, int]  # kind, region, operation, communicator


class Steps(NamedTuple):
    """A program of `ranks` processes."""

    name: str
    ranks: int
    offsets: Ints  # (ranks + 1,): steps of rank r are rows ``offsets[r]:offsets[r + 1]``
    word: Ints  # what a step is: its place in the vocabulary
    peer: Ints  # world rank, or -1
    numbers: Ints  # (steps, len(NUMBERS)): what else it carries, -1 where that does not apply
    gap: Floats  # seconds outside of MPI since the step before


def steps_of(program: Trace | Folded, vocabulary: dict[Word, int]) -> Steps:
    """Turn a trace into steps; new words are added to the vocabulary.

    What depends on timing, like probes, is a `TraceError`, and so is a communicator that is not
    everyone in order.
    """
    trace = program.trace if isinstance(program, Folded) else program
    for kind, what in _STRANGE:
        if (trace.kind == kind).any():
            raise TraceError(
                f"{trace.name}: {what} depend on timing: expected a program without them"
            )
    brackets = trace.kind <= Kind.LEAVE
    comm = column_of(trace, "comm")
    _check_communicators(trace, comm)
    region = np.where(brackets, trace.ref, -1)
    operation = np.where(brackets, NO_OPERATION, column_of(trace, "operation"))
    rows = np.stack([trace.kind.astype(np.int64), region, operation, comm], axis=1)
    different, word = np.unique(rows, axis=0, return_inverse=True)
    known = [
        vocabulary.setdefault(
            (int(kind), trace.regions[at] if at >= 0 else "", int(op), int(of)), len(vocabulary)
        )
        for kind, at, op, of in different
    ]
    # Requests that were posted since the one that a step names, that one included.
    posted, begun = np.cumsum(np.isin(trace.kind, POSTS)), requests_of(trace).partner
    back = np.full(trace.events, -1, dtype=np.int64)
    ends = np.isin(trace.kind, ENDS) & (begun >= 0)
    back[ends] = posted[ends] - posted[begun[ends]] + 1
    numbers = np.stack(
        [
            *(column_of(trace, name) for name in ("tag", "size", "received")),
            back,
            np.full(trace.events, -1),
        ],
        axis=1,
    )
    calls = is_call(trace.roles)
    outside = brackets & ((trace.kind == Kind.ENTER) | ~calls[np.where(brackets, trace.ref, 0)])
    gap = np.diff(trace.time, prepend=0.0)
    gap[trace.offsets[:-1][np.diff(trace.offsets) > 0]] = 0.0
    first = np.isin(np.arange(trace.events), trace.offsets[:-1])
    gap[first] = trace.time[first] - (trace.time.min() if trace.events else 0.0)
    steps = Steps(
        *(trace.name, trace.ranks, trace.offsets),
        *(np.array(known, dtype=np.int64)[word.ravel()], column_of(trace, "peer"), numbers),
        np.where(outside, gap, 0.0),
    )
    return _with_loops(steps, program, vocabulary) if isinstance(program, Folded) else steps


def _check_communicators(trace: Trace, comm: Ints) -> None:
    everyone = np.arange(trace.ranks)
    for used in np.unique(comm[comm >= 0]):
        members = trace.communicators[used]
        if not np.array_equal(members, everyone):
            raise TraceError(
                f"{trace.name}: communicator {used} has {len(members) or 1} of {trace.ranks} "
                "ranks, or all in another order than MPI_COMM_WORLD: who would be in it at more "
                "ranks is not known"
            )


def _with_loops(steps: Steps, folded: Folded, vocabulary: dict[Word, int]) -> Steps:
    """Put begins and ends of loops between the events."""
    begin_word = vocabulary.setdefault((LOOP, "", NO_OPERATION, -1), len(vocabulary))
    end_word = vocabulary.setdefault((LOOP_END, "", NO_OPERATION, -1), len(vocabulary))
    length = folded.end - folded.begin
    count = len(length)
    # Before an event: ends of loops, inner ones first, then begins, outer ones first.
    at = np.concatenate([folded.end, folded.begin, np.arange(len(steps.word))])
    what = np.repeat([0, 1, 2], [count, count, len(steps.word)])
    inner = np.concatenate([length, -length, np.zeros(len(steps.word), dtype=np.int64)])
    order = np.lexsort((inner, what, at))
    numbers = np.full((2 * count, len(NUMBERS)), -1, dtype=np.int64)
    numbers[count:, NUMBERS.index("times")] = folded.times
    nothing = np.full(2 * count, -1, dtype=np.int64)
    rank = np.searchsorted(steps.offsets, folded.begin, side="right") - 1
    added = np.cumsum(np.concatenate(([0], 2 * np.bincount(rank, minlength=steps.ranks))))
    return steps._replace(
        offsets=steps.offsets + added,
        word=np.concatenate([np.full(count, end_word), np.full(count, begin_word), steps.word])[
            order
        ],
        peer=np.concatenate([nothing, steps.peer])[order],
        numbers=np.concatenate([numbers, steps.numbers])[order],
        gap=np.concatenate([np.zeros(2 * count), steps.gap])[order],
    )


def folded_of(steps: Steps, vocabulary: dict[Word, int]) -> Folded:
    """Turn steps into a folded trace: the way back."""
    words = list(vocabulary)
    regions = tuple(dict.fromkeys(word[1] for word in words if word[1]))
    place = {name: at for at, name in enumerate(regions)}
    kinds = np.array([word[0] for word in words])[steps.word]
    event = kinds < LOOP
    rank = np.repeat(np.arange(steps.ranks), np.diff(steps.offsets))
    before = np.concatenate(([0], np.cumsum(event)))  # events before each step
    stack: list[int] = []
    loops = []
    for step in np.flatnonzero(~event).tolist():
        if kinds[step] == LOOP:
            stack.append(step)
        else:
            at = stack.pop()
            loops.append((before[at], before[step], steps.numbers[at, 4]))
    rows = np.array(loops, dtype=np.int64).reshape(-1, 3)
    word, numbers, kind = steps.word[event], steps.numbers[event], kinds[event].astype(np.uint8)
    recorded = kind > Kind.LEAVE
    ref = np.array([place.get(each[1], -1) for each in words])[word]
    ref[recorded] = np.arange(np.count_nonzero(recorded))
    posts, ends = np.isin(kind, POSTS), np.isin(kind, ENDS)
    # Requests count from 1 and clocks from 0, at every rank; whole nanoseconds, as a clock's are.
    first = before[steps.offsets[:-1]]
    posted, seconds = (
        total[1:] - total[first][rank[event]]
        for total in (np.append(0, np.cumsum(posts)), np.append(0, np.cumsum(steps.gap[event])))
    )
    request = np.where(posts, posted, np.where(ends, posted - numbers[:, 3] + 1, -1))
    time = np.rint(seconds * 1e9) / 1e9
    operations = np.array([(each[2], each[3]) for each in words])[word]
    columns = {
        "peer": steps.peer[event],
        "operation": operations[:, 0],
        "comm": operations[:, 1],
        "request": request,
        **{name: numbers[:, at] for at, name in enumerate(("tag", "size", "received"))},
    }
    world = np.arange(steps.ranks, dtype=np.int32)
    trace = Trace(
        name=steps.name,
        offsets=before[steps.offsets].astype(np.int64),
        kind=kind,
        time=time,
        ref=ref.astype(np.int32),
        records=Records(
            **{name: columns[name][recorded].astype(RECORD_TYPES[name]) for name in Records._fields}
        ),
        regions=regions,
        communicators=(world,) * (1 + max(each[3] for each in words)),
    )
    return Folded(trace, rows[:, 0], rows[:, 1], rows[:, 2])

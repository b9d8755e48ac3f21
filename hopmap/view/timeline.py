"""What each rank does over time, in steps of equal length, and the critical path."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hopmap.arrays import Bools, Floats, Ints
from hopmap.simulator import CriticalPath, Op, Program, Result
from hopmap.simulator.export.perfetto import NAMES
from hopmap.traces import Collective

IDLE, COMPUTING, OVERHEAD = "not running", "computing", "overhead of messages"
OTHER = "other calls"
CALLS = 4  # that waiting is shown of by name
CELLS = 1_500_000  # steps of all ranks
STEPS = 256, 16_384  # of a rank, at least and at most
POINTS = 20_000  # parts of the makespan that the critical path is drawn to


class Timeline(NamedTuple):
    """What ranks mostly do in each step."""

    names: list[str]  # of the states; waiting is by call, the most first
    state: Ints  # shape (ranks, steps): the state that takes most of a step
    step: float  # seconds


def timeline_of(program: Program, result: Result) -> Timeline:
    """Return the timeline of a run whose operations were recorded.

    Shown are the ranks' own operations, not the background of their non-blocking collectives.
    """
    ops, times = result.operations, result.message_times
    assert ops is not None
    assert times is not None
    rank = program.rank_of[ops.task].astype(np.int64)
    own = ops.task == program.main()[rank]
    kind = program.kind[ops.row]
    sends = (kind == Op.SEND) | (kind == Op.ISEND)
    posted = ops.ready.copy()
    posted[sends] = times.sent[ops.message[sends]]
    woken = np.where(np.isnan(ops.woken), posted, ops.woken)
    calls, of = _calls(program, result)
    waited = np.bincount(of[own], (woken - posted)[own], len(calls))
    order = np.argsort(-waited, kind="stable").tolist()
    most = [k for k in order if waited[k] > 0 and calls[k] != OTHER][:CALLS]
    others = waited.sum() - waited[most].sum() > 0

    steps = int(np.clip(CELLS // max(1, result.ranks), *STEPS))
    step = result.makespan / steps if result.makespan > 0 else 1.0
    clock = _Clock(rank, result.ranks, steps, result.makespan or 1.0)
    best = np.zeros(result.ranks * steps)
    state = np.zeros(result.ranks * steps, dtype=np.uint8)
    left = np.full(result.ranks * steps, step)
    parts: list[tuple[str, list[tuple[Floats, Floats, Bools]]]] = [
        (COMPUTING, [(ops.begin, ops.ready, own)]),
        (OVERHEAD, [(ops.ready, posted, own), (woken, ops.end, own)]),
        *((f"waiting in {calls[k]}", [(posted, woken, own & (of == k))]) for k in most),
    ]
    if others:
        rest = own & ~np.isin(of, most)
        parts.append((f"waiting in {OTHER}", [(posted, woken, rest)]))
    for number, (_, stretches) in enumerate(parts, 1):
        seconds = sum(clock.seconds(*stretch) for stretch in stretches)
        left -= seconds
        longer = seconds > best
        state[longer] = number
        best = np.maximum(best, seconds)
    state[left > best] = 0
    names = [IDLE, *(name for name, _ in parts)]
    return Timeline(names, state.reshape(result.ranks, steps).astype(np.int64), step)


class _Clock(NamedTuple):
    """All ranks one after another on one axis of time, divided into steps."""

    rank: Ints
    ranks: int
    steps: int
    makespan: float

    def seconds(self, begin: Floats, end: Floats, which: Bools) -> Floats:
        """Seconds of each step of each rank that these stretches take, shape (ranks * steps,).

        Stretches of a rank come one after another.
        """
        which = which & (end > begin)
        begin, end, rank = begin[which], end[which], self.rank[which]
        at = np.stack((begin, end), axis=1) + (rank * self.makespan)[:, None]
        taken = np.cumsum(end - begin)
        known = np.stack((taken - (end - begin), taken), axis=1)
        edges = np.arange(self.ranks * self.steps + 1) * (self.makespan / self.steps)
        if not at.size:
            return np.zeros(self.ranks * self.steps)
        return np.diff(np.interp(edges, np.maximum.accumulate(at.ravel()), known.ravel()))


def _calls(program: Program, result: Result) -> tuple[list[str], Ints]:
    """Return names of calls, and the place among them of the call of each operation."""
    ops = result.operations
    assert ops is not None
    # A WAIT is of the collective whose message it waits for.
    row = ops.row[np.where(ops.awaited >= 0, ops.awaited, np.arange(len(ops.row)))]
    context, kind = program.context[row], program.kind[ops.row]
    code = kind.astype(np.int64)
    first = max(Op) + 1  # codes of collectives
    for each, operations in program.collectives.items():
        of = context == each
        code[of] = first + np.asarray(operations, dtype=np.int64)[program.tag[row[of]]]
    found, place = np.unique(code, return_inverse=True)
    names = [_call(each - first) if each >= first else _operation(Op(each)) for each in found]
    calls, same = np.unique(names, return_inverse=True)
    return calls.tolist(), same[place]


def _call(code: int) -> str:
    """Return the call of a collective; an archive's own, like making a handle, have no name."""
    return (
        OTHER if code >= Collective.CREATE_HANDLE else f"MPI_{Collective(code).name.capitalize()}"
    )


def _operation(op: Op) -> str:
    return f"MPI_{NAMES[op]}" if op in NAMES else OTHER


def path_points(path: CriticalPath, makespan: float) -> dict[str, Any]:
    """Return the corners of the critical path for `pack`: seconds and ranks.

    The path stays at a rank while it computes or handles messages, and moves to the next rank with
    a message. Stays that follow at the same rank are one; of many in `POINTS` of the run the first.
    """
    stays = path.rank >= 0
    begin, end, rank = path.begin[stays], path.end[stays], path.rank[stays]
    new = np.flatnonzero(np.diff(rank, prepend=-1))
    last = np.append(new[1:], len(rank)) - 1
    begin, end, rank = begin[new], end[last[: len(new)]], rank[new]
    bucket = (begin / (makespan or 1.0) * POINTS).astype(np.int64)
    kept = np.diff(bucket, prepend=-1) > 0
    corners = np.stack((begin[kept], end[kept]), axis=1).ravel()
    return {"time": corners, "rank": np.repeat(rank[kept], 2).astype(np.int64)}

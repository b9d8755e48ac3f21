"""The longest path through a program, for one mapping after another.

What waits for what does not depend on the mapping, so that the steps of all strands are laid out
once, in an order that can be walked; a mapping then costs one pass, without any queue of events.
Every message is alone in the network, as with the engine `analytic`; LogGP's gaps, copies of
messages that were early and ranks that answer late are left out, so that nothing is overestimated.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.simulator import model
from hopmap.simulator.deadlock import DeadlockError
from hopmap.simulator.parameters.parameters import Parameters
from hopmap.simulator.programs.program import Op, Program
from hopmap.simulator.run_plan import RunPlan, flat

from . import longest_path_kernels as kernels
from .longest_path_kernels import Messages, Pairs, Steps
from .overheads import overheads

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_AT_ONCE = {
    Op.SEND: kernels.SEND,
    Op.ISEND: kernels.SEND,
    Op.RECV: kernels.POST,
    Op.IRECV: kernels.POST,
    Op.START: kernels.BEGIN,
}
_COMPLETION = {
    model.POSTED: kernels.NOTHING,
    model.LEFT: kernels.LEAVE,
    model.ACKNOWLEDGED: kernels.ACKNOWLEDGE,
}


class LaidOut(NamedTuple):
    """Steps and messages of a program, and how many strands it has."""

    steps: Steps
    messages: Messages
    strands: int

    def seconds(self, pairs: Pairs) -> float:
        """When the last strand ends."""
        return float(kernels.longest_path(self.steps, self.messages, pairs, self.strands))


def rank_pairs(program: Program) -> tuple[Ints, Ints]:
    """Directed pairs of ranks that any message goes between, or its answer: senders, receivers."""
    rows = program.sends()
    own, peer = program.rank_of_row()[rows].astype(np.int64), program.peer[rows].astype(np.int64)
    both = np.concatenate((own * program.ranks + peer, peer * program.ranks + own))
    source, target = np.divmod(np.unique(both), max(program.ranks, 1))
    return source, target


def laid_out(plan: RunPlan, source: Ints, target: Ints) -> LaidOut:
    """Lay out the steps of a plan, loops written out; pairs as from `rank_pairs`.

    Raises
    ------
    DeadlockError
        Some strand would never end.
    """
    plan = flat(plan)
    program, parameters = plan.program, plan.parameters
    sends, receives = program.sends(), program.receives()
    message = np.full(program.operations, -1, dtype=np.int64)
    message[sends] = np.arange(len(sends))
    message[receives[receives >= 0]] = np.flatnonzero(receives >= 0)
    asks, _ = plan.controls(sends)
    action, item, pause = _two_a_row(plan, message)
    order = np.empty(len(action), dtype=np.int64)
    walked = kernels.dependable_order(program.offsets, program.main(), action, item, asks, order)
    reached = action[order[:walked]]
    begun = program.ranks + int((reached == kernels.BEGIN).sum())
    if stuck := begun - int((reached == kernels.FINISH).sum()):
        raise DeadlockError(
            f"{program.name}: deadlock, {stuck} of {begun} ranks and non-blocking collectives "
            "wait for ever"
        )
    order = order[:walked]
    order = order[(action[order] != kernels.NOTHING) | (pause[order] > 0)]
    strand = np.repeat(np.arange(program.strands), 2 * np.diff(program.offsets))
    ranks = program.ranks
    own, peer = program.rank_of_row()[sends].astype(np.int64), program.peer[sends].astype(np.int64)
    key = source * ranks + target
    late = np.where(program.mode[sends] == model.PUT, parameters.overhead_put_latency, 0.0)
    return LaidOut(
        Steps(action[order], strand[order], item[order], pause[order]),
        Messages(
            pair=np.searchsorted(key, own * ranks + peer),
            back=np.searchsorted(key, peer * ranks + own),
            size=program.size[sends].astype(np.float64),
            asks=asks,
            late=late,
        ),
        program.strands,
    )


def _two_a_row(plan: RunPlan, message: Ints) -> tuple[NDArray[np.int8], Ints, Floats]:
    """Return action, item and pause of each row's two steps, one behind the other."""
    program, parameters = plan.program, plan.parameters
    kind = program.kind
    action = np.zeros((program.operations, 2), dtype=np.int8)
    item = np.full((program.operations, 2), -1, dtype=np.int64)
    pause = np.zeros((program.operations, 2))
    pause[:, 0] = plan.compute
    pause[program.offsets[program.main()], 0] += program.begins()
    for op, what in _AT_ONCE.items():
        action[kind == op, 0] = what
    item[:, 0] = np.where(kind == Op.START, program.target, message)
    action[(action[:, 0] == kernels.POST) & (message < 0), 0] = kernels.NOTHING  # nobody sends it
    # A FINISH stands in its second step, behind what its row computes.
    action[kind == Op.FINISH, 1] = kernels.FINISH

    # What a row waits for: of a WAIT that of another row.
    waits = kind == Op.WAIT
    of = np.where(waits, program.target, np.arange(program.operations))
    takes = np.where(waits, kind[of] == Op.IRECV, kind == Op.RECV)
    action[takes, 1] = kernels.TAKE
    joins = waits & (kind[of] == Op.START)
    action[joins, 1] = kernels.JOIN
    item[:, 1] = np.where(joins, program.target[of], message[of])
    completes = np.where(waits, kind[of] == Op.ISEND, kind == Op.SEND)
    action[completes, 1] = _completions(program, parameters)[of[completes]]

    busy = overheads(program, parameters)
    pause[:, 0] += busy.sending
    pause[:, 1] = busy.receiving
    return action.ravel(), item.ravel(), pause.ravel()


def _completions(program: Program, parameters: Parameters) -> NDArray[np.int8]:
    """Return for which step of a message each row that sends it waits, see `model.completion`."""
    large = program.size >= parameters.eager_limit
    found = np.full(program.operations, _COMPLETION[model.POSTED], dtype=np.int8)
    for mode in np.unique(program.mode).tolist():
        for big, size in ((False, 0), (True, parameters.eager_limit)):
            if big or parameters.eager_limit > 0:
                done = model.completion(size, mode, parameters.eager_limit)
                found[(program.mode == mode) & (large == big)] = _COMPLETION[done]
    return found

"""A lower bound of the makespan that takes a millisecond: path or bandwidth, whichever is longer.

A message needs its latencies and bytes / bandwidth even alone, so that no run is shorter than its
longest path without contention; a server needs bytes / bandwidth for all that crosses it. In the
terms of packet routing these are dilation and congestion, of which the larger is a bound and the
sum is the time of a good schedule (Leighton, Maggs, Rao, Packet routing and job-shop scheduling in
O(congestion + dilation) steps, Combinatorica 14, 1994). Unlike a replay it has no queue of events:
compiled walks go over what tasks do, each message as if it were alone in the network.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hopmap.arrays import Bools, Floats, Ints, Ints8
from hopmap.compilation import njit
from hopmap.simulator import model
from hopmap.simulator.deadlock import DeadlockError
from hopmap.simulator.noise import without_noise
from hopmap.simulator.parameters.keys import expect_fixed_routes
from hopmap.simulator.parameters.parameters import Parameters
from hopmap.simulator.programs.program import Op, Program
from hopmap.simulator.run_plan import RunPlan, flat, paths, plan_run
from hopmap.simulator.steady_state import main_loop
from hopmap.topologies.placement import check_mapping
from hopmap.topologies.topology import Topology

from .bounds import overheads, surely_received

# What a step does. Each row of a program has two: what it does at once, and what it waits for.
NOTHING = 0
SEND = 1  # message `item`
POST = 2  # the receive of message `item`
BEGIN = 3  # task `item`
FINISH = 4
TAKE = 5  # wait for the arrival of message `item`
LEAVE = 6  # wait until message `item` has left its first server
ACKNOWLEDGE = 7  # wait for the acknowledgement of message `item`
JOIN = 8  # wait for the end of task `item`


class Steps(NamedTuple):
    """What tasks do, in an order in which nothing depends on what comes later."""

    action: Ints8
    task: Ints
    item: Ints
    pause: Floats  # seconds that the task is busy: before the step, or behind what it waits for


class Messages(NamedTuple):
    """Messages of `Steps`."""

    # pair, back: places of sender and receiver, and of receiver and sender, in `Pairs`
    pair: Ints
    back: Ints
    size: Floats  # bytes
    asks: Bools  # whether its data wait for a grant
    late: Floats  # seconds from its arrival until its target notices it


class Pairs(NamedTuple):
    """Directed rank pairs under a mapping."""

    latency: Floats  # of all servers on the way
    # slowest, first: bandwidths of the slowest and of the first server on the way
    slowest: Floats
    first: Floats
    control: Floats  # seconds that a control message takes


@njit
def dependable_order(
    offsets: Ints, main: Ints, action: Ints8, item: Ints, asks: Bools, order: Ints
) -> int:
    """Write an order of steps, two a row, that can be walked; return how many can be reached.

    Task s has steps ``2 * offsets[s]`` to ``2 * offsets[s + 1] - 1``, and goes on until it waits
    for what has not been walked yet; tasks of `main` need not be begun.
    """
    tasks, messages = len(offsets) - 1, len(asks)
    at = 2 * offsets[:-1]
    sent, posted = np.zeros(messages, dtype=np.bool_), np.zeros(messages, dtype=np.bool_)
    ended = np.zeros(tasks, dtype=np.bool_)
    taker, sender = np.full(messages, -1), np.full(messages, -1)
    joiner = np.full(tasks, -1)
    stack, top, walked = np.empty(tasks, dtype=np.int64), len(main), 0
    stack[:top] = main
    while top > 0:
        top -= 1
        task = stack[top]
        while True:
            step = at[task]
            what, which = action[step], item[step]
            woken = -1
            if what in (SEND, POST):
                (sent if what == SEND else posted)[which] = True
                if posted[which] or not asks[which]:
                    woken, sender[which] = sender[which], -1
                    if woken >= 0:
                        stack[top] = woken
                        top += 1
                if sent[which] and posted[which]:
                    woken, taker[which] = taker[which], -1
            elif what == BEGIN:
                woken = which
            elif what in (TAKE, LEAVE, ACKNOWLEDGE):
                there = which >= 0 and sent[which]
                if there and (what != LEAVE or asks[which]):
                    there = posted[which]
                if not there:
                    if which >= 0 and what == TAKE:
                        taker[which] = task
                    elif which >= 0:
                        sender[which] = task
                    break
            elif what == JOIN and not ended[which]:
                joiner[which] = task
                break
            elif what == FINISH:
                ended[task] = True
                woken = joiner[task]
            if woken >= 0:
                stack[top] = woken
                top += 1
            order[walked] = step
            walked += 1
            if what == FINISH:
                break
            at[task] += 1
    return walked


@njit
def longest_path(steps: Steps, messages: Messages, pairs: Pairs, tasks: int) -> float:
    """When the last task ends; O(steps)."""
    now = np.zeros(tasks)
    sent, posted = np.zeros(len(messages.size)), np.zeros(len(messages.size))
    for k in range(len(steps.action)):
        action, task, x = steps.action[k], steps.task[k], steps.item[k]
        at, pause = now[task], steps.pause[k]
        if action == SEND:
            at += pause
            sent[x] = at
        elif action == POST:
            at += pause
            posted[x] = at
        elif action == BEGIN:
            at += pause
            now[x] = at
        elif action == JOIN:
            at = max(at, now[x])
        elif action in (TAKE, LEAVE, ACKNOWLEDGE):
            pair, back, size = messages.pair[x], messages.back[x], messages.size[x]
            begun = sent[x]
            if messages.asks[x]:
                begun = max(begun + pairs.control[pair], posted[x]) + pairs.control[back]
            if action == LEAVE:
                at = max(at, begun + size / pairs.first[pair])
            else:
                there = begun + pairs.latency[pair] + size / pairs.slowest[pair]
                if action == TAKE:
                    at = max(at, there + messages.late[x]) + pause
                else:
                    at = max(at, max(there, posted[x]) + pairs.control[back])
        else:
            at += pause
        now[task] = at
    return now.max() if tasks else 0.0


_AT_ONCE = {
    Op.SEND: SEND,
    Op.ISEND: SEND,
    Op.RECV: POST,
    Op.IRECV: POST,
    Op.START: BEGIN,
}
_COMPLETION = {
    model.POSTED: NOTHING,
    model.LEFT: LEAVE,
    model.ACKNOWLEDGED: ACKNOWLEDGE,
}

WRITTEN_OUT = 100_000  # messages, up to which all steps of a main loop are walked
FEW, MORE = 2, 4  # steps that are walked of a longer one


class LaidOut(NamedTuple):
    """Steps and messages of a program, and how many tasks it has."""

    steps: Steps
    messages: Messages
    tasks: int

    def seconds(self, pairs: Pairs) -> float:
        """When the last task ends."""
        return float(longest_path(self.steps, self.messages, pairs, self.tasks))


def rank_pairs(program: Program) -> tuple[Ints, Ints]:
    """Directed pairs of ranks that any message goes between, or its answer: senders, receivers."""
    rows = program.sends()
    own, peer = program.rank_of_row()[rows].astype(np.int64), program.peer[rows].astype(np.int64)
    both = np.concatenate((own * program.ranks + peer, peer * program.ranks + own))
    source, target = np.divmod(np.unique(both), max(program.ranks, 1))
    return source, target


def laid_out(plan: RunPlan, source: Ints, target: Ints) -> LaidOut:
    """Lay out the steps of a plan, loops written out; pairs as from `rank_pairs`."""
    plan = flat(plan)
    program, parameters = plan.program, plan.parameters
    sends, receives = program.sends(), program.receives()
    message = np.full(program.operations, -1, dtype=np.int64)
    message[sends] = np.arange(len(sends))
    message[receives[receives >= 0]] = np.flatnonzero(receives >= 0)
    asks, _ = plan.controls(sends)
    action, item, pause = _two_a_row(plan, message)
    order = np.empty(len(action), dtype=np.int64)
    walked = dependable_order(program.offsets, program.main(), action, item, asks, order)
    reached = action[order[:walked]]
    begun = program.ranks + int((reached == BEGIN).sum())
    if stuck := begun - int((reached == FINISH).sum()):
        raise DeadlockError(
            f"{program.name}: deadlock, {stuck} of {begun} ranks and non-blocking collectives "
            "wait for ever"
        )
    order = order[:walked]
    order = order[(action[order] != NOTHING) | (pause[order] > 0)]
    task = np.repeat(np.arange(program.tasks), 2 * np.diff(program.offsets))
    ranks = program.ranks
    own, peer = program.rank_of_row()[sends].astype(np.int64), program.peer[sends].astype(np.int64)
    key = source * ranks + target
    late = np.where(program.mode[sends] == model.PUT, parameters.overhead_put_latency, 0.0)
    return LaidOut(
        Steps(action[order], task[order], item[order], pause[order]),
        Messages(
            pair=np.searchsorted(key, own * ranks + peer),
            back=np.searchsorted(key, peer * ranks + own),
            size=program.size[sends].astype(np.float64),
            asks=asks,
            late=late,
        ),
        program.tasks,
    )


def _two_a_row(plan: RunPlan, message: Ints) -> tuple[Ints8, Ints, Floats]:
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
    action[(action[:, 0] == POST) & (message < 0), 0] = NOTHING  # no rank sends it
    # A FINISH stands in its second step, behind what its row computes.
    action[kind == Op.FINISH, 1] = FINISH

    # What a row waits for: of a WAIT that of another row.
    waits = kind == Op.WAIT
    of = np.where(waits, program.target, np.arange(program.operations))
    takes = np.where(waits, kind[of] == Op.IRECV, kind == Op.RECV)
    action[takes, 1] = TAKE
    joins = waits & (kind[of] == Op.START)
    action[joins, 1] = JOIN
    item[:, 1] = np.where(joins, program.target[of], message[of])
    completes = np.where(waits, kind[of] == Op.ISEND, kind == Op.SEND)
    action[completes, 1] = _completions(program, parameters)[of[completes]]

    busy = overheads(program, parameters)
    pause[:, 0] += busy.sending
    pause[:, 1] = busy.receiving
    return action.ravel(), item.ravel(), pause.ravel()


def _completions(program: Program, parameters: Parameters) -> Ints8:
    """Return for which step of a message each row that sends it waits, see `model.completion`."""
    large = program.size >= parameters.eager_limit
    found = np.full(program.operations, _COMPLETION[model.POSTED], dtype=np.int8)
    for mode in np.unique(program.mode).tolist():
        for big, size in ((False, 0), (True, parameters.eager_limit)):
            if big or parameters.eager_limit > 0:
                done = model.completion(
                    size, mode, parameters.eager_limit, parameters.eager_completion
                )
                found[(program.mode == mode) & (large == big)] = _COMPLETION[done]
    return found


class MakespanBound:
    """The function from a mapping to a lower bound of its makespan in seconds; noise is left out.

    A program of more than `WRITTEN_OUT` messages that has a main loop is walked with `FEW` and with
    `MORE` steps of it, and each of the others taken to last as long as those between: an estimate
    then, which is no bound any more, as good as the pace of the first steps is that of all. `exact`
    says whether all of the program is walked, so that it is a bound.

    Examples
    --------
    >>> from hopmap.simulator import program_of
    >>> from hopmap.topologies import mesh
    >>> ping = program_of("ping", [[("send", 1, 0)], [("recv", 0, 0)]])
    >>> bound = MakespanBound(ping, mesh([3]))
    >>> bool(bound([0, 2]) > bound([0, 1]))
    True
    """

    def __init__(
        self, program: Program, topology: Topology, parameters: Parameters | None = None
    ) -> None:
        parameters = without_noise(parameters or Parameters())
        expect_fixed_routes(parameters.network_routing, "the bound of the makespan is of a run")
        self.topology, self.parameters, self.ranks = topology, parameters, program.ranks
        anywhere = np.repeat(np.arange(topology.nodes), topology.slots)[: program.ranks]
        plan = plan_run(
            program, topology, check_mapping(anywhere, topology, program.ranks), parameters
        )
        self._source, self._target = rank_pairs(program)
        self._volume = self._bytes_of_pairs(plan)
        self._bandwidth, self._latency = plan.bandwidth.copy(), plan.latency
        self._bandwidth[plan.injection] *= parameters.nic_rails
        loop = main_loop(plan) if plan.messages > WRITTEN_OUT else None
        self.exact = loop is None or loop.iterations <= MORE
        self._parts: list[LaidOut] = []
        if loop is None or self.exact:
            self._parts.append(laid_out(plan, self._source, self._target))
        else:
            for iterations in (FEW, MORE):
                size = program.size.copy()
                size[loop.rows] = iterations
                part = plan_run(replace(program, size=size), topology, anywhere, parameters)
                self._parts.append(laid_out(part, self._source, self._target))
            self._rest = (loop.iterations - MORE) / (MORE - FEW)

    def __call__(self, node_of: ArrayLike) -> float:
        """Return the bound, or the estimate, of a mapping."""
        pairs, busiest = self._of(node_of)
        return max(self._path(pairs), busiest)

    def path(self, node_of: ArrayLike) -> float:
        """Return the longest path alone."""
        return self._path(self._of(node_of)[0])

    def _of(self, node_of: ArrayLike) -> tuple[Pairs, float]:
        """Return what rank pairs need, and how long the busiest server."""
        nodes = check_mapping(node_of, self.topology, self.ranks)
        if not len(self._source):
            return Pairs(*np.empty((4, 0))), 0.0
        indptr, servers = paths(self.topology, nodes[self._source], nodes[self._target])
        begin = indptr[:-1]
        bandwidth = self._bandwidth[servers]
        slowest = np.minimum.reduceat(bandwidth, begin)
        latency = np.add.reduceat(self._latency[servers], begin)
        control = latency + self.parameters.control_bytes / slowest
        control += self.parameters.overhead_control
        carried = np.bincount(servers, np.repeat(self._volume, np.diff(indptr)))
        busiest = float((carried / self._bandwidth[: len(carried)]).max())
        return Pairs(latency, slowest, bandwidth[begin], control), busiest

    def _path(self, pairs: Pairs) -> float:
        first, *more = (part.seconds(pairs) for part in self._parts)
        return more[0] + self._rest * (more[0] - first) if more else first

    def _bytes_of_pairs(self, plan: RunPlan) -> Ints:
        """Bytes between each pair that some rank waits for in the end."""
        rows, program = surely_received(plan), plan.program
        key = program.rank_of_row()[rows].astype(np.int64) * program.ranks + program.peer[rows]
        volume = np.zeros(len(self._source), dtype=np.int64)
        place = np.searchsorted(self._source * program.ranks + self._target, key)
        np.add.at(volume, place, program.size[rows] * plan.iterations[rows])
        return volume

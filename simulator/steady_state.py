"""Whole runs from some of their steps: when the main loop has settled, ranks leave it early.

The main loop of a program has the steps that all ranks go through. All engines write down
when each rank ended each of the first iterations, and ask whenever the ranks together have ended as
many as all of them once more.

The pace of a loop is seconds a step, as the steps so far say, and how far that may be off. The mean
over ranks of when each step ended rises by nearly the same every step, or every few steps.
Increments are looked at one by one, and in means of 2, 4, ... neighbours: of increments that vary
independently these differ the less, by the root of their number, while a pace that changes for
some steps shows in long means. This is the method of batch means (Law, *Simulation Modeling and
Analysis*, 9.5.3), with the range of the means at every length instead of a deviation at one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hopmap.arrays import Floats, Ints
from hopmap.simulator.programs.program import Op, Program

from .model import packet_count
from .result import Extrapolated, Outcome
from .run_plan import RunPlan

SENDS, RECEIVES = (Op.SEND, Op.ISEND), (Op.RECV, Op.IRECV)


class MainLoop(NamedTuple):
    """A loop that every rank has."""

    rows: Ints  # shape (ranks,): its REPEAT in each rank
    iterations: int


class Step(NamedTuple):
    """What all ranks together move on one iteration of a loop."""

    # messages, bytes: shape (servers,): data over each server
    messages: Ints
    bytes: Ints
    # events, controls: packet-hops; requests and grants
    events: int
    controls: int


def main_loop(plan: RunPlan) -> MainLoop | None:
    """Find the loop in which every rank does most.

    None if some rank has no loop; if they differ in their iterations or, of several with as many,
    in their place; or if only one side of a message is in them.
    """
    program = plan.program
    ends = _outermost(program)
    rank = program.rank_of_row()[ends]
    if not len(ends) or len(np.unique(rank)) < program.ranks:
        return None
    done = np.concatenate(([0], np.cumsum(plan.iterations)))
    work = done[ends + 1] - done[program.target[ends]]
    order = np.lexsort((work, rank))
    rows = ends[order[np.searchsorted(rank, np.arange(program.ranks), side="right") - 1]]
    iterations = int(program.size[rows[0]])
    stops = ends[program.size[ends] == iterations]
    place = np.searchsorted(stops, rows) - np.searchsorted(stops, program.offsets[program.main()])
    if (program.size[rows] != iterations).any() or (place != place[0]).any():
        return None
    times = _iterations_in(plan, rows)
    sent, taken = (
        np.bincount(plan.channel[mine], times[mine], minlength=int(plan.channel.max()) + 2)
        for mine in (np.isin(program.kind, kinds) for kinds in (SENDS, RECEIVES))
    )
    return MainLoop(rows, iterations) if np.array_equal(sent, taken) else None


def _outermost(program: Program) -> Ints:
    """REPEATs of ranks that stand in no other loop, rising."""
    ends = np.flatnonzero(program.kind == Op.REPEAT)
    depth = np.zeros(program.operations + 1, dtype=np.int64)
    np.add.at(depth, program.target[ends], 1)
    np.add.at(depth, ends + 1, -1)
    task = np.searchsorted(program.offsets, ends, side="right") - 1
    own = program.main()[program.rank_of[task]] == task
    outermost: Ints = ends[own & (np.cumsum(depth)[ends] == 1)]
    return outermost


def _iterations_in(plan: RunPlan, rows: Ints) -> Ints:
    """How often each operation runs on one iteration of the loops that end in these rows."""
    inside = np.zeros(plan.program.operations + 1, dtype=np.int64)
    inside[plan.program.target[rows]] = 1
    inside[rows + 1] -= 1
    times: Ints = np.cumsum(inside)[:-1] * plan.iterations // plan.program.size[rows[0]]
    return times


def step_of(plan: RunPlan, loop: MainLoop) -> Step:
    """Return what moves on one iteration."""
    times = _iterations_in(plan, loop.rows)
    sends = plan.program.sends()
    return _traffic_of(plan, sends[times[sends] > 0], times)


def packet_hops(plan: RunPlan) -> int:
    """Packets that all servers have to serve in the whole run."""
    return _traffic_of(plan, plan.program.sends(), plan.iterations).events


def _traffic_of(plan: RunPlan, rows: Ints, times: Ints) -> Step:
    """Return what these rows move when they send so many times."""
    parameters = plan.parameters
    size, times, length = plan.program.size[rows], times[rows], np.diff(plan.indptr)
    way, back = length[plan.path[rows]], length[plan.back[rows]]
    at = np.repeat(plan.indptr[plan.path[rows]] - np.cumsum(way) + way, way)
    server = plan.servers[at + np.arange(len(at))]
    moved = np.zeros((2, len(plan.bandwidth)), dtype=np.int64)
    np.add.at(moved[0], server, np.repeat(times, way))
    np.add.at(moved[1], server, np.repeat(times * size, way))
    packets = np.maximum(1, -(-size // parameters.packet_size))
    requests, answered = (times * controls for controls in plan.controls(rows))
    control = packet_count(parameters.control_bytes, parameters.packet_size)
    return Step(
        moved[0],
        moved[1],
        events=int((times * packets * way + control * (requests * way + answered * back)).sum()),
        controls=int((requests + answered).sum()),
    )


FEWEST, FEWEST_MEANS = 8, 4  # increments to judge by, of any period; and means of them
LONGEST = 8  # steps of a period
ROUNDING = 1e-9  # of a run: additions, and what is different about the last iteration

MOST = 256  # steps that are watched at most; a loop that has not settled by then is replayed whole
ITERATION_END = np.dtype(
    [
        ("time", np.float64),
        ("compute", np.float64),  # of the task, so far
        ("communicate", np.float64),
    ]
)


class Pace(NamedTuple):
    """How a loop goes on."""

    period: int  # steps after which all repeats
    seconds: float  # of a period
    error: float  # seconds by which what is left may take longer or shorter than at this pace


def window(steps: int, period: int = 1) -> int:
    """How many steps to judge by, whole periods, of so many: the first quarter is a transient."""
    least = max(FEWEST, 3 * steps // 4)
    return min(-(-least // period), (steps - 1) // period) * period


def pace_of(ends: Floats, left: int) -> Pace | None:
    """Judge the pace of a loop with `left` steps to come; None after too few steps to say.

    `ends`, shape (ranks, steps), says when each rank ended each of the first steps, in seconds.
    """
    steps = ends.shape[1]
    if window(steps) < FEWEST:
        return None
    paces = [
        _pace(ends[:, steps - 1 - window(steps, period) :: period], period, left)
        for period in range(1, LONGEST + 1)
        if window(steps, period) >= FEWEST * period
    ]
    # A longer period has to explain something: chance alone makes some of them look better.
    return min(paces, key=lambda pace: pace.error * (1 if pace.period == 1 else 10))


def _pace(ends: Floats, period: int, left: int) -> Pace:
    """Judge by the ends of periods."""
    mean = ends.mean(axis=0)
    increments = np.diff(mean)
    count, length, widest = len(increments), 1, 0.0
    while count // length >= FEWEST_MEANS:
        means = increments[count % length :].reshape(-1, length).mean(axis=1)
        widest = max(widest, float(np.ptp(means)) * length**0.5)
        length *= 2
    periods = left / period
    changes = 3 * widest / min(count, max(periods, 1)) ** 0.5
    apart = float(np.ptp(ends[:, -1] - ends[:, 0])) / count
    swing = float(np.ptp(ends - mean, axis=1).max())
    return Pace(period, float(increments.mean()), periods * (changes + apart) + 2 * swing)


@dataclass(frozen=True)
class Steady:
    """When the steps of a run may be extrapolated."""

    tolerance: float = 2e-3  # largest error bound, relative to the makespan
    # runs of fewer packet-hops are replayed whole: they take a second or two
    hops: int = 20_000_000


class LoopWatch:
    """What an engine asks about the main loop of its run.

    It watches the REPEATs in `rows`, one a rank, and writes the first iterations of each rank down
    in `ends`, ITERATION_END of shape (ranks, steps), NaN so far. After `leave` iterations all ranks
    leave the loop; 0: not known yet.
    """

    def __init__(self, loop: MainLoop, tolerance: float) -> None:
        self.rows, self.loop, self.tolerance = loop.rows, loop, tolerance
        shape = (len(loop.rows), min(loop.iterations // 2, MOST))
        self.ends = np.full((*shape, 3), np.nan).view(ITERATION_END)[..., 0]
        self.leave = 0
        self.pace: Pace | None = None
        self._steps = 0
        self._served: list[tuple[float, Floats]] = []

    @property
    def left(self) -> int:
        """Iterations that are not replayed."""
        return self.loop.iterations - self.leave if self.leave else 0

    def look(self, moved: Ints, busy: Floats, waited: Floats) -> int:
        """Say after how many iterations to leave the loop; 0: go on, nothing is known yet.

        Bytes moved over all servers so far, and seconds as in `Servers`, have shape (servers,).
        """
        ended = np.count_nonzero(~np.isnan(self.ends["time"]), axis=1)
        self._served.append((float(ended.mean()), np.stack((moved, busy, waited))))
        steps, first = int(ended.min()), int(ended.max())
        if steps == self._steps or first == self.ends.shape[1]:
            return 0
        self._steps = steps
        times, iterations = self.ends["time"][:, :steps], self.loop.iterations
        pace = pace_of(times, iterations - steps)
        if pace is None:
            return 0
        makespan = float(times[:, -1].mean()) + (iterations - steps) / pace.period * pace.seconds
        leave = first + 1 + (iterations - first - 1) % pace.period
        if pace.error <= self.tolerance * makespan and leave < iterations:
            self.pace, self.leave = pace, leave
        return self.leave

    def extrapolate(self, plan: RunPlan, outcome: Outcome) -> tuple[Outcome, Extrapolated]:
        """Add the iterations that are left to what came of a run that left the loop early."""
        assert self.pace is not None
        left, pace = self.left, self.pace
        gained = left / pace.period * pace.seconds
        compute, communicate = (
            left * (self.ends[name][:, self._steps - 1] - self.ends[name][:, self._steps - 2])
            for name in ("compute", "communicate")
        )
        seen = min(window(self._steps, pace.period), len(self._served) - 1)
        (before, old), (now, new) = self._served[-1 - seen], self._served[-1]
        moved, busy, waited = new - old
        servers, step = outcome.servers, step_of(plan, self.loop)
        # By bytes, since ranks are anywhere within a step by then; what has none goes by time.
        iterations = np.full(len(moved), now - before)
        np.divide(moved, step.bytes, out=iterations, where=(moved > 0) & (step.bytes > 0))
        more = left / iterations
        wait = np.maximum(outcome.wait + gained - compute - communicate, 0.0)
        finish = outcome.finish + gained
        summary = Extrapolated(
            steps=self.leave,
            of=self.loop.iterations,
            period=pace.period,
            seconds=pace.seconds / pace.period,
            error=pace.error / float(finish.max()) + ROUNDING,
        )
        whole = outcome._replace(
            finish=finish,
            compute=outcome.compute + compute,
            communicate=outcome.communicate + communicate,
            wait=wait,
            servers=servers._replace(
                messages=servers.messages + left * step.messages,
                bytes=servers.bytes + left * step.bytes,
                busy=servers.busy + more * busy,
                waited=servers.waited + more * waited,
            ),
            events=outcome.events + left * step.events,
            controls=outcome.controls + left * step.controls,
        )
        return whole, summary

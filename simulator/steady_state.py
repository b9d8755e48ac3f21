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
from hopmap.simulator.programs.steps import EXACT, find_steps

from .model import packet_count
from .result import Extrapolated, Outcome
from .run_plan import RunPlan, with_marks

SENDS, RECEIVES = (Op.SEND, Op.ISEND), (Op.RECV, Op.IRECV)


class MainLoop(NamedTuple):
    """A loop that every rank has."""

    rows: Ints  # shape (ranks,): its REPEAT in each rank
    iterations: int


class Steps(NamedTuple):
    """The steps of a run, as its watch follows them."""

    plan: RunPlan  # what is replayed
    iterations: int
    # ends: shape (ranks, n): the REPEAT at the end of a loop's body; of steps that are written out,
    # those behind each of the first n
    ends: Ints
    # first, last, behind: shape (ranks,): first and last row of a step, and row behind all steps
    first: Ints
    last: Ints
    behind: Ints
    # shape (ranks, steps): seconds that each rank computes in each step; (ranks, 0) of a loop
    compute: Floats
    watched: int  # steps at most, by which all has to be settled
    short: bool = False  # whether the plan is without the steps behind those that are watched

    @property
    def written(self) -> bool:
        """Whether the steps are written out, each with computing times of its own."""
        return bool(self.compute.size)


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
    times = _iterations_in(plan, program.target[rows], rows, iterations)
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


def _iterations_in(plan: RunPlan, first: Ints, last: Ints, iterations: int) -> Ints:
    """How often each operation runs in a step of these rows, of which the run has so many."""
    inside = np.zeros(plan.program.operations + 1, dtype=np.int64)
    inside[first] = 1
    inside[last + 1] -= 1
    times: Ints = np.cumsum(inside)[:-1] * plan.iterations // iterations
    return times


def steps_of_run(plan: RunPlan, most: int) -> Steps | str:
    """Return the steps of a run, of its main loop or written out, or say why it has none.

    Of steps written out, if there are far more than `most`, only so many are watched, and the plan
    goes without those behind.
    """
    program = plan.program
    if not (program.kind == Op.REPEAT).any():
        cuts = find_steps(program)
        if isinstance(cuts, str):
            return cuts
        iterations = cuts.shape[1] - 1
        return _written_out(plan, cuts, most) if iterations // 2 > FEWEST else _few(iterations)
    loop = main_loop(plan)
    if loop is None:
        return "it has no loop that all ranks go through together"
    if loop.iterations // 2 <= FEWEST:
        return _few(loop.iterations)
    rows, none = loop.rows, np.zeros((len(loop.rows), 0))
    places = rows[:, None], program.target[rows], rows, rows + 1
    return Steps(plan, loop.iterations, *places, none, min(loop.iterations // 2, MOST))


def _few(iterations: int) -> str:
    return f"{iterations:,} steps are too few"


def _written_out(plan: RunPlan, cuts: Ints, most: int) -> Steps:
    """Return the steps between rows, as `find_steps` has them, with marks behind the first ones."""
    ranks, iterations = len(cuts), cuts.shape[1] - 1
    compute = np.add.reduceat(plan.compute, cuts.ravel()).reshape(ranks, -1)[:, :-1]
    short = iterations > 4 * (most + LONGEST)
    watched = most if short else min(iterations // 2, MOST)
    marks = cuts[:, 1 : watched + LONGEST + 1]
    kept = np.ones(plan.program.operations, dtype=np.bool_)
    if short:
        for begin, end in zip(marks[:, -1].tolist(), cuts[:, -1].tolist(), strict=True):
            kept[begin:end] = False
    marked, moved = with_marks(plan, marks.ravel(), kept)
    ends = moved[marks] - 1
    places = ends, ends[:, 0] + 1, ends[:, 1], moved[cuts[:, -1]]
    return Steps(marked, iterations, *places, compute, watched, short)


def step_of(steps: Steps) -> Step:
    """Return what moves in one step."""
    plan = steps.plan
    times = _iterations_in(plan, steps.first, steps.last, 1 if steps.written else steps.iterations)
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

# Steps that are watched at most: where recorded ones have not settled by the first, another replay
# begins; a run that has not settled by the second is replayed whole.
SOME, MOST = 32, 256
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
    # likewise of steps that are written out, as recorded ones are: their computing times vary
    written: float = EXACT

    @classmethod
    def within(cls, tolerance: float) -> Steady:
        """Extrapolate any run once the bound is at most this."""
        return cls(tolerance, 0, tolerance)


class LoopWatch:
    """What an engine asks about the steps of its run.

    It watches the REPEATs in `rows`, and writes the first steps of each rank down in `ends`,
    ITERATION_END of shape (ranks, steps), NaN so far: the k-th time that one is executed, k steps
    behind its entry of `places`, rows of `ends` one behind the other; -1: not at all. After `leave`
    steps all ranks leave the loop; 0: not known yet.
    """

    def __init__(self, steps: Steps, tolerance: float) -> None:
        self.steps, self.tolerance = steps, tolerance
        ranks, watched = len(steps.ends), steps.watched
        self.ends = np.full((ranks, watched, 3), np.nan).view(ITERATION_END)[..., 0]
        self.rows = steps.ends.ravel()
        places = np.arange(steps.ends.shape[1])
        places = np.where(places < watched, np.arange(ranks)[:, None] * watched + places, -1)
        self.places = places.ravel()
        # Seconds that the slowest rank of each step computes, summed up over steps.
        slowest = np.zeros(steps.iterations)
        if steps.written:
            slowest = steps.compute.max(axis=0)
        self.slowest = np.append(0.0, np.cumsum(slowest))
        self.leave = 0
        self.pace: Pace | None = None
        self._steps = 0
        self._served: list[tuple[float, Floats]] = []

    @property
    def left(self) -> int:
        """Steps that are not replayed."""
        return self.steps.iterations - self.leave if self.leave else 0

    def exits(self) -> tuple[Ints, Ints, Ints]:
        """Rows at which to leave, and what size and target each has from then on."""
        steps = self.steps
        rows, size, target = self.rows, self.leave, steps.first
        if steps.written:  # a second iteration, behind all steps
            rows, size, target = steps.ends[:, self.leave - 1], 2, steps.behind
        return rows, np.full_like(rows, size), target

    def look(self, moved: Ints, busy: Floats, waited: Floats) -> int:
        """Say after how many steps to leave the loop; 0: go on, nothing is known yet.

        Bytes moved over all servers so far, and seconds as in `Servers`, have shape (servers,).
        """
        ended = np.count_nonzero(~np.isnan(self.ends["time"]), axis=1)
        self._served.append((float(ended.mean()), np.stack((moved, busy, waited))))
        steps, first = int(ended.min()), int(ended.max())
        if steps == self._steps or first == self.ends.shape[1]:
            return 0
        self._steps = steps
        times, iterations = self.ends["time"][:, :steps], self.steps.iterations
        left, slowest = iterations - steps, self.slowest
        pace = pace_of(times - slowest[1 : steps + 1], left)
        if pace is None:
            return 0
        pace = pace._replace(error=pace.error + self._change(pace))
        to_come = left / pace.period * pace.seconds + float(slowest[-1] - slowest[steps])
        makespan = float(times[:, -1].mean()) + to_come
        leave = first + 1 + (iterations - first - 1) % pace.period
        if pace.error <= self.tolerance * makespan and leave < iterations:
            self.pace, self.leave = pace, leave
        return self.leave

    def _change(self, pace: Pace) -> float:
        """Seconds by which all else changes if it does as the computing of the slowest rank."""
        steps, slowest = self._steps, self.slowest
        seen = window(steps, pace.period)
        mean = float(slowest[steps] - slowest[steps - seen]) / seen
        left = self.steps.iterations - steps
        more = abs(float(slowest[-1] - slowest[steps]) - left * mean)
        if not more:
            return 0.0
        return abs(pace.seconds) / pace.period * more / mean if mean else np.inf

    def extrapolate(self, outcome: Outcome) -> tuple[Outcome, Extrapolated]:
        """Add the steps that are left to what came of a run that left the loop early."""
        assert self.pace is not None
        left, pace = self.left, self.pace
        gained = left / pace.period * pace.seconds
        gained += float(self.slowest[-1] - self.slowest[self.leave])
        compute, communicate = (
            left * (self.ends[name][:, self._steps - 1] - self.ends[name][:, self._steps - 2])
            for name in ("compute", "communicate")
        )
        if self.steps.written:
            compute = self.steps.compute[:, self.leave :].sum(axis=1)
        seen = min(window(self._steps, pace.period), len(self._served) - 1)
        (before, old), (now, new) = self._served[-1 - seen], self._served[-1]
        moved, busy, waited = new - old
        servers, step = outcome.servers, step_of(self.steps)
        # By bytes, since ranks are anywhere within a step by then; what has none goes by time.
        iterations = np.full(len(moved), now - before)
        np.divide(moved, step.bytes, out=iterations, where=(moved > 0) & (step.bytes > 0))
        more = left / iterations
        wait = np.maximum(outcome.wait + gained - compute - communicate, 0.0)
        finish = outcome.finish + gained
        summary = Extrapolated(
            steps=self.leave,
            of=self.steps.iterations,
            period=pace.period,
            seconds=gained / left,
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

"""Watching the main loop of a replay: when it has settled, ranks leave it early.

What all engines share: they write down when each rank ended each of the first trips, and ask
whenever the ranks together have ended as many as all of them once more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hopmap.simulator.result import Extrapolated, Outcome
from hopmap.simulator.run_plan import RunPlan

from .main_loop import MainLoop, step_of
from .pace import ROUNDING, Pace, pace_of, window

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST = 256  # steps that are watched at most; a loop that has not settled by then is replayed whole
TRIP_END = np.dtype(
    [
        ("time", np.float64),
        ("compute", np.float64),  # of the strand, so far
        ("communicate", np.float64),
    ]
)


@dataclass(frozen=True)
class Steady:
    """When the steps of a run may be extrapolated.

    Attributes
    ----------
    tolerance : float
        Largest error bound, relative to the makespan.
    hops : int
        Runs of fewer packet-hops are replayed whole: they take a second or two.
    """

    tolerance: float = 2e-3
    hops: int = 20_000_000


class Watch:
    """What an engine asks about the main loop of its run.

    Attributes
    ----------
    rows : ndarray(int64, shape=(ranks,))
        REPEATs that the engine watches.
    ends : ndarray(TRIP_END, shape=(ranks, steps))
        Where it writes the first trips of each rank down; NaN so far.
    leave : int
        Trips after which all ranks leave the loop; 0: not known yet.
    """

    def __init__(self, loop: MainLoop, tolerance: float) -> None:
        self.rows, self.loop, self.tolerance = loop.rows, loop, tolerance
        shape = (len(loop.rows), min(loop.trips // 2, MOST))
        self.ends = np.full((*shape, 3), np.nan).view(TRIP_END)[..., 0]
        self.leave = 0
        self.pace: Pace | None = None
        self._steps = 0
        self._served: list[tuple[float, Floats]] = []

    @property
    def left(self) -> int:
        """Trips that nobody replays."""
        return self.loop.trips - self.leave if self.leave else 0

    def look(self, moved: Ints, busy: Floats, waited: Floats) -> int:
        """Say after how many trips to leave the loop; 0: go on, nothing is known yet.

        Parameters
        ----------
        moved : ndarray(int64, shape=(servers,))
            Bytes over all servers so far.
        busy, waited : ndarray(float64, shape=(servers,))
            Likewise; see `Servers`.
        """
        ended = np.count_nonzero(~np.isnan(self.ends["time"]), axis=1)
        self._served.append((float(ended.mean()), np.stack((moved, busy, waited))))
        steps, first = int(ended.min()), int(ended.max())
        if steps == self._steps or first == self.ends.shape[1]:
            return 0
        self._steps = steps
        times, trips = self.ends["time"][:, :steps], self.loop.trips
        pace = pace_of(times, trips - steps)
        if pace is None:
            return 0
        makespan = float(times[:, -1].mean()) + (trips - steps) / pace.period * pace.seconds
        leave = first + 1 + (trips - first - 1) % pace.period
        if pace.error <= self.tolerance * makespan and leave < trips:
            self.pace, self.leave = pace, leave
        return self.leave

    def extended(self, plan: RunPlan, outcome: Outcome) -> tuple[Outcome, Extrapolated]:
        """Add the trips that are left to what came of a run that left the loop early."""
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
        trips = np.full(len(moved), now - before)
        np.divide(moved, step.bytes, out=trips, where=(moved > 0) & (step.bytes > 0))
        more = left / trips
        wait = np.maximum(outcome.wait + gained - compute - communicate, 0.0)
        finish = outcome.finish + gained
        told = Extrapolated(
            steps=self.leave,
            of=self.loop.trips,
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
        return whole, told

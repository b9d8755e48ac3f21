"""A lower bound of the makespan that takes a millisecond: path or bandwidth, whichever is longer.

A message needs its latencies and bytes / bandwidth even alone, so that no run is shorter than its
longest path without contention; a server needs bytes / bandwidth for all that crosses it. In the
terms of packet routing these are dilation and congestion, of which the larger is a bound and the
sum is the time of a good schedule (Leighton, Maggs, Rao, Packet routing and job-shop scheduling in
O(congestion + dilation) steps, Combinatorica 14, 1994). Unlike a replay it has no queue of events.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopmap.simulator.noise import without_noise
from hopmap.simulator.parameters.keys import expect_fixed_routes
from hopmap.simulator.parameters.parameters import Parameters
from hopmap.simulator.programs.program import Program
from hopmap.simulator.run_plan import RunPlan, paths, plan_run
from hopmap.simulator.steady.main_loop import MainLoop, main_loop
from hopmap.topologies import Topology, check_mapping

from .bounds import surely_received
from .longest_path import LaidOut, laid_out, rank_pairs
from .longest_path_kernels import Pairs

Ints = NDArray[np.int64]

WRITTEN_OUT = 100_000  # messages, up to which all steps of a main loop are walked
FEW, MORE = 2, 4  # steps that are walked of a longer one


class MakespanBound:
    """The function from a mapping to a lower bound of its makespan in seconds.

    A program of more than `WRITTEN_OUT` messages that has a main loop is walked with `FEW` and with
    `MORE` steps of it, and each of the others taken to last as long as those between: an estimate
    then, which is no bound any more, as good as the pace of the first steps is that of all.

    Parameters
    ----------
    program : Program
    topology : Topology
    parameters : Parameters, optional
        As for `simulate`; noise is left out.

    Attributes
    ----------
    exact : bool
        Whether all of the program is walked, so that it is a bound.

    Raises
    ------
    DeadlockError
        The program gets stuck on any network.

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
        self.exact = loop is None or loop.trips <= MORE
        self._parts: list[LaidOut] = []
        if loop is None or self.exact:
            self._parts.append(laid_out(plan, self._source, self._target))
        else:
            for trips in (FEW, MORE):
                part = plan_run(_shortened(program, loop, trips), topology, anywhere, parameters)
                self._parts.append(laid_out(part, self._source, self._target))
            self._rest = (loop.trips - MORE) / (MORE - FEW)

    def __call__(self, node_of: ArrayLike) -> float:
        """Return the bound, or the estimate, of a mapping.

        Raises
        ------
        MappingError
            See `check_mapping`.
        """
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
        np.add.at(volume, place, program.size[rows] * plan.trips[rows])
        return volume


def _shortened(program: Program, loop: MainLoop, trips: int) -> Program:
    """Return the program with fewer trips of its main loop."""
    size = program.size.copy()
    size[loop.rows] = trips
    return replace(program, size=size)

"""Objectives that take a program: the simulated time of a mapping, its energy, or a bound.

Mappers know no engine, so that they are given a function of the mapping. The program is lowered
once and replayed at every evaluation.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hopmap.topologies import Mapping, MappingError

if TYPE_CHECKING:
    from hopmap.simulator import MakespanBound, Program

    from .given import ReplayInput

SIMULATED = ("makespan", "energy")
BOUND = "makespan_bound"


class Others(NamedTuple):
    """Other jobs as one program, and the node of each of their ranks."""

    program: Program
    node_of: Mapping


class Simulated:
    """The function from a mapping to its makespan in seconds, or its energy in joules.

    Beside other jobs it is its own makespan, and the energy of all of them.

    Attributes
    ----------
    replays : int
        So far. The first mapping and every one that was the best are not replayed again.

    Raises
    ------
    MappingError
        Energy without any figures of what links and nodes draw.
    """

    def __init__(
        self, name: str, run: ReplayInput, engine: str, others: Others | None = None
    ) -> None:
        if name == "energy" and not run.parameters.energy:
            raise MappingError(
                "objective energy: nothing draws any: expected a setting like "
                "--set energy.link.per_byte='1 nJ/byte' (see: list parameters)"
            )
        self.name, self.run, self.engine = name, run, engine
        self.replays = 0
        self._known: dict[bytes, float] = {}
        self._program, self._parameters = run.program, run.parameters
        self._fixed = np.zeros(0, dtype=np.int64)
        if others is not None:
            from hopmap.simulator.jobs.merge_programs import add_co_running

            self._program, self._fixed = add_co_running(run.program, others.program), others.node_of
            self._parameters = replace(run.parameters, algorithms={})

    def __call__(self, node_of: Mapping) -> float:
        """Replay a mapping."""
        key = node_of.tobytes()
        if key not in self._known:
            value = self._replayed(node_of)
            self.replays += 1
            if self._known and value >= min(self._known.values()):
                return value
            self._known[key] = value
        return self._known[key]

    def _replayed(self, node_of: Mapping) -> float:
        from hopmap.simulator import simulate

        result = simulate(
            self._program,
            self.run.network,
            np.concatenate((node_of, self._fixed)),
            parameters=self._parameters,
            engine=self.engine,
        )
        if self.name == "makespan":
            return float(result.finish[: len(node_of)].max(initial=0.0))
        assert result.energy is not None
        return result.energy.total


class SimulatedTime(Simulated):
    """A makespan, with the bound of it as what is cheaper and sorts mappings much alike."""

    @cached_property
    def estimate(self) -> MakespanBound:
        """The function from a mapping to a lower bound of its makespan."""
        return bound_of(self.run)


def bound_of(run: ReplayInput) -> MakespanBound:
    """Return the lower bound of a run's makespan as a function of the mapping."""
    from hopmap.simulator import MakespanBound

    return MakespanBound(run.program, run.network, run.parameters)


def simulated(name: str, run: ReplayInput, engine: str, others: Others | None = None) -> Simulated:
    """Return the function that replays, beside other jobs if there are any."""
    # the bound knows fixed routes only
    bounded = name == "makespan" and run.parameters.network_routing == "deterministic"
    return (SimulatedTime if bounded else Simulated)(name, run, engine, others)

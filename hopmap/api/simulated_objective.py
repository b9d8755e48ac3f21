"""Objectives that take a program: the simulated time of a mapping, its energy, or a bound.

Mappers know no engine: they get a function of the mapping. It lowers the program once and
simulates it at every evaluation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hopmap.errors import expect_one_of
from hopmap.simulator import DEFAULT_ENGINE, ENGINES, ParameterError
from hopmap.topologies import Mapping, MappingError

from .machine import Machine
from .workload import Workload

if TYPE_CHECKING:
    from hopmap.simulator import MakespanBound, Program, Result

SIMULATED = ("makespan", "energy")
BOUND = "makespan_bound"


@dataclass(frozen=True)
class Replayed:
    """The makespan of a mapping in seconds, or its energy in joules, by a replay of it.

    Attributes
    ----------
    quantity : {"makespan", "energy"}
    engine : str
        See ``hopmap list engines``.
    """

    quantity: str = "makespan"
    engine: str = DEFAULT_ENGINE

    def __post_init__(self) -> None:
        expect_one_of(ParameterError, "unknown objective", self.quantity, SIMULATED)
        expect_one_of(ParameterError, "unknown engine", self.engine, ENGINES)


class Others(NamedTuple):
    """Other jobs as one program, and the node of each of their ranks."""

    program: Program
    node_of: Mapping


class Simulated:
    """The function from a mapping to its makespan in seconds, or its energy in joules.

    With co-running jobs it is its own makespan, and the energy of all jobs. The first mapping and
    every one that was the best are not replayed again. Energy without any figures of what links and
    nodes draw is a `MappingError`.
    """

    def __init__(
        self,
        objective: Replayed,
        workload: Workload,
        machine: Machine,
        others: Others | None = None,
    ) -> None:
        parameters = machine.parameters
        if objective.quantity == "energy" and not parameters.energy:
            raise MappingError(
                "objective energy requires energy parameters, like "
                "--set energy.link.per_byte='1 nJ/byte' (see: list parameters)"
            )
        self.objective, self.workload, self.machine = objective, workload, machine
        self.replays = 0
        self.best: Result | None = None
        self._known: dict[bytes, float] = {}
        self._program, self._parameters = workload.program(parameters.algorithms), parameters
        self._fixed = np.zeros(0, dtype=np.int64)
        if others is not None:
            from hopmap.simulator.jobs import add_co_running

            self._program = add_co_running(self._program, others.program)
            self._fixed = others.node_of
            self._parameters = replace(parameters, algorithms={})

    def __call__(self, node_of: Mapping) -> float:
        """Replay a mapping."""
        key = node_of.tobytes()
        if key not in self._known:
            value, result = self._replay(node_of)
            self.replays += 1
            if self._known and value >= min(self._known.values()):
                return value
            self._known[key], self.best = value, result
        return self._known[key]

    def _replay(self, node_of: Mapping) -> tuple[float, Result]:
        from hopmap.simulator import simulate

        result = simulate(
            self._program,
            self.machine.network,
            np.concatenate((node_of, self._fixed)),
            parameters=self._parameters,
            engine=self.objective.engine,
        )
        if self.objective.quantity == "makespan":
            return float(result.finish[: len(node_of)].max(initial=0.0)), result
        assert result.energy is not None
        return result.energy.total, result


class SimulatedTime(Simulated):
    """A makespan; its lower bound is a cheaper function that ranks mappings about the same."""

    @cached_property
    def estimate(self) -> MakespanBound:
        """The function from a mapping to a lower bound of its makespan."""
        return bound_of(self.workload, self.machine)


def bound_of(workload: Workload, machine: Machine) -> MakespanBound:
    """Return the lower bound of a run's makespan as a function of the mapping."""
    from hopmap.simulator import MakespanBound

    parameters = machine.parameters
    return MakespanBound(workload.program(parameters.algorithms), machine.network, parameters)


def make_objective(
    objective: Replayed, workload: Workload, machine: Machine, others: Others | None = None
) -> Simulated:
    """Return the function that simulates the mapping, with co-running jobs if there are any."""
    # the bound knows fixed routes only
    fixed = machine.parameters.network_routing == "deterministic"
    bounded = objective.quantity == "makespan" and fixed
    return (SimulatedTime if bounded else Simulated)(objective, workload, machine, others)

"""Objectives that take a replay: the simulated time of a mapping, or its energy.

Mappers know no engine, so that they are given a function of the mapping. The program is lowered
once and replayed at every evaluation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hopmap.mappers import LOAD, OBJECTIVES, Function, evaluate, map_ranks
from hopmap.mappers.objectives import unknown_objective
from hopmap.topologies import Mapping, MappingError, Topology
from hopmap.traces import Traffic

if TYPE_CHECKING:
    from .replays import Unplaced

SIMULATED = ("makespan", "energy")


class Simulated:
    """The function from a mapping to its makespan in seconds, or its energy in joules.

    Attributes
    ----------
    replays : int
        So far. The first mapping and every one that was the best are not replayed again.

    Raises
    ------
    MappingError
        Energy without any figures of what links and nodes draw.
    """

    def __init__(self, name: str, run: Unplaced, engine: str) -> None:
        if name == "energy" and not run.parameters.energy:
            raise MappingError(
                "objective energy: nothing draws any: expected a setting like "
                "--set energy.link.per_byte='1 nJ/byte' (see: list parameters)"
            )
        self.name, self.run, self.engine = name, run, engine
        self.replays = 0
        self._known: dict[bytes, float] = {}

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

        run = self.run
        result = simulate(
            run.program, run.network, node_of, parameters=run.parameters, engine=self.engine
        )
        if self.name == "makespan":
            return result.makespan
        assert result.energy is not None
        return result.energy.total


def check_objective(name: str | None) -> None:
    """Raise `MappingError` for an objective that is neither a mapper's nor simulated."""
    known = (*OBJECTIVES, LOAD, *SIMULATED)
    if name is not None and name not in known:
        raise unknown_objective(name, known)


def before_and_after(
    objective: str | Function,
    traffic: Traffic,
    network: Topology,
    initial: Mapping | None,
    node_of: Mapping,
) -> tuple[float, float]:
    """Value of the given mapping, or of the nodes in order, and of another."""
    start = map_ranks(traffic, network, "sweep") if initial is None else initial
    if callable(objective):
        return objective(start), objective(node_of)
    return (
        evaluate(traffic, network, start, objective),
        evaluate(traffic, network, node_of, objective),
    )

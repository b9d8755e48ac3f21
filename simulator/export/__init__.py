"""Runs and programs for other tools: OTF2, Perfetto, and the simulators of `EXPORTS`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from hopmap.plugins import is_installed, load_named

if TYPE_CHECKING:
    from hopmap.topologies import Topology


class Placed(NamedTuple):
    """Where ranks run, for a simulator that has a network."""

    network: Topology
    zone: str  # a name in `simgrid.ZONES`
    hosts: str  # contents of the file that says the host of each rank


class Export(NamedTuple):
    """A simulator that programs are written for."""

    summary: str  # one line for ``hopmap list formats``
    # in this package, imported when it is asked for. Its ``write(out, program, parameters,
    # placed)`` returns the command that replays the program there.
    module: str
    network: bool  # whether it has one, so that a `Placed` is written as well

    def load(self) -> Any:
        """Import what writes for it."""
        return load_named(__name__, self.module)

    @property
    def is_installed(self) -> bool:
        """Whether what writes for it is part of this installation."""
        return is_installed(__name__, self.module)


EXPORTS: Mapping[str, Export] = {
    "simgrid": Export(
        "SimGrid 3.32: time-independent traces; platform and hosts of a mapping", "simgrid", True
    ),
    "goal": Export(
        "LogGOPSim and ATLAHS: one schedule in GOAL, of ranks, whatever the mapping", "goal", False
    ),
}

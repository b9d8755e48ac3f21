"""A run on a network that takes no time: what of a makespan no mapping can change."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from numpy.typing import ArrayLike

from hopmap.simulator.engines import DEFAULT_ENGINE
from hopmap.simulator.noise import without_noise
from hopmap.simulator.parameters.parameters import Parameters
from hopmap.simulator.programs.program import Program
from hopmap.simulator.simulate import simulate
from hopmap.simulator.steady.watch import Steady
from hopmap.topologies import Topology

FAST = 1e30  # bytes/s
ENDS = ("injection", "ejection", "memory")


def free_makespan(
    program: Program,
    topology: Topology,
    node_of: ArrayLike,
    parameters: Parameters | None = None,
    engine: str = DEFAULT_ENGINE,
) -> float:
    """Return the seconds of a run without noise whose bytes take no time, on links or at nodes.

    What is left is computing, overheads, and waiting for these.

    Parameters
    ----------
    node_of : array_like of int, shape (ranks,)

    Raises
    ------
    MappingError, ParameterError, DeadlockError
        See `simulate`.
    """
    return simulate(
        program,
        topology.with_links(None, bandwidth=FAST, latency=0.0),
        node_of,
        parameters=without_network(parameters or Parameters()),
        engine=engine,
        steady=Steady(),
    ).makespan


def without_network(parameters: Parameters) -> Parameters:
    """Return parameters without noise, of nodes that send and receive in no time."""
    ends: dict[str, Any] = {f"{end}_bandwidth": FAST for end in ENDS}
    ends |= {f"{end}_latency": 0.0 for end in ENDS} | {"network_buffer": 0}
    return replace(without_noise(parameters), **ends)

"""What the model says of measured collectives: one call, all ranks at once, the last one's end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hopmap.progress import Progress, silent
from hopmap.simulator.parameters.parameters import Parameters
from hopmap.simulator.programs.program import Program
from hopmap.simulator.run_plan import plan_run
from hopmap.simulator.packets import compiled_engine
from hopmap.topologies import Topology

from .files import Measured, MeasuredError
from .names import Known, known
from .single_call import call_program

PACKETS = 64  # of the largest message of a call, at most, unless it is larger than these packets
MOST_HOPS = 2e8  # packets times servers of a call, about: some 20 s
KEPT = 256  # programs

ON_GPU, NO_NAME, TOO_LARGE = "buffers on GPUs", "no public definition", "too large to simulate"


@dataclass(frozen=True, eq=False)
class Place:
    """Where measured calls ran.

    Attributes
    ----------
    network : Topology
    node_of : ndarray(int64, shape=(slots,)), optional
        Nodes in the order of the ranks, the one rank or the several of a node beside each other as
        they were; all nodes of the network, in its order, when left out.
    """

    network: Topology
    node_of: NDArray[np.int64] | None = None

    def ranks(self, nodes: int, tasks: int, where: str) -> NDArray[np.int64]:
        """Node of each rank of a call on so many nodes, 0 for all, with so many ranks on each.

        Raises
        ------
        MeasuredError
            The network, or the allocation, has fewer nodes.
        """
        if self.node_of is None:
            there = np.flatnonzero(self.network.slots > 0)
        else:
            there = self.node_of[np.sort(np.unique(self.node_of, return_index=True)[1])]
        count = nodes or len(there)
        what = self.network.spec if self.node_of is None else "the allocation"
        if count > len(there) or (self.node_of is None and count != len(there)):
            expected = "as many" if self.node_of is None else "at most as many"
            raise MeasuredError(f"{where}: {count} nodes: {what} has {len(there)}: expected {expected}")
        return np.repeat(there[:count], tasks)


@dataclass(frozen=True, eq=False)
class Prediction:
    """Predicted times.

    Attributes
    ----------
    time : ndarray(float64)
        Seconds of each entry; NaN of those that are not simulated.
    why : tuple of str
        Why an entry is not simulated; empty of the others.
    """

    time: NDArray[np.float64]
    why: tuple[str, ...]


def predict(
    measured: Measured,
    places: Sequence[Place],
    parameters: Parameters | Sequence[Parameters],
    *,
    progress: Progress = silent,
) -> Prediction:
    """Simulate every call whose algorithm has a public definition.

    Parameters
    ----------
    places : sequence of Place
        Of each file.
    parameters : Parameters or sequence of Parameters
        Of all files, or of each.

    Raises
    ------
    MeasuredError
        A call on more nodes than there are.
    """
    given = [parameters] * len(places) if isinstance(parameters, Parameters) else parameters
    time, why = np.full(len(measured), np.nan), []
    for k in range(len(measured)):
        progress(k, len(measured))
        entry = known(measured.collective[k], measured.algorithm[k])
        reason = not_simulated(measured, k, entry)
        if not reason and entry is not None:
            file = int(measured.file[k])
            node_of = places[file].ranks(
                int(measured.nodes[k]), int(measured.tasks[k]), measured.files[file]
            )
            time[k] = call_time(
                entry, int(measured.size[k]), places[file].network, node_of, given[file]
            )
            reason = TOO_LARGE if np.isnan(time[k]) else ""
        why.append(reason)
    return Prediction(time, tuple(why))


def not_simulated(measured: Measured, k: int, entry: Known | None) -> str:
    """Say why an entry is not simulated, "" if it is."""
    if measured.on_gpu[k]:
        return ON_GPU
    return NO_NAME if entry is None else ""


def call_time(
    entry: Known,
    size: int,
    network: Topology,
    node_of: NDArray[np.int64],
    parameters: Parameters,
) -> float:
    """Seconds of one call, from its start on all ranks to the end of the last; NaN if too large."""
    program = _program(entry, len(node_of), size)
    largest = int(program.size.max(initial=1))
    packet = max(parameters.packet_size, -(-largest // PACKETS))
    if program.operations * min(PACKETS, largest // packet + 1) * 4 > MOST_HOPS:
        return float("nan")
    plan = plan_run(program, network, node_of, replace(parameters, packet_size=packet))
    return float(compiled_engine.run(plan).finish.max(initial=0.0))


@lru_cache(KEPT)
def _program(entry: Known, members: int, size: int) -> Program:
    return call_program(entry.operation, entry.algorithm, members, size)

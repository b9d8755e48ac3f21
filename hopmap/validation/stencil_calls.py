"""Measured exchanges with the neighbours of a grid, as stencil_bench.c of hopmap times them.

Of such a row ``collective`` is the stencil (``stencil:20x10,star``), ``algorithm`` the mapper that
numbered the grid, and ``buffer_bytes`` what goes to every neighbour. ``mpi`` is MPI_Cart_create
itself, taken to leave ranks in their order, as Open MPI and MPICH do. What a mapper is told are the
job's nodes as boxes of equal size, which is all that the mappers of the benchmark look at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hopmap.errors import HopmapError
from hopmap.mappers import map_ranks
from hopmap.simulator import Parameters, simulate
from hopmap.simulator.measured.files import Measured
from hopmap.simulator.measured.prediction import Prediction, nodes_of_ranks
from hopmap.simulator.programs.from_traffic import program_of_traffic
from hopmap.topologies import Topology, topology_from_spec
from hopmap.traces import Traffic
from hopmap.traces.sources import open_source

STENCIL, CREATE = "stencil:", "cart_create"
IN_ORDER = "mpi"
NOT_MODELLED = "makes a communicator: not modelled"


def with_stencils(
    prediction: Prediction,
    measured: Measured,
    networks: Sequence[Topology],
    parameters: Sequence[Parameters],
) -> Prediction:
    """Simulate the rows that are exchanges of stencils, too.

    Parameters
    ----------
    prediction : Prediction
        Of the other rows.
    networks : sequence of Topology
        Of each file, as `predict` takes them.
    parameters : sequence of Parameters
        Of each file.

    Raises
    ------
    MeasuredError
        A row of more nodes than there are.
    """
    time, why = prediction.time.copy(), list(prediction.why)
    for k, name in enumerate(measured.collective):
        if name == CREATE:
            why[k] = NOT_MODELLED
    for k in range(len(measured)):
        name, file = measured.collective[k], int(measured.file[k])
        if name == CREATE:
            why[k] = NOT_MODELLED
        if not name.startswith(STENCIL):
            continue
        nodes = nodes_of_ranks(
            networks[file], int(measured.nodes[k]), int(measured.tasks[k]), measured.files[file]
        )
        try:
            traffic = open_source(f"{name},bytes={measured.size[k]}").traffic()
            program = program_of_traffic(traffic, rounds=1)
            where = _placed(traffic, measured.algorithm[k], nodes, int(measured.tasks[k]))
            time[k] = simulate(program, networks[file], where, parameters=parameters[file]).makespan
            why[k] = ""
        except HopmapError as error:
            why[k] = str(error)
    return replace(prediction, time=time, why=tuple(why))


def _placed(
    traffic: Traffic, mapper: str, nodes: NDArray[np.int64], tasks: int
) -> NDArray[np.int64]:
    """Return the node of each place of the grid, of the nodes of the processes."""
    if mapper == IN_ORDER:
        return nodes[: traffic.ranks]
    boxes = topology_from_spec(f"cluster:{len(nodes) // tasks}*{tasks}")
    return nodes[::tasks][map_ranks(traffic, boxes, mapper)]

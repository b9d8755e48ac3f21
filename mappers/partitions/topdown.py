"""Top-down: the traffic split along the hierarchy of the machine, from the largest parts down.

Source: Schulz, Traeff and von Kirchbach, Better process mapping and sparse quadratic assignment,
section 3.1. The ranks are partitioned into one block for each of the largest subsystems, every
block again for the parts of its subsystem, and so on; ranks that are left for single cores are
equally far apart. Blocks are as large as their subsystems (`partition.py`), so that no slot is left
over when there are as many ranks as slots; fewer ranks fill as few subsystems as will do.

Beyond the paper, the order of the ranks is one candidate more wherever ranks are partitioned: codes
number neighbours close together, and partitioners number their blocks so (in_order=false: without).

On trees, fat trees, clusters and dragonflies; a dragonfly's groups count as equally far apart.
Partitioning takes nearly all of the time; memory is linear in ranks and pairs.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hopmap.mappers.mapper import MAPPERS, Count, mapper
from hopmap.mappers.objectives import ObjectiveName, cost_model
from hopmap.topologies import Mapping, MappingError, Topology, hierarchy
from hopmap.traces import Traffic

from .partition import Preset, partition, split

if TYPE_CHECKING:
    from .partition_kernels import Graph

STRONG = 4096


def nested(name: str, _: Traffic, topology: Topology) -> None:
    """Raise `MappingError` unless the machine is made of nested subsystems."""
    levels_for(name, topology)


@mapper("topdown", source="Schulz, Traeff, von Kirchbach 2017", needs=nested)
def topdown(
    traffic: Traffic,
    topology: Topology,
    *,
    rng: np.random.Generator,
    preset: Preset | None = None,
    tries: Count = 1,
    in_order: bool = True,
    objective: ObjectiveName = "hop_bytes",
) -> Mapping:
    """Partition the ranks level by level along a hierarchy, the largest subsystems first.

    Parameters
    ----------
    traffic, topology, rng
        See `map_ranks`.
    preset : {"fast", "eco", "strong"}, optional
        How hard KaHIP tries; strong up to 4,096 ranks and eco beyond by default.
    tries : int
        Partitions made of each part, the best of which is kept.
    in_order : bool
        Whether the ranks as they are numbered are one more partition of each part.
    objective : str
        Whose weights are cut.

    Raises
    ------
    MappingError
        The machine is not made of nested subsystems.
    """
    from .partition_kernels import induced

    sizes = levels_for("topdown", topology)
    preset = preset_for(traffic, preset)
    graph = graph_for(traffic, topology, objective)
    number = np.full(traffic.ranks, -1, dtype=np.int64)
    filled = np.concatenate(([0], np.cumsum(topology.slots)))
    node_of = np.empty(traffic.ranks, dtype=np.int64)
    parts = [(np.arange(traffic.ranks), 0)]  # ranks, and the first node of their subsystem
    for level in reversed(range(len(sizes))):
        span = prod(sizes[:level])
        below: list[tuple[NDArray[np.int64], int]] = []
        for ranks, first in parts:
            starts = first + span * np.arange(sizes[level] + 1)
            capacity = np.diff(filled[starts])
            block = partition(
                induced(graph, ranks, number),
                capacity,
                rng,
                preset=preset,
                tries=tries,
                in_order=in_order,
            )
            for start, members in zip(
                starts[:-1].tolist(), split(block, sizes[level]), strict=True
            ):
                if len(members):
                    below.append((ranks[members], start))
        parts = below
    for ranks, node in parts:
        node_of[ranks] = node
    return node_of


def preset_for(traffic: Traffic, preset: Preset | None) -> Preset:
    """Return the preset, or the default for so many ranks."""
    return preset or ("strong" if traffic.ranks <= STRONG else "eco")


def levels_for(name: str, topology: Topology) -> tuple[int, ...]:
    """Return the sizes of the nested subsystems, or raise `MappingError`."""
    sizes = hierarchy(topology)
    if sizes is None:
        other = "recursive_bisection"
        raise MappingError(
            f"mapper {name}: {topology.spec} is not made of nested subsystems: expected a tree, a "
            f"fat tree, a cluster or a dragonfly{f'; or {other}' if other in MAPPERS else ''}"
        )
    return sizes


def graph_for(traffic: Traffic, topology: Topology, objective: str) -> Graph:
    """Ranks and the weights of their pairs."""
    from .partition_kernels import Graph

    model = cost_model(traffic, topology, objective, few=True)
    return Graph(model.indptr[: traffic.ranks + 1], model.peer, model.weight)

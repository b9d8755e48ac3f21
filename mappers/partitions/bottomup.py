"""Bottom-up: ranks grouped into the smallest subsystems, these into larger ones, and so on.

Source: Schulz, Traeff and von Kirchbach, Better process mapping and sparse quadratic assignment,
section 3.1. The ranks are partitioned into blocks of as many as a processor has cores; blocks
become vertices, edges between them are added up, and the smaller graph is partitioned for the next
level. At the end the blocks are placed from the top down, in the order of their numbers.

On the machines that `topdown` takes, with its balance. Slower, since the first partition is of all
ranks into very many blocks, and on the whole no better. Where nodes differ in their slots they are
filled at once, without regard to larger subsystems.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hopmap.mappers.mapper import Count, mapper
from hopmap.mappers.objectives import ObjectiveName
from hopmap.topologies import Mapping, Topology
from hopmap.traces import Traffic

from .partition import Preset, partition
from .topdown import graph_for, levels_for, nested, preset_for


@mapper("bottomup", source="Schulz, Traeff, von Kirchbach 2017", needs=nested)
def bottomup(
    traffic: Traffic,
    topology: Topology,
    *,
    rng: np.random.Generator,
    preset: Preset | None = None,
    tries: Count = 1,
    in_order: bool = True,
    objective: ObjectiveName = "hop_bytes",
) -> Mapping:
    """Partition the ranks level by level along a hierarchy, the smallest subsystems first.

    Parameters
    ----------
    traffic, topology, rng
        See `map_ranks`.
    preset, tries, in_order, objective
        As for `topdown`.

    Raises
    ------
    MappingError
        The machine is not made of nested subsystems.
    """
    from .partition_kernels import contracted

    sizes = levels_for("bottomup", topology)
    preset = preset_for(traffic, preset)
    graph = graph_for(traffic, topology, objective)
    slots = int(topology.slots[0])
    if (topology.slots != slots).any():
        return partition(graph, topology.slots, rng, preset=preset, tries=tries, in_order=in_order)
    stages = []
    units = traffic.ranks
    for size in (slots, *sizes):
        blocks = -(-units // size)
        room = np.full(blocks, size)
        block = partition(graph, room, rng, preset=preset, tries=tries, in_order=in_order)
        stages.append((size, block))
        graph = contracted(graph, block, blocks)
        units = blocks
    slot = np.zeros(1, dtype=np.int64)
    for size, block in reversed(stages):
        slot = slot[block] * size + _position(block)
    return slot // slots


def _position(block: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many vertices of its block come before each vertex."""
    order = np.argsort(block, kind="stable")
    position = np.empty_like(block)
    first = np.searchsorted(block[order], block[order])
    position[order] = np.arange(len(block)) - first
    return position

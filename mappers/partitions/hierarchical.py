"""Traffic split along the hierarchy of the machine: `topdown`, and `bottomup`.

Source: Schulz, Traeff and von Kirchbach, Better process mapping and sparse quadratic assignment,
section 3.1. Top-down, the ranks are partitioned into one block for each of the largest subsystems,
every block again for the parts of its subsystem, and so on; ranks that are left for single cores
are equally far apart. Bottom-up, they are partitioned into blocks of as many as a processor has
cores; blocks become vertices, edges between them are added up, and the smaller graph is partitioned
for the next level. At the end the blocks are placed from the top down, in the order of their
numbers.

Blocks are as large as their subsystems (`partition.py`), so that no slot is left over when there
are as many ranks as slots; fewer ranks fill as few subsystems as will do. Bottom-up is slower,
since the first partition is of all ranks into very many blocks, and on the whole no better. Where
nodes differ in their slots it fills them at once, without regard to larger subsystems.

Beyond the paper, the order of the ranks is one candidate more wherever ranks are partitioned: codes
number neighbours close together, and partitioners number their blocks so (in_order=false: without).

On trees, fat trees, clusters and dragonflies; a dragonfly's groups count as equally far apart.
Partitioning takes nearly all of the time; memory is linear in ranks and pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from hopmap.arrays import Ints
from hopmap.mappers.mapper import mapper
from hopmap.mappers.objectives import ObjectiveName, cost_model
from hopmap.mappers.options import Count
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
    preset : {"fast", "eco", "strong"}, optional
        How hard KaHIP tries; strong up to 4,096 ranks and eco beyond by default.
    tries : int
        Partitions made of each part, the best of which is kept.
    in_order : bool
        Whether the ranks as they are numbered are one more partition of each part.
    objective : str
        Whose weights are cut.
    """
    from .partition_kernels import induced

    sizes = levels_for("topdown", topology)
    cut = _cutting(traffic, rng, preset, tries, in_order)
    graph = graph_for(traffic, topology, objective)
    number = np.full(traffic.ranks, -1, dtype=np.int64)
    filled = np.concatenate(([0], np.cumsum(topology.slots)))
    node_of = np.empty(traffic.ranks, dtype=np.int64)
    parts = [(np.arange(traffic.ranks), 0)]  # ranks, and the first node of their subsystem
    for level in reversed(range(len(sizes))):
        span = prod(sizes[:level])
        below: list[tuple[Ints, int]] = []
        for ranks, first in parts:
            starts = first + span * np.arange(sizes[level] + 1)
            capacity = np.diff(filled[starts])
            block = cut(induced(graph, ranks, number), capacity)
            members_of = split(block, sizes[level])
            for start, members in zip(starts[:-1].tolist(), members_of, strict=True):
                if len(members):
                    below.append((ranks[members], start))
        parts = below
    for ranks, node in parts:
        node_of[ranks] = node
    return node_of


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
    preset, tries, in_order, objective
        As for `topdown`.
    """
    from .partition_kernels import contracted

    sizes = levels_for("bottomup", topology)
    cut = _cutting(traffic, rng, preset, tries, in_order)
    graph = graph_for(traffic, topology, objective)
    slots = int(topology.slots[0])
    if (topology.slots != slots).any():
        return cut(graph, topology.slots)
    stages = []
    units = traffic.ranks
    for size in (slots, *sizes):
        blocks = -(-units // size)
        block = cut(graph, np.full(blocks, size))
        stages.append((size, block))
        graph = contracted(graph, block, blocks)
        units = blocks
    slot = np.zeros(1, dtype=np.int64)
    for size, block in reversed(stages):
        slot = slot[block] * size + _position(block)
    return slot // slots


def _cutting(
    traffic: Traffic, rng: np.random.Generator, preset: Preset | None, tries: int, in_order: bool
) -> Callable[[Graph, Ints], Ints]:
    """Return `partition` with these settings; the default preset depends on the ranks."""
    preset = preset or ("strong" if traffic.ranks <= STRONG else "eco")
    return partial(partition, rng=rng, preset=preset, tries=tries, in_order=in_order)


def levels_for(name: str, topology: Topology) -> tuple[int, ...]:
    """Return the sizes of the nested subsystems, or raise `MappingError`."""
    sizes = hierarchy(topology)
    if sizes is None:
        raise MappingError(
            f"mapper {name}: {topology.spec} is not made of nested subsystems: expected a tree, a "
            "fat tree, a cluster or a dragonfly; or recursive_bisection"
        )
    return sizes


def graph_for(traffic: Traffic, topology: Topology, objective: str) -> Graph:
    """Ranks and the weights of their pairs."""
    from .partition_kernels import Graph

    model = cost_model(traffic, topology, objective, few=True)
    return Graph(model.indptr[: traffic.ranks + 1], model.peer, model.weight)


def _position(block: Ints) -> Ints:
    """How many vertices of its block come before each vertex."""
    order = np.argsort(block, kind="stable")
    position = np.empty_like(block)
    first = np.searchsorted(block[order], block[order])
    position[order] = np.arange(len(block)) - first
    return position

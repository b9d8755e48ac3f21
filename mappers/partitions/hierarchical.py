"""Traffic along the hierarchy of the machine: `topdown`, `bottomup`, and `treematch`.

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

TreeMatch goes from the bottom up, too. Sources: Jeannot, Mercier and Tessier, Process placement in
multicore clusters: algorithmic issues and practical techniques (TPDS 2014), algorithms 1 and 2, and
what Open MPI 5 makes of them (`3rd-party/treematch`). Where the number of vertices is no multiple
of the arity k, silent ones are added; the vertices are split into groups of k that talk little to
the outside; groups become the vertices of the next level. The tree of groups is then laid on the
machine from left to right. How a level is grouped, as in Open MPI:

| groups to choose from | k | grouping |
|---|---|---|
| up to 30,000 | any | all are listed, and independent ones picked in four orders |
| more | 2 | the heaviest pairs first |
| more | 3 to 5 | group after group, the best of the first ten or more sets of the vertices left |
| more | above 5 | the best of ten partitions, each grown from random vertices, one a group |

The four orders: as they come (with a credit of 0.1 %), cheapest first, dearest last, and by the
cost of the groups they exclude over their own. The fourth row alone is random.

With divide=true an arity is split into factors 3 and 2 first, as Open MPI's tm_optimize_topology
does before it maps.

Ties follow a merge sort that takes the later of two equals first, as glibc's qsort did with
TreeMatch's comparison. Open MPI's time limits of 0.1 s are left out: a seed gives one result. Costs
of levels play no part. Memory is linear except for the 30,000 groups; time nearly so beyond them,
quadratic in them before.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import combinations
from math import comb, log2, prod
from typing import TYPE_CHECKING

import numpy as np

from hopmap.arrays import Floats, Ints, equals_before
from hopmap.mappers.mapper import mapper
from hopmap.mappers.objectives import ObjectiveName, cost_model
from hopmap.mappers.options import Count
from hopmap.topologies import Mapping, MappingError, Topology, hierarchy
from hopmap.traces import Traffic

from .partition import Preset, partition, split

if TYPE_CHECKING:
    from hopmap.mappers.basic_kernels import Graph

STRONG = 4096  # ranks up to which KaHIP's strong configuration is taken
LISTED = 30_000
TRIALS = 10


def levels_for(name: str, _: Traffic, topology: Topology) -> tuple[int, ...]:
    """Return the sizes of subsystems; `MappingError` unless the network is a hierarchy."""
    sizes = hierarchy(topology)
    if sizes is None:
        raise MappingError(
            f"mapper {name}: {topology.spec} is not made of nested subsystems: expected a tree, a "
            "fat tree, a cluster or a dragonfly; or recursive_bisection"
        )
    return sizes


@mapper("topdown", source="Schulz, Traeff, von Kirchbach 2017", needs=levels_for)
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

    - `preset`: how hard KaHIP tries; strong up to 4,096 ranks and eco beyond by default.
    - `tries`: partitions made of each part, the best of which is kept.
    - `in_order`: whether the ranks as they are numbered are one more partition of each part.
    - `objective`: whose weights are cut.
    """
    from hopmap.mappers.basic_kernels import subgraph

    sizes = levels_for("topdown", traffic, topology)
    cut = _partitioner(traffic, rng, preset, tries, in_order)
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
            block = cut(subgraph(graph, ranks, number), capacity)
            members_of = split(block, sizes[level])
            for start, members in zip(starts[:-1].tolist(), members_of, strict=True):
                if len(members):
                    below.append((ranks[members], start))
        parts = below
    for ranks, node in parts:
        node_of[ranks] = node
    return node_of


@mapper("bottomup", source="Schulz, Traeff, von Kirchbach 2017", needs=levels_for)
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

    - `preset`, `tries`, `in_order`, `objective`: as for `topdown`.
    """
    from hopmap.mappers.basic_kernels import contract

    sizes = levels_for("bottomup", traffic, topology)
    cut = _partitioner(traffic, rng, preset, tries, in_order)
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
        graph = contract(graph, block, blocks)
        units = blocks
    slot = np.zeros(1, dtype=np.int64)
    for size, block in reversed(stages):
        slot = slot[block] * size + equals_before(block)
    return slot // slots


def _partitioner(
    traffic: Traffic, rng: np.random.Generator, preset: Preset | None, tries: int, in_order: bool
) -> Callable[[Graph, Ints], Ints]:
    """Return `partition` with these settings; the default preset depends on the ranks."""
    preset = preset or ("strong" if traffic.ranks <= STRONG else "eco")
    return partial(partition, rng=rng, preset=preset, tries=tries, in_order=in_order)


def graph_for(traffic: Traffic, topology: Topology, objective: str) -> Graph:
    """Ranks and the weights of their pairs."""
    from hopmap.mappers.basic_kernels import Graph

    model = cost_model(traffic, topology, objective, few=True)
    return Graph(model.indptr[: traffic.ranks + 1], model.peer, model.weight)


def require_equal_tree(name: str, traffic: Traffic, topology: Topology) -> tuple[int, ...]:
    """Return the sizes; `MappingError` unless the network is a hierarchy of equal nodes."""
    sizes = levels_for(name, traffic, topology)
    if (topology.slots != topology.slots[0]).any():
        raise MappingError(
            f"mapper {name}: {topology.spec}: nodes have {topology.slots.min()} to "
            f"{topology.slots.max()} slots: expected as many on every node"
        )
    return sizes


@mapper("treematch", source="Jeannot, Mercier, Tessier 2014", needs=require_equal_tree)
def treematch(
    traffic: Traffic,
    topology: Topology,
    *,
    rng: np.random.Generator,
    divide: bool = False,
    objective: ObjectiveName = "hop_bytes",
) -> Mapping:
    """Group ranks level by level along a hierarchy, the smallest subsystems first (TreeMatch).

    - `divide`: whether to split arities into factors 3 and 2.
    - `objective`: whose weights are traffic.
    """
    from hopmap.mappers.basic_kernels import contract

    sizes = require_equal_tree("treematch", traffic, topology)
    slots = int(topology.slots[0])
    arities = (factors(size) if divide else [size] for size in (slots, *sizes))
    levels = [arity for of_level in arities for arity in of_level]
    graph = graph_for(traffic, topology, objective)
    units = traffic.ranks
    stages = []
    for arity in levels:
        groups = group_vertices(pad_graph(graph, arity), arity, rng)
        block, place = np.empty((2, groups.size), dtype=np.int64)
        block[groups] = np.arange(len(groups))[:, None]
        place[groups] = np.arange(arity)
        stages.append((arity, block[:units], place[:units]))
        graph = contract(pad_graph(graph, arity), block, len(groups))
        units = len(groups)
    slot = np.zeros(1, dtype=np.int64)
    for arity, block, place in reversed(stages):
        slot = slot[block] * arity + place
    return slot // slots


def factors(arity: int) -> list[int]:
    """Split an arity as tm_optimize_topology does, innermost first: the rest, 2s, then 3s."""
    outside = []
    for factor in (3, 2):
        while arity % factor == 0 and arity > factor:
            outside.append(factor)
            arity //= factor
    return [arity, *reversed(outside)]


def pad_graph(graph: Graph, arity: int) -> Graph:
    """Add silent vertices up to a multiple of the arity."""
    short = -(len(graph.indptr) - 1) % arity
    return graph._replace(indptr=np.append(graph.indptr, np.repeat(graph.indptr[-1], short)))


def group_vertices(graph: Graph, arity: int, rng: np.random.Generator) -> Ints:
    """Vertices of every group, shape (groups, arity), in the order the groups are placed."""
    from . import partition_kernels

    vertices = len(graph.indptr) - 1
    count = vertices // arity
    if arity in (1, vertices):
        return np.arange(vertices).reshape(count, arity)
    sets = comb(vertices, arity)
    if sets <= LISTED:
        return _enumerate_groups(graph, arity, sets)
    if arity == 2:
        source = np.repeat(np.arange(vertices), np.diff(graph.indptr))
        once = source < graph.peer
        pairs = np.stack((source[once], graph.peer[once]), axis=1)
        heaviest = np.lexsort((-pairs[:, 1], -pairs[:, 0], -graph.weight[once]))
        return partition_kernels.pair_up(pairs[heaviest], vertices)
    if arity <= 5:
        return partition_kernels.fast(graph, arity, max(10, int(50 - log2(sets)) - count // 10))
    first = np.stack([rng.choice(vertices, count, replace=False) for _ in range(TRIALS)])
    block = partition_kernels.grow(graph, arity, first)
    return np.argsort(block, kind="stable").reshape(count, arity)


def _enumerate_groups(graph: Graph, arity: int, sets: int) -> Ints:
    """Independent groups among all there are, the best of the four orders."""
    from . import partition_kernels

    groups = np.array(list(combinations(range(len(graph.indptr) - 1), arity)), dtype=np.int64)
    cost = partition_kernels.costs(graph, groups)
    chosen = np.empty(len(graph.indptr) // arity, dtype=np.int64)
    order = np.arange(sets)
    least = partition_kernels.pick(groups, cost, order, 1, np.inf, chosen) / 1.001
    order = _sort(cost, order)
    least = partition_kernels.pick(groups, cost, order, 10, least, chosen)
    order = _sort(-cost, order)
    least = partition_kernels.pick_late(groups, cost, order, 10, least, chosen)
    order = _sort(-partition_kernels.conflicts(groups, cost, len(graph.indptr) - 1), order)
    partition_kernels.pick(groups, cost, order, 10, least, chosen)
    return groups[np.sort(chosen)]


def _sort(key: Floats, order: Ints) -> Ints:
    """Sort by the key, ascending; of equals the one that came later first."""
    back = order[::-1]
    return back[np.argsort(key[back], kind="stable")]

"""TreeMatch: ranks grouped for the lowest switches, the groups for the next, up to the root.

Sources: Jeannot, Mercier and Tessier, Process placement in multicore clusters: algorithmic issues
and practical techniques (TPDS 2014), algorithms 1 and 2, and what Open MPI 5 makes of them
(`3rd-party/treematch`). From the bottom up: where the number of vertices is no multiple of the
arity k, silent ones are added; the vertices are split into groups of k that talk little to the
outside; groups become the vertices of the next level, their traffic added up. The tree of groups is
then laid on the machine from left to right. How a level is grouped, as in Open MPI:

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

Ties are those of a merge sort that takes the later of two equals first, as glibc's qsort did with
TreeMatch's comparison. Open MPI's time limits of 0.1 s are left out: a seed gives one result. Costs
of levels play no part. On the machines that `topdown` takes, with as many slots on every node.
Memory is linear but for the 30,000 groups; time nearly so beyond them, quadratic in them before.
"""

from __future__ import annotations

from math import comb, log2
from typing import TYPE_CHECKING

import numpy as np

from hopmap.arrays import Floats, Ints
from hopmap.mappers.mapper import mapper
from hopmap.mappers.objectives import ObjectiveName
from hopmap.topologies import Mapping, MappingError, Topology
from hopmap.traces import Traffic

from .hierarchical import graph_for, levels_for

if TYPE_CHECKING:
    from .partition_kernels import Graph

LISTED = 30_000
TRIALS = 10


def alike(name: str, _: Traffic, topology: Topology) -> tuple[int, ...]:
    """Return the sizes of nested subsystems of equal nodes, or raise `MappingError`."""
    sizes = levels_for(name, topology)
    if (topology.slots != topology.slots[0]).any():
        raise MappingError(
            f"mapper {name}: {topology.spec}: nodes have {topology.slots.min()} to "
            f"{topology.slots.max()} slots: expected as many on every node"
        )
    return sizes


@mapper("treematch", source="Jeannot, Mercier, Tessier 2014", needs=alike)
def treematch(
    traffic: Traffic,
    topology: Topology,
    *,
    rng: np.random.Generator,
    divide: bool = False,
    objective: ObjectiveName = "hop_bytes",
) -> Mapping:
    """Group ranks level by level along a hierarchy, the smallest subsystems first (TreeMatch).

    Parameters
    ----------
    divide : bool
        Whether to split arities into factors 3 and 2.
    objective : str
        Whose weights are traffic.
    """
    from .partition_kernels import contracted

    sizes = alike("treematch", traffic, topology)
    slots = int(topology.slots[0])
    levels = [arity for size in (slots, *sizes) for arity in (factors(size) if divide else (size,))]
    graph = graph_for(traffic, topology, objective)
    units = traffic.ranks
    stages = []
    for arity in levels:
        groups = grouped(padded(graph, arity), arity, rng)
        block, place = np.empty((2, groups.size), dtype=np.int64)
        block[groups] = np.arange(len(groups))[:, None]
        place[groups] = np.arange(arity)
        stages.append((arity, block[:units], place[:units]))
        graph = contracted(padded(graph, arity), block, len(groups))
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


def padded(graph: Graph, arity: int) -> Graph:
    """Add silent vertices up to a multiple of the arity."""
    short = -(len(graph.indptr) - 1) % arity
    return graph._replace(indptr=np.append(graph.indptr, np.repeat(graph.indptr[-1], short)))


def grouped(graph: Graph, arity: int, rng: np.random.Generator) -> Ints:
    """Vertices of every group, shape (groups, arity), in the order the groups are placed."""
    from . import treematch_kernels

    vertices = len(graph.indptr) - 1
    count = vertices // arity
    if arity in (1, vertices):
        return np.arange(vertices).reshape(count, arity)
    sets = comb(vertices, arity)
    if sets <= LISTED:
        return _listed(graph, arity, sets)
    if arity == 2:
        source = np.repeat(np.arange(vertices), np.diff(graph.indptr))
        once = source < graph.peer
        pairs = np.stack((source[once], graph.peer[once]), axis=1)
        heaviest = np.lexsort((-pairs[:, 1], -pairs[:, 0], -graph.weight[once]))
        return treematch_kernels.matched(pairs[heaviest], vertices)
    if arity <= 5:
        return treematch_kernels.fast(graph, arity, max(10, int(50 - log2(sets)) - count // 10))
    first = np.stack([rng.choice(vertices, count, replace=False) for _ in range(TRIALS)])
    block = treematch_kernels.grown(graph, arity, first)
    return np.argsort(block, kind="stable").reshape(count, arity)


def _listed(graph: Graph, arity: int, sets: int) -> Ints:
    """Independent groups among all there are, the best of the four orders."""
    from . import treematch_kernels

    groups = treematch_kernels.all_groups(len(graph.indptr) - 1, arity, sets)
    cost = treematch_kernels.costs(graph, groups)
    chosen = np.empty(len(graph.indptr) // arity, dtype=np.int64)
    order = np.arange(sets)
    least = treematch_kernels.pick(groups, cost, order, 1, np.inf, chosen) / 1.001
    order = _sorted(cost, order)
    least = treematch_kernels.pick(groups, cost, order, 10, least, chosen)
    order = _sorted(-cost, order)
    least = treematch_kernels.pick_late(groups, cost, order, 10, least, chosen)
    order = _sorted(-treematch_kernels.conflicts(groups, cost, len(graph.indptr) - 1), order)
    treematch_kernels.pick(groups, cost, order, 10, least, chosen)
    return groups[np.sort(chosen)]


def _sorted(key: Floats, order: Ints) -> Ints:
    """Sort by the key, ascending; of equals the one that came later first."""
    back = order[::-1]
    return back[np.argsort(key[back], kind="stable")]

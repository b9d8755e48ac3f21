"""Machines of nested subsystems with a cost of each level: VieM's S and D, hwloc's trees.

S = a_1, ..., a_k, innermost first: a processor has a_1 cores, a node a_2 processors, and so on; two
cores are d_i apart where their lowest common subsystem is of level i. Source: Schulz, Traeff and
von Kirchbach, Better process mapping and sparse quadratic assignment, sections 3.4 and 5.1.

Here the nodes of the topology are the cores, and every subsystem is a switch, with one link each
way to each of its parts. `distance` is the cost d_i, so that hop-bytes are the paper's J with every
pair counted once, and dilation is in the same unit. The cost of a link of level i is therefore
(d_i - d_(i-1)) / 2, and the route the only path, of 2 i links (`hops`): the replay knows links,
their bandwidth and latency, and no D.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from hopmap.topologies.topology import (
    MOST_LEVELS,
    Topology,
    TopologyError,
    check_size,
    check_slots,
    times,
    whole,
)
from hopmap.topologies.tree_kernels import TreeRouter

from .switched import fat_tree

FARTHEST = 10**6


def tree(
    children: Sequence[int], costs: Sequence[int] | None = None, *, slots: int = 1
) -> Topology:
    """Hierarchy of subsystems, innermost first, with a distance for each level (VieM's S and D).

    `children` is S: cores a processor, processors a node, ...; `costs` is D: the distance of two
    cores of one processor, of one node, ...: 1, 10, 100, ... when left out.
    """
    from hopmap.topologies.switch_kernels import DOWN, SUBTREE, UP, VERTEX, FatTreeRouter

    sizes = whole("tree: sizes", *children)
    if len(sizes) > MOST_LEVELS:
        raise TopologyError(f"tree: {len(sizes)} levels: expected at most {MOST_LEVELS}")
    distances_up = (
        [10**level for level in range(len(sizes))]
        if costs is None
        else whole("tree: distances", *costs)
    )
    if not sizes or min(sizes) < 1:
        raise TopologyError(f"tree: sizes {_text(sizes)}: expected whole numbers of at least 1")
    rising = all(low <= high for low, high in zip([0, *distances_up], distances_up, strict=False))
    if len(distances_up) != len(sizes) or not rising or distances_up[-1] > FARTHEST:
        raise TopologyError(
            f"tree: distances {_text(distances_up)}: expected one whole number for each of the "
            f"{len(sizes)} levels, none below the one before, up to {FARTHEST}"
        )
    check_slots("tree", slots, "core")
    links = 2 * sum(prod(sizes[level:]) for level in range(len(sizes)))
    nodes = prod(sizes)
    check_size(f"tree: sizes {_text(sizes)}", nodes=nodes, links=links, slots=nodes * slots)
    plain = fat_tree(sizes, [1] * len(sizes), slots=slots)
    assert isinstance(plain.router, FatTreeRouter)
    levels = plain.router.levels
    return replace(
        plain,
        spec=f"tree:{_text(sizes)}@{_text(distances_up)}{times(slots)}",
        router=TreeRouter(
            spans=levels[:, SUBTREE].copy(),
            costs=np.array([0, *distances_up], dtype=np.int64),
            first=levels[:, VERTEX].copy(),
            up=levels[:, UP].copy(),
            down=levels[:, DOWN].copy(),
            link_to=plain.link_to,
        ),
    )


def hierarchy(topology: Topology) -> tuple[int, ...] | None:
    """Sizes of the nested subsystems, innermost first; None where the network is not made of any.

    The nodes of a subsystem are consecutive, and nodes that share a lower one are no farther apart.
    Trees, fat trees, clusters and dragonflies of both sorts are made so.
    """
    from hopmap.topologies.switch_kernels import (
        SUBTREE,
        DragonflyPlusRouter,
        DragonflyRouter,
        FatTreeRouter,
    )

    router = topology.router
    if isinstance(router, TreeRouter):
        spans = router.spans
    elif isinstance(router, FatTreeRouter):
        spans = router.levels[:, SUBTREE]
    elif isinstance(router, DragonflyRouter):
        return (router.hosts, router.routers, router.groups)
    elif isinstance(router, DragonflyPlusRouter):
        hosts, leaves = len(router.leaf) // len(router.group), len(router.group) // router.groups
        regular = np.array_equal(router.leaf, np.arange(topology.nodes) // hosts)
        regular = regular and np.array_equal(router.group, np.arange(len(router.group)) // leaves)
        return (hosts, leaves, router.groups) if regular else None
    else:
        return None
    return tuple((spans[1:] // spans[:-1]).tolist())


def _text(numbers: Sequence[int]) -> str:
    return ":".join(str(number) for number in numbers)

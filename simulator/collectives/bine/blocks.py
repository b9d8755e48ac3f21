"""Blocks up and down Bine trees, and collectives with a root that are made of that.

Source: HLC-Lab/bine_trees_fugaku, lib/libbine_coll_gather.cc, _scatter.cc, _reduce.cc, _bcast.cc;
what `dims`, `ports` and `puts` mean is in `trees.py`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hopmap.arrays import Ints
from hopmap.simulator.collectives.schedules import (
    Schedule,
    edges,
    one_after_another,
    shares,
    turned,
    work,
)

from .exchanges import Dims, doubling, halving, with_copies
from .trees import (
    BineTree,
    by_port,
    early,
    gathered,
    reached_order,
    scattered,
    told_by_all,
    tree_from,
    ways,
)


def bine_reduce_then_gather(
    members: int, root: int, volume: Ints, /, *, dims: Dims = (), ports: int = 1, puts: int = 0
) -> Schedule:
    """Halve, nearest first, then gather along the tree: REDUCE_SCATTER_GATHER."""

    def of(port: int, part: Ints) -> Schedule:
        way, blocks = ways(members, dims, port), shares(int(part[0]), members)
        tree = tree_from(root, way, nearest_first=True)
        return one_after_another(halving(way, blocks, puts=puts), gathered(tree, blocks))

    return early(by_port(ports, volume[:1], of), puts, told_by_all(members, ports))


def bine_scatter_then_allgather(
    members: int, root: int, volume: Ints, /, *, dims: Dims = (), ports: int = 1, puts: int = 0
) -> Schedule:
    """Scatter along the tree, then exchange what is held: SCATTER_ALLGATHER."""

    def of(port: int, part: Ints) -> Schedule:
        way, blocks = ways(members, dims, port), shares(int(part[0]), members)
        tree = tree_from(root, way, nearest_first=True)
        return one_after_another(scattered(tree, blocks), doubling(way, blocks))

    return early(by_port(ports, volume[:1], of), puts, told_by_all(members, ports))


def bine_gather(
    members: int, root: int, volume: Ints, /, *, dims: Dims = (), ports: int = 1, puts: int = 0
) -> Schedule:
    """Bine tree, farthest first, blocks put into order by the root: gather CONT_PERMUTE-DEC."""
    return _gather(members, root, volume, dims, ports, puts, nearest_first=True)


def bine_gather_increasing(
    members: int, root: int, volume: Ints, /, *, dims: Dims = (), ports: int = 1, puts: int = 0
) -> Schedule:
    """Bine tree, nearest first, blocks put into order by the root: gather CONT_PERMUTE-INC."""
    return _gather(members, root, volume, dims, ports, puts, nearest_first=False)


def _gather(
    members: int, root: int, volume: Ints, dims: Dims, ports: int, puts: int, nearest_first: bool
) -> Schedule:
    around = _along(gathered, members, root, volume, dims, ports, puts, nearest_first)
    me = np.arange(members)
    return with_copies(
        around,
        [(-1, me, volume), (around.steps, np.array([root]), volume.sum(keepdims=True))],
        [(around.steps, np.array([root]), np.array([members]))],
    )


def _along(
    moved: Callable[[BineTree, Ints], Schedule],
    members: int,
    root: int,
    volume: Ints,
    dims: Dims,
    ports: int,
    puts: int,
    nearest_first: bool,
) -> Schedule:
    """Move the blocks of every port along its tree."""

    def of(port: int, part: Ints) -> Schedule:
        return moved(tree_from(root, ways(members, dims, port), nearest_first), part)

    return early(by_port(ports, volume, of), puts)


def bine_scatter(
    members: int, root: int, volume: Ints, /, *, dims: Dims = (), ports: int = 1, puts: int = 0
) -> Schedule:
    """Bine tree, nearest first, blocks put into order by the root: scatter CONT_PERMUTE-INC."""
    return _scatter(members, root, volume, dims, ports, puts, nearest_first=True)


def bine_scatter_decreasing(
    members: int, root: int, volume: Ints, /, *, dims: Dims = (), ports: int = 1, puts: int = 0
) -> Schedule:
    """Bine tree, farthest first, blocks put into order by the root: scatter CONT_PERMUTE-DEC."""
    return _scatter(members, root, volume, dims, ports, puts, nearest_first=False)


def _scatter(
    members: int, root: int, volume: Ints, dims: Dims, ports: int, puts: int, nearest_first: bool
) -> Schedule:
    around = _along(scattered, members, root, volume, dims, ports, puts, nearest_first)
    me = np.arange(members)
    return with_copies(
        around,
        [(-1, np.array([root]), volume.sum(keepdims=True)), (around.steps, me, volume)],
        [(-1, np.array([root]), np.array([members]))],
    )


def bine_gather_ranges(members: int, root: int, volume: Ints, /) -> Schedule:
    """Bine tree of one dimension, nearest first, blocks in order all the way: bine_gather_mpi.

    What a member has is a range of blocks; one that passes the last member goes in two messages.
    """
    child, parent, reached, size = _ranges(members, root, volume)
    step = 2 * (reached.max(initial=-1) - reached)
    own = work([(-1, np.arange(members), np.roll(volume, -root))])
    return turned(_in_two(step, child, parent, size)._replace(work=own), members, root)


def bine_scatter_ranges(members: int, root: int, volume: Ints, /) -> Schedule:
    """Bine tree of one dimension, farthest first, blocks in order all the way: bine_scatter_mpi.

    The other way round than `bine_gather_ranges`; who has no children does not copy its block.
    """
    child, parent, reached, size = _ranges(members, root, volume)
    inner = np.unique(np.append(parent, 0))
    given = _in_two(2 * reached, parent, child, size)
    own = work([(given.steps, inner, np.roll(volume, -root)[inner])])
    return turned(given._replace(work=own), members, root)


def _ranges(members: int, root: int, volume: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """All members but the root, which is 0, their parents, steps, and bytes of their subtrees.

    Bytes have shape (2, members - 1): of what ends with the last member's block at the latest, and
    of what goes on with the first's, -1 where nothing does.
    """
    tree = tree_from(0, ways(members), nearest_first=False)
    child = reached_order(tree)
    parent = tree.parent[child]
    low, high = np.arange(members), np.arange(members)
    for one, above in zip(child[::-1].tolist(), parent[::-1].tolist(), strict=True):
        if above:
            low[above], high[above] = min(low[above], low[one]), max(high[above], high[one])
    before = edges(volume)
    begin = (low[child] + root) % members
    end = begin + high[child] - low[child] + 1
    beyond = np.where(end > members, before[np.maximum(end - members, 0)], -1)
    return (
        child,
        parent,
        tree.reached[child],
        np.stack((before[np.minimum(end, members)] - before[begin], beyond)),
    )


def _in_two(step: Ints, src: Ints, dst: Ints, size: Ints) -> Schedule:
    """Send the first parts in these steps, and where there is a second, that in the next."""
    there = size >= 0
    number = np.stack((step, step + 1))[there]
    src, dst = (np.stack((each, each))[there] for each in (src, dst))
    return Schedule(number, src, dst, size[there], number, number, work())

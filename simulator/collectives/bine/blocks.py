"""Blocks up and down Bine trees, and collectives with a root that are made of that.

Source: HLC-Lab/bine_trees_fugaku, lib/libbine_coll_gather.cc, _scatter.cc, _reduce.cc, _bcast.cc;
what `dims`, `ports` and `puts` mean is in `trees.py`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hopmap.simulator.collectives.broadcasts import shares
from hopmap.simulator.collectives.schedules import Ints, Schedule, one_after_another

from .exchanges import Dims, doubling, halving, with_copies
from .trees import BineTree, by_port, early, gathered, scattered, tree_from, ways


def bine_reduce_then_gather(
    members: int, root: int, volume: Ints, /, *, dims: Dims = (), ports: int = 1, puts: int = 0
) -> Schedule:
    """Halve, nearest first, then gather along the tree: REDUCE_SCATTER_GATHER."""

    def of(port: int, part: Ints) -> Schedule:
        way, blocks = ways(members, dims, port), shares(int(part[0]), members)
        tree = tree_from(root, way, nearest_first=True)
        return one_after_another(halving(way, blocks, puts=puts), gathered(tree, blocks))

    return early(by_port(ports, volume[:1], of), puts)


def bine_scatter_then_allgather(
    members: int, root: int, volume: Ints, /, *, dims: Dims = (), ports: int = 1, puts: int = 0
) -> Schedule:
    """Scatter along the tree, then exchange what is held: SCATTER_ALLGATHER."""

    def of(port: int, part: Ints) -> Schedule:
        way, blocks = ways(members, dims, port), shares(int(part[0]), members)
        tree = tree_from(root, way, nearest_first=True)
        return one_after_another(scattered(tree, blocks), doubling(way, blocks))

    return early(by_port(ports, volume[:1], of), puts)


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
    )

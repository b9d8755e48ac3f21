"""What mappers of Cartesian grids share: the grid of the traffic, and how ranks fill the nodes.

The thesis and its successors number the processes node by node ("block" allocation) and compute a
new coordinate for every number. Here the i-th number is the i-th slot in the order of the nodes,
and an algorithm is a function that gives the coordinates of all numbers; the rank at number i's
coordinates then is on the node of slot i. Any topology works; where it has more slots than
ranks, the last ones stay empty.

Source: Lehr, Efficient process mapping for Cartesian topologies, Diplomarbeit TU Wien 2019,
sections 3.1 and 5.1.

Traffic without metadata is recognised: ranks in a box that talk to their neighbours, in any
numbering. In a product of paths a corner has one peer per dimension. From there, breadth first, a
rank with one peer nearer to the corner goes on along its line, and one with several is their least
upper bound, coordinate by coordinate. What comes out is then checked pair by pair, so that nothing
but a grid passes. Diagonal pairs of a stencil weigh less than straight ones: where the whole
traffic is no grid, its heavier pairs alone are tried, down to each of the widest gaps between two
weights. O(pairs) a trial.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from hopmap.arrays import Ints
from hopmap.errors import HopmapWarning
from hopmap.topologies import Mapping, MappingError, Topology
from hopmap.traces import Traffic

Coordinates = Ints  # of shape (ranks, dimensions)
Vectors = Sequence[Sequence[int]]
Weights = Sequence[int] | None
# What a vector of the stencil counts: one message, or its bytes.
Weight: TypeAlias = Literal["messages", "bytes"]
GAPS = 6  # gaps between weights that are tried


class Grid(NamedTuple):
    """A Cartesian grid of ranks with its stencil."""

    dims: tuple[int, ...]  # ranks per dimension
    stencil: list[tuple[int, ...]]  # vectors to the neighbours
    sizes: list[int]  # bytes to each neighbour
    periodic: tuple[bool, ...]  # of every dimension
    # shape (ranks,): row-major number of each rank's coordinates; MPI's ranks are these numbers
    cells: Ints

    @property
    def coords(self) -> Ints:
        """Coordinates of the ranks, shape (ranks, dimensions)."""
        return np.stack(np.unravel_index(self.cells, self.dims), axis=1)

    def weights(self, weight: Weight) -> list[int] | None:
        """Weight of every vector; None where all count the same, as published."""
        return self.sizes if weight == "bytes" else None


class GridTraffic(NamedTuple):
    """Where every rank is in the grid."""

    dims: tuple[int, ...]  # ranks in each dimension, longest first
    coords: Ints  # shape (ranks, dimensions)


def crossing(stencil: Vectors, weights: Weights, dimensions: int) -> list[int]:
    """Sum over the vectors of weight times reach: what crosses a cut across each dimension."""
    each = weights or [1] * len(stencil)
    return [
        sum(abs(v[d]) * weight for v, weight in zip(stencil, each, strict=True))
        for d in range(dimensions)
    ]


def cartesian(traffic: Traffic, mapper: str, *, weighs: bool = True) -> Grid:
    """Grid of the traffic: from its metadata, else recognised (a star, not periodic).

    - `weighs`: whether it heeds the bytes to each neighbour; if not, a `HopmapWarning` says where
      they differ.
    """
    meta = traffic.metadata
    if not {"dims", "stencil", "periodic"} <= meta.keys():
        pairs = traffic.without_self().undirected()
        found = recognise_grid(pairs, pairs.bytes) or recognise_grid(pairs, pairs.messages)
        if found is None:
            raise MappingError(
                f"mapper {mapper}: the traffic is no Cartesian grid: expected metadata dims, "
                "stencil and periodic, as hopmap generate stencil writes them to .npz"
            )
        unit = np.eye(len(found.dims), dtype=np.int64)
        star = [tuple(map(int, sign * step)) for step in unit for sign in (1, -1)]
        cells = np.ravel_multi_index(tuple(found.coords.T), found.dims).astype(np.int64)
        return Grid(found.dims, star, [1] * len(star), (False,) * len(unit), cells)
    dims, periodic = tuple(map(int, meta["dims"])), tuple(map(bool, meta["periodic"]))
    stencil = [tuple(map(int, vector)) for vector in meta["stencil"]]
    sizes = [int(size) for size in meta.get("stencil_bytes", [1] * len(stencil))]
    text = "x".join(map(str, dims))
    if prod(dims) != traffic.ranks:
        raise MappingError(
            f"mapper {mapper}: dims {text} have {prod(dims)} ranks: expected the traffic's "
            f"{traffic.ranks}"
        )
    for what, numbers in [("periodic", periodic), *(("stencil vector", v) for v in stencil)]:
        if len(numbers) != len(dims):
            raise MappingError(
                f"mapper {mapper}: {what} {':'.join(map(str, map(int, numbers)))} has "
                f"{len(numbers)} dimensions: expected {len(dims)} as in {text}"
            )
    if not weighs and len(set(sizes)) > 1:
        warnings.warn(
            f"mapper {mapper} ignores that neighbours get {min(sizes)} to {max(sizes)} bytes: "
            "hyperplane, skewed_kd_tree and stencil_strips weigh them with weight=bytes, "
            "factorisation and grid_portfolio always",
            HopmapWarning,
            stacklevel=2,
        )
    return Grid(dims, stencil, sizes, periodic, np.arange(traffic.ranks))


def find_grid(traffic: Traffic) -> Grid | None:
    """Grid of the traffic; None where it is not one."""
    try:
        return cartesian(traffic, "")
    except MappingError:
        return None


def on_grid(name: str, traffic: Traffic, _: Topology) -> None:
    """Raise `MappingError` unless the traffic is that of a Cartesian grid."""
    cartesian(traffic, name)


def node_sizes(topology: Topology, ranks: int) -> list[int]:
    """Ranks on each node that has any, when they fill one node after the other."""
    filled = np.minimum(np.cumsum(topology.slots), ranks)
    sizes = np.diff(filled, prepend=0)
    if filled[-1] < ranks:
        raise MappingError(
            f"{ranks} ranks of a grid on {topology.spec} with {filled[-1]} slots: expected as many"
        )
    return [int(size) for size in sizes if size]


def place(grid: Grid, coordinates: ArrayLike, topology: Topology) -> Mapping:
    """Node of every rank, from the coordinates of the numbers in the order of the slots."""
    axes = tuple(np.asarray(coordinates, dtype=np.int64).T)
    node_at = np.empty(len(grid.cells), dtype=np.int64)
    node_at[np.ravel_multi_index(axes, grid.dims)] = np.repeat(
        np.arange(topology.nodes), topology.slots
    )[: len(node_at)]
    return node_at[grid.cells]


def all_row_major(dims: Sequence[int]) -> Coordinates:
    """Coordinates of all row-major numbers."""
    return np.indices(dims).reshape(len(dims), -1).T.astype(np.int64)


def grid_of(ranks: int, src: Ints, dst: Ints) -> GridTraffic | None:
    """Coordinates of ranks whose undirected pairs are a grid of 2 dimensions or more, else None."""
    from scipy.sparse import csr_array  # slow to import, and few commands come here
    from scipy.sparse.csgraph import shortest_path

    degree = np.bincount(src, minlength=ranks) + np.bincount(dst, minlength=ranks)
    if ranks < 4 or degree.min() < 2:
        return None
    corner = int(degree.argmin())
    dimensions = int(degree[corner])
    if dimensions > 6 or degree.max() > 2 * dimensions:
        return None
    both = (np.concatenate((src, dst)), np.concatenate((dst, src)))
    graph = csr_array((np.ones(len(both[0])), both), shape=(ranks, ranks))
    level = shortest_path(graph, unweighted=True, indices=corner)
    if np.isinf(level).any():
        return None
    level = level.astype(np.int64)
    coords = np.zeros((ranks, dimensions), dtype=np.int64)
    first = np.flatnonzero(level == 1)
    coords[first] = np.eye(dimensions, dtype=np.int64)
    # Pairs from a rank to one that is a step farther, in the order of the levels.
    onward = level[both[0]] + 1 == level[both[1]]
    near, far = both[0][onward], both[1][onward]
    order = np.argsort(level[far], kind="stable")
    near, far = near[order], far[order]
    ends = np.searchsorted(level[far], np.arange(1, int(level.max()) + 2))
    single = np.bincount(far, minlength=ranks) == 1
    for begin, end in pairwise(ends[1:].tolist()):
        np.maximum.at(coords, far[begin:end], coords[near[begin:end]])
        alone = far[begin:end][single[far[begin:end]]]
        if (np.count_nonzero(coords[alone], axis=1) != 1).any():
            return None
        coords[alone] += coords[alone] > 0
    dims = coords.max(axis=0) + 1
    edges = sum(ranks // int(d) * (int(d) - 1) for d in dims)
    keys = np.ravel_multi_index(tuple(coords.T), tuple(dims))
    steps = np.abs(coords[src] - coords[dst]).sum(axis=1)
    if int(np.prod(dims)) != ranks or len(np.unique(keys)) < ranks:
        return None
    if len(src) != edges or (steps != 1).any():
        return None
    longest = np.argsort(-dims, kind="stable")
    return GridTraffic(tuple(int(d) for d in dims[longest]), coords[:, longest])


def recognise_grid(traffic: Traffic, weight: Ints) -> GridTraffic | None:
    """Grid that undirected traffic, or that of its heavier pairs, is; None if there is none.

    - `traffic`: as `Traffic.undirected` returns it, without self messages.
    - `weight`, shape (pairs,): of every pair.
    """
    src, dst = traffic.src.astype(np.int64), traffic.dst.astype(np.int64)
    talks = weight > 0
    heaviest = np.unique(weight[talks])[::-1]
    if not len(heaviest):
        return None
    ratio = heaviest[:-1] / heaviest[1:]
    gaps = np.sort(np.argsort(-ratio, kind="stable")[:GAPS])
    for least in (heaviest[-1], *heaviest[gaps][::-1]):
        keep = talks & (weight >= least)
        found = grid_of(traffic.ranks, src[keep], dst[keep])
        if found is not None:
            return found
    return None

"""What mappers of Cartesian grids share: the grid of the traffic, and how ranks fill the nodes.

The thesis and its successors number the processes node by node ("block" allocation) and compute a
new coordinate for every number. Here the i-th number is the i-th slot in the order of the nodes,
and an algorithm is a function that gives the coordinates of all numbers; the rank at number i's
coordinates then is on the node of slot i. Any topology works; where it has more slots than
ranks, the last ones stay empty.

Source: Lehr, Efficient process mapping for Cartesian topologies, Diplomarbeit TU Wien 2019,
sections 3.1 and 5.1.

Traffic without metadata is recognised, in any numbering (see `structure`). Its stencil is the steps
between ranks that talk. Where the whole traffic has no structure, its heavier pairs alone are
tried, down to each of the widest gaps between two weights, or as many as cells have faces: so the
parts of a mesh of points are recognised that were made by halving a box.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from math import prod
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from hopmap.arrays import Bools, Ints
from hopmap.errors import HopmapWarning
from hopmap.topologies import Mapping, MappingError, Topology
from hopmap.traces import Traffic

from .cells import Cells, is_whole
from .structure import find_structure

Coordinates = Ints  # of shape (ranks, dimensions)
Vectors = Sequence[Sequence[int]]
Weights = Sequence[int] | None
# What a vector of the stencil counts: one message, or its bytes.
Weight: TypeAlias = Literal["messages", "bytes"]
GAPS = 6  # gaps between weights that are tried
FACES = (3.0, 2.9, 2.8, 2.7, 2.0, 1.95, 1.9)  # pairs a rank, in space and in the plane
MOST_STEPS, RARE = 64, 0.02  # of a stencil; part of the most frequent one that is none
KNOWN = {"dims", "stencil", "periodic"}  # metadata that say all of a grid


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


def crossing(stencil: Vectors, weights: Weights, dimensions: int) -> list[int]:
    """Sum over the vectors of weight times reach: what crosses a cut across each dimension."""
    each = weights or [1] * len(stencil)
    return [
        sum(abs(v[d]) * weight for v, weight in zip(stencil, each, strict=True))
        for d in range(dimensions)
    ]


def cartesian(traffic: Traffic, mapper: str, *, weighs: bool = True) -> Grid:
    """Grid of the traffic: from its metadata, else recognised.

    - `weighs`: whether it heeds the bytes to each neighbour; if not, a `HopmapWarning` says where
      they differ.
    """
    meta = traffic.metadata
    if not meta.keys() >= KNOWN:
        found, _ = find_structures(traffic)
        if found is None:
            raise MappingError(
                f"mapper {mapper}: the traffic is no Cartesian grid: expected metadata dims, "
                "stencil and periodic, as hopmap generate stencil writes them to .npz"
            )
        return found
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


def find_structures(
    traffic: Traffic, over: Callable[[], bool] = lambda: False
) -> tuple[Grid | None, Iterator[Cells]]:
    """Grid of the traffic, if it is one, and coordinates of ranks, from the first to others.

    - `over`: ends the search for a structure of the heavier pairs.
    """
    if traffic.metadata.keys() >= KNOWN:
        grid = find_grid(traffic)
        return grid, iter(() if grid is None else (Cells(grid.dims, grid.coords),))
    pairs = traffic.without_self().undirected()
    found = _structures(pairs, over)
    first = next(found, None)
    if first is None:
        return None, iter(())
    return _grid_of(first, pairs) if is_whole(first) else None, chain((first,), found)


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


def _structures(pairs: Traffic, over: Callable[[], bool]) -> Iterator[Cells]:
    """Coordinates by all pairs that talk, then by the heavier ones alone."""
    weights = [pairs.bytes]
    if not np.array_equal(pairs.bytes, pairs.messages):
        weights.append(pairs.messages)
    before = np.zeros_like(pairs.bytes, dtype=np.bool_)
    for weight in weights:
        talks = weight > 0
        heaviest = np.unique(weight[talks])[::-1]
        ratio = heaviest[:-1] / heaviest[1:]
        gaps = np.sort(np.argsort(-ratio, kind="stable")[:GAPS])
        first = None if np.array_equal(talks, before) else _heavier(pairs, talks)
        before = talks
        if first is not None:
            yield first
        if over():
            return
        nearest = _by_faces(pairs, weight, over)
        if nearest is not None:
            yield nearest
        for least in heaviest[gaps][::-1]:
            if over():
                return
            found = _heavier(pairs, talks & (weight >= least))
            if found is not None:
                yield found


def _heavier(pairs: Traffic, keep: Bools) -> Cells | None:
    src, dst = pairs.src[keep].astype(np.int64), pairs.dst[keep].astype(np.int64)
    return find_structure(pairs.ranks, src, dst)


def _by_faces(
    pairs: Traffic, weight: Ints, over: Callable[[], bool] = lambda: False
) -> Cells | None:
    """Coordinates by about as many pairs as cells have faces; those in which pairs are nearest."""
    heaviest, best, least = np.sort(weight)[::-1], None, np.inf
    count = [int(faces * pairs.ranks) for faces in FACES]
    every = {0, *heaviest[-1:].tolist()}
    weights = dict.fromkeys(int(heaviest[k]) for k in count if k < len(heaviest))
    for lightest in (each for each in weights if each not in every):
        if over():
            break
        found = _heavier(pairs, weight >= lightest)
        if found is not None:
            apart = np.abs(found.coords[pairs.src] - found.coords[pairs.dst]).sum(axis=1)
            length = float(apart @ weight)
            if length < least:
                best, least = found, length
    return best


def _grid_of(cells: Cells, pairs: Traffic) -> Grid | None:
    """Grid whose stencil is the usual steps between ranks that talk; None if there are many."""
    dims = np.array(cells.dims)
    apart = cells.coords[pairs.dst] - cells.coords[pairs.src]
    near = (apart + (dims - 1) // 2) % dims - (dims - 1) // 2
    wide = tuple((2 * dims + 1).tolist())  # rows as numbers, which are sorted sooner
    number = np.ravel_multi_index(tuple((np.concatenate((near, -near)) + dims).T), wide)
    found, which = np.unique(number, return_inverse=True)
    steps = np.stack(np.unravel_index(found, wide), axis=1) - dims
    count = np.bincount(which)
    usual = count >= RARE * count.max()
    if usual.sum() > MOST_STEPS:
        return None
    volume = np.bincount(which, weights=np.tile(np.maximum(pairs.bytes, 1), 2))
    sizes = np.maximum(np.rint(volume / count), 1).astype(np.int64)[usual].tolist()
    wraps = tuple((apart != near)[usual[which[: len(apart)]]].any(axis=0).tolist())
    cell = np.ravel_multi_index(tuple(cells.coords.T), cells.dims).astype(np.int64)
    return Grid(cells.dims, [tuple(v) for v in steps[usual].tolist()], sizes, wraps, cell)

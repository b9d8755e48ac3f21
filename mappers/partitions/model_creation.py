"""Model creation: a large graph cut into as many blocks as there are places, and their traffic.

Source: Schulz, Traeff and von Kirchbach, Better process mapping and sparse quadratic assignment,
sections 4 and 5.2. The input graph has many vertices for each rank (a mesh, a sparse matrix); the
blocks become ranks, and what is cut between two blocks is their traffic. Two ways of cutting:

- *recursive bisection*, RB: KaHIP at once into all blocks, which on its coarsest graph halves again
  and again, floor(k / 2) blocks to the left and the rest to the right, so that blocks of like
  numbers are near each other. Without knowledge of the machine: good for the identity mapping where
  all sizes of the hierarchy are powers of two. KaHIP is asked for blocks of up to (1 + epsilon)
  times the mean, rounded up, and its fast configuration goes beyond where blocks are small.
- *multisection* (RMS): along the hierarchy S, a_k parts first, each of these into a_(k-1), and so
  on. Consecutive blocks fill a subsystem, so that the identity mapping is good for any S. Without
  slack by `partition.py`, blocks of equal size to one vertex; with an epsilon KaHIP is asked for
  parts of up to (1 + epsilon) times the mean of each level.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hopmap.arrays import Ints
from hopmap.topologies import MappingError
from hopmap.traces import Traffic

from .partition import Preset, kaffpa, partition, split

if TYPE_CHECKING:
    from hopmap.mappers.basic_kernels import Graph

IMBALANCE = 0.03  # of bisection, as in KaHIP


class Model(NamedTuple):
    """A graph reduced to ranks."""

    block: Ints  # shape (vertices,): rank of each vertex
    # bytes between two ranks: the weight that is cut between their blocks, one message each, from
    # the lower to the higher
    traffic: Traffic


def multisection_model(
    graph: Traffic,
    sizes: Sequence[int],
    rng: np.random.Generator,
    *,
    preset: Preset = "fast",
    epsilon: float = 0.0,
) -> Model:
    """Cut a graph along a hierarchy.

    Parameters
    ----------
    graph : Traffic
        Its ranks are the vertices, its bytes the weights of the edges.
    sizes : sequence of int
        The hierarchy S, innermost first; as many ranks as their product.
    rng : Generator
        Gives KaHIP its seeds.
    preset : {"fast", "eco", "strong"}
        How hard KaHIP tries.
    epsilon : float
        How far above the mean a part may be, at every level; 0 is not at all.
    """
    from hopmap.mappers.basic_kernels import within

    ranks = prod(sizes)
    whole = _graph(graph, ranks)
    number = np.full(graph.ranks, -1, dtype=np.int64)
    share = np.full(ranks, graph.ranks // ranks, dtype=np.int64)
    share[: graph.ranks % ranks] += 1
    parts = [np.arange(graph.ranks)]
    for level in reversed(range(len(sizes))):
        # Vertices that the subsystems of this level are to get, each row those of one above.
        room = share.reshape(len(parts), sizes[level], -1).sum(axis=2)
        parts = [
            part[inside]
            for part, sums in zip(parts, room, strict=True)
            for inside in split(
                _cut(within(*whole, part, number), sums, rng, preset, epsilon), sizes[level]
            )
        ]
    block = np.empty(graph.ranks, dtype=np.int64)
    for rank, part in enumerate(parts):
        block[part] = rank
    return _model(whole, block, ranks)


def bisection_model(
    graph: Traffic,
    ranks: int,
    rng: np.random.Generator,
    *,
    preset: Preset = "fast",
    epsilon: float = IMBALANCE,
) -> Model:
    """Cut a graph into as many blocks as ranks, by halves.

    Parameters
    ----------
    graph, rng, preset
        As for `multisection_model`.
    ranks : int
        Blocks to make.
    epsilon : float
        How far above the mean KaHIP is told that a block may be.
    """
    whole = _graph(graph, ranks)
    block = kaffpa(whole, ranks, epsilon, rng, preset)
    return _model(whole, block, ranks)


def _cut(
    graph: Graph, room: Ints, rng: np.random.Generator, preset: Preset, epsilon: float
) -> Ints:
    """Part of each vertex; an empty graph or a single part needs no partitioner."""
    if epsilon == 0:
        return partition(graph, room, rng, preset=preset)
    vertices = len(graph.indptr) - 1
    if len(room) == 1 or vertices <= len(room):
        return np.arange(vertices) % len(room)
    return kaffpa(graph, len(room), epsilon, rng, preset)


def _graph(traffic: Traffic, ranks: int) -> Graph:
    from hopmap.mappers.basic_kernels import Graph

    if not 1 <= ranks <= traffic.ranks:
        raise MappingError(
            f"model of {ranks} ranks: a graph of {traffic.ranks} vertices: expected as many or more"
        )
    pairs = traffic.without_self().undirected()
    source = np.concatenate((pairs.src, pairs.dst)).astype(np.int64)
    peer = np.concatenate((pairs.dst, pairs.src)).astype(np.int64)
    order = np.argsort(source, kind="stable")
    indptr = np.searchsorted(source[order], np.arange(traffic.ranks + 1)).astype(np.int64)
    return Graph(indptr, peer[order], np.concatenate((pairs.bytes, pairs.bytes))[order])


def _model(graph: Graph, block: Ints, ranks: int) -> Model:
    from hopmap.mappers.basic_kernels import contract

    small = contract(*graph, block, ranks)
    src = np.repeat(np.arange(ranks), np.diff(small.indptr))
    once = src < small.peer
    ones = np.ones(int(once.sum()), dtype=np.int64)
    traffic = Traffic.from_pairs(ranks, src[once], small.peer[once], ones, small.weight[once])
    return Model(block, traffic)

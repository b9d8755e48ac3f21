"""Compiled pieces of graph partitioning: part of a graph, contraction, cut, exact block sizes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hopmap.arrays import Ints
from hopmap.compilation import njit
from hopmap.mappers.basic_kernels import contract, sort_by, within


class Graph(NamedTuple):
    """Undirected weighted graph, every edge listed at both ends."""

    # shape (vertices + 1,): neighbours of vertex v are ``peer[indptr[v]:indptr[v + 1]]``
    indptr: Ints
    # peer, weight: shape (2 * edges,): the neighbours and the weights of the edges; no loops
    peer: Ints
    weight: Ints


@njit
def induced(graph: Graph, members: Ints, number: Ints) -> Graph:
    """Graph of some vertices, numbered as they come; `number` is scratch, -1 everywhere."""
    return Graph(*within(graph.indptr, graph.peer, graph.weight, members, number))


@njit
def contracted(graph: Graph, block: Ints, blocks: int) -> Graph:
    """Graph of the blocks; the edges between two blocks become one with the sum of the weights."""
    return Graph(*contract(graph.indptr, graph.peer, graph.weight, block, blocks))


@njit
def cut_of(graph: Graph, block: Ints) -> int:
    """Weight of the edges between blocks, each once."""
    indptr, peer, weight = graph.indptr, graph.peer, graph.weight
    cut = 0
    for v in range(len(block)):
        for i in range(indptr[v], indptr[v + 1]):
            if peer[i] < v and block[peer[i]] != block[v]:
                cut += weight[i]
    return cut


@njit
def fit(graph: Graph, block: Ints, capacity: Ints) -> None:
    """Move vertices out of blocks that are too large, the cheapest first; O(edges) a pass.

    A pass values the best move of every vertex of these blocks and makes those that are still
    needed and possible; there is at least one, so that it ends.
    """
    indptr, peer, weight = graph.indptr, graph.peer, graph.weight
    size = np.zeros(len(capacity), dtype=np.int64)
    for b in block:
        size[b] += 1
    near = np.zeros(len(capacity), dtype=np.int64)
    targets = np.empty(len(block), dtype=np.int64)
    losses = np.empty(len(block), dtype=np.int64)
    movable = np.empty(len(block), dtype=np.int64)
    order, other = np.empty(len(block), dtype=np.int64), np.empty(len(block), dtype=np.int64)
    while True:
        # Vertices without a neighbour in a block with room go to the emptiest.
        spare, over = 0, False
        for b in range(len(size)):
            over = over or size[b] > capacity[b]
            if capacity[b] - size[b] > capacity[spare] - size[spare]:
                spare = b
        if not over:
            break
        count = 0
        for v in range(len(block)):
            own = block[v]
            if size[own] <= capacity[own]:
                continue
            for i in range(indptr[v], indptr[v + 1]):
                near[block[peer[i]]] += weight[i]
            target = spare
            for i in range(indptr[v], indptr[v + 1]):
                b = block[peer[i]]
                if size[b] < capacity[b] and near[b] > near[target]:
                    target = b
            movable[count] = v
            targets[count] = target
            losses[count] = near[own] - near[target]
            order[count] = count
            count += 1
            for i in range(indptr[v], indptr[v + 1]):
                near[block[peer[i]]] = 0
        sort_by(losses, order[:count], other)
        for k in order[:count]:
            v, target = movable[k], targets[k]
            own = block[v]
            if size[own] > capacity[own] and size[target] < capacity[target]:
                size[own] -= 1
                size[target] += 1
                block[v] = target

"""Graph partitioning into blocks of fixed sizes, by KaHIP; and models of large graphs by it.

Sources: Sanders and Schulz, Think locally, act globally: highly balanced graph partitioning (SEA
2013), through the `kahip` wheel: KaFFPa with imbalance 0 uses its perfectly balanced refinement.
What the module does, and what is done here:

- `kahip.kaffpa` knows one largest size for all blocks, ceil(vertices / blocks) with imbalance 0. So
  blocks come out exact where they are to be of one size. Where they are not, the largest blocks go
  to the largest sizes, and `partition_kernels.fit` moves the cheapest vertices until all fit.
- Perfect balance takes time that grows faster than vertices x blocks (eco: 8.4 s for 8,192 vertices
  in 128 blocks at once, 2.3 s in 8 x 16, for no larger a cut). So more than 16 blocks are made in
  groups, and beyond `EXACT` KaHIP gets an imbalance of 1 % and `fit` does the rest.
- With fewer vertices than there is room, only as many blocks as it takes are used, the largest
  first, and the rest stay empty.
- Its weights are C ints, and its queues hold a bucket for every gain that is possible: weights of
  10^8 cost it seconds and memory where 10^4 cost milliseconds. So they are scaled down until the
  edges of a vertex weigh some 2^16 at most, rounded up. Edges of weight 0 are left out.
- It is deterministic for a seed, single-threaded, prints nothing (`suppress_output`), and cannot be
  interrupted. It takes lists of Python integers, so that memory peaks while it is called.

Model creation: a large graph cut into as many blocks as there are places, and their traffic.
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
  slack blocks are of equal size to one vertex; with an epsilon KaHIP is asked for parts of up to
  (1 + epsilon) times the mean of each level.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, log, prod
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np

from hopmap.arrays import Ints
from hopmap.errors import needs
from hopmap.topologies import MappingError
from hopmap.traces import Traffic

if TYPE_CHECKING:
    from hopmap.mappers.basic_kernels import Graph

Preset: TypeAlias = Literal["fast", "eco", "strong"]

WIDEST = 16  # blocks that are made at once
EXACT = 2**18  # vertices x blocks up to which KaHIP balances perfectly
LOOSE = 0.01  # imbalance beyond
IMBALANCE = 0.03  # of bisection, as in KaHIP
HEAVY = 2**16  # largest weight of all edges of a vertex that KaHIP gets

_MODES = {"fast": 0, "eco": 1, "strong": 2}


class Model(NamedTuple):
    """A graph reduced to ranks."""

    block: Ints  # shape (vertices,): rank of each vertex
    # bytes between two ranks: the weight that is cut between their blocks, one message each, from
    # the lower to the higher
    traffic: Traffic


def partition(
    graph: Graph,
    capacity: Ints,
    rng: np.random.Generator,
    *,
    preset: Preset = "eco",
    tries: int = 1,
    in_order: bool = False,
) -> Ints:
    """Block of each vertex, with few edges between blocks and no block above its capacity.

    - `capacity`, shape (blocks,): most vertices of each block, enough for all.
    - `rng`: gives KaHIP its seeds.
    - `preset`: KaHIP's configurations.
    - `tries`: partitions to make, of which the one with the least cut is kept.
    - `in_order`: try consecutive vertices as well, and keep them where their cut is no larger.
    """
    from hopmap.mappers.basic_kernels import subgraph

    vertices = len(graph.indptr) - 1
    largest = np.argsort(-capacity, kind="stable")
    enough = int(np.searchsorted(np.cumsum(capacity[largest]), vertices)) + 1
    used = np.sort(largest[:enough])
    room = capacity[used]
    if vertices == 0 or enough == 1:
        return np.full(vertices, used[0])
    if room.max() == 1:
        return used[:vertices].copy()
    groups = _groups(enough)
    if groups == 1:
        return used[_best(graph, room, rng, preset, tries, in_order)]
    # Many blocks: some groups of them first.
    members = np.array_split(np.arange(enough), groups)
    totals = np.array([room[blocks].sum() for blocks in members])
    group = partition(graph, totals, rng, preset=preset, tries=tries, in_order=in_order)
    block = np.empty(vertices, dtype=np.int64)
    number = np.full(vertices, -1, dtype=np.int64)
    for blocks, part in zip(members, split(group, groups), strict=True):
        inside = subgraph(graph, part, number)
        block[part] = blocks[
            partition(inside, room[blocks], rng, preset=preset, tries=tries, in_order=in_order)
        ]
    return used[block]


def split(block: Ints, blocks: int) -> list[Ints]:
    """Vertices of every block, in ascending order."""
    order = np.argsort(block, kind="stable")
    return np.split(order, np.searchsorted(block[order], np.arange(1, blocks)))


def _groups(blocks: int) -> int:
    """Return how many groups so many blocks are made in; 1 where they are made at once."""
    if blocks <= WIDEST:
        return 1
    wanted = blocks ** (1 / ceil(log(blocks, WIDEST)))
    even = [groups for groups in range(4, WIDEST + 1) if blocks % groups == 0]
    if even:
        return min(even, key=lambda groups: abs(groups - wanted))
    return 1 if blocks <= WIDEST**2 // 4 else round(wanted)


def _best(
    graph: Graph, room: Ints, rng: np.random.Generator, preset: Preset, tries: int, in_order: bool
) -> Ints:
    """Partition with the least cut of all that are tried."""
    from .partition_kernels import cut_of, fit

    vertices, blocks = len(graph.indptr) - 1, len(room)
    imbalance = 0.0 if vertices * blocks <= EXACT else LOOSE
    if room.sum() > vertices:
        imbalance = max(imbalance, room.max() / -(-vertices // blocks) - 1.0)
    best = np.repeat(np.arange(blocks), room)[:vertices]
    least = cut_of(graph, best) if in_order else -1
    for _ in range(tries):
        block = kaffpa(graph, blocks, imbalance, rng, preset)
        size = np.bincount(block, minlength=blocks)
        if (size > room).any():
            fitting = np.empty(blocks, dtype=np.int64)
            fitting[np.argsort(-size, kind="stable")] = np.argsort(-room, kind="stable")
            block = fitting[block]
            fit(graph, block, room)
        cut = cut_of(graph, block)
        if least < 0 or cut < least:
            best, least = block, cut
    return best


def kaffpa(
    graph: Graph, blocks: int, imbalance: float, rng: np.random.Generator, preset: Preset
) -> Ints:
    """Call KaHIP: blocks of up to (1 + imbalance) ceil(vertices / blocks), for what it is worth."""
    with needs("partition", "partitioning a graph"):
        import kahip

    keep = graph.weight > 0
    indptr, peer, weight = graph.indptr, graph.peer, graph.weight
    if not keep.all():
        indptr = np.concatenate(([0], np.cumsum(keep)))[indptr]
        peer, weight = peer[keep], weight[keep]
    sums = np.concatenate(([0], np.cumsum(weight)))[indptr]
    heaviest = max(int(np.diff(sums).max()) / HEAVY, int(sums[-1]) / 2**30)
    if heaviest > 1:
        weight = np.ceil(weight / heaviest).astype(np.int64)
    _, block = kahip.kaffpa(
        [1] * (len(indptr) - 1),
        indptr.tolist(),
        weight.tolist(),
        peer.tolist(),
        blocks,
        imbalance,
        True,
        int(rng.integers(2**31 - 1)),
        _MODES[preset],
    )
    return np.array(block, dtype=np.int64)


def multisection_model(
    graph: Traffic,
    sizes: Sequence[int],
    rng: np.random.Generator,
    *,
    preset: Preset = "fast",
    epsilon: float = 0.0,
) -> Model:
    """Cut a graph along a hierarchy.

    - `graph`: its ranks are the vertices, its bytes the weights of the edges.
    - `sizes`: the hierarchy S, innermost first; as many ranks as their product.
    - `rng`: gives KaHIP its seeds.
    - `preset`: how hard KaHIP tries.
    - `epsilon`: how far above the mean a part may be, at every level; 0 is not at all.
    """
    from hopmap.mappers.basic_kernels import subgraph

    ranks = prod(sizes)
    whole = _graph(graph, ranks)
    number = np.full(graph.ranks, -1, dtype=np.int64)
    share = np.full(ranks, graph.ranks // ranks, dtype=np.int64)
    share[: graph.ranks % ranks] += 1
    parts = [np.arange(graph.ranks)]
    for level in reversed(range(len(sizes))):
        # Vertices that the subsystems of this level are to get, a row for each parent.
        room = share.reshape(len(parts), sizes[level], -1).sum(axis=2)
        parts = [
            part[inside]
            for part, sums in zip(parts, room, strict=True)
            for inside in split(
                _cut(subgraph(whole, part, number), sums, rng, preset, epsilon), sizes[level]
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

    - `graph`, `rng`, `preset`: as for `multisection_model`.
    - `epsilon`: largest size of a block above the mean that KaHIP may use.
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

    small = contract(graph, block, ranks)
    src = np.repeat(np.arange(ranks), np.diff(small.indptr))
    once = src < small.peer
    ones = np.ones(int(once.sum()), dtype=np.int64)
    traffic = Traffic.from_pairs(ranks, src[once], small.peer[once], ones, small.weight[once])
    return Model(block, traffic)

"""Partial cubes: networks whose hops are the Hamming distances of labels of their nodes.

Source: Glantz, Predari and Meyerhenke, Topology-induced enhancement of mappings (TiMEr, ICPP 2018),
sections 2 and 3. All meshes, tori of even sizes, hypercubes and trees are partial cubes.

A graph is one if and only if it is bipartite and the classes of the Djokovic relation partition
its edges: two edges are related where the ends of one are on different sides of the other, that is
nearer to one of its ends than to the other. A class is the cut of one digit. `recognise` takes
the paper's steps: a cut for every edge that is in none yet, and refusal where two overlap. These
look at one edge of each class, which does not show that the relation is transitive; so the labels
are compared with the hops of all pairs of vertices in the end.

Vertices are nodes and switches. Nodes have labels, without digits that are the same
on all. Two kinds of networks are labelled without a search: boxes, where a mesh of size d has d - 1
cuts and an even ring d / 2, and trees, with a cut for every link. A fat tree takes the labels of
the tree that it thickens: the hops are the same, though switches that share two neighbours above
and two below (K_2,3 and more) are no partial cube.

In compiled code a graph is stored by rows: the neighbours of vertex v are
``ends[starts[v]:starts[v + 1]]``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from hopmap.arrays import Bools, Ints, Words
from hopmap.compilation import njit, subroutine
from hopmap.topologies.box_kernels import GRID, BoxRouter
from hopmap.topologies.topology import Topology, TopologyError
from hopmap.topologies.tree_kernels import TreeRouter

LARGEST = 2**28  # digits of all labels together, 32 MiB


@dataclass(frozen=True, eq=False)
class PartialCube:
    """Labels of the nodes of a topology."""

    # shape (nodes, words): digit j is bit j % 64 of word j // 64; node 0 has zeros only
    labels: Words
    dimension: int  # digits
    price: Ints  # shape (dimension,): cost to cross the cut of each digit, in units of 1 / scale
    scale: int = 1  # 2 in hierarchies with distances of their own, whose links may cost halves

    def hops(self, source: ArrayLike, target: ArrayLike) -> Ints:
        """Hamming distance of each pair of nodes, shape (pairs,)."""
        u, v = np.broadcast_arrays(
            np.atleast_1d(np.asarray(source, dtype=np.int64)),
            np.atleast_1d(np.asarray(target, dtype=np.int64)),
        )
        return hammings(self.labels, np.ascontiguousarray(u), np.ascontiguousarray(v))


def partial_cube(topology: Topology) -> PartialCube:
    """Label the nodes of a topology.

    Raises `TopologyError` if it is no partial cube, or if labels take more than `LARGEST` digits.
    """
    from hopmap.topologies.switch_kernels import SUBTREE, FatTreeRouter

    router = topology.router
    if isinstance(router, BoxRouter) and router.family == GRID:
        if not (router.dims[router.wraps] % 2).any():
            return _box(topology, router)
    elif isinstance(router, FatTreeRouter):
        return _tree(topology, router.levels[:, SUBTREE])
    elif isinstance(router, TreeRouter):
        return _tree(topology, router.spans, router.costs)
    return recognise(topology)


def recognise(topology: Topology) -> PartialCube:
    """Label any network by the classes of the Djokovic relation; see `partial_cube`.

    O(vertices * (edges + vertices)).
    """
    starts, ends = _neighbours(topology)
    u, v = odd_edge(starts, ends)
    if u >= 0:
        raise _refusal(
            topology,
            f"it has an odd cycle through the link {topology.vertex_name(u)} - "
            f"{topology.vertex_name(v)}",
        )
    source = np.repeat(np.arange(topology.vertices), np.diff(starts))
    class_of = np.full(len(ends), -1, dtype=np.int64)
    side = np.empty(topology.vertices, dtype=np.bool_)
    words: list[Words] = []
    dimension = 0
    for edge in range(len(ends)):
        if class_of[edge] >= 0:
            continue
        x, y = int(source[edge]), int(ends[edge])
        other = cut_of(starts, ends, x, y, class_of, dimension, side)
        if other >= 0:
            a, b = topology.vertex_name(source[other]), topology.vertex_name(ends[other])
            raise _refusal(topology, f"the link {a} - {b} is in two classes of links")
        if dimension % 64 == 0:
            _check_size(topology, dimension + 64)
            words.append(np.zeros(topology.vertices, dtype=np.uint64))
        words[-1] |= (side ^ side[0]).astype(np.uint64) << np.uint64(dimension % 64)
        dimension += 1
    words = words or [np.zeros(topology.vertices, dtype=np.uint64)]
    labels = np.ascontiguousarray(np.stack(words, axis=1))
    u, v, hops = find_wrong_distance(starts, ends, labels)
    if u >= 0:
        a, b = topology.vertex_name(u), topology.vertex_name(v)
        raise _refusal(topology, f"{a} and {b} are {hops} hops apart, and their labels are not")
    cube = _without_constants(topology, labels[: topology.nodes], dimension)
    every = np.arange(topology.nodes)
    for node in range(topology.nodes):
        # Routes may be longer than the graph's shortest paths, as in a HAEC Box.
        off = np.flatnonzero(topology.hops(node, every) != cube.hops(node, every))
        if len(off):
            raise _refusal(topology, f"routes from {node} to {off[0]} are not the shortest")
    return cube


def _neighbours(topology: Topology) -> tuple[Ints, Ints]:
    """Neighbours of each vertex, once where links are parallel."""
    joined = topology.link_from.astype(np.int64) * topology.vertices + topology.link_to
    joined = np.unique(joined)
    starts = np.searchsorted(joined, np.arange(topology.vertices + 1) * topology.vertices)
    return starts.astype(np.int64), joined % topology.vertices


def _without_constants(topology: Topology, labels: Words, dimension: int) -> PartialCube:
    """Leave out the digits that are the same on all nodes."""
    differs = np.bitwise_or.reduce(labels ^ labels[0], axis=0)

    def digit(words: Words, j: int) -> Bools:
        return (words[..., j // 64] >> np.uint64(j % 64) & np.uint64(1)).astype(np.bool_)

    kept = [j for j in range(dimension) if digit(differs, j)]
    return _pack(topology, len(kept), lambda j: digit(labels, kept[j]))


def _box(topology: Topology, router: BoxRouter) -> PartialCube:
    cuts = [
        (k, at)
        for k, size in enumerate(router.dims.tolist())
        for at in range(size // 2 if router.wraps[k] else size - 1)
    ]

    def above(j: int) -> Bools:
        k, at = cuts[j]
        x, size = router.coords[:, k], int(router.dims[k])
        if router.wraps[k]:
            return np.asarray((x - at - 1) % size < size // 2)
        return np.asarray(x > at)

    return _pack(topology, len(cuts), above)


def _tree(topology: Topology, spans: Ints, costs: Ints | None = None) -> PartialCube:
    """Label by the subtrees that a node is in; `costs` are the distances of a hierarchy."""
    below = [
        (level, subtree)
        for level, span in enumerate(spans[:-1].tolist())
        for subtree in range(topology.nodes // span)
        if span < topology.nodes
    ]
    node = np.arange(topology.nodes)
    cube = _pack(topology, len(below), lambda j: node // spans[below[j][0]] == below[j][1])
    if costs is None:
        return cube
    price = np.diff(costs)[[level for level, _ in below]].astype(np.int64)
    return PartialCube(cube.labels, cube.dimension, price, scale=2)


def _pack(topology: Topology, dimension: int, column: Callable[[int], Bools]) -> PartialCube:
    """Labels of digits of price 1, one column after another; turned so that node 0 has zeros."""
    _check_size(topology, dimension)
    words = np.zeros((max(1, -(-dimension // 64)), topology.nodes), dtype=np.uint64)
    for j in range(dimension):
        side = column(j)
        words[j // 64] |= (side ^ side[0]).astype(np.uint64) << np.uint64(j % 64)
    price = np.ones(dimension, dtype=np.int64)
    return PartialCube(np.ascontiguousarray(words.T), dimension, price)


def _check_size(topology: Topology, dimension: int) -> None:
    if topology.vertices * dimension > LARGEST:
        raise TopologyError(
            f"{topology.spec}: labels of {topology.nodes} nodes take {dimension} digits or more: "
            f"expected at most {LARGEST} digits in all"
        )


def _refusal(topology: Topology, reason: str) -> TopologyError:
    return TopologyError(
        f"{topology.spec} is no partial cube, {reason}: expected a mesh, a torus of even sizes, a "
        "hypercube, a tree, a fat tree, or another network whose hops are Hamming distances"
    )


@subroutine
def bits_set(word: np.uint64) -> int:
    """Count the ones of a machine word (Warren, Hacker's Delight, section 5-1)."""
    x = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return int((x * np.uint64(0x0101010101010101)) >> np.uint64(56))


@subroutine
def hamming(labels: Words, u: int, v: int) -> int:
    """Digits in which two labels differ."""
    count = 0
    for word in range(labels.shape[1]):
        count += bits_set(labels[u, word] ^ labels[v, word])
    return count


@njit
def hammings(labels: Words, u: Ints, v: Ints) -> Ints:
    """`hamming` of each pair."""
    counts = np.empty(len(u), dtype=np.int64)
    for i in range(len(u)):
        counts[i] = hamming(labels, u[i], v[i])
    return counts


@subroutine
def hops_from(starts: Ints, ends: Ints, source: int, hops: Ints, queue: Ints) -> None:
    """Fill ``hops[vertex]``, all of which can be reached; `queue` is scratch of the same size."""
    hops[:] = -1
    hops[source] = 0
    queue[0] = source
    head, tail = 0, 1
    while head < tail:
        here = queue[head]
        head += 1
        for i in range(starts[here], starts[here + 1]):
            if hops[ends[i]] < 0:
                hops[ends[i]] = hops[here] + 1
                queue[tail] = ends[i]
                tail += 1


@njit
def odd_edge(starts: Ints, ends: Ints) -> tuple[int, int]:
    """Return the ends of an edge equally far from vertex 0; (-1, -1) in a bipartite graph."""
    vertices = len(starts) - 1
    hops, queue = np.empty(vertices, dtype=np.int64), np.empty(vertices, dtype=np.int64)
    hops_from(starts, ends, 0, hops, queue)
    for u in range(vertices):
        for i in range(starts[u], starts[u + 1]):
            if hops[u] == hops[ends[i]]:
                return u, ends[i]
    return -1, -1


@njit
def cut_of(
    starts: Ints, ends: Ints, x: int, y: int, class_of: Ints, number: int, side: Bools
) -> int:
    """Enter the edges that are Djokovic related to {x, y}, and the sides of the vertices.

    `class_of`, shape (2 * edges,), is the class of each entry of `ends`, -1 for none; entries of
    this class are set to `number`. `side` says whether a vertex is nearer to y (W_yx) than to x
    (W_xy). Returned is an entry that is of another class already; -1 if there is none.
    """
    vertices = len(starts) - 1
    from_x, from_y = np.empty(vertices, dtype=np.int64), np.empty(vertices, dtype=np.int64)
    queue = np.empty(vertices, dtype=np.int64)
    hops_from(starts, ends, x, from_x, queue)
    hops_from(starts, ends, y, from_y, queue)
    for v in range(vertices):
        side[v] = from_y[v] < from_x[v]
    for u in range(vertices):
        for i in range(starts[u], starts[u + 1]):
            if side[u] != side[ends[i]]:
                if class_of[i] >= 0:
                    return i
                class_of[i] = number
    return -1


@njit
def find_wrong_distance(starts: Ints, ends: Ints, labels: Words) -> tuple[int, int, int]:
    """First two vertices whose hops are not the Hamming distance, and their hops; else -1, -1, 0.

    O(vertices * (edges + vertices * words)).
    """
    vertices = len(starts) - 1
    hops, queue = np.empty(vertices, dtype=np.int64), np.empty(vertices, dtype=np.int64)
    for u in range(vertices):
        hops_from(starts, ends, u, hops, queue)
        for v in range(u):
            if hops[v] != hamming(labels, u, v):
                return v, u, hops[v]
    return -1, -1, 0

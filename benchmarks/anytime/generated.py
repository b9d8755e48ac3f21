"""Traffic of kinds that no mapper was tuned on: made here, for any number of ranks, and shuffled.

Meshes of points are cut into as many blocks as there are ranks, by medians of the coordinates in
turn; a pair of blocks weighs what is cut between them. Nothing but numpy and SciPy is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log2

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import Delaunay, cKDTree

from hopmap.traces import Traffic

Pairs = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


def sides(ranks: int, dimensions: int) -> tuple[int, ...]:
    """Powers of two as equal as can be, the smaller first."""
    power = round(log2(ranks))
    return tuple(2 ** ((power + k) // dimensions) for k in range(dimensions))


def grid(ranks: int, dimensions: int) -> Pairs:
    """Neighbours of a grid, weight 1."""
    number = np.arange(ranks).reshape(sides(ranks, dimensions))
    src = [np.delete(number, -1, axis).ravel() for axis in range(dimensions)]
    dst = [np.delete(number, 0, axis).ravel() for axis in range(dimensions)]
    return np.concatenate(src), np.concatenate(dst), np.ones(sum(map(len, src)), dtype=np.int64)


def stencil27(ranks: int) -> Pairs:
    """Faces, edges and corners of a grid of cubes of 8^3 cells: 64, 8 and 1."""
    number = np.arange(ranks).reshape(sides(ranks, 3))
    found = []
    for step in np.ndindex(3, 3, 3):
        move = np.array(step) - 1
        if tuple(move) <= (0, 0, 0):
            continue
        src, dst = (_shifted(number, sign * move).ravel() for sign in (-1, 1))
        found.append((src, dst, np.full(len(src), (64, 8, 1)[np.abs(move).sum() - 1])))
    src, dst, weight = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return src, dst, weight


def _shifted(number: NDArray[np.int64], move: NDArray[np.int64]) -> NDArray[np.int64]:
    """Cells that are there after a move within the grid."""
    ends = [(max(m, 0), n + min(m, 0)) for m, n in zip(move, number.shape, strict=True)]
    return number[tuple(slice(*end) for end in ends)]


def blocks(points: NDArray[np.float64], ranks: int) -> NDArray[np.int64]:
    """Block of every point: halves at the median of one coordinate after another."""
    block = np.zeros(len(points), dtype=np.int64)
    for depth in range(round(log2(ranks))):
        order = np.lexsort((points[:, depth % points.shape[1]], block))
        place = np.empty(len(points), dtype=np.int64)
        place[order] = np.arange(len(points))
        block = place * 2 ** (depth + 1) // len(points)
    return block


def cut(points: NDArray[np.float64], edges: NDArray[np.int64], ranks: int) -> Pairs:
    """Traffic of the blocks of a mesh, a byte for every edge that is cut."""
    block = blocks(points, ranks)
    return block[edges[:, 0]], block[edges[:, 1]], np.ones(len(edges), dtype=np.int64)


def delaunay(ranks: int, rng: np.random.Generator) -> Pairs:
    """Delaunay triangulation in three dimensions, 48 points a rank, 8 beyond 4,096."""
    points = rng.random((ranks * (48 if ranks <= 4096 else 8), 3))
    return cut(points, _edges(Delaunay(points).simplices), ranks)


def geometric(ranks: int, rng: np.random.Generator) -> Pairs:
    """Points in the plane within a radius of each other, 32 a rank, about 8 neighbours each."""
    points = rng.random((ranks * 32, 2))
    near = cKDTree(points).query_pairs((8 / (np.pi * len(points))) ** 0.5, output_type="ndarray")
    return cut(points, near, ranks)


def neighbours(ranks: int, rng: np.random.Generator) -> Pairs:
    """Eight nearest neighbours of points in space, a point a rank, weights 1 to 9."""
    points = rng.random((ranks, 3))
    near = cKDTree(points).query(points, 9)[1][:, 1:]
    order = np.argsort(blocks(points, ranks))  # a numbering that keeps what is near
    rank = np.empty(ranks, dtype=np.int64)
    rank[order] = np.arange(ranks)
    return np.repeat(rank, 8), rank[near.ravel()], rng.integers(1, 10, 8 * ranks)


def attachment(ranks: int, rng: np.random.Generator) -> Pairs:
    """Barabasi and Albert's: every new rank talks to four, preferably to those with many peers."""
    ends = list(range(4))
    src, dst = [], []
    for new in range(4, ranks):
        for old in {ends[i] for i in rng.integers(0, len(ends), 4)}:
            src.append(new)
            dst.append(old)
            ends += [new, old]
    return np.array(src), np.array(dst), np.ones(len(src), dtype=np.int64)


def rmat(ranks: int, rng: np.random.Generator) -> Pairs:
    """Recursive matrix (0.57, 0.19, 0.19, 0.05), eight pairs a rank."""
    corner = rng.choice(4, (8 * ranks, round(log2(ranks))), p=(0.57, 0.19, 0.19, 0.05))
    powers = 2 ** np.arange(corner.shape[1])
    return (corner // 2) @ powers, (corner % 2) @ powers, np.ones(len(corner), dtype=np.int64)


def bipartite(ranks: int, rng: np.random.Generator) -> Pairs:
    """Clients and as many servers, both with a few that talk to most; weights of a heavy tail."""
    half = ranks // 2
    ends = (rng.choice(half, 8 * ranks, p=_zipf(half)) for _ in range(2))
    client, server = (rng.permutation(half)[end] for end in ends)
    return client, half + server, _lognormal(len(client), rng)


def delaunay2d(ranks: int, rng: np.random.Generator) -> Pairs:
    """Delaunay triangulation of a point a rank in the plane, weight 1."""
    edges = _edges(Delaunay(rng.random((ranks, 2))).simplices)
    return edges[:, 0], edges[:, 1], np.ones(len(edges), dtype=np.int64)


def refined(ranks: int, rng: np.random.Generator) -> Pairs:
    """Tetrahedra around a body, smaller near its surface, 16 points a rank."""
    away = rng.normal(size=(16 * ranks, 3))
    away /= np.linalg.norm(away, axis=1)[:, None]
    points = away * (1 + rng.exponential(0.3, (len(away), 1)))
    return cut(points, _edges(Delaunay(points).simplices), ranks)


def small_world(ranks: int, rng: np.random.Generator) -> Pairs:
    """Watts and Strogatz's: a ring of six neighbours each, a tenth of the pairs to anywhere."""
    src = np.tile(np.arange(ranks), 3)
    dst = (src + np.repeat((1, 2, 3), ranks)) % ranks
    dst = np.where(rng.random(len(dst)) < 0.1, rng.integers(0, ranks, len(dst)), dst)
    return src, dst, np.ones(len(src), dtype=np.int64)


def communities(ranks: int, rng: np.random.Generator) -> Pairs:
    """Groups of very different sizes; three quarters of a rank's twelve pairs stay within."""
    group = np.sort(rng.choice(ranks // 8, ranks, p=_zipf(ranks // 8)))
    first = np.searchsorted(group, group)
    size = np.bincount(group, minlength=ranks // 8)[group]
    src = np.repeat(np.arange(ranks), 6)
    near = first[src] + rng.integers(0, size[src])
    within = rng.random(len(src)) < 0.75
    return src, np.where(within, near, rng.integers(0, ranks, len(src))), _lognormal(len(src), rng)


def _edges(simplices: NDArray[np.int32]) -> NDArray[np.int64]:
    """Pairs of points of triangles or tetrahedra, each once."""
    corners = range(simplices.shape[1])
    edges = [simplices[:, [i, j]] for i in corners for j in range(i)]
    return np.unique(np.sort(np.concatenate(edges), axis=1), axis=0)


def _lognormal(pairs: int, rng: np.random.Generator) -> NDArray[np.int64]:
    return np.ceil(rng.lognormal(5.0, 1.5, pairs)).astype(np.int64)


def _zipf(count: int) -> NDArray[np.float64]:
    weight = 1 / np.arange(1, count + 1)
    return weight / weight.sum()


KINDS: dict[str, Callable[[int, np.random.Generator], Pairs]] = {
    "lu": lambda ranks, _: grid(ranks, 2),
    "grid3d": lambda ranks, _: grid(ranks, 3),
    "stencil27": lambda ranks, _: stencil27(ranks),
    "delaunay3d": delaunay,
    "rgg2d": geometric,
    "knn3d": neighbours,
    "ba": attachment,
    "rmat": rmat,
}
LATER: dict[str, Callable[[int, np.random.Generator], Pairs]] = {
    "bipartite": bipartite,
    "delaunay2d": delaunay2d,
    "refined3d": refined,
    "small_world": small_world,
    "communities": communities,
}


def traffic_of(kind: str, ranks: int, *, shuffle: bool = True, seed: int = 7) -> Traffic:
    """Traffic of a kind; its ranks are renumbered at random unless `shuffle` is False."""
    rng = np.random.default_rng(seed)
    src, dst, weight = (KINDS | LATER)[kind](ranks, rng)
    new = rng.permutation(ranks) if shuffle else np.arange(ranks)
    apart = src != dst
    src, dst, weight = new[src[apart]], new[dst[apart]], weight[apart]
    return Traffic.from_pairs(ranks, src, dst, np.ones(len(src), dtype=np.int64), weight)


def networks_of(ranks: int) -> dict[str, str]:
    """Hierarchy, torus and mesh of so many nodes."""
    box = "x".join(map(str, sides(ranks, 3)))
    levels = f"4:16:{ranks // 64}@1:10:100"
    if ranks > 4096:
        levels = f"4:16:16:{ranks // 1024}@1:10:100:1000"
    return {"tree": f"tree:{levels}", "torus": f"torus:{box}", "mesh": f"mesh:{box}"}

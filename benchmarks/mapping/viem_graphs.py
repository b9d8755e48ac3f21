"""Input graphs of the VieM paper's kinds, and the models that its section 5.1 makes of them.

Random geometric and Delaunay graphs as in section 5 (rggX, delX); tetrahedra and grids stand for
its meshes and matrices, which are not generated. Edges of the input weigh 1. A model is the traffic
between n blocks that KaHIP's fast configuration cuts the input into.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import Delaunay, cKDTree

from hopmap.mappers.partitions.partition import bisection_model
from hopmap.traces import Traffic


def rgg(vertices: int) -> Traffic:
    """Random points of the unit square, joined where nearer than 0.55 sqrt(ln n / n)."""
    points = np.random.default_rng(0).random((vertices, 2))
    near = 0.55 * np.sqrt(np.log(vertices) / vertices)
    return _graph(vertices, cKDTree(points).query_pairs(near, output_type="ndarray"))


def delaunay(vertices: int, dimensions: int) -> Traffic:
    """Delaunay triangulation of random points of the unit square or cube."""
    points = np.random.default_rng(0).random((vertices, dimensions))
    corners = Delaunay(points).simplices
    edges = np.concatenate([corners[:, pair] for pair in combinations(range(dimensions + 1), 2)])
    return _graph(vertices, np.unique(np.sort(edges, axis=1), axis=0))


def grid(side: int, dimensions: int) -> Traffic:
    """Neighbours along the axes of a square or cube of vertices."""
    number = np.arange(side**dimensions).reshape([side] * dimensions)
    lines = [np.moveaxis(number, axis, 0) for axis in range(dimensions)]
    edges = [np.column_stack((line[:-1].ravel(), line[1:].ravel())) for line in lines]
    return _graph(number.size, np.concatenate(edges))


def inputs(exponent: int = 17) -> dict[str, Traffic]:
    """About 2^exponent vertices each."""
    vertices = 2**exponent
    return {
        "rgg": rgg(vertices),
        "delaunay 2-D": delaunay(vertices, 2),
        "delaunay 3-D": delaunay(vertices, 3),
        "grid 2-D": grid(round(vertices ** (1 / 2)), 2),
        "grid 3-D": grid(round(vertices ** (1 / 3)), 3),
    }


def modelled(graph: Traffic, ranks: int, seed: int) -> Traffic:
    """Traffic of so many blocks; another seed is another partition."""
    return bisection_model(graph, ranks, np.random.default_rng(seed), preset="fast").traffic


def _graph(vertices: int, edges: NDArray[np.integer]) -> Traffic:
    ones = np.ones(len(edges), dtype=np.int64)
    return Traffic.from_pairs(vertices, edges[:, 0], edges[:, 1], ones, ones)

"""Recognise traffic that is a grid: ranks in a box that talk to their neighbours, in any numbering.

In a product of paths a corner has one peer per dimension. From there, breadth first, a rank with
one peer nearer to the corner goes on along its line, and one with several is their least upper
bound, coordinate by coordinate. What comes out is then checked pair by pair, so that nothing but a
grid passes. Diagonal pairs of a stencil weigh less than straight ones: where the whole traffic is
no grid, its heavier pairs alone are tried, down to each of the widest gaps between two weights.
O(pairs) a trial.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.traces import Traffic

GAPS = 6  # gaps between weights that are tried


class GridTraffic(NamedTuple):
    """Where every rank is in the grid.

    Attributes
    ----------
    dims : tuple of int
        Ranks in each dimension, longest first.
    coords : ndarray(int64, shape=(ranks, dimensions))
    """

    dims: tuple[int, ...]
    coords: NDArray[np.int64]


def grid_of(ranks: int, src: NDArray[np.int64], dst: NDArray[np.int64]) -> GridTraffic | None:
    """Coordinates of ranks whose undirected pairs, each given once, are a grid of >= 2 dimensions.

    Returns
    -------
    GridTraffic or None
        None where they are not.
    """
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


def recognised(traffic: Traffic, weight: NDArray[np.int64]) -> GridTraffic | None:
    """Grid that undirected traffic, or that of its heavier pairs, is; None if there is none.

    Parameters
    ----------
    traffic : Traffic
        As `Traffic.undirected` returns it, without self messages.
    weight : ndarray(int64, shape=(pairs,))
        Of every pair.
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

"""Undirected pairs of ranks as adjacency lists, and cells of a box for ranks."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

import numpy as np

from hopmap.arrays import Bools, Ints
from hopmap.mappers.cost_model import CostModel

FEW = 0.2  # rings that a shortcut is in, over the median
SQUARES, MANY = 20_000_000, 0.2  # steps of a search for shortcuts; part of all pairs


class Pairs(NamedTuple):
    """Undirected pairs as adjacency lists."""

    indptr: Ints  # shape (ranks + 1,)
    # peer, edge: shape (2 * pairs,): neighbours, and the pair of each entry
    peer: Ints
    edge: Ints
    # src, dst: shape (pairs,)
    src: Ints
    dst: Ints


class Cells(NamedTuple):
    """Where every rank is in a box."""

    dims: tuple[int, ...]
    coords: Ints  # shape (ranks, dimensions)


def is_whole(cells: Cells) -> bool:
    """Whether ranks fill the box."""
    return prod(cells.dims) == len(cells.coords)


def prime_factors(number: int) -> list[int]:
    """Prime factors, the largest first."""
    found, factor = [], 2
    while factor * factor <= number:
        if number % factor:
            factor += 1
        else:
            found.append(factor)
            number //= factor
    return [number] * (number > 1) + found[::-1]


def as_lists(ranks: int, src: Ints, dst: Ints) -> Pairs:
    """Make adjacency lists of undirected pairs, each of which is there once, without loops."""
    ends, others = np.concatenate((src, dst)), np.concatenate((dst, src))
    order = np.argsort(ends * ranks + others)  # of pairs, which differ
    indptr = np.concatenate(([0], np.cumsum(np.bincount(ends, minlength=ranks))))
    edge = np.tile(np.arange(len(src)), 2)[order]
    return Pairs(indptr, others[order], edge, src, dst)


def label_parts(ranks: int, src: Ints, dst: Ints) -> Ints:
    """Label the ranks, shape (ranks,), by the connected part that they are in."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    graph = csr_array((np.ones(len(src), dtype=np.int8), (src, dst)), shape=(ranks, ranks))
    found: Ints = connected_components(graph, directed=False)[1].astype(np.int64)
    return found


def find_shortcuts(indptr: Ints, peer: Ints) -> Bools:
    """Which pairs are in far fewer rings of three or four than most, as those that join far parts.

    - `indptr`, `peer`: adjacency lists, as in `Pairs`; result, shape (2 * pairs,).
    """
    from .lattice_kernels import count_short_rings

    rings = count_short_rings(indptr, peer)
    few: Bools = rings < FEW * np.median(rings)
    return few


def without_shortcuts(model: CostModel) -> CostModel:
    """Leave out pairs that may be shortcuts; none where many would be, or the search takes long.

    Left out is a pair whose weight is 0. O(sum of squared peers), which is at most `SQUARES`.
    """
    if np.square(np.diff(model.indptr)).sum() > SQUARES:
        return model
    shortcut = find_shortcuts(model.indptr, model.peer)
    if not 0 < shortcut.sum() < MANY * len(shortcut):
        return model
    return model._replace(weight=np.where(shortcut, 0, model.weight))

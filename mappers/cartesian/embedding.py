"""Embedding: coordinates of ranks whose traffic is that of a mesh of points, cut into parts.

Such traffic is no product and no lattice, but ranks that talk are near in a space of few
dimensions. The steps:

1. Distances to `LANDMARKS` ranks, each as far as can be from those before. A pair is as long as its
   weight is small, and as it is in few rings of three or four for its peers: so are the long pairs
   along the hull of a triangulation, which else bend the space. `LENGTHS` has the powers of both.
   Pairs that may be shortcuts are left out where the others connect nearly all ranks.
2. Axes of the space (see `axes`), if it has some; there may be none after the first landmarks or
   all. A side is the longer, the less a pair covers of it.
3. Cells of a box by recursive coordinate bisection (Berger and Bokhari, A partitioning strategy for
   nonuniform problems on multiprocessors, IEEE Transactions on Computers C-36, 1987), in proportion
   to the room of both halves.

O(LANDMARKS * pairs * log ranks) a try. The cells are a place to start from, and nothing is proved.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import log, prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hopmap.arrays import Bools, Floats, Ints
from hopmap.mappers.cost_model import CostModel

from .axes import Axes, box_axes, may_have_axes, ring_axes
from .boxes import products
from .cells import Cells, find_shortcuts

if TYPE_CHECKING:
    from scipy.sparse import csr_array

LANDMARKS, FIRST = 32, 12  # in all; those after which it ends where there is no space
LENGTHS = (1.0, 0.0), (0.5, 0.0), (0.5, 2.5), (0.5, 1.25)  # powers of weight and of density
SPARSE = 0.3  # least density
CONNECTED = 0.9  # part of the ranks that has to be connected
HUB = 5.0  # times the mean number of peers that no rank of a mesh has


class Points(NamedTuple):
    """Where every rank is in space."""

    axes: Axes
    sides: Floats  # shape (dimensions,): how long the space is along each axis, in any unit


def embed(model: CostModel, ranks: int, tries: int, rng: np.random.Generator) -> Iterator[Points]:
    """Yield coordinates of the ranks, one or two a try; nothing where there is no space.

    - `model`: pairs and weights; dummies beyond the `ranks` have no peers.
    """
    peers = np.diff(model.indptr[: ranks + 1])
    lengths = list(LENGTHS) if peers.max(initial=0) <= HUB * peers.mean() else []
    graph = _graph(model, ranks) if lengths and tries else None
    if graph is None:
        return
    walk, density = graph.copy(), _density(graph)
    weight = graph.data / graph.data.mean()
    lengths = lengths if np.ptp(weight) else lengths[1:]  # without weights the first two are one
    for k in range(tries):
        if not lengths:
            return
        of_weight, of_density = powers = lengths[k % len(lengths)]
        graph.data = weight**-of_weight * density**-of_density
        apart = _distances(graph, walk, rng)
        spaces = [] if apart is None else [ring_axes(apart, walk, rng), box_axes(apart, rng)]
        found = [Points(axes, _sides(axes, model)) for axes in spaces if axes is not None]
        if not found:
            lengths.remove(powers)
        yield from found


def shapes(size: int, sides: Floats) -> list[tuple[int, ...]]:
    """Boxes of so many cells, first those whose sides are most nearly as these."""
    wanted = np.log(sides) - np.log(sides).mean()

    def off(dims: Sequence[int]) -> float:
        return float(np.abs(np.log(dims) - log(size) / len(dims) - wanted).sum())

    return sorted(map(tuple, products(size, [size] * len(sides))), key=off)


def boxed(points: Points, size: int) -> Cells:
    """Put points into a box of so many cells that is as long as the space."""
    dims = shapes(size, points.sides)[0]
    return Cells(dims, fill(points.axes.coords, np.ones(dims, dtype=np.int64)))


def fill(points: Floats, room: Ints) -> Ints:
    """Cells of points in a box that has room for some in each, shape (points, dimensions).

    - `points`: coordinates, shape (points, dimensions).
    - `room`: points that each cell may get, in the shape of the box; no fewer than points in all.

    Boxes are halved along their longest side, their points with them, in proportion to room. Of
    points that are equal along it, those come first that do along another.
    """
    dims, count = room.shape, len(points)
    strides = np.array([prod(dims[d + 1 :]) for d in range(len(dims))])
    slots = np.repeat(np.argwhere(room > 0), room[room > 0], axis=0)
    every = np.arange(count + len(slots))  # points, then slots
    number = np.empty((count, len(dims)), dtype=np.int64)  # of every point along each side
    for d in range(len(dims)):
        number[np.lexsort((*points.T, points[:, d])), d] = every[:count]
    low = np.zeros((len(every), len(dims)), dtype=np.int64)
    size = np.tile(np.array(dims), (len(every), 1))
    upper = np.empty(len(every), dtype=np.bool_)
    while size.max() > 1:
        side = size.argmax(axis=1)
        long = size[every, side]
        box = low @ strides
        middle = low[every, side] + long // 2
        upper[count:] = slots[every[: len(slots)], side[count:]] >= middle[count:]
        rooms = np.bincount(box[count:], minlength=prod(dims))
        rooms_below = np.bincount(box[count:][~upper[count:]], minlength=prod(dims))
        mine = box[:count]
        filled = np.bincount(mine, minlength=prod(dims))
        place = np.empty(count, dtype=np.int64)  # of every point in its box
        place[np.argsort(mine * count + number[every[:count], side[:count]])] = every[:count]
        place -= (filled.cumsum() - filled)[mine]
        upper[:count] = place >= (filled * rooms_below // np.maximum(rooms, 1))[mine]
        low[every, side] += np.where(upper, long // 2, 0)
        size[every, side] = np.where(upper, long - long // 2, long // 2)
    return low[:count]


def _graph(model: CostModel, ranks: int) -> csr_array | None:
    """Pairs with their weights, without shortcuts if nearly all are connected; None if not."""
    from scipy.sparse import csr_array

    pairs = model.weight.astype(np.float64), model.peer.copy(), model.indptr[: ranks + 1].copy()
    every = csr_array(pairs, shape=(ranks, ranks))
    every.eliminate_zeros()
    if not every.nnz:
        return None
    near = every.copy()
    near.data[find_shortcuts(*_lists(near))] = 0.0
    near.eliminate_zeros()
    for graph in (near, every):
        if _most(graph).mean() >= CONNECTED:
            return graph
    return None


def _lists(graph: csr_array) -> tuple[Ints, Ints]:
    return graph.indptr.astype(np.int64), graph.indices.astype(np.int64)


def _most(graph: csr_array) -> Bools:
    """Which ranks are in the largest part that is connected."""
    from scipy.sparse.csgraph import connected_components

    part = connected_components(graph, directed=False)[1]
    most: Bools = part == np.bincount(part).argmax()
    return most


def _density(graph: csr_array) -> Floats:
    """Rings of three or four of each pair, over the most that there may be, and over the median."""
    from .lattice_kernels import count_short_rings

    indptr, peer = _lists(graph)
    peers = np.diff(indptr)
    density = count_short_rings(indptr, peer) / (np.repeat(peers, peers) * peers[peer])
    typical = np.median(density)
    if typical == 0:
        return np.ones(len(peer))
    dense: Floats = np.maximum(density / typical, SPARSE)
    return dense


def _distances(graph: csr_array, walk: csr_array, rng: np.random.Generator) -> Floats | None:
    """Distances to landmarks, shape (ranks, LANDMARKS); None if they show no space."""
    from scipy.sparse.csgraph import dijkstra

    ranks, most = graph.shape[0], _most(graph)
    landmark, nearest = int(rng.choice(np.flatnonzero(most))), np.where(most, np.inf, 0.0)
    found = np.empty((ranks, LANDMARKS + 1))
    for k in range(LANDMARKS + 1):
        found[:, k] = dijkstra(graph, indices=np.array([landmark]))[0]
        found[~most, k] = np.sqrt((found[most, k] ** 2).mean())  # the middle of all axes
        nearest = np.minimum(nearest, found[:, k]) if k else nearest
        landmark = int((nearest if k else found[:, k]).argmax())
        if k == FIRST and not may_have_axes(found[:, 1 : k + 1], walk):
            return None
    return found[:, 1:]  # the first one is anywhere


def _sides(axes: Axes, model: CostModel) -> Floats:
    """How long the box is along each axis, in pairs."""
    coords, periods = axes
    src = np.repeat(np.arange(len(coords)), np.diff(model.indptr[: len(coords) + 1]))
    step = np.abs(coords[src] - coords[model.peer])
    step = np.minimum(step, periods - step)
    sides: Floats = np.ptp(coords, axis=0) / np.average(step, axis=0, weights=model.weight)
    return sides

"""Fold: traffic that is a grid is folded onto a box of nodes, or a hierarchy, like paper.

Every dimension of the grid is written in digits, one for each dimension of the network: rank 13 of
32 on 8 x 8 x 8 nodes is 5 in x on the second of four strips, counted backwards there, so that the
fold costs nothing in x. Digits of several grid dimensions that meet in one network dimension are
strung together, the lower one backwards on every other value of the higher (a reflected code), or
not. All ways of doing so are tried, few folds first, and the cheapest is taken. Slots of a
node are a dimension of their own, without distance. The levels of a hierarchy are dimensions like
any other: the grid is cut into boxes, and these into boxes again.

Where the grid does not fold, or a job has some of the nodes only, a box of all nodes is folded
instead. Grid and box are halved along their longest sides, both as often, and every half of the
box gets ranks in proportion to the slots of its nodes. Or what fits into the box is folded, and the
other ranks follow one by one.

Sources: the classic embeddings of grids in grids (e.g. Ma and Tao, Embeddings among toruses and
meshes, ICPP 1987); rubik's folds and tilts; Deveci et al., Exploiting geometric partitioning in
task mapping for parallel computers, IPDPS 2014. O(tries * pairs).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice, permutations, product
from math import prod

import numpy as np

from hopmap.arrays import Floats, Ints
from hopmap.mappers.bisections.recursive_bisection import bisect_nodes
from hopmap.mappers.cost_model import CostModel
from hopmap.mappers.mapper import mapper
from hopmap.mappers.objectives import ObjectiveName, cost_model
from hopmap.mappers.options import Count
from hopmap.topologies import Mapping, Topology, hierarchy
from hopmap.traces import Traffic

from .axes import Axes, open_axes
from .cells import Cells
from .embedding import Points, fill, shapes
from .grid import all_row_major, find_structures

AT_ONCE = 1 << 20  # digits that are looked at together
SHAPES, SIDES = 4, 4  # of a box, tried until one folds; most sides of a grid that fills one
PARTLY = 3, 6  # shapes, and folds of each, where a part of the grid fits
FEWER = 8  # times fewer folds where nodes differ, since ranks get other cells in each


@mapper("fold", source="Ma, Tao 1987; LLNL rubik")
def fold(
    traffic: Traffic,
    topology: Topology,
    *,
    rng: np.random.Generator,
    objective: ObjectiveName = "hop_bytes",
    tries: Count = 1000,
) -> Mapping:
    """Best fold of a grid onto a box or hierarchy; recursive bisection of other traffic.

    - `tries`: most folds to look at.
    """
    model = cost_model(traffic, topology, objective)
    folds: list[Mapping | None] = []
    for cells in find_structures(traffic)[1]:
        folds.append(best_fold(cells, topology, model, tries))
        folds.append(fold_partly(cells, topology, model))
    best = _cheapest(iter(folds), model, lambda: False)
    return bisect_nodes(model, topology, rng)[: traffic.ranks] if best is None else best


def best_fold(
    cells: Cells,
    topology: Topology,
    model: CostModel,
    tries: int,
    over: Callable[[], bool] = lambda: False,
) -> Mapping | None:
    """Cheapest fold of ranks in a box; None if the network is no box or hierarchy.

    Where it does not fold, nodes get ranks in proportion to their slots. Once it is `over` no
    further fold is tried.
    """
    best = fold_exactly(cells, topology, model, tries, over)
    if best is not None or not (topology.dims or hierarchy(topology)):
        return best
    cells = _with_few_sides(cells)
    sides = np.array(cells.dims, dtype=np.float64)
    points = Points(open_axes(cells.coords.astype(np.float64)), sides)
    return fold_points(points, topology, model, tries, over)


def fold_exactly(
    cells: Cells,
    topology: Topology,
    model: CostModel,
    tries: int,
    over: Callable[[], bool] = lambda: False,
) -> Mapping | None:
    """Cheapest fold of ranks in a box; None if none fits, or nodes have different slots."""
    dims = topology.dims or hierarchy(topology)
    if not dims or np.ptp(topology.slots):
        return None
    folds = _folds(cells, (int(topology.slots[0]), *dims), not topology.dims)
    return _cheapest(islice(folds, tries), model, over)


def fold_points(
    points: Points,
    topology: Topology,
    model: CostModel,
    tries: int,
    over: Callable[[], bool] = lambda: False,
) -> Mapping | None:
    """Cheapest fold of a box of all nodes that is filled with points; None if none folds.

    Where nodes have different slots, points are laid in all ways for each fold.
    """
    if np.ptp(topology.slots):
        tries = max(tries // FEWER, 1)
    box, nested = (1, *(topology.dims or hierarchy(topology) or ())), not topology.dims
    for dims in shapes(topology.nodes, points.sides)[:SHAPES]:
        folds = _folds(Cells(dims, all_row_major(dims)), box, nested)
        best = _cheapest(_filled(points, dims, islice(folds, tries), topology), model, over)
        if best is not None:
            return best
    return None


def fold_partly(
    cells: Cells, topology: Topology, model: CostModel, over: Callable[[], bool] = lambda: False
) -> Mapping | None:
    """Cheapest fold of what fits of a grid into a box of all slots, and of the other ranks.

    Each of these goes where it is nearest to its peers, those next to the box first. None if the
    grid folds exactly, the network is no box, or nodes have different slots.
    """
    if not topology.dims or np.ptp(topology.slots):
        return None
    if fold_exactly(cells, topology, model, 1) is not None:
        return None
    return _cheapest(_partial_folds(_with_few_sides(cells), topology, model), model, over)


def _partial_folds(cells: Cells, topology: Topology, model: CostModel) -> Iterator[Mapping]:
    """Fold what fits into each of a few boxes, and add the others."""
    from .fold_kernels import add

    box, (count, tries) = (int(topology.slots[0]), *topology.dims), PARTLY
    for dims in shapes(prod(box), np.array(cells.dims, dtype=np.float64))[:count]:
        beyond = np.maximum(cells.coords - np.array(dims) + 1, 0).sum(axis=1)
        fits = beyond == 0
        others = np.argsort(beyond, kind="stable")[fits.sum() :]
        cell = np.ravel_multi_index(tuple(cells.coords[fits].T), dims)
        for node_at in islice(_folds(Cells(dims, all_row_major(dims)), box, False), tries):
            node_of = np.full(len(fits), -1)
            node_of[fits] = node_at[cell]
            add(model, others, topology.slots, node_of)
            yield node_of


def _with_few_sides(cells: Cells) -> Cells:
    """Make one side of the two shortest, to and fro, until there are few."""
    dims, columns = list(cells.dims), list(cells.coords.T)
    while len(dims) > SIDES:
        long, short = np.argsort(dims, kind="stable")[[1, 0]].tolist()
        to_and_fro = np.where(columns[long] % 2, dims[short] - 1 - columns[short], columns[short])
        columns[long] = columns[long] * dims[short] + to_and_fro
        dims[long] *= dims[short]
        del dims[short], columns[short]
    return Cells(tuple(dims), np.stack(columns, axis=1))


def _filled(
    points: Points, dims: tuple[int, ...], folds: Iterator[Mapping], topology: Topology
) -> Iterator[Mapping]:
    """Fill a box with points for every fold of it, by the slots of the nodes of its cells."""
    room, ways = None, None if np.ptp(topology.slots) else 1
    laid = list(islice(_laid(points.axes, dims), ways))
    for node_at in folds:
        if room is None or (topology.slots[node_at] != room).any():
            room = topology.slots[node_at]
            filled = [fill(coords, room.reshape(dims)) for coords in laid]
        for cell in filled:
            yield node_at[np.ravel_multi_index(tuple(cell.T), dims)]


def _laid(axes: Axes, dims: tuple[int, ...]) -> Iterator[Floats]:
    """Coordinates as they are, and turned over along axes, or a cell on where these close."""
    coords, periods = axes
    for way in product((False, True), repeat=len(dims)):
        shifted = (coords + 1 / np.array(dims)) % periods
        moved = np.where(np.isfinite(periods), shifted, -coords)
        yield np.where(way, moved, coords)


def _cheapest(
    mappings: Iterator[Mapping | None], model: CostModel, over: Callable[[], bool]
) -> Mapping | None:
    """Return the first of the cheapest mappings until it is `over`; None if there are only None."""
    from hopmap.mappers import cost_kernels

    best, best_cost = None, 0
    for node_of in mappings:
        if node_of is None:
            continue
        cost = int(cost_kernels.total_cost(model, node_of))
        if best is None or cost < best_cost:
            best, best_cost = node_of, cost
        if over():
            break
    return best


def _folds(cells: Cells, box: Sequence[int], nested: bool) -> Iterator[Mapping]:
    """Nodes of the ranks by every fold, folds with few digits first.

    If nested, lower digits go to lower levels, and digits of one level are all equally far apart.
    """
    axes, sides, ranks = range(len(cells.dims)), range(len(box)), len(cells.coords)
    for chosen in _fitting([_shares(length, box) for length in cells.dims], box):
        used = [[k for k in sides if share[k] > 1] for share in chosen]
        meets = [[i for i in axes if chosen[i][k] > 1] for k in sides]
        both_ways = not nested and any(len(digits) > 1 for digits in meets)
        # Lowest digit first within a grid dimension; highest first within a network dimension.
        for orders in [tuple(used)] if nested else product(*map(permutations, used)):
            digits = [_digits(cells.coords[:, i], chosen[i], orders[i]) for i in axes]
            if len(axes) == 1 and len(used[0]) > 1 and not nested:  # it may be a ring
                closed = _closed_digits(cells.coords[:, 0], chosen[0], orders[0])
                yield _string_up([closed], chosen, meets, False, box, ranks)
            for strings in [tuple(meets)] if nested else product(*map(permutations, meets)):
                for reflected in (True, False) if both_ways else (False,):
                    yield _string_up(digits, chosen, strings, reflected, box, ranks)


def _fitting(
    shares: Sequence[Sequence[tuple[int, ...]]], box: Sequence[int]
) -> Iterator[list[tuple[int, ...]]]:
    """Choose a share for every grid dimension, such that all fit; those with few digits first."""
    tables = [np.array(options, dtype=np.int64).reshape(-1, len(box)) for options in shares]
    taken, used = np.zeros((1, 0), dtype=np.int64), np.ones((1, len(box)), dtype=np.int64)
    digits = np.zeros(1, dtype=np.int64)
    for options in tables:
        if not len(options) or not len(used):
            return
        rows, parts = max(AT_ONCE // options.size, 1), []
        for begin in range(0, len(used), rows):
            both = used[begin : begin + rows, None] * options
            first, share = np.nonzero((both <= np.array(box)).all(axis=2))
            parts.append((first + begin, share, both[first, share]))
        before, share, used = (np.concatenate(column) for column in zip(*parts, strict=True))
        taken = np.column_stack((taken[before], share))
        digits = digits[before] + (options > 1).sum(axis=1)[share]
    for row in taken[np.argsort(digits, kind="stable")]:
        yield [options[k] for options, k in zip(shares, row.tolist(), strict=True)]


def _shares(length: int, box: Sequence[int]) -> list[tuple[int, ...]]:
    """Ways to write 0..length-1 in digits, one for each network dimension, none too long."""
    if len(box) == 1:
        return [(length,)] if length <= box[0] else []
    found = []
    for base in range(1, min(length, box[0]) + 1):
        # A base counts if no smaller one does with the same rest.
        rest = -(-length // base)
        if base == 1 or -(-length // (base - 1)) > rest:
            found += [(base, *others) for others in _shares(rest, box[1:])]
    return found


def _digits(coordinate: Ints, share: Sequence[int], order: Sequence[int]) -> dict[int, Ints]:
    """Digit of every rank in each network dimension, backwards above odd higher digits."""
    digits = {}
    rest = coordinate
    for k in order:
        digit, rest = rest % share[k], rest // share[k]
        digits[k] = np.where(rest % 2 == 1, share[k] - 1 - digit, digit)
    return digits


def _closed_digits(coordinate: Ints, share: Sequence[int], order: Sequence[int]) -> dict[int, Ints]:
    """Digits on a round trip: to and fro without the first of the lowest digit, and back there."""
    low, *high = order
    there, count = share[low] - 1, prod(share[k] for k in high)
    out = coordinate < there * count
    rest = np.where(out, coordinate // there, share[low] * count - 1 - coordinate)
    digit = np.where(rest % 2 == 1, there - coordinate % there, 1 + coordinate % there)
    return {low: np.where(out, digit, 0), **_digits(rest, share, high)}


def _string_up(
    digits: Sequence[dict[int, Ints]],
    shares: Sequence[Sequence[int]],
    strings: Sequence[Sequence[int]],
    reflected: bool,
    box: Sequence[int],
    ranks: int,
) -> Mapping:
    """Node of every rank, from its digits strung together in each network dimension."""
    node, stride = np.zeros(ranks, dtype=np.int64), 1
    for k in range(1, len(box)):
        place = np.zeros(ranks, dtype=np.int64)
        for i in strings[k]:
            digit = digits[i][k]
            if reflected:
                digit = np.where(place % 2 == 1, shares[i][k] - 1 - digit, digit)
            place = place * shares[i][k] + digit
        node += place * stride
        stride *= box[k]
    return node

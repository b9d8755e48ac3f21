"""Orders and starts of the portfolio: all that makes a mapping at once.

Orders are good as they are: along curves, folds of grids and embeddings of meshes onto boxes.
Starts are what annealing begins from: recursive bisections, and a greedy construction.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator

import numpy as np

from hopmap.arrays import Ints
from hopmap.mappers.bisections.recursive_bisection import bisect_nodes, spans_of
from hopmap.mappers.cartesian.cells import Cells, without_shortcuts
from hopmap.mappers.cartesian.embedding import boxed, embed
from hopmap.mappers.cartesian.fold import best_fold, fold_exactly, fold_partly, fold_points
from hopmap.mappers.cartesian.grid import Grid
from hopmap.mappers.cartesian.grid_portfolio import cartesian_orders
from hopmap.mappers.exchanges.annealing import AnnealingSearch
from hopmap.mappers.greedy.constructions import greedy_all_c
from hopmap.mappers.orders.node_orders import gray, hilbert, peano, scan
from hopmap.topologies import Mapping
from hopmap.traces import Traffic

from .mapper import MapperFunction
from .objectives import with_free_slots
from .stop import Watch

CURVES: tuple[MapperFunction, ...] = (scan, gray, peano, hilbert)
FOLDS = 100  # of a structure or an embedding
STARTS = 6  # bisections on networks with levels; embeddings
TRIES = 8  # bisections at every step of a further start on a hierarchy, if its share lasts
SHARE = 0.1  # of a time budget for structure, embeddings, and more starts
PLACED = 0.85  # of a time budget until folds and the first bisection end
SKEWED = 1.5  # mean traffic of a rank over the median, from which few ranks have most of it
GREEDY_RANKS = 4_096  # for a construction in O(ranks^2)

Structure = tuple[Grid | None, Iterator[Cells]]


def try_orders(
    search: AnnealingSearch,
    traffic: Traffic,
    order: Mapping,
    structure: Structure,
    watch: Watch,
    rng: np.random.Generator,
) -> Generator[str, None, tuple[list[Ints], bool]]:
    """Try all orders, and name each.

    Return the best, and the folds where a grid does not fold exactly, and whether that is so.
    """
    folds: dict[str, Ints] = {}
    yield "initial order"
    for name, node_of in _orders(search, traffic, order, structure, watch, rng):
        found = with_free_slots(node_of, search.topology)
        search.assign(found)
        yield name
        if name.endswith("fold"):
            folds[name] = min(folds.get(name, found), found, key=search.assign)
    inexact, best = len(folds) > 1, search.best.copy()
    rest = [each for each in folds.values() if inexact and not np.array_equal(each, best)]
    return [best, *rest], inexact


def try_starts(
    search: AnnealingSearch, traffic: Traffic, watch: Watch, rng: np.random.Generator
) -> Generator[str, None, Ints]:
    """Try all starts, and name each; return the best."""
    levels = bool(spans_of(search.topology))
    starts: list[Ints] = []
    for start in _bisections(search, watch, levels, rng):
        starts.append(start)
        search.assign(start)
        yield "recursive_bisection"
    if is_skewed(search) and not levels and traffic.ranks <= GREEDY_RANKS:
        starts.append(with_free_slots(greedy_all_c(traffic, search.topology), search.topology))
        search.assign(starts[-1])
        yield "greedy_all_c"
    return min(starts, key=search.assign)


def is_skewed(search: AnnealingSearch) -> bool:
    """Whether few ranks have most of the traffic."""
    indptr, weight = search.model.indptr, search.model.weight
    total = np.diff(np.concatenate(([0], np.cumsum(weight)))[indptr])
    total = total[total > 0]
    return len(total) > 0 and float(total.mean()) > SKEWED * float(np.median(total))


def spent(watch: Watch) -> float:
    """Part of the time budget that is spent; 0 without one."""
    if watch.end is None:
        return 0.0
    return (watch.now() - watch.begin) / max(watch.end - watch.begin, 1e-9)


def _orders(
    search: AnnealingSearch,
    traffic: Traffic,
    order: Mapping,
    structure: Structure,
    watch: Watch,
    rng: np.random.Generator,
) -> Iterator[tuple[str, Mapping]]:
    """Try what costs next to nothing, then folds, or embeddings where there are none."""
    topology, (grid, structures) = search.topology, structure
    yield "sweep", order
    for curve in CURVES if topology.dims else ():
        if spent(watch) > SHARE:
            break
        yield curve.__name__, curve(traffic, topology)
    if grid is not None:
        yield from cartesian_orders(grid, topology)
    folded = False
    for name, node_of in _folds(search, structures, watch):
        folded = True
        yield name, node_of
    if topology.dims and not folded:
        for node_of in _embeddings(search, traffic.ranks, watch, rng):
            yield "embedding", node_of


def _folds(
    search: AnnealingSearch, structures: Iterator[Cells], watch: Watch
) -> Iterator[tuple[str, Mapping]]:
    """Fold grids, as a whole and in part, with a share of the time."""
    topology, over = search.topology, _is_over(search, watch, PLACED)
    for cells in structures:
        placed = best_fold(cells, topology, search.model, FOLDS, over)
        if placed is None:
            break
        yield "fold", placed
        share_over = _is_over(search, watch, spent(watch) + SHARE)
        placed = fold_partly(cells, topology, search.model, share_over)
        if placed is not None:
            yield "partial fold", placed
        if spent(watch) > SHARE:
            break


def _embeddings(
    search: AnnealingSearch, ranks: int, watch: Watch, rng: np.random.Generator
) -> Iterator[Mapping]:
    """Fold embeddings onto the network, where there is room also as boxes, with a share of time."""
    topology, model, over = search.topology, search.model, _is_over(search, watch, PLACED)
    begun = spent(watch)
    for points in embed(model, ranks, STARTS, rng):
        found = [fold_points(points, topology, model, FOLDS, over)]
        if ranks < len(search.best):
            found.append(fold_exactly(boxed(points, ranks), topology, model, FOLDS, over))
        yield from (places for places in found if places is not None)
        if spent(watch) > begun + SHARE:
            break


def _bisections(
    search: AnnealingSearch, watch: Watch, levels: bool, rng: np.random.Generator
) -> Iterator[Ints]:
    """Make mappings to start annealing from: one, of which a hot round keeps next to nothing.

    On networks with levels there are more, in a share of the time, most from many tries.
    """
    tries, share = 1, spent(watch) + SHARE
    for done in range(STARTS if levels else 1):
        begin = watch.now()
        model = without_shortcuts(search.model) if done == 1 else search.model
        yield bisect_nodes(model, search.topology, rng, tries, _is_over(search, watch, PLACED))
        taken, left = max(watch.now() - begin, 1e-3), watch.remaining()
        if done == 0:
            tries = TRIES if left is None else min(int(SHARE * left / taken), TRIES)
        if tries == 0 or (done > 0 and spent(watch) > min(share, PLACED)):
            break


def _is_over(search: AnnealingSearch, watch: Watch, part: float) -> Callable[[], bool]:
    """Return what says whether so much of the time is spent."""
    return lambda: spent(watch) > part or search.watch.over()

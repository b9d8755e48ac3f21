"""Portfolio for Cartesian grids: the best of all that is published, then a search.

1. Every mapper of Cartesian grids, for every order of the grid's dimensions (and mirrored, where
   the stencil is not the same in a mirror).
2. Rounds that split a few nodes' ranks again and again, and then exchange ranks (see
   `off_node`), from the best of these and from the best so far. The measure that comes
   second is a small part of what exchanges are judged by, and decides between equals.

The best mapping met is returned, which therefore is never worse than any of the mappers by the two
measures in their order. O(ranks) for each of 1.; proposals cost O(peers), and of those there are
2.5 million times the root of the ranks, in large grids 160 million; with fewer than 1,000 a rank
they only descend, until nothing is gained. Memory is linear in ranks and pairs.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from itertools import permutations, product

import numpy as np

from hopmap.errors import HopmapWarning
from hopmap.mappers.mapper import mapper
from hopmap.mappers.objectives import with_free_slots
from hopmap.mappers.stop import Moves, keep
from hopmap.topologies import Mapping, MappingError, Topology
from hopmap.traces import Traffic

from .boxes import factorisation, gropp, row_major_mapper
from .grid import Grid, cartesian, on_grid
from .halvings import hyperplane, kd_tree, skewed_kd_tree
from .off_node import Amount, Measure, outgoing, peers_of, refine, value
from .strips import squarest_strips, stencil_strips

PUBLISHED: dict[str, Callable[..., Mapping]] = {
    "row_major": row_major_mapper,
    "gropp": gropp,
    "factorisation": factorisation,
    "kd_tree": kd_tree,
    "skewed_kd_tree": skewed_kd_tree,
    "squarest_strips": squarest_strips,
    "squarest_strips(carry=narrower)": partial(squarest_strips, carry="narrower"),
    "squarest_strips(path=snake)": partial(squarest_strips, path="snake"),
    "stencil_strips": stencil_strips,
    "hyperplane": hyperplane,
}
PER_ROOT, MOST = 2_500_000, 160_000_000  # proposals without any budget
VIEWS = 24  # orders of the dimensions, mirrored or not


@mapper("grid_portfolio", source="this project", needs=on_grid)
def grid_portfolio(
    traffic: Traffic,
    topology: Topology,
    *,
    rng: np.random.Generator,
    initial: Mapping | None = None,
    first: Measure = "sum",
    amount: Amount = "bytes",
    stop: Moves,
) -> Mapping:
    """Cartesian grid: the best of all mappers for it, refined by exchanges of ranks.

    O(peers) an exchange.

    - `first`: which counts first: what leaves all nodes, or what leaves the worst.
    - `amount`: what is counted.
    - `moves`: proposals of all rounds, those that splitting stands for among them; 2.5 million
      times the root of the ranks, at most 160 million, if there is no time budget.
    """
    from .off_node_kernels import Best

    watch = stop.watch()
    grid = cartesian(traffic, "grid_portfolio")
    items = max(int(topology.slots.sum()), traffic.ranks)
    peers = peers_of(traffic, amount, items)
    starts = [] if initial is None else [initial]
    for node_of in run_grid_mappers(grid, topology):
        starts.append(node_of)
        if watch.over():
            break
    places = [with_free_slots(start, topology) for start in starts]
    values = [value(outgoing(peers, p, topology.nodes), first) for p in places]
    ranking = sorted(range(len(places)), key=values.__getitem__)
    distinct = [i for n, i in enumerate(ranking) if not n or values[i] != values[ranking[n - 1]]]
    best = Best(
        places[ranking[0]].copy(), np.array(values[ranking[0]][:: 1 if first == "sum" else -1])
    )
    moves = stop.or_usual(stop.moves, min(int(PER_ROOT * traffic.ranks**0.5), MOST))
    with keep(lambda: best.places[: traffic.ranks]):
        refine(peers, topology, [places[i] for i in distinct], best, first, moves, watch, rng)
    return best.places[: traffic.ranks]


def run_grid_mappers(grid: Grid, topology: Topology) -> Iterator[Mapping]:
    """Map by all mappers of grids, for all views of the grid; those that refuse it are left out."""
    d = len(grid.dims)
    views = list(product(permutations(range(d)), product((1, -1), repeat=d)))
    symmetric = [is_symmetric(grid, axis) for axis in range(d)]
    views = [
        (order, signs)
        for order, signs in views
        if all(sign == 1 or not same for sign, same in zip(signs, symmetric, strict=True))
    ]
    for order, signs in views[:VIEWS]:
        shape = [grid.dims[axis] for axis in order]
        view = _without_pairs(
            grid._replace(
                dims=tuple(shape),
                stencil=[tuple(signs[axis] * v[axis] for axis in order) for v in grid.stencil],
                periodic=tuple(grid.periodic[axis] for axis in order),
            )
        )
        for function in PUBLISHED.values():
            made = _map_quietly(function, view, topology)
            if made is None:
                continue
            node_at = made.reshape(shape).transpose(np.argsort(order))
            node_at = np.flip(node_at, tuple(axis for axis in range(d) if signs[axis] < 0))
            yield node_at.ravel()[grid.cells]


def is_symmetric(grid: Grid, axis: int) -> bool:
    """Whether the stencil is the same in a mirror across that axis."""

    def weigh(sign: int) -> list[tuple[tuple[int, ...], int]]:
        flipped = [
            tuple(sign * x if a == axis else x for a, x in enumerate(v)) for v in grid.stencil
        ]
        return sorted(zip(flipped, grid.sizes, strict=True))

    return weigh(1) == weigh(-1)


def cartesian_orders(grid: Grid, topology: Topology) -> Iterator[tuple[str, Mapping]]:
    """Map a grid by all mappers that take it; they get nothing but its metadata."""
    bare = _without_pairs(grid)
    for name, function in PUBLISHED.items():
        made = _map_quietly(function, bare, topology)
        if made is not None:
            yield name, made[grid.cells]


def _map_quietly(
    function: Callable[..., Mapping], traffic: Traffic, topology: Topology
) -> Mapping | None:
    """Map without a word of what the mapper ignores; None where it refuses."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HopmapWarning)
        try:
            return function(traffic, topology)
        except MappingError:
            return None


def _without_pairs(grid: Grid) -> Traffic:
    """Traffic of a grid that has nothing but its metadata."""
    dims, stencil, sizes, periodic, cells = grid
    metadata = {"dims": dims, "stencil": stencil, "stencil_bytes": sizes, "periodic": periodic}
    return Traffic.from_pairs(len(cells), [], [], [], [], metadata)

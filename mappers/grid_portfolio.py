"""Portfolio for Cartesian grids: the best of all that is published, then exchanges of ranks.

1. Every mapper of Cartesian grids, for every order of the grid's dimensions (and mirrored, where
   the stencil is not the same in a mirror).
2. Rounds of annealing (`off_node_kernels`), from the best of these and from the best so far. The
   measure that comes second is a small part of what is annealed, and decides between equals.

The best mapping met is returned, which therefore is never worse than any of the mappers by the two
measures in their order. O(ranks) for each of 1.; proposals cost O(peers), and of those there are
20,000 a rank up to some thousand ranks, in larger grids fewer; with fewer than 1,000 a rank they
only descend. Memory is linear in ranks and pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import permutations, product

import numpy as np
from numpy.typing import NDArray

from ..topologies import Mapping, MappingError, Topology
from ..traces import Traffic
from .cartesian import Grid, cartesian
from .cooling import between
from .factorisation import factorisation
from .gropp import gropp
from .hyperplane import hyperplane
from .kd_tree import kd_tree
from .mapper import CountOrZero, Seconds, mapper
from .objectives import with_free_slots
from .off_node import Amount, Measure, leaving, peers_of, value
from .off_node_kernels import Best, Nodes, Peers, anneal
from .row_major import row_major_mapper
from .search import Clock, Interrupted, Progress, Watch
from .skewed_kd_tree import skewed_kd_tree
from .squarest_strips import squarest_strips
from .stencil_strips import stencil_strips

PUBLISHED: dict[str, Callable[..., Mapping]] = {
    "row_major": row_major_mapper,
    "gropp": gropp,
    "factorisation": factorisation,
    "kd_tree": kd_tree,
    "skewed_kd_tree": skewed_kd_tree,
    "squarest_strips": squarest_strips,
    "squarest_strips(carry=narrower)": partial(squarest_strips, carry="narrower"),
    "stencil_strips": stencil_strips,
    "hyperplane": hyperplane,
}
PER_RANK, MOST = 20_000, 40_000_000  # proposals without any budget
ROUNDS = 8
SLICE = 1 << 17  # proposals between two looks at the clock
SAMPLE = 2_000  # proposals that a temperature scale is taken from
HOT, COLD = 0.25, 0.02  # temperatures in units of the mean increase that is proposed
VIEWS = 24  # orders of the dimensions, mirrored or not
SUM_BETA, WORST_ALPHA = 1.0, 0.3


@mapper("grid_portfolio", source="this project", initial="optional")
def grid_portfolio(
    traffic: Traffic,
    topology: Topology,
    *,
    rng: np.random.Generator,
    initial: Mapping | None = None,
    first: Measure = "sum",
    amount: Amount = "bytes",
    moves: CountOrZero | None = None,
    seconds: Seconds = None,
    clock: Clock = "wall",
    progress: Progress | None = None,
) -> Mapping:
    """Cartesian grid: the best of all mappers for it, refined by exchanges of ranks.

    Parameters
    ----------
    traffic, topology, rng
        See `map_ranks`.
    initial : ndarray, optional
        A mapping that is not to be worsened.
    first : {"sum", "worst"}
        Which counts first: what leaves all nodes, or what leaves the worst.
    amount : {"messages", "bytes"}
        What is counted.
    moves : int, optional
        Proposals of all rounds; 20,000 a rank, at most 40 million, if there is no time budget.
    seconds, clock, progress
        Time budget, elapsed or of the processor, and whom to tell.
    """
    watch = Watch(seconds, progress, clock)
    grid = cartesian(traffic, "grid_portfolio")
    items = max(int(topology.slots.sum()), traffic.ranks)
    peers = peers_of(traffic, amount, items)
    starts = [] if initial is None else [initial]
    for node_of in published(grid, topology, rng):
        starts.append(node_of)
        if watch.over():
            break
    places = [with_free_slots(start, topology) for start in starts]
    values = [value(leaving(peers, p, topology.nodes), first) for p in places]
    ranking = sorted(range(len(places)), key=values.__getitem__)
    distinct = [i for n, i in enumerate(ranking) if not n or values[i] != values[ranking[n - 1]]]
    best = Best(places[ranking[0]].copy(), np.array(values[ranking[0]][:: 1 if first == "sum" else -1]))
    if moves is None and seconds is None:
        moves = min(PER_RANK * traffic.ranks, MOST)
    try:
        refine(peers, topology, [places[i] for i in distinct], best, first, moves, watch, rng)
    except KeyboardInterrupt:
        raise Interrupted(best.places[: traffic.ranks]) from None
    return best.places[: traffic.ranks]


def published(grid: Grid, topology: Topology, rng: np.random.Generator) -> Iterator[Mapping]:
    """Mappings by all mappers of grids, for all views of the grid; those that refuse it apart."""
    d, ranks = len(grid.dims), len(grid.cells)
    views = list(product(permutations(range(d)), product((1, -1), repeat=d)))
    symmetric = [mirrored(grid, axis) for axis in range(d)]
    views = [
        (order, signs)
        for order, signs in views
        if all(sign == 1 or not same for sign, same in zip(signs, symmetric, strict=True))
    ]
    for order, signs in views[:VIEWS]:
        metadata = {
            "dims": [grid.dims[a] for a in order],
            "stencil": [[signs[a] * vector[a] for a in order] for vector in grid.stencil],
            "stencil_bytes": grid.sizes,
            "periodic": [grid.periodic[a] for a in order],
        }
        view = Traffic.from_pairs(ranks, [], [], [], [], metadata)
        for function in PUBLISHED.values():
            try:
                node_at = function(view, topology, rng=rng).reshape(metadata["dims"])
            except MappingError:
                continue
            node_at = node_at.transpose(np.argsort(order))
            node_at = np.flip(node_at, [a for a in range(d) if signs[a] < 0])
            yield node_at.ravel()[grid.cells]


def mirrored(grid: Grid, axis: int) -> bool:
    """Whether the stencil is the same in a mirror across that axis."""

    def weighted(sign: int) -> list[tuple[tuple[int, ...], int]]:
        flipped = [tuple(sign * x if a == axis else x for a, x in enumerate(v)) for v in grid.stencil]
        return sorted(zip(flipped, grid.sizes, strict=True))

    return weighted(1) == weighted(-1)


def refine(
    peers: Peers,
    topology: Topology,
    starts: list[NDArray[np.int64]],
    best: Best,
    first: Measure,
    moves: int | None,
    watch: Watch,
    rng: np.random.Generator,
) -> None:
    """Anneal from the starts, best first, and every other round from the best so far.

    Parameters
    ----------
    starts : list of ndarray(int64, shape=(slots,))
        Nodes of the ranks and then of the free slots.
    best : Best
        The best of them; changed in place.
    """
    items = len(best.places)
    if not peers.sent.sum() or best.measures[0] == 0 or topology.nodes < 2:
        return
    amount = peers.sent[peers.sent > 0].mean()
    for k in range(ROUNDS):
        left = watch.left()
        number = None if moves is None else moves // ROUNDS
        share = None if left is None else left / (ROUNDS - k)
        nodes = seated(peers, topology, best.places if k % 2 else starts[k // 2 % len(starts)], rng)
        unit = float(best.measures[1])
        alpha, beta = (1.0, SUM_BETA * amount) if first == "sum" else (WORST_ALPHA, unit)

        def proposals(hot: float, cold: float, count: int) -> float:
            return anneal(
                peers, nodes, best, first == "sum", alpha, beta, unit, hot, cold, count
            )

        scale = proposals(0.0, 0.0, SAMPLE)
        made, part, begin = 0, 0.0, watch.now()
        while part < 1 and not watch.over() and (number is None or made < number):
            count = SLICE if number is None else min(SLICE, number - made)
            ahead = part if number is None else (made + count) / number
            if share is not None:
                ahead = max(ahead, (watch.now() - begin) / share if share > 0 else 1.0)
            ahead = min(ahead, 1.0)
            proposals(*(scale * between(HOT, COLD, p) for p in (part, ahead)), count)
            part, made = ahead, made + count
            watch.report(k, ROUNDS, f"leaves nodes {best.measures[0]}, worst {best.measures[1]}")
        if watch.over():
            break


def seated(
    peers: Peers, topology: Topology, places: NDArray[np.int64], rng: np.random.Generator
) -> Nodes:
    """Everybody at their places."""
    items, slots = len(places), topology.nodes
    rank = np.repeat(np.arange(items), np.diff(peers.indptr))
    away = places[rank] != places[peers.peer]
    apart = np.bincount(rank[away], (peers.sent + peers.got)[away], minlength=items)
    seat_of = np.empty(items, dtype=np.int64)
    item_at = np.argsort(places, kind="stable")
    seat_of[item_at] = np.arange(items)
    return Nodes(
        places=places.copy(),
        seat_of=seat_of,
        item_at=item_at,
        first=np.concatenate(([0], np.cumsum(topology.slots))).astype(np.int64),
        apart=apart.astype(np.int64),
        load=leaving(peers, places, topology.nodes),
        change=np.zeros(slots, dtype=np.int64),
        touched=np.zeros(slots, dtype=np.int64),
        marked=np.zeros(slots, dtype=np.bool_),
        draws=rng.integers(1, 2**63, size=1, dtype=np.uint64),
    )

"""Rounds of annealing of what leaves the nodes; see `grid_portfolio`.

Every other round starts from the best so far, those between from the given mappings, best first.
Temperatures fall geometrically, in units of the mean increase that is proposed at the start. With
few proposals nothing is annealed: exchanges that gain, from the best.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from ..topologies import Topology
from .cooling import between
from .off_node import Measure, leaving
from .off_node_kernels import Best, Nodes, Peers, anneal
from .search import Watch

ROUNDS = 16
FEW = 1_000  # proposals a rank, for all rounds
SLICE = 1 << 17  # proposals between two looks at the clock
SAMPLE = 2_000  # proposals that a temperature scale is taken from
HOT, COLD = 0.15, 0.04  # temperatures in units of that scale
HOTTER = 0.4  # first temperature of every fourth round
EVEN = 1.0  # weight of evenness where the sum comes first, in mean messages
SUM = 0.3  # weight of the sum where the worst node comes first


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
    """Lower the two measures of the best by exchanges.

    Parameters
    ----------
    starts : list of ndarray(int64, shape=(slots,))
        Nodes of the ranks and then of the free slots.
    best : Best
        The best of them; changed in place.
    first : {"sum", "worst"}
        Which measure comes first.
    moves : int, optional
        Proposals of all rounds; by default what the watch allows.
    """
    few = moves is not None and moves < FEW * len(best.places)
    rounds, cold = (1, 0.0) if few else (ROUNDS, COLD)
    message = float(peers.sent.sum() / max((peers.sent > 0).sum(), 1))
    for k in range(rounds):
        if best.measures[0] == 0 or watch.over():
            break
        places = best.places if k % 2 or few else starts[k // 2 % len(starts)]
        hot = 0.0 if few else HOTTER if k % 4 == 2 else HOT
        unit = float(best.measures[1])
        alpha, beta = (1.0, EVEN * message) if first == "sum" else (SUM, unit)
        proposals = partial(
            anneal, peers, seated(peers, topology, places, rng), best, first == "sum",
            alpha, beta, unit,
        )  # fmt: skip
        scale = 0.0 if moves == 0 else proposals(0.0, 0.0, SAMPLE)
        number = None if moves is None else moves // rounds
        left, begin = watch.left(), watch.now()
        share = None if left is None else left / (rounds - k)
        made, part = 0, 0.0
        while part < 1 and not watch.over() and (number is None or made < number):
            count = SLICE if number is None else min(SLICE, number - made)
            ahead = part if number is None else (made + count) / number
            if share is not None:
                ahead = max(ahead, (watch.now() - begin) / share if share > 0 else 1.0)
            ahead = min(ahead, 1.0)
            start, end = (scale * between(hot, cold, p) for p in (part, ahead))
            proposals(start, end, count)
            part, made = ahead, made + count
            watch.report(k, rounds, f"sum {best.measures[0]}, worst node {best.measures[1]}")


def seated(
    peers: Peers, topology: Topology, places: NDArray[np.int64], rng: np.random.Generator
) -> Nodes:
    """Everybody at their places."""
    items, nodes = len(places), topology.nodes
    rank = np.repeat(np.arange(items), np.diff(peers.indptr))
    away = places[rank] != places[peers.peer]
    apart = np.zeros(items, dtype=np.int64)
    np.add.at(apart, rank[away], (peers.sent + peers.got)[away])
    item_at = np.argsort(places, kind="stable")
    seat_of = np.empty(items, dtype=np.int64)
    seat_of[item_at] = np.arange(items)
    return Nodes(
        places=places.copy(),
        seat_of=seat_of,
        item_at=item_at,
        first=np.concatenate(([0], np.cumsum(topology.slots))).astype(np.int64),
        apart=apart,
        load=leaving(peers, places, nodes),
        change=np.zeros(nodes, dtype=np.int64),
        touched=np.zeros(nodes, dtype=np.int64),
        marked=np.zeros(nodes, dtype=np.bool_),
        draws=rng.integers(1, 2**63, size=1, dtype=np.uint64),
    )

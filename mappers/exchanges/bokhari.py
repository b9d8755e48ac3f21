"""Bokhari's MAPPER: best pairwise exchanges for the cardinality, then a random jump, and again.

Source: Bokhari, On the mapping problem, IEEE Transactions on Computers C-30 (1981), as printed in
the HAEC thesis, section 3.1, Algorithm 1. Where that leaves things open:

- Of several exchanges with the largest gain the one with the lowest rank is taken (ties=first).
  MapLib, the thesis' successor, takes the highest (ties=last).
- An exchange within a node changes nothing and is not considered. Free slots take part as dummy
  ranks without traffic: an exchange with one is a move.
- n, the edge of Bokhari's n x n machine, is the rounded square root of the number of ranks.
- The printed loop ends on the first local optimum that is worse than the best, and never where
  all are equal; here it also ends after `rounds` local optima and on one that cannot be improved.
- The first `patience` worse local optima since the last gain are forgiven: it goes back to the
  best and jumps again. The search before that is the printed one, so that the result is never
  worse than the printed algorithm's; patience=0 is Algorithm 1 to the letter.
- Sweep is the start that the thesis names. Its authors' code starts with z fastest (start=columns)
  and jumps as many pairs as the longest side has nodes (jumps=side). With both, ties=last and
  patience=0, which is preset=thesis, the rows of its Table A.1 come out.

A pass over all ranks costs O(slots * slots) for cardinality, with a small constant, and
O(slots * (nodes * peers + pairs)) for hops; every gain is exact. Memory is linear.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from typing import TYPE_CHECKING, Literal

import numpy as np

from hopmap.arrays import Ints, Ints32
from hopmap.mappers.cost_model import NEAR, CostModel
from hopmap.mappers.mapper import mapper
from hopmap.mappers.objectives import (
    ObjectiveName,
    cost_bound,
    cost_model,
    get_objective,
    with_free_slots,
)
from hopmap.mappers.options import Count, CountOrZero
from hopmap.mappers.orders.node_orders import coordinates, order_by, place_along, sweep
from hopmap.mappers.stop import Stop, Watch, keep
from hopmap.topologies import Mapping, MappingError, Topology
from hopmap.traces import Traffic

from .assignment import assign, cost_of

if TYPE_CHECKING:
    from .bokhari_kernels import NodeAssignment

SLICE = 1 << 20  # exchanges examined between two looks at the clock


@dataclass(frozen=True)
class Jumps:
    """How far the search goes on after a local optimum, and where it begins."""

    # random exchanges after each local optimum; the rounded square root of the ranks by default,
    # the nodes on the longest side of the box for "side"
    jumps: CountOrZero | Literal["side"] | None = None
    # local optima worse than the best that are forgiven after each gain; Bokhari forgives none
    patience: CountOrZero = 10
    rounds: Count = 1000  # most local optima to look at
    ties: Literal["first", "last"] = "first"  # which of equal exchanges is made
    # without an initial mapping: x fastest, or the last axis fastest
    start: Literal["sweep", "columns"] = "sweep"


@mapper(
    "bokhari",
    source="Bokhari 1981; HAEC thesis, Algorithm 1",
    presets={"thesis": {"jumps": "side", "patience": 0, "ties": "last", "start": "columns"}},
)
def bokhari(
    traffic: Traffic,
    topology: Topology,
    *,
    rng: np.random.Generator,
    initial: Mapping | None = None,
    objective: ObjectiveName = "cardinality",
    how: Jumps,
    stop: Stop,
) -> Mapping:
    """Best pairwise exchanges until none gains, then random jumps (MAPPER), from sweep by default.

    Bokhari's objective is the cardinality.
    """
    from . import bokhari_kernels

    if initial is None and how.start == "columns":
        axes = coordinates(topology, "bokhari(start=columns)")
        initial = place_along(order_by(axes, topology), traffic, topology)
    elif initial is None:
        initial = sweep(traffic, topology)
    ranks = traffic.ranks
    model = cost_model(traffic, topology, objective)
    named = get_objective(objective)
    assignment = _start(model, with_free_slots(initial, topology), topology)
    count = _jumps(how.jumps, ranks, topology)
    bound = cost_bound(model, topology)
    watch = stop.watch()
    best, best_cost = assignment.places.copy(), cost_of(assignment)
    forgiven = 0
    with keep(lambda: (best if best_cost <= cost_of(assignment) else assignment.places)[:ranks]):
        for done in range(how.rounds):
            watch.report(done, how.rounds, f"{named.name} {named.value(best_cost)}")
            finished = _local_optimum(model, assignment, ranks, how.ties == "last", watch)
            cost = cost_of(assignment)
            if cost > best_cost:
                if forgiven == how.patience:
                    break
                forgiven += 1
                assign(model, assignment, best)
            else:
                forgiven = 0 if cost < best_cost else forgiven
                best, best_cost = assignment.places.copy(), cost
            if not finished or best_cost <= bound:
                break
            for u, v in _pairs(rng, count, ranks, len(best)):
                bokhari_kernels.exchange(model, assignment, u, v)
    return best[:ranks]


def _jumps(jumps: int | Literal["side"] | None, ranks: int, topology: Topology) -> int:
    """Return how many exchanges a jump has."""
    if jumps is None:
        return (isqrt(4 * ranks) + 1) // 2
    if jumps != "side":
        return jumps
    if not topology.dims:
        raise MappingError(
            f"mapper bokhari: jumps=side: {topology.spec} has no sides: expected a mesh, a torus "
            "or a HAEC Box"
        )
    return max(topology.dims)


def _local_optimum(
    model: CostModel, assignment: NodeAssignment, ranks: int, last: bool, watch: Watch
) -> bool:
    """Repeat passes over all ranks until one gains nothing; False if the time is over before."""
    from . import bokhari_kernels

    step = max(1, SLICE // (len(assignment.places) + len(model.peer)))
    improved = True
    while improved:
        improved = False
        for start in range(0, ranks, step):
            if watch.over():
                return False
            stop = min(start + step, ranks)
            improved |= bokhari_kernels.improve_each(model, assignment, start, stop, last)
    return True


def _pairs(rng: np.random.Generator, jumps: int, ranks: int, slots: int) -> list[tuple[int, int]]:
    """Draw pairs of a rank and another rank or free slot."""
    if slots < 2 or ranks < 1:
        return []
    u = rng.integers(ranks, size=jumps)
    v = rng.integers(slots - 1, size=jumps)
    return list(zip(u.tolist(), (v + (v >= u)).tolist(), strict=True))


def _start(model: CostModel, places: Ints, topology: Topology) -> NodeAssignment:
    from .bokhari_kernels import NodeAssignment

    near_indptr, near = _near(model, topology)
    assignment = NodeAssignment(
        places=np.empty_like(places),
        slot_of=np.empty_like(places),
        item_at=np.empty_like(places),
        slot_indptr=np.concatenate(([0], np.cumsum(topology.slots))).astype(np.int64),
        near_indptr=near_indptr,
        near=near,
        own=np.empty_like(places),
    )
    assign(model, assignment, places)
    return assignment


def _near(model: CostModel, topology: Topology) -> tuple[Ints, Ints32]:
    """Each node and the nodes within a hop, as row pointers and columns; empty for hops."""
    if model.kind != NEAR:
        return np.zeros(topology.nodes + 1, dtype=np.int64), np.zeros(0, dtype=np.int32)
    itself = np.arange(topology.nodes, dtype=np.int64)
    if not topology.dims:  # a hierarchy's nearest nodes may cost 1, and have no link of their own
        near = [np.flatnonzero(topology.distance(node, itself) <= 1) for node in itself]
        sizes = np.cumsum([0, *map(len, near)], dtype=np.int64)
        return sizes, np.concatenate(near).astype(np.int32)
    between = (topology.link_from < topology.nodes) & (topology.link_to < topology.nodes)
    pairs = np.unique(
        np.concatenate((itself, topology.link_from[between])) * topology.nodes
        + np.concatenate((itself, topology.link_to[between]))
    )
    indptr = np.searchsorted(pairs, np.arange(topology.nodes + 1) * topology.nodes)
    return indptr.astype(np.int64), (pairs % topology.nodes).astype(np.int32)

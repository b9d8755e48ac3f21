"""Compiled simulated annealing: exchanges that bring a rank next to one that it talks to.

A proposal draws a rank u, one of its peers p and a node near p's; u and the rank v there may
exchange their slots. What every rank's pairs cost at present is kept, so that a proposal looks at
the peers of u and v once each; the gain is exact. Accepted if it costs less than an exponentially
distributed threshold with mean `temperature` (the Metropolis rule).
"""

from __future__ import annotations

from math import log
from typing import NamedTuple

import numpy as np

from hopmap.arrays import Ints, Ints32, Words
from hopmap.compilation import njit, subroutine
from hopmap.mappers.basic_kernels import draw, next_state
from hopmap.mappers.cost_kernels import charge
from hopmap.mappers.cost_model import CostModel
from hopmap.topologies.routing import Router, distance


class Assignment(NamedTuple):
    """Which rank is where, both ways, what that costs, and what may be tried."""

    places: Ints  # shape (slots,): node of every rank and dummy
    # slot_of, item_at: shape (slots,): slot of every rank and dummy, and the reverse; slots are
    # numbered node by node
    slot_of: Ints
    item_at: Ints
    # shape (nodes + 1,): slots of node x are ``slot_indptr[x]:slot_indptr[x + 1]``
    slot_indptr: Ints
    own: Ints  # shape (slots,): present cost of every rank's pairs
    active: Ints  # items with peers
    near_indptr: Ints  # shape (nodes + 1,)
    # ``near[near_indptr[x]:near_indptr[x + 1]]``: slots near node x, its own slots included
    # where it has several
    near: Ints32
    random: Words  # shape (1,): state of the random numbers (xorshift64*, Vigna 2016); never zero


@njit
def anneal(
    model: CostModel, assignment: Assignment, hot: float, cold: float, proposals: int
) -> int:
    """Make so many proposals while the temperature falls from hot to cold, geometrically.

    Returns the decrease of the cost. At temperature 0 only what costs nothing is accepted.
    """
    router, kind = model.router, model.kind
    indptr, peer, weight = model.indptr, model.peer, model.weight
    places, slot_of = assignment.places, assignment.slot_of
    item_at, own = assignment.item_at, assignment.own
    active, near_indptr, near = assignment.active, assignment.near_indptr, assignment.near
    state = assignment.random[0]
    saved = 0
    temperature = hot
    stretch = 1000
    factor = (cold / hot) ** (stretch / max(proposals, stretch)) if hot > 0 else 1.0
    for step in range(proposals):
        if step % stretch == 0 and step > 0:
            temperature *= factor
        state = next_state(state)
        u = active[draw(state, len(active))]
        state = next_state(state)
        p = peer[indptr[u] + draw(state, indptr[u + 1] - indptr[u])]
        x = places[p]
        state = next_state(state)
        slot = near[near_indptr[x] + draw(state, near_indptr[x + 1] - near_indptr[x])]
        v = item_at[slot]
        a, b = places[u], places[v]
        if a == b:
            continue
        state = next_state(state)
        threshold = 0.0
        if temperature > 0:
            threshold = -temperature * log((np.int64(state >> np.uint64(11)) + 1) * 2.0**-53)
        # The pair (u, v), if it talks, costs the same after the exchange.
        worse = -own[u] - own[v]
        for i in range(indptr[u], indptr[u + 1]):
            q = peer[i]
            if q == v:
                apart = 2 * charge(kind, distance(router, b, a))
                apart -= charge(kind, distance(router, a, a)) + charge(kind, distance(router, b, b))
                worse += weight[i] * apart
            worse += weight[i] * charge(kind, distance(router, b, places[q]))
        if worse > threshold:
            continue
        for i in range(indptr[v], indptr[v + 1]):
            worse += weight[i] * charge(kind, distance(router, a, places[peer[i]]))
        if worse > threshold:
            continue
        _reprice(router, kind, indptr, peer, weight, places, own, u, a, b)
        places[u] = b
        _reprice(router, kind, indptr, peer, weight, places, own, v, b, a)
        places[v] = a
        slot_of[v], slot_of[u] = slot_of[u], slot
        item_at[slot] = u
        item_at[slot_of[v]] = v
        saved -= worse
    assignment.random[0] = state
    return saved


@subroutine
def _reprice(
    router: Router,
    kind: int,
    indptr: Ints,
    peer: Ints,
    weight: Ints,
    places: Ints,
    own: Ints,
    rank: int,
    before: int,
    after: int,
) -> None:
    """Bring own costs up to date for a rank that is about to move."""
    for i in range(indptr[rank], indptr[rank + 1]):
        node = places[peer[i]]
        more = charge(kind, distance(router, after, node))
        more -= charge(kind, distance(router, before, node))
        own[peer[i]] += weight[i] * more
        own[rank] += weight[i] * more


@njit
def sample_changes(model: CostModel, assignment: Assignment, proposals: int) -> Ints:
    """Change of the cost by each of so many proposals, shape (proposals,); none is accepted."""
    router, kind = model.router, model.kind
    indptr, peer, weight = model.indptr, model.peer, model.weight
    places, own = assignment.places, assignment.own
    state = assignment.random[0]
    changes = np.zeros(proposals, dtype=np.int64)
    for k in range(proposals):
        state = next_state(state)
        u = assignment.active[draw(state, len(assignment.active))]
        state = next_state(state)
        x = places[peer[indptr[u] + draw(state, indptr[u + 1] - indptr[u])]]
        state = next_state(state)
        first = assignment.near_indptr[x]
        slot = assignment.near[first + draw(state, assignment.near_indptr[x + 1] - first)]
        v = assignment.item_at[slot]
        a, b = places[u], places[v]
        if a == b:
            continue
        changes[k] = -own[u] - own[v]
        for rank, other, node in ((u, v, b), (v, u, a)):
            for i in range(indptr[rank], indptr[rank + 1]):
                q = peer[i]
                at = places[rank] if q == other else places[q]
                changes[k] += weight[i] * charge(kind, distance(router, node, at))
    assignment.random[0] = state
    return changes


@njit
def nearest(router: Router, nodes: Ints, stride: int, most: int) -> tuple[Ints32, Ints]:
    """Return the `most` of these nodes next to each of them, and their distances, row after row.

    Of equally distant nodes those are taken that come first in steps of `stride`, which has no
    divisor in common with the number of nodes. O(nodes * nodes) distances.
    """
    rows = np.empty((len(nodes), most), dtype=np.int32)
    hops = np.empty((len(nodes), most), dtype=np.int64)
    for x in range(len(nodes)):
        count = 0
        y = x
        for _ in range(1, len(nodes)):
            y = (y + stride) % len(nodes)
            away = distance(router, nodes[x], nodes[y])
            if count == most and away >= hops[x, most - 1]:
                continue
            i = count if count < most else most - 1
            while i > 0 and hops[x, i - 1] > away:
                hops[x, i], rows[x, i] = hops[x, i - 1], rows[x, i - 1]
                i -= 1
            hops[x, i], rows[x, i] = away, nodes[y]
            count = min(count + 1, most)
    return rows, hops

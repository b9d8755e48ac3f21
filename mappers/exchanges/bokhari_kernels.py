"""Compiled passes of Bokhari's MAPPER: for every rank the best of all exchanges, exactly.

The gain of exchanging u (on node a) and v (on node b) is

    own[u] + own[v] - at[b] - there[v] + 2 w(u, v) (cost(a, a) - cost(a, b))

with own = present costs, at[x] = cost of u on node x, there[v] = cost of v on node a; the last term
undoes what the others say wrongly of the pair (u, v). `at` and `there` are filled once a rank.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hopmap.arrays import Ints, Ints32
from hopmap.compilation import njit, subroutine
from hopmap.mappers.cost_kernels import exchange_places
from hopmap.mappers.cost_model import NEAR, CostModel
from hopmap.topologies.routing import distance


class NodeAssignment(NamedTuple):
    """Which rank is where, both ways, and which nodes are near."""

    places: Ints  # shape (slots,): node of every rank and dummy
    # slot_of, item_at: shape (slots,): slot of every rank and dummy, and the reverse
    slot_of: Ints
    item_at: Ints
    # shape (nodes + 1,): slots of node x are ``slot_indptr[x]:slot_indptr[x + 1]``
    slot_indptr: Ints
    near_indptr: Ints  # shape (nodes + 1,)
    # ``near[near_indptr[x]:near_indptr[x + 1]]``: nodes within a hop of node x, itself included
    near: Ints32
    own: Ints  # shape (slots,): present cost of every rank's pairs


@njit
def improve_each(
    model: CostModel, assignment: NodeAssignment, start: int, stop: int, last: bool
) -> bool:
    """Exchange each rank start..stop-1 with the best partner if that gains or costs nothing.

    Of equal partners the lowest number, or the highest if `last`. Returns whether anything gained.
    """
    places, own = assignment.places, assignment.own
    at = np.zeros(len(assignment.slot_indptr) - 1, dtype=np.int64)
    there = np.zeros(len(places), dtype=np.int64)
    away = np.zeros(len(at), dtype=np.int64)
    improved = False
    for u in range(start, stop):
        a = places[u]
        _fill(model, assignment, u, at, there, away)
        best: Any = np.int64(-1)  # of one type, or `exchange` is compiled twice
        best_gain = 0
        for v in range(len(places)):
            b = places[v]
            gain = own[u] + own[v] - at[b] - there[v]
            if gain < best_gain or b == a:
                continue
            if best < 0 or last or gain > best_gain:
                best = v
                best_gain = gain
        if best >= 0:
            exchange(model, assignment, u, best)
            improved = improved or best_gain > 0
    return improved


@subroutine
def _fill(
    model: CostModel, assignment: NodeAssignment, u: int, at: Ints, there: Ints, away: Ints
) -> None:
    """Fill at[x] and there[v] for rank u, with the correction for u's peers in there[v].

    And away[x], the cost of a pair of weight 1 between the nodes a and x.
    """
    router, kind = model.router, model.kind
    indptr, peer, weight = model.indptr, model.peer, model.weight
    places = assignment.places
    a = places[u]
    for x in range(len(at)):
        at[x] = away[x] = 0
    for v in range(len(there)):
        there[v] = 0
    if kind == NEAR:
        # All but a few costs are zero: visit the nodes nearby and those who are there.
        near_indptr, near = assignment.near_indptr, assignment.near
        slot_indptr, item_at = assignment.slot_indptr, assignment.item_at
        for i in range(indptr[u], indptr[u + 1]):
            b = places[peer[i]]
            for k in range(near_indptr[b], near_indptr[b + 1]):
                at[near[k]] -= weight[i]
        for k in range(near_indptr[a], near_indptr[a + 1]):
            away[near[k]] = -1
            for slot in range(slot_indptr[near[k]], slot_indptr[near[k] + 1]):
                item = item_at[slot]
                for i in range(indptr[item], indptr[item + 1]):
                    there[peer[i]] -= weight[i]
    else:
        for x in range(len(at)):
            away[x] = distance(router, a, x)
        for i in range(indptr[u], indptr[u + 1]):
            b = places[peer[i]]
            for x in range(len(at)):
                at[x] += weight[i] * distance(router, b, x)
        for v in range(len(places)):
            for i in range(indptr[v], indptr[v + 1]):
                there[v] += weight[i] * away[places[peer[i]]]
    for i in range(indptr[u], indptr[u + 1]):
        v = peer[i]
        there[v] -= 2 * weight[i] * (away[a] - away[places[v]])


@njit
def exchange(model: CostModel, assignment: NodeAssignment, u: int, v: int) -> None:
    """Let u and v exchange their slots and bring all costs up to date."""
    exchange_places(model, assignment.places, assignment.own, u, v)
    s, t = assignment.slot_of[u], assignment.slot_of[v]
    assignment.slot_of[u], assignment.slot_of[v] = t, s
    assignment.item_at[s], assignment.item_at[t] = v, u

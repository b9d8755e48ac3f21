"""Compiled costs of a mapping: of one pair, of everything, and of exchanging two ranks.

`places` holds a node for every slot of the machine: ``places[r]`` is the node of rank r, and what
follows the ranks are the nodes of the free slots, each held by a dummy rank without traffic. So a
move to a free slot is an exchange like any other.

Kernels bind the fields of a model to names before their loops and call `distance` themselves: numba
counts references on every access and on every call that passes a tuple on, ten times a distance.
"""

from __future__ import annotations

import numpy as np

from hopmap.arrays import Ints
from hopmap.compilation import njit, subroutine
from hopmap.topologies.routing import distance

from .cost_model import NEAR, CostModel


@subroutine
def charge(kind: int, hops: int) -> int:
    """Cost of a pair of weight 1 that many hops apart."""
    if kind == NEAR:
        return -1 if hops <= 1 else 0
    return hops


@subroutine
def cost_on(model: CostModel, places: Ints, rank: int, node: int) -> int:
    """Cost of all pairs of a rank if it were on the node and everybody else stayed."""
    router, kind, peer, weight = model.router, model.kind, model.peer, model.weight
    cost = 0
    for i in range(model.indptr[rank], model.indptr[rank + 1]):
        cost += weight[i] * charge(kind, distance(router, node, places[peer[i]]))
    return cost


@njit
def own_costs(model: CostModel, places: Ints) -> Ints:
    """Cost of the pairs of every rank; half of their sum is the cost of the mapping."""
    own = np.zeros(len(places), dtype=np.int64)
    for rank in range(len(places)):
        own[rank] = cost_on(model, places, rank, places[rank])
    return own


@njit
def total_cost(model: CostModel, places: Ints) -> int:
    """Cost of a mapping; every pair counted once. Needs the ranks' places only."""
    router, kind = model.router, model.kind
    indptr, peer, weight = model.indptr, model.peer, model.weight
    cost = 0
    for rank in range(len(places)):
        for i in range(indptr[rank], indptr[rank + 1]):
            if peer[i] < rank:
                hops = distance(router, places[rank], places[peer[i]])
                cost += weight[i] * charge(kind, hops)
    return cost


@subroutine
def swap_gain(model: CostModel, places: Ints, u: int, v: int) -> int:
    """Decrease of the cost if u and v exchange their places; O(peers of u and v).

    The pair (u, v) itself costs the same after the exchange.
    """
    router, kind = model.router, model.kind
    indptr, peer, weight = model.indptr, model.peer, model.weight
    gain = 0
    for rank, other in ((u, v), (v, u)):
        here, there = places[rank], places[other]
        for i in range(indptr[rank], indptr[rank + 1]):
            if peer[i] != other:
                node = places[peer[i]]
                now = charge(kind, distance(router, here, node))
                then = charge(kind, distance(router, there, node))
                gain += weight[i] * (now - then)
    return gain


@subroutine
def exchange_places(model: CostModel, places: Ints, own: Ints, u: int, v: int) -> None:
    """Let u and v exchange their places and bring all `own_costs` up to date; O(their peers)."""
    _add_to_peers(model, places, own, u, -1)
    _add_to_peers(model, places, own, v, -1)
    places[u], places[v] = places[v], places[u]
    _add_to_peers(model, places, own, u, 1)
    _add_to_peers(model, places, own, v, 1)
    own[u] = cost_on(model, places, u, places[u])
    own[v] = cost_on(model, places, v, places[v])


@subroutine
def _add_to_peers(model: CostModel, places: Ints, own: Ints, rank: int, sign: int) -> None:
    """Add the cost of the rank's pairs, times sign, to the costs of its peers."""
    router, kind, peer, weight = model.router, model.kind, model.peer, model.weight
    for i in range(model.indptr[rank], model.indptr[rank + 1]):
        hops = distance(router, places[rank], places[peer[i]])
        own[peer[i]] += sign * weight[i] * charge(kind, hops)


@njit
def swap_gains(model: CostModel, places: Ints, u: Ints, v: Ints) -> Ints:
    """`swap_gain` of each pair (u, v), each from the same places."""
    gains = np.empty(len(u), dtype=np.int64)
    for i in range(len(u)):
        gains[i] = swap_gain(model, places, u[i], v[i])
    return gains


@njit
def total_costs(model: CostModel, candidates: Ints) -> Ints:
    """`total_cost` of each row of candidates, shape (mappings, ranks or slots)."""
    costs = np.empty(len(candidates), dtype=np.int64)
    for i in range(len(candidates)):
        costs[i] = total_cost(model, candidates[i])
    return costs

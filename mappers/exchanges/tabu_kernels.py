"""Compiled robust tabu search: all gains kept up to date, the best allowed exchange made."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hopmap.compilation import njit
from hopmap.mappers.cost_kernels import CostModel, cost_on, priced, swap_gain
from hopmap.mappers.random_kernels import below, following
from hopmap.topologies.routing import distance


@njit
def all_gains(model: CostModel, places: NDArray[np.int64], gains: NDArray[np.int64]) -> None:
    """Fill ``gains[u, v]``, u < v, with `swap_gain`."""
    for u in range(len(places)):
        for v in range(u + 1, len(places)):
            gains[u, v] = swap_gain(model, places, u, v)


@njit
def tabu_steps(
    model: CostModel,
    places: NDArray[np.int64],
    gains: NDArray[np.int64],
    until: NDArray[np.int64],
    shortest: int,
    longest: int,
    aspiration: int,
    cost: int,
    best: NDArray[np.int64],
    best_cost: int,
    first: int,
    last: int,
    random: NDArray[np.uint64],
) -> tuple[int, int]:
    """Make steps first..last-1, all in place; return the present and the best cost.

    ``until[r, x]`` is the step up to which rank r must not return to node x. An exchange is tabu if
    that holds for both ranks; one that leads to a new best is allowed all the same, and one whose
    ranks both have been away for `aspiration` steps is forced.
    """
    n = len(places)
    pull, farther = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    own = np.empty(n, dtype=np.int64)
    for x in range(n):
        own[x] = cost_on(model, places, x, places[x])
    state = random[0]
    for step in range(first, last):
        chosen_u, chosen_v, chosen_gain, forced = -1, -1, 0, False
        for u in range(n):
            for v in range(u + 1, n):
                if places[u] == places[v]:
                    continue
                a, b = until[u, places[v]], until[v, places[u]]
                gain = gains[u, v]
                urgent = a < step - aspiration and b < step - aspiration
                allowed = a < step or b < step or cost - gain < best_cost or urgent
                if not allowed or (forced and not urgent):
                    continue
                if chosen_u < 0 or gain > chosen_gain or (urgent and not forced):
                    chosen_u, chosen_v, chosen_gain, forced = u, v, gain, forced or urgent
        if chosen_u < 0:
            continue
        u, v = chosen_u, chosen_v
        for rank in (u, v):
            state = following(state)
            until[rank, places[rank]] = step + shortest + below(state, longest - shortest + 1)
        _exchange(model, places, own, gains, pull, farther, u, v)
        cost -= chosen_gain
        if cost < best_cost:
            best_cost = cost
            best[:] = places
    random[0] = state
    return cost, best_cost


@njit
def _exchange(
    model: CostModel,
    places: NDArray[np.int64],
    own: NDArray[np.int64],
    gains: NDArray[np.int64],
    pull: NDArray[np.int64],
    farther: NDArray[np.int64],
    u: int,
    v: int,
) -> None:
    """Exchange u and v; bring own costs and all gains up to date, of other pairs in O(1) each.

    With w(x) what x sends to u less what it sends to v, and d(x) how much farther than u's node
    v's is from x, the gain of x and y grows by (w(x) - w(y)) (d(x) - d(y)) (Taillard 1991, eq. 2).
    """
    n, here, there = len(places), places[u], places[v]
    pull[:] = 0
    for i in range(model.indptr[u], model.indptr[u + 1]):
        pull[model.peer[i]] += model.weight[i]
    for i in range(model.indptr[v], model.indptr[v + 1]):
        pull[model.peer[i]] -= model.weight[i]
    for x in range(n):
        after = priced(model.kind, distance(model.router, places[x], there))
        farther[x] = after - priced(model.kind, distance(model.router, places[x], here))
        own[x] += pull[x] * farther[x]
    places[u], places[v] = there, here
    for rank in (u, v):
        own[rank] = cost_on(model, places, rank, places[rank])
    for x in range(n):
        of_x, far = pull[x], farther[x]
        for y in range(x + 1, n):
            gains[x, y] += (of_x - pull[y]) * (far - farther[y])
    for rank in (u, v):
        _renew(model, places, own, gains, pull, farther, rank)


@njit
def _renew(
    model: CostModel,
    places: NDArray[np.int64],
    own: NDArray[np.int64],
    gains: NDArray[np.int64],
    cost: NDArray[np.int64],
    price: NDArray[np.int64],
    rank: int,
) -> None:
    """Compute the gains of a rank with all others: each at the other's place, their pair apart."""
    n, kind, router = len(places), model.kind, model.router
    indptr, peer, weight = model.indptr, model.peer, model.weight
    for x in range(n):
        price[x] = priced(kind, distance(router, places[rank], places[x]))
    cost[:] = 0  # of the rank at the place of each
    for i in range(indptr[rank], indptr[rank + 1]):
        other, much = peer[i], weight[i]
        for x in range(n):
            cost[x] += much * priced(kind, distance(router, places[x], places[other]))
        cost[other] += much * (2 * price[other] - priced(kind, 0))
    for x in range(n):
        if x != rank:
            gain = own[rank] + own[x] - cost[x]
            for i in range(indptr[x], indptr[x + 1]):
                if peer[i] != rank:
                    gain -= weight[i] * price[peer[i]]
            gains[min(x, rank), max(x, rank)] = gain

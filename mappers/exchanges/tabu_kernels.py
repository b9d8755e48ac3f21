"""Compiled robust tabu search: all gains kept up to date, the best allowed exchange made.

Of every rank is also kept what it would cost at the place of every other, so that a step renews
each of its gains in O(1): those of the two that have moved as well. O(slots * peers) for sparse
traffic, then, and one look at every gain.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.compilation import njit
from hopmap.mappers.cost_kernels import CostModel, priced
from hopmap.mappers.random_kernels import below, following
from hopmap.topologies.routing import distance

NEVER = 2**62


class TabuSearch(NamedTuple):
    """State of a tabu search; see `begin`.

    Attributes
    ----------
    places, best : ndarray(int64, shape=(slots,))
        Node of every rank and dummy, now and when the cost was least.
    at : ndarray(int64, shape=(slots, slots))
        ``at[u, v]``: what the pairs of u would cost on v's node, everybody else staying.
    gains : ndarray(int64, shape=(slots, slots))
        ``gains[u, v]``, u < v: decrease of the cost if u and v exchange their places.
    until : ndarray(int64, shape=(slots, nodes))
        ``until[r, x]``: step up to which rank r must not return to node x.
    costs : ndarray(int64, shape=(2,))
        Of the present and of the best places.
    steps : ndarray(int64, shape=(2,))
        Steps made, and the first at which some exchange may have to be forced.
    random : ndarray(uint64, shape=(1,))
        See `random_kernels`.
    """

    places: NDArray[np.int64]
    best: NDArray[np.int64]
    at: NDArray[np.int64]
    gains: NDArray[np.int64]
    until: NDArray[np.int64]
    costs: NDArray[np.int64]
    steps: NDArray[np.int64]
    random: NDArray[np.uint64]


@njit
def begin(model: CostModel, search: TabuSearch) -> None:
    """Compute costs and gains of the present places; O(slots * (pairs + slots))."""
    places, at, gains = search.places, search.at, search.gains
    n, kind, router = len(places), model.kind, model.router
    peer, weight = model.peer, model.weight
    cost = 0
    for u in range(n):
        at[u] = 0
        for i in range(model.indptr[u], model.indptr[u + 1]):
            node, much = places[peer[i]], weight[i]
            for v in range(n):
                at[u, v] += much * priced(kind, distance(router, places[v], node))
        cost += at[u, u]
    for u in range(n):
        for v in range(u + 1, n):
            gains[u, v] = at[u, u] + at[v, v] - at[u, v] - at[v, u]
        _pairs_apart(model, search, u)
    search.until[:] = 0
    search.steps[:] = 0
    search.costs[0] = cost // 2
    if search.costs[0] < search.costs[1]:
        search.costs[1] = search.costs[0]
        search.best[:] = places


@njit
def _pairs_apart(model: CostModel, search: TabuSearch, u: int) -> None:
    """Take off the gains of u and its later peers what their pair, which stays, would seem to."""
    places, gains = search.places, search.gains
    kind, router, peer, weight = model.kind, model.router, model.peer, model.weight
    for i in range(model.indptr[u], model.indptr[u + 1]):
        v = peer[i]
        if v > u:
            apart = priced(kind, distance(router, places[u], places[v])) - priced(kind, 0)
            gains[u, v] -= 2 * weight[i] * apart


@njit
def tabu_steps(
    model: CostModel,
    search: TabuSearch,
    shortest: int,
    longest: int,
    aspiration: int,
    steps: int,
) -> None:
    """Make so many steps.

    An exchange is tabu for both ranks or not at all; one that leads to a new best is allowed all
    the same, and one whose ranks both have been away for `aspiration` steps is forced.
    """
    places, gains, until, costs = search.places, search.gains, search.until, search.costs
    n = len(places)
    pull, farther = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    state = search.random[0]
    for step in range(search.steps[0] + 1, search.steps[0] + steps + 1):
        u, v = -1, -1
        if step >= search.steps[1]:
            u, v, search.steps[1] = _forced(model, search, aspiration, step)
        if u < 0:
            chosen, enough = -NEVER, costs[0] - costs[1]
            for x in range(n - 1):
                row = gains[x, x + 1 :]
                most = -NEVER
                for i in range(len(row)):
                    most = max(most, row[i])
                if most <= chosen:
                    continue
                for i in range(len(row)):
                    if row[i] > chosen and _differ(model, places, x, x + 1 + i):
                        y = x + 1 + i
                        a, b = until[x, places[y]], until[y, places[x]]
                        if a < step or b < step or row[i] > enough:
                            u, v, chosen = x, y, row[i]
        if u < 0:
            continue
        for rank in (u, v):
            state = following(state)
            until[rank, places[rank]] = step + shortest + below(state, longest - shortest + 1)
        costs[0] -= gains[u, v]
        exchange(model, search, u, v, pull, farther)
        if costs[0] < costs[1]:
            costs[1] = costs[0]
            search.best[:] = places
        for rank in (u, v):
            for x in range(n):
                if x != rank:
                    since = max(until[x, places[rank]], until[rank, places[x]])
                    search.steps[1] = min(search.steps[1], since + aspiration + 1)
    search.steps[0] += steps
    search.random[0] = state


@njit(inline="always")
def _differ(model: CostModel, places: NDArray[np.int64], u: int, v: int) -> bool:
    """Whether it matters who of the two is where."""
    indptr = model.indptr
    silent = indptr[u] == indptr[u + 1] and indptr[v] == indptr[v + 1]
    return places[u] != places[v] and not silent


@njit
def _forced(
    model: CostModel, search: TabuSearch, aspiration: int, step: int
) -> tuple[int, int, int]:
    """Find the best exchange that is forced, or -1, -1; and when the next one may be."""
    places, gains, until = search.places, search.gains, search.until
    u, v, soonest = -1, -1, NEVER
    for x in range(len(places)):
        for y in range(x + 1, len(places)):
            if not _differ(model, places, x, y):
                continue
            since = max(until[x, places[y]], until[y, places[x]])
            soonest = min(soonest, since + aspiration + 1)
            if since + aspiration < step and (u < 0 or gains[x, y] > gains[u, v]):
                u, v = x, y
    return u, v, soonest


@njit
def exchange(
    model: CostModel,
    search: TabuSearch,
    u: int,
    v: int,
    pull: NDArray[np.int64],
    farther: NDArray[np.int64],
) -> None:
    """Exchange u < v; bring all costs and gains up to date, each in O(1).

    With w(x) what x sends to u less what it sends to v, and d(x) how much farther than u's node
    v's is from x, the gain of x and y grows by (w(x) - w(y)) (d(x) - d(y)) (Taillard 1991, eq. 2),
    and what x would cost on y's node by w(x) d(y).
    """
    places, at, gains = search.places, search.at, search.gains
    n, here, there = len(places), places[u], places[v]
    router, kind, peer, weight = model.router, model.kind, model.peer, model.weight
    pull[:] = 0
    for i in range(model.indptr[u], model.indptr[u + 1]):
        pull[peer[i]] += weight[i]
    for i in range(model.indptr[v], model.indptr[v + 1]):
        pull[peer[i]] -= weight[i]
    for x in range(n):
        after = priced(kind, distance(router, places[x], there))
        farther[x] = after - priced(kind, distance(router, places[x], here))
    for x in range(n):
        of_x, far, on = pull[x], farther[x], at[x]
        if of_x != 0:
            for y in range(n):
                on[y] += of_x * farther[y]
        on[u], on[v] = on[v], on[u]
        row, pulls, fars = gains[x, x + 1 :], pull[x + 1 :], farther[x + 1 :]
        for i in range(len(row)):
            row[i] += (of_x - pulls[i]) * (far - fars[i])
    places[u], places[v] = there, here
    for x in range(n):
        for rank in (u, v):
            if x != rank:
                gains[min(x, rank), max(x, rank)] = (
                    at[x, x] + at[rank, rank] - at[x, rank] - at[rank, x]
                )
    for rank in (u, v):
        for i in range(model.indptr[rank], model.indptr[rank + 1]):
            x = peer[i]
            apart = priced(kind, distance(router, places[rank], places[x])) - priced(kind, 0)
            if not (rank == v and x == u):
                gains[min(x, rank), max(x, rank)] -= 2 * weight[i] * apart

"""Compiled robust tabu search: all gains kept up to date, the best allowed exchange made."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hopmap.compilation import njit
from hopmap.mappers.cost_kernels import CostModel, swap_gain
from hopmap.mappers.random_kernels import below, following


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
    touched = np.zeros(n, dtype=np.bool_)
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
        _update(model, places, gains, touched, u, v)
        cost -= chosen_gain
        if cost < best_cost:
            best_cost = cost
            best[:] = places
    random[0] = state
    return cost, best_cost


@njit
def _update(
    model: CostModel,
    places: NDArray[np.int64],
    gains: NDArray[np.int64],
    touched: NDArray[np.bool_],
    u: int,
    v: int,
) -> None:
    """Exchange u and v and bring the gains that this changes up to date: theirs, their peers'."""
    indptr, peer = model.indptr, model.peer
    places[u], places[v] = places[v], places[u]
    touched[:] = False
    touched[u] = touched[v] = True
    for rank in (u, v):
        for i in range(indptr[rank], indptr[rank + 1]):
            touched[peer[i]] = True
    for x in range(len(places)):
        for y in range(x + 1, len(places)):
            if touched[x] or touched[y]:
                gains[x, y] = swap_gain(model, places, x, y)

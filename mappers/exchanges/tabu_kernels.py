"""Compiled robust tabu search: all gains kept up to date, the best allowed exchange made.

Of every rank is also kept what it would cost at the place of every other, so that a step renews
every gain in O(1), also for the two ranks that have moved: O(slots^2) a step.

Gains, and until when exchanges are tabu, lie as ``table[k, x]`` for ranks x and x + k (modulo their
number), k up to half of it: rows of one length, every pair once, read from end to end by vector
instructions. Numbers have 32 bits where they fit, which is twice as fast; see `tabu.start_search`.
Sums are cast back at once, for numba computes in 64 bits.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.arrays import Bools, Ints, Ints32, Words
from hopmap.compilation import njit, subroutine
from hopmap.mappers.basic_kernels import draw, next_state
from hopmap.mappers.cost_kernels import charge
from hopmap.mappers.cost_model import CostModel
from hopmap.topologies.routing import distance

NEVER = 2**62
ALWAYS = 2**30  # step that no search gets to: until then, what is no exchange at all is tabu


class TabuSearch(NamedTuple):
    """State of a tabu search; see `begin`. N stands for int32 or int64."""

    # shape (slots, slots): of every pair of ranks and dummies, 0 if they do not talk
    weight: NDArray[Any]
    # shape (places, places): of a pair of weight 1 on two places; places are the nodes that have
    # slots
    price: NDArray[Any]
    silent: Bools  # shape (slots,): whether it has no peers
    nodes: Ints  # shape (places,): node of every place
    # spots, best: shape (slots,): place of every rank and dummy, now and when the cost was least
    spots: Ints
    best: Ints
    # shape (slots, slots): ``at[u, v]``: what the pairs of u would cost on v's place, everybody
    # else staying
    at: NDArray[Any]
    # shape (slots // 2 + 1, slots): ``gains[k, x]``: decrease of the cost if x and x + k exchange
    # their places; row 0 is unused
    gains: NDArray[Any]
    # shape (slots, places): ``until[r, p]``: step up to which rank r must not return to place p
    until: Ints32
    # shape (slots // 2 + 1, slots): ``tabu[k, x]``: step up to which x and x + k must not be
    # exchanged
    tabu: Ints32
    costs: Ints  # shape (2,): of the present and of the best places
    # shape (2,): steps made, and the first at which some exchange may have to be forced
    steps: Ints
    random: Words  # shape (1,): see `basic_kernels`


@njit
def prices(model: CostModel, nodes: Ints) -> Ints:
    """Cost of a pair of weight 1 between any two of some nodes."""
    router, kind, n = model.router, model.kind, len(nodes)
    price = np.empty((n, n), dtype=np.int64)
    for x in range(n):
        for y in range(n):
            price[x, y] = charge(kind, distance(router, nodes[x], nodes[y]))
    return price


@njit
def begin(search: TabuSearch) -> None:
    """Compute costs and gains of the present places; O(slots * (pairs + slots))."""
    weight, price, spots, at = search.weight, search.price, search.spots, search.at
    n, number = len(spots), at.dtype.type
    apart = np.empty_like(at)
    for x in range(n):
        for y in range(n):
            apart[x, y] = price[spots[x], spots[y]]
    cost = 0
    for x in range(n):
        row = at[x]
        row[:] = 0
        for y in range(n):
            if weight[x, y] != 0:
                far = apart[y]
                for i in range(n):
                    row[i] += number(number(weight[x, y]) * far[i])
        cost += row[x]
    search.until[:] = 0
    for x in range(n):
        _renew(search, x)
    search.steps[:] = 0
    search.costs[0] = cost // 2
    if search.costs[0] < search.costs[1]:
        search.costs[1] = search.costs[0]
        for x in range(n):
            search.best[x] = spots[x]


@subroutine
def _renew(search: TabuSearch, x: int) -> None:
    """Compute the gains of x with all others, and until when they are tabu."""
    weight, price, spots, at = search.weight, search.price, search.spots, search.at
    gains, tabu, until, silent = search.gains, search.tabu, search.until, search.silent
    n, same = len(spots), price[0, 0]
    own, place, far = at[x, x], spots[x], price[spots[x]]
    for y in range(n):
        if y == x:
            continue
        # What the pair of the two itself would seem to save is taken off: it stays as far apart.
        gain = own + at[y, y] - at[x, y] - at[y, x] - 2 * weight[x, y] * (far[spots[y]] - same)
        last = min(until[x, spots[y]], until[y, place])
        if spots[y] == place or (silent[x] and silent[y]):
            last = ALWAYS
        k = y - x if y > x else y - x + n
        if 2 * k <= n:
            gains[k, x] = gain
            tabu[k, x] = last
        if 2 * k >= n:
            gains[n - k, y] = gain
            tabu[n - k, y] = last


@njit
def tabu_steps(
    search: TabuSearch, shortest: int, longest: int, aspiration: int, steps: int
) -> None:
    """Make so many steps.

    An exchange is tabu for both ranks or not at all; one that leads to a new best is allowed all
    the same, and one whose ranks both have been away for `aspiration` steps is forced.
    """
    spots, until, costs, gains = search.spots, search.until, search.costs, search.gains
    n = len(spots)
    pull, farther = np.zeros(2 * n, gains.dtype), np.zeros(2 * n, gains.dtype)
    state = search.random[0]
    for step in range(search.steps[0] + 1, search.steps[0] + steps + 1):
        u, v, gain = -1, -1, 0
        if step >= search.steps[1]:
            u, v, gain, search.steps[1] = _best_forced(search, aspiration, step)
        if u < 0:
            u, v, gain = _best_legal(gains, search.tabu, step, costs[0] - costs[1])
        if u < 0:
            continue
        for rank in (u, v):
            state = next_state(state)
            until[rank, spots[rank]] = step + shortest + draw(state, longest - shortest + 1)
        costs[0] -= gain
        exchange(search, u, v, pull, farther)
        _renew(search, u)
        _renew(search, v)
        if costs[0] < costs[1]:
            costs[1] = costs[0]
            for x in range(n):
                search.best[x] = spots[x]
        for rank in (u, v):
            for x in range(n if aspiration < NEVER else 0):
                if x != rank:
                    since = max(until[x, spots[rank]], until[rank, spots[x]])
                    search.steps[1] = min(search.steps[1], since + aspiration + 1)
    search.steps[0] += steps
    search.random[0] = state


@subroutine
def _best_legal(gains: NDArray[Any], tabu: Ints32, step: int, enough: int) -> tuple[int, int, int]:
    """Find the best exchange that is not tabu, or that gains more than enough, or -1, -1."""
    number, now, n = gains.dtype.type, np.int32(step), gains.shape[1]
    beyond = 2 ** (8 * gains.itemsize - 2)  # any gain
    enough, lowest = number(min(enough, beyond)), number(-beyond)
    chosen, where = lowest, 0
    for k in range(1, len(gains)):
        row, last = gains[k], tabu[k]
        most = lowest
        for x in range(n):
            most = max(most, row[x] if (last[x] < now) | (row[x] > enough) else lowest)
        if most > chosen:
            chosen, where = most, k
    for x in range(n if where > 0 else 0):
        if gains[where, x] == chosen and (tabu[where, x] < now or chosen > enough):
            return x, (x + where) % n, chosen
    return -1, -1, 0


@subroutine
def _best_forced(search: TabuSearch, aspiration: int, step: int) -> tuple[int, int, int, int]:
    """Find the best exchange that is forced, or -1, -1; and when the next one may be."""
    spots, gains, until, tabu = search.spots, search.gains, search.until, search.tabu
    u, v, chosen, soonest, n = -1, -1, 0, NEVER, len(spots)
    for k in range(1, len(gains)):
        for x in range(n):
            y = (x + k) % n
            if tabu[k, x] == ALWAYS:
                continue
            since = max(until[x, spots[y]], until[y, spots[x]])
            soonest = min(soonest, since + aspiration + 1)
            if since + aspiration < step and (u < 0 or gains[k, x] > chosen):
                u, v, chosen = x, y, gains[k, x]
    return u, v, chosen, soonest


@subroutine
def exchange(search: TabuSearch, u: int, v: int, pull: NDArray[Any], farther: NDArray[Any]) -> None:
    """Exchange u and v; bring all costs and gains but their own up to date, each in O(1).

    With w(x) what x sends to u less what it sends to v, and d(x) how much farther than u's place
    v's is from x, the gain of x and y grows by (w(x) - w(y)) (d(x) - d(y)) (Taillard 1991, eq. 2),
    and what x would cost on y's place by w(x) d(y).
    """
    spots, at, gains = search.spots, search.at, search.gains
    n, number = len(spots), at.dtype.type
    to_u, to_v = search.weight[u], search.weight[v]
    here, there = search.price[spots[u]], search.price[spots[v]]
    for x in range(n):
        pull[x] = pull[x + n] = to_u[x] - to_v[x]
        farther[x] = farther[x + n] = there[spots[x]] - here[spots[x]]
    for x in range(n):
        row = at[x]
        if pull[x] != 0:
            for y in range(n):
                row[y] += number(number(pull[x]) * farther[y])
        row[u], row[v] = row[v], row[u]
    for k in range(1, len(gains)):
        row, other, beyond = gains[k], pull[k:], farther[k:]
        for x in range(n):
            row[x] += number((pull[x] - other[x]) * (farther[x] - beyond[x]))
    spots[u], spots[v] = spots[v], spots[u]

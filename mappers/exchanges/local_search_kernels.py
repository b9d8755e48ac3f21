"""Compiled exchanges between ranks that are near each other, or any two, until none gains.

Items are the ranks and, after them, a dummy for each free slot. A pair's gain depends on the places
of the two and of their peers alone, so that after a failure it is tried again only once one of
these has moved: `changed` and `visited` keep the times. What is left out could not have succeeded.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hopmap.arrays import Ints
from hopmap.compilation import njit, subroutine
from hopmap.mappers.cost_kernels import charge, exchange_places
from hopmap.mappers.cost_model import NEAR, CostModel
from hopmap.topologies.routing import distance

ALL, BLOCKS, WITHIN = range(3)
FREE = 64  # items without peers that a rank is compared with, drawn again at each visit


class LocalSearch(NamedTuple):
    """State of a local search."""

    places: Ints  # shape (slots,): node of every item
    # own, least: shape (slots,): present cost of the item's pairs, and what it cannot fall below
    own: Ints
    least: Ints
    changed: Ints  # shape (slots,): time of the last exchange of the item or of one of its peers
    visited: Ints  # shape (slots,): time when the item was last compared with all of its partners
    # partners, reached: shape (slots,): the partners of one item; when a breadth-first search last
    # reached an item
    partners: Ints
    reached: Ints
    silent: Ints  # items without peers
    # row_u, row_v: shape (slots,) or (0,): weights between an item and all others, for gains in
    # O(slots)
    row_u: Ints
    row_v: Ints
    state: Ints  # shape (2,): the time, and the state of the random numbers


@njit
def improve(
    model: CostModel,
    search: LocalSearch,
    items: Ints,
    start: int,
    budget: int,
    neighbourhood: int,
    reach: int,
) -> int:
    """Exchange each item with the partners that gain, from ``items[start]``; return where to go on.

    It returns after `budget` pairs. The neighbourhood is ALL, BLOCKS of `reach` consecutive items,
    or ranks WITHIN `reach` edges of each other.
    """
    router, kind = model.router, model.kind
    indptr, peer, weight = model.indptr, model.peer, model.weight
    places, own, least = search.places, search.own, search.least
    changed, visited, partners = search.changed, search.visited, search.partners
    dense = len(search.row_u) > 0
    at = start
    while at < len(items) and budget > 0:
        u = items[at]
        at += 1
        search.state[0] += 1
        now = search.state[0]
        visited[u] = now
        count = _find_partners(model, search, u, neighbourhood, reach)
        budget -= count + 1
        for k in range(count):
            v = partners[k]
            a, b = places[u], places[v]
            if a == b or u == v or visited[v] > max(changed[u], changed[v]):
                continue
            if dense:
                gain = dense_gain(model, search, u, v)
            else:
                gain = 0
                for i in range(indptr[u], indptr[u + 1]):
                    if peer[i] != v:
                        node = places[peer[i]]
                        here = charge(kind, distance(router, a, node))
                        gain += weight[i] * (here - charge(kind, distance(router, b, node)))
                if gain + own[v] - least[v] <= 0:
                    continue
                for i in range(indptr[v], indptr[v + 1]):
                    if peer[i] != u:
                        node = places[peer[i]]
                        here = charge(kind, distance(router, b, node))
                        gain += weight[i] * (here - charge(kind, distance(router, a, node)))
            if gain > 0:
                exchange(model, search, u, v)
    return at


@subroutine
def exchange(model: CostModel, search: LocalSearch, u: int, v: int) -> None:
    """Let u and v exchange their places; O(peers of u and v)."""
    changed, indptr, peer = search.changed, model.indptr, model.peer
    now = search.state[0]
    exchange_places(model, search.places, search.own, u, v)
    for item in (u, v):
        changed[item] = now
        for i in range(indptr[item], indptr[item + 1]):
            changed[peer[i]] = now


@subroutine
def dense_gain(model: CostModel, search: LocalSearch, u: int, v: int) -> int:
    """Gain of an exchange from whole rows of the two matrices, as Brandfass et al. do; O(slots)."""
    router, kind = model.router, model.kind
    indptr, peer, weight = model.indptr, model.peer, model.weight
    places, row_u, row_v = search.places, search.row_u, search.row_v
    for i in range(indptr[u], indptr[u + 1]):
        row_u[peer[i]] = weight[i]
    for i in range(indptr[v], indptr[v + 1]):
        row_v[peer[i]] = weight[i]
    a, b = places[u], places[v]
    gain = 0
    for k in range(len(places)):
        if k != u and k != v:
            node = places[k]
            from_a = charge(kind, distance(router, a, node))
            gain += (row_u[k] - row_v[k]) * (from_a - charge(kind, distance(router, b, node)))
    for i in range(indptr[u], indptr[u + 1]):
        row_u[peer[i]] = 0
    for i in range(indptr[v], indptr[v + 1]):
        row_v[peer[i]] = 0
    return gain


@njit
def floors(model: CostModel, nearest: int) -> Ints:
    """Return what the cost of each item's pairs cannot fall below, no two nodes being nearer."""
    least = np.zeros(len(model.indptr) - 1, dtype=np.int64)
    price = -1 if model.kind == NEAR else nearest
    for item in range(len(least)):
        for i in range(model.indptr[item], model.indptr[item + 1]):
            least[item] += price * model.weight[i]
    return least


@subroutine
def _find_partners(
    model: CostModel, search: LocalSearch, u: int, neighbourhood: int, reach: int
) -> int:
    """Write the partners of an item to ``search.partners``; returns how many."""
    partners, silent = search.partners, search.silent
    indptr = model.indptr
    count = 0
    if neighbourhood != WITHIN:
        first, end = 0, len(partners)
        if neighbourhood == BLOCKS:
            first = u // reach * reach
            end = min(first + reach, end)
        mute = indptr[u] == indptr[u + 1]
        for v in range(first, end):
            # Two items without peers have nothing to exchange.
            if not (mute and indptr[v] == indptr[v + 1]):
                partners[count] = v
                count += 1
        return count
    if indptr[u] == indptr[u + 1]:
        return 0
    count = _ball(model, search, u, reach)
    for i in range(count - 1, 0, -1):
        j = _random(search.state, i + 1)
        partners[i], partners[j] = partners[j], partners[i]
    for i in range(min(FREE, len(silent), len(partners) - count)):
        partners[count] = silent[i if len(silent) <= FREE else _random(search.state, len(silent))]
        count += 1
    return count


@subroutine
def _ball(model: CostModel, search: LocalSearch, u: int, reach: int) -> int:
    """Write u and the ranks at most `reach` edges from it to ``search.partners``."""
    indptr, peer = model.indptr, model.peer
    partners, reached = search.partners, search.reached
    now = search.state[0]
    reached[u] = now
    partners[0] = u
    count = 1
    head = 0
    for _ in range(reach):
        end = count
        while head < end:
            for i in range(indptr[partners[head]], indptr[partners[head] + 1]):
                if reached[peer[i]] != now:
                    reached[peer[i]] = now
                    partners[count] = peer[i]
                    count += 1
            head += 1
        if count == end:
            break
    return count


@subroutine
def _random(state: Ints, below: int) -> int:
    """Next number 0..below-1 (Lehmer's generator of Park and Miller 1988, modulus 2^31 - 1)."""
    state[1] = state[1] * 48271 % 2147483647
    return int(state[1] % below)

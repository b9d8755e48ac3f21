"""Compiled A*: the heap of open states and their expansion.

A state places the first `depth` ranks of a fixed order. It is a row in `States`: its parent, the
node of its last rank, its depth, its cost and its bound (cost so far + lower bound of the rest).

At the end the lower bound of the cost of pairs of ranks that are not placed yet.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hopmap.arrays import Bools, Ints, Ints32
from hopmap.compilation import njit, subroutine
from hopmap.mappers.basic_kernels import sort_by
from hopmap.mappers.cost_kernels import charge
from hopmap.mappers.cost_model import CostModel
from hopmap.topologies.routing import distance

FAR = np.int64(1) << np.int64(61)

# Entries of Search.counters.
STATES, OPEN, CUT, DONE = 0, 1, 2, 3


class States(NamedTuple):
    """All states made so far, one entry a state, and the heap of those that are open."""

    parent: Ints
    node: Ints32
    depth: Ints32
    cost: Ints
    bound: Ints
    heap: Ints  # numbers of the open states, least bound first, deepest first among equals


class SearchTask(NamedTuple):
    """Fixed inputs of a search, without its states."""

    order: Ints  # shape (ranks,): rank that is placed at each depth
    slots: Ints  # shape (nodes,): slots of each node
    # shape (nodes,): nodes that the first rank has to try; the others are their mirror images
    first: Bools
    # shape (ranks + 1,): lower bound of the pairs whose ranks are both unplaced, by depth
    unplaced: Ints
    expanded: Ints  # shape (ranks + 1,): states expanded at each depth
    node_of: Ints  # shape (ranks,): best complete mapping so far
    # shape (4,): states made; states open; least bound of the states that a beam cut off; cost of
    # `node_of`
    counters: Ints


@subroutine
def _precedes(states: States, s: int, t: int) -> bool:
    if states.bound[s] != states.bound[t]:
        return bool(states.bound[s] < states.bound[t])
    if states.depth[s] != states.depth[t]:
        return bool(states.depth[s] > states.depth[t])
    return s < t


@subroutine
def _push(states: States, counters: Ints, state: int) -> None:
    heap = states.heap
    i = counters[OPEN]
    counters[OPEN] += 1
    while i > 0:
        up = (i - 1) // 2
        if not _precedes(states, state, heap[up]):
            break
        heap[i] = heap[up]
        i = up
    heap[i] = state


@subroutine
def _pop(states: States, counters: Ints) -> int:
    heap = states.heap
    top = heap[0]
    counters[OPEN] -= 1
    size = counters[OPEN]
    last = heap[size]
    i = 0
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and _precedes(states, heap[child + 1], heap[child]):
            child += 1
        if not _precedes(states, heap[child], last):
            break
        heap[i] = heap[child]
        i = child
    heap[i] = last
    return int(top)


@njit
def start(search: SearchTask, states: States) -> None:
    """Open the state that places no rank."""
    states.parent[0] = -1
    states.node[0] = -1
    states.depth[0] = 0
    states.cost[0] = 0
    states.bound[0] = search.unplaced[0]
    search.counters[STATES] = 1
    _push(states, search.counters, 0)


@njit
def expand(model: CostModel, search: SearchTask, states: States, beam: int, steps: int) -> bool:
    """Expand up to `steps` states, at most `beam` of each depth if beam > 0; True when finished.

    The arrays of `states` must have room for steps * nodes more states.
    """
    counters = search.counters
    for _ in range(steps):
        if counters[OPEN] == 0 or states.bound[states.heap[0]] >= counters[DONE]:
            return True
        state = _pop(states, counters)
        depth = states.depth[state]
        if depth == len(search.order):
            counters[DONE] = states.cost[state]
            while depth > 0:
                depth -= 1
                search.node_of[search.order[depth]] = states.node[state]
                state = states.parent[state]
            return True
        if 0 < beam <= search.expanded[depth]:
            counters[CUT] = min(counters[CUT], states.bound[state])
            continue
        search.expanded[depth] += 1
        _expand_one(model, search, states, state, beam)
    return False


@subroutine
def _expand_one(
    model: CostModel, search: SearchTask, states: States, state: int, beam: int
) -> None:
    """Open the children of a state: its next rank on every node with room."""
    router, kind = model.router, model.kind
    indptr, peer, weight = model.indptr, model.peer, model.weight
    ranks, nodes = len(search.order), len(search.slots)
    counters, order = search.counters, search.order
    depth = states.depth[state]
    rank = order[depth]

    node_of = np.full(ranks, -1, dtype=np.int64)
    room = search.slots.copy()
    walk = state
    for level in range(depth - 1, -1, -1):
        node_of[order[level]] = states.node[walk]
        room[states.node[walk]] -= 1
        walk = states.parent[walk]

    # Ranks with placed peers: what each costs on each node with room, the least of that, the
    # node of the least, and the least elsewhere. Row 0 is the rank to be placed.
    rows = np.empty(ranks - depth, dtype=np.int64)
    row_of = np.full(ranks, -1, dtype=np.int64)
    count = 0
    for level in range(depth, ranks):
        r = order[level]
        touched = level == depth
        for i in range(indptr[r], indptr[r + 1]):
            touched = touched or node_of[peer[i]] >= 0
        if touched:
            rows[count] = r
            row_of[r] = count
            count += 1
    costs = np.zeros((count, nodes), dtype=np.int64)
    least = np.full(count, FAR, dtype=np.int64)
    least_at = np.full(count, -1, dtype=np.int64)
    second = np.full(count, FAR, dtype=np.int64)
    rest = 0
    for row in range(count):
        r = rows[row]
        for i in range(indptr[r], indptr[r + 1]):
            there = node_of[peer[i]]
            if there >= 0:
                for x in range(nodes):
                    costs[row, x] += weight[i] * charge(kind, distance(router, there, x))
        for x in range(nodes):
            if room[x] > 0:
                if costs[row, x] < least[row]:
                    second[row] = least[row]
                    least[row] = costs[row, x]
                    least_at[row] = x
                elif costs[row, x] < second[row]:
                    second[row] = costs[row, x]
        if row > 0:
            rest += least[row]

    # Nodes for the rank, the cheapest first; a rank without traffic needs one only.
    candidates = np.empty(nodes, dtype=np.int64)
    n = 0
    for x in range(nodes):
        if room[x] > 0 and (depth > 0 or search.first[x]):
            candidates[n] = x
            n += 1
    sort_by(costs[0], candidates[:n], np.empty(n, dtype=np.int64))
    if indptr[rank] == indptr[rank + 1]:
        n = min(n, 1)
    for k in range(n):
        x = candidates[k]
        cost = states.cost[state] + costs[0, x]
        if 0 < beam <= k:
            # What follows costs no less, and no pair of ranks unplaced before it costs less.
            cut = max(states.bound[state], cost + rest + search.unplaced[depth])
            counters[CUT] = min(counters[CUT], cut)
            break
        full = room[x] == 1
        bound = cost + rest + search.unplaced[depth + 1]
        if full:
            for row in range(1, count):
                if least_at[row] == x:
                    bound += second[row] - least[row]
        for i in range(indptr[rank], indptr[rank + 1]):
            p = peer[i]
            if node_of[p] >= 0:
                continue
            row = row_of[p]
            taken = 0
            if row >= 0:
                taken = second[row] if full and least_at[row] == x else least[row]
            closer = FAR
            for y in range(nodes):
                if room[y] > 0 and not (full and y == x):
                    price = weight[i] * charge(kind, distance(router, x, y))
                    if row >= 0:
                        price += costs[row, y]
                    closer = min(closer, price)
            bound += closer - taken
        bound = max(bound, states.bound[state])
        if bound >= counters[DONE]:
            continue
        new = counters[STATES]
        counters[STATES] += 1
        states.parent[new] = state
        states.node[new] = x
        states.depth[new] = depth + 1
        states.cost[new] = cost
        states.bound[new] = bound
        _push(states, counters, new)


@njit
def count_close(model: CostModel, slots: Ints, worst: int) -> Ints:
    """Most slots that cost at most d for a rank on any node, its own apart, for d = least..worst.

    Entry d - least, with least the cost of two ranks on one node.
    """
    router, kind = model.router, model.kind
    least = charge(kind, 0)
    most = np.zeros(worst - least + 1, dtype=np.int64)
    here = np.empty_like(most)
    for x in range(len(slots)):
        if slots[x] == 0:
            continue
        here[:] = 0
        for y in range(len(slots)):
            here[charge(kind, distance(router, x, y)) - least] += slots[y]
        here[0] -= 1
        within = 0
        for d in range(len(most)):
            within += here[d]
            most[d] = max(most[d], within)
    return most


@njit
def unplaced_bounds(model: CostModel, order: Ints, most: Ints) -> Ints:
    """Lower bound of all pairs among the ranks order[depth:], for every depth."""
    least = charge(model.kind, 0)
    ranks = len(order)
    bounds = np.zeros(ranks + 1, dtype=np.int64)
    twice = np.zeros(ranks, dtype=np.int64)
    placed = np.ones(ranks, dtype=np.bool_)
    weights, items = np.empty(ranks, dtype=np.int64), np.empty(ranks, dtype=np.int64)
    spare = np.empty(ranks, dtype=np.int64)
    total = 0
    for depth in range(ranks - 1, -1, -1):
        u = order[depth]
        placed[u] = False
        for j in range(model.indptr[u] - 1, model.indptr[u + 1]):
            rank = u if j < model.indptr[u] else model.peer[j]
            if placed[rank]:
                continue
            count = 0
            for i in range(model.indptr[rank], model.indptr[rank + 1]):
                if not placed[model.peer[i]]:
                    weights[count] = -model.weight[i]
                    count += 1
            for i in range(count):
                items[i] = i
            sort_by(weights, items[:count], spare)
            d = 0
            bound = 0
            for i in range(count):
                while d < len(most) - 1 and most[d] <= i:
                    d += 1
                bound -= weights[items[i]] * (d + least)
            total += bound - twice[rank]
            twice[rank] = bound
        bounds[depth] = -(-total // 2)
    return bounds

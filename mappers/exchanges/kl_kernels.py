"""Compiled pass of KL: the best swap of all that are left, again and again, gains kept exact.

An item is a rank or, after the ranks, the dummy of a free slot. What
was swapped is locked, so that those not locked are where they were when the pass began: a candidate
is a pair of slots and stays the same from pass to pass. A tournament tree knows the best one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hopmap.arrays import Ints, Ints32
from hopmap.compilation import njit, subroutine
from hopmap.mappers.cost_kernels import charge, swap_gain
from hopmap.mappers.cost_model import CostModel
from hopmap.topologies.routing import Router, distance

LOCKED = -(2**63)  # gain of a candidate that may not be swapped

DONE, GAINED, BEST, MOST = range(4)


class Candidates(NamedTuple):
    """Pairs of slots at most t apart."""

    # low, high: shape (candidates,): the two slots, low < high, in lexicographic order, never on
    # one node
    low: Ints32
    high: Ints32
    indptr: Ints  # shape (slots + 1,)
    # shape (2 * candidates,): candidates of slot s are ``of_slot[indptr[s]:indptr[s + 1]]``, in
    # ascending order
    of_slot: Ints


class Pass(NamedTuple):
    """State of one pass."""

    places: Ints  # shape (slots,): node of every item
    # item_at, slot_of: shape (slots,): item of every slot, and the reverse
    item_at: Ints
    slot_of: Ints
    gain: Ints  # shape (candidates,): what the swap takes off the cost now, or LOCKED
    # shape (candidates,): ``winner[1]`` is the candidate of the largest gain, of equal ones the
    # first; of candidate c the leaf is ``len(gain) + c``, and the parent of node i is ``i // 2``
    winner: Ints32
    swapped: Ints32  # shape (slots // 2,): the candidates that were swapped, in order
    # shape (4,): DONE: swaps so far; GAINED: the sum of their gains; BEST: swaps at the largest
    # sum; MOST: that sum
    counts: Ints


@njit
def count_within(router: Router, node: Ints, t: int) -> int:
    """Return how many pairs of slots are on different nodes, but at most t apart."""
    count = 0
    for a in range(len(node)):
        for b in range(a + 1, len(node)):
            if node[a] != node[b] and distance(router, node[a], node[b]) <= t:
                count += 1
    return count


@njit
def find_within(router: Router, node: Ints, t: int, count: int) -> Candidates:
    """All `count` pairs of slots that are at most t apart; `node` is the node of each slot."""
    low, high = np.empty(count, dtype=np.int32), np.empty(count, dtype=np.int32)
    indptr = np.zeros(len(node) + 1, dtype=np.int64)
    c = 0
    for a in range(len(node)):
        for b in range(a + 1, len(node)):
            if node[a] != node[b] and distance(router, node[a], node[b]) <= t:
                low[c], high[c] = a, b
                indptr[a + 1] += 1
                indptr[b + 1] += 1
                c += 1
    indptr[:] = np.cumsum(indptr)
    of_slot = np.empty(2 * count, dtype=np.int64)
    filled = indptr[:-1].copy()
    for c in range(count):
        for slot in (low[c], high[c]):
            of_slot[filled[slot]] = c
            filled[slot] += 1
    return Candidates(low, high, indptr, of_slot)


@njit
def begin(model: CostModel, candidates: Candidates, state: Pass, ranks: int) -> None:
    """Unlock everything: gains from scratch, in O(candidates * peers)."""
    low, high = candidates.low, candidates.high
    gain, winner, item_at = state.gain, state.winner, state.item_at
    for c in range(len(gain)):
        u, v = item_at[low[c]], item_at[high[c]]
        if u >= ranks and v >= ranks:
            gain[c] = LOCKED  # two free slots
        else:
            gain[c] = swap_gain(model, state.places, u, v)
    for i in range(len(gain) - 1, 0, -1):
        winner[i] = _better(gain, winner, i)
    state.counts[:] = 0


@njit
def swap_best(model: CostModel, candidates: Candidates, state: Pass, most: int) -> bool:
    """Make the swaps of largest gain, negative ones too, `most` of them or until none is left.

    Returns whether any is left.
    """
    gain, winner, counts = state.gain, state.winner, state.counts
    for _ in range(most):
        c = int(winner[1]) if len(gain) > 1 else 0
        if len(gain) == 0 or gain[c] == LOCKED:
            return False
        state.swapped[counts[DONE]] = c
        counts[DONE] += 1
        counts[GAINED] += gain[c]
        if counts[GAINED] > counts[MOST]:
            counts[MOST] = counts[GAINED]
            counts[BEST] = counts[DONE]
        a, b = int(candidates.low[c]), int(candidates.high[c])
        u, v = state.item_at[a], state.item_at[b]
        for slot in (a, b):
            for k in range(candidates.indptr[slot], candidates.indptr[slot + 1]):
                _set(state, candidates.of_slot[k], LOCKED)
        _exchange(state, a, b)
        _update(model, candidates, state, u, state.places[v])
        _update(model, candidates, state, v, state.places[u])
    return True


@njit
def roll_back(candidates: Candidates, state: Pass) -> None:
    """Undo the swaps after the point where the cost was least, the last one first."""
    counts = state.counts
    while counts[DONE] > counts[BEST]:
        counts[DONE] -= 1
        c = state.swapped[counts[DONE]]
        _exchange(state, int(candidates.low[c]), int(candidates.high[c]))
    counts[GAINED] = counts[MOST]


@subroutine
def _update(model: CostModel, candidates: Candidates, state: Pass, moved: int, before: int) -> None:
    """Bring the gains of all swaps of the peers of an item that has moved up to date; O(1) each."""
    router, kind = model.router, model.kind
    low, high, of_slot = candidates.low, candidates.high, candidates.of_slot
    places, item_at, gain = state.places, state.item_at, state.gain
    after = places[moved]
    for i in range(model.indptr[moved], model.indptr[moved + 1]):
        slot = state.slot_of[model.peer[i]]
        weight = model.weight[i]
        here = places[model.peer[i]]
        near = charge(kind, distance(router, here, after))
        near -= charge(kind, distance(router, here, before))
        for k in range(candidates.indptr[slot], candidates.indptr[slot + 1]):
            c = of_slot[k]
            if gain[c] == LOCKED:
                continue
            there = places[item_at[low[c] + high[c] - slot]]
            far = charge(kind, distance(router, there, after))
            far -= charge(kind, distance(router, there, before))
            if near != far:
                _set(state, c, gain[c] + weight * (near - far))


@subroutine
def _exchange(state: Pass, a: int, b: int) -> None:
    """Let the items of two slots change places."""
    places, item_at, slot_of = state.places, state.item_at, state.slot_of
    u, v = item_at[a], item_at[b]
    places[u], places[v] = places[v], places[u]
    item_at[a], item_at[b] = v, u
    slot_of[u], slot_of[v] = b, a


@subroutine
def _better(gain: Ints, winner: Ints32, i: int) -> int:
    """Return the better of the winners at the two children of a tree node."""
    count = len(gain)
    x = 2 * i - count if 2 * i >= count else int(winner[2 * i])
    y = 2 * i + 1 - count if 2 * i + 1 >= count else int(winner[2 * i + 1])
    if gain[x] > gain[y] or (gain[x] == gain[y] and x < y):
        return x
    return y


@subroutine
def _set(state: Pass, c: int, value: int) -> None:
    """Give a candidate another gain; the tree is walked up as far as anything changes."""
    gain, winner = state.gain, state.winner
    gain[c] = value
    i = (len(gain) + c) // 2
    while i >= 1:
        best = _better(gain, winner, i)
        if winner[i] == best and best != c:
            return
        winner[i] = best
        i //= 2

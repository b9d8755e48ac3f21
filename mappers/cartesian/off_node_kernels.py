"""Compiled annealing of what leaves the nodes, in sum and from the worst of them.

A proposal exchanges a rank on the border of its node with one on the border of a node where it has
a peer. It changes the loads of the nodes where the two have peers: O(peers of the two). The worst
load alone is no guide, as most exchanges leave it as it is; so what is annealed is
``alpha * sum + beta * (sum over nodes of (load / unit)^8)``, and what is kept is the best by
the two measures one after the other.
"""

from __future__ import annotations

from math import log
from typing import NamedTuple

import numpy as np

from hopmap.arrays import Bools, Ints, Words
from hopmap.compilation import njit, subroutine
from hopmap.mappers.basic_kernels import draw, eighth_power, next_state


class Peers(NamedTuple):
    """Who sends how much to whom."""

    # shape (items + 1,): peers of item r are ``peer[indptr[r]:indptr[r + 1]]``; free slots are
    # items without any
    indptr: Ints
    # peer, sent, got: shape (2 * undirected pairs,): the peer, what is sent to it, and what it
    # sends
    peer: Ints
    sent: Ints
    got: Ints


class Nodes(NamedTuple):
    """Who is on which node, and what leaves it."""

    places: Ints  # shape (items,): node of every item
    # slot_of, item_at: shape (items,): slot of every item and the reverse; slots are numbered node
    # by node
    slot_of: Ints
    item_at: Ints
    first: Ints  # shape (nodes + 1,): slots of node x are ``first[x]:first[x + 1]``
    apart: Ints  # shape (items,): what every item sends to and gets from other nodes
    load: Ints  # shape (nodes,): what leaves every node
    # change, touched: shape (nodes,): what an exchange that is looked at adds (else 0), and to
    # which nodes
    change: Ints
    touched: Ints
    marked: Bools  # shape (nodes,): whether a node is among them
    random: Words  # shape (1,): state of the random numbers; never zero


class Guide(NamedTuple):
    """What is annealed: alpha times the sum, beta times the sum of (load / unit)^8."""

    alpha: float
    beta: float
    unit: float


class Best(NamedTuple):
    """Best places met, shape (items,), and their ``[sum, worst]``."""

    places: Ints
    measures: Ints


@njit
def anneal(
    peers: Peers,
    nodes: Nodes,
    best: Best,
    sum_first: bool,
    guide: Guide,
    hot: float,
    cold: float,
    proposals: int,
) -> float:
    """Make so many proposals while the temperature falls from hot to cold, geometrically.

    Returns the mean of the increases that were proposed; 0 if none was.
    """
    indptr, peer, sent, got = peers.indptr, peers.peer, peers.sent, peers.got
    places, slot_of, item_at, first = nodes.places, nodes.slot_of, nodes.item_at, nodes.first
    apart, load, change = nodes.apart, nodes.load, nodes.change
    touched, marked = nodes.touched, nodes.marked
    alpha, beta, unit = guide
    state = nodes.random[0]
    least, goal = best.measures[0], best.measures[1]
    total, _, reach, above = _loads(load, goal)
    uphill, climbs = 0.0, 0
    temperature = hot
    stretch = 100
    factor = (cold / hot) ** (stretch / max(proposals, stretch)) if hot > 0 else 1.0
    # Exchanges since the best was copied, up to the last at which there was a better one: to copy
    # all places each time would take longer than all else in large grids.
    exchanged = np.empty((proposals, 2), dtype=np.int64)
    copied, exchanges, at_best = False, 0, 0
    for step in range(proposals):
        if step % stretch == 0 and step > 0:
            temperature *= factor
        state = next_state(state)
        u = draw(state, len(places))
        if apart[u] == 0:
            continue
        state = next_state(state)
        a, b = places[u], places[peer[indptr[u] + draw(state, indptr[u + 1] - indptr[u])]]
        if a == b:
            continue
        state = next_state(state)
        v = item_at[first[b] + draw(state, first[b + 1] - first[b])]
        if apart[v] == 0 and indptr[v] < indptr[v + 1]:
            continue
        count = _changes(indptr, peer, sent, got, places, u, v, change, touched, marked)
        more, worse = 0, 0.0
        for k in range(count):
            now = load[touched[k]]
            then = now + change[touched[k]]
            more += then - now
            if beta > 0:
                worse += eighth_power(then / unit) - eighth_power(now / unit)
        worse = alpha * more + beta * worse
        if worse > 0:
            uphill += worse
            climbs += 1
        state = next_state(state)
        threshold = 0.0
        if temperature > 0:
            threshold = -temperature * log((np.int64(state >> np.uint64(11)) + 1) * 2.0**-53)
        accepted = worse <= threshold
        for k in range(count):
            x = touched[k]
            if accepted:
                then = load[x] + change[x]
                reach += int(then >= goal) - int(load[x] >= goal)
                above += int(then > goal) - int(load[x] > goal)
                load[x] = then
            change[x] = 0
            marked[x] = False
        if not accepted:
            continue
        total += more
        _move(indptr, peer, sent, got, places, apart, u, a, b)
        _move(indptr, peer, sent, got, places, apart, v, b, a)
        slot_of[u], slot_of[v] = slot_of[v], slot_of[u]
        item_at[slot_of[u]] = u
        item_at[slot_of[v]] = v
        if sum_first:
            better = total < least or (total == least and reach == 0)
        else:
            better = reach == 0 or (above == 0 and total < least)
        if copied:
            exchanged[exchanges, 0], exchanged[exchanges, 1] = u, v
            exchanges += 1
        if not better:
            continue
        least = total
        if reach == 0 or above > 0:
            goal = _loads(load, goal)[1]
            _, _, reach, above = _loads(load, goal)
        if not copied:
            for x in range(len(places)):
                best.places[x] = places[x]
            copied = True
        at_best = exchanges
    for k in range(at_best):
        u, v = exchanged[k, 0], exchanged[k, 1]
        best.places[u], best.places[v] = best.places[v], best.places[u]
    best.measures[0], best.measures[1] = least, goal
    nodes.random[0] = state
    return uphill / climbs if climbs else 0.0


@subroutine
def _loads(load: Ints, goal: int) -> tuple[int, int, int, int]:
    """Return the sum, the highest, and how many nodes have at least a load and how many more."""
    total, highest, reach, above = 0, 0, 0, 0
    for x in range(len(load)):
        total += load[x]
        highest = max(highest, load[x])
        reach += int(load[x] >= goal)
        above += int(load[x] > goal)
    return total, highest, reach, above


@subroutine
def _changes(
    indptr: Ints,
    peer: Ints,
    sent: Ints,
    got: Ints,
    places: Ints,
    u: int,
    v: int,
    change: Ints,
    touched: Ints,
    marked: Bools,
) -> int:
    """Write what an exchange of u and v adds to the loads; return how many nodes it touches."""
    a, b = places[u], places[v]
    touched[0], touched[1] = a, b
    marked[a] = marked[b] = True
    count = 2
    for turn in range(2):
        rank, other, here, there = (u, v, a, b) if turn == 0 else (v, u, b, a)
        for i in range(indptr[rank], indptr[rank + 1]):
            q = peer[i]
            x = places[q]
            if q == other:
                # Seen from both sides, so that each direction is moved once.
                change[here] -= sent[i]
                change[there] += sent[i]
                continue
            if x != here:
                change[here] -= sent[i]
                change[x] -= got[i]
            if x != there:
                change[there] += sent[i]
                change[x] += got[i]
            if not marked[x]:
                marked[x] = True
                touched[count] = x
                count += 1
    return count


@subroutine
def _move(
    indptr: Ints,
    peer: Ints,
    sent: Ints,
    got: Ints,
    places: Ints,
    apart: Ints,
    rank: int,
    here: int,
    there: int,
) -> None:
    """Put a rank on another node."""
    for i in range(indptr[rank], indptr[rank + 1]):
        q = peer[i]
        both = sent[i] + got[i]
        if places[q] == here:
            apart[q] += both
            apart[rank] += both
        elif places[q] == there:
            apart[q] -= both
            apart[rank] -= both
    places[rank] = there

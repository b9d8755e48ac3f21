"""Compiled link loads under exchanges of two ranks, and searches that lower the highest.

Routes are walked, not stored: an exchange costs the routes of the two ranks' messages, before and
after, and memory is linear in links and pairs.
"""

from __future__ import annotations

from math import log
from typing import NamedTuple

import numpy as np

from hopmap.arrays import Bools, Ints
from hopmap.compilation import njit, subroutine
from hopmap.mappers.basic_kernels import draw, eighth_power, next_state
from hopmap.mappers.exchanges.annealing_kernels import Assignment
from hopmap.topologies.routing import Router, next_link


class LinkLoads(NamedTuple):
    """Who sends how much to whom, what every link carries, and an exchange that is looked at."""

    router: Router  # routes
    # shape (slots + 1,): peers of rank r are ``peer[indptr[r]:indptr[r + 1]]``; dummy ranks have
    # none
    indptr: Ints
    peer: Ints  # shape (2 * undirected pairs,)
    # sent, got: shape (2 * undirected pairs,): bytes that the rank sends to that peer, and that it
    # gets from it
    sent: Ints
    got: Ints
    load: Ints  # shape (links,): bytes on every link
    change: Ints  # shape (links,): what the exchange adds; zero between two exchanges
    touched: Ints  # shape (links,): the first of them are the links that the exchange touches
    marked: Bools  # shape (links,): whether a link is among them


@subroutine
def reroute(loads: LinkLoads, places: Ints, u: int, v: int) -> int:
    """Write what an exchange of u and v would add to the links; return how many it touches.

    `settle` has to follow.
    """
    router, link_to = loads.router, loads.router.link_to
    indptr, peer, sent, got = loads.indptr, loads.peer, loads.sent, loads.got
    change, touched, marked = loads.change, loads.touched, loads.marked
    count = 0
    for turn in range(2):
        rank, other = (u, v) if turn == 0 else (v, u)
        here, there = places[rank], places[other]
        for i in range(indptr[rank], indptr[rank + 1]):
            q = peer[i]
            if q == other and turn == 1:
                continue
            before = places[q]
            after = here if q == other else before
            for way in range(4):
                weight = sent[i] if way % 2 == 0 else got[i]
                if weight == 0:
                    continue
                at, goal = (here, before) if way < 2 else (there, after)
                if way < 2:
                    weight = -weight
                if way % 2 == 1:
                    at, goal = goal, at
                start = at
                while at != goal:
                    link = next_link(router, at, goal, start)
                    if not marked[link]:
                        marked[link] = True
                        touched[count] = link
                        count += 1
                    change[link] += weight
                    at = np.int64(link_to[link])
    return count


@subroutine
def settle(loads: LinkLoads, count: int, made: bool) -> None:
    """Load the links with what the exchange adds if it is made; leave them as they are if not."""
    load, change, touched, marked = loads.load, loads.change, loads.touched, loads.marked
    for k in range(count):
        link = touched[k]
        if made:
            load[link] += change[link]
        change[link] = 0
        marked[link] = False


@njit
def crossing(loads: LinkLoads, places: Ints, least: int, users: Ints) -> int:
    """Write the ranks that send or get a message over a link that carries at least so much.

    Returns their number; in order of their numbers. O(hops of all pairs).
    """
    router, link_to, load = loads.router, loads.router.link_to, loads.load
    indptr, peer, sent = loads.indptr, loads.peer, loads.sent
    crosses = np.zeros(len(places), dtype=np.bool_)
    for rank in range(len(places)):
        for i in range(indptr[rank], indptr[rank + 1]):
            if sent[i] == 0:
                continue
            at = start = places[rank]
            goal = places[peer[i]]
            while at != goal:
                link = next_link(router, at, goal, start)
                if load[link] >= least:
                    crosses[rank] = crosses[peer[i]] = True
                    break
                at = np.int64(link_to[link])
    count = 0
    for rank in range(len(places)):
        if crosses[rank]:
            users[count] = rank
            count += 1
    return count


@njit
def anneal_loads(
    loads: LinkLoads,
    assignment: Assignment,
    hot_ranks: Ints,
    unit: float,
    hot: float,
    cold: float,
    proposals: int,
    top: Ints,
    best: Ints,
) -> float:
    """Make so many proposals while the temperature falls from hot to cold, geometrically.

    A proposal draws a rank, every other time one of `hot_ranks`, one of its peers and a slot near
    the peer's node. ``top`` holds the least highest load met and how many links carry at least as
    much now; where the latter falls to zero, that is a new best, and ``best`` its places.

    Returns the mean of the increases that were proposed; 0 if none was.
    """
    indptr, peer = loads.indptr, loads.peer
    load, change, touched = loads.load, loads.change, loads.touched
    places, slot_of, item_at = assignment.places, assignment.slot_of, assignment.item_at
    active, near_indptr, near = assignment.active, assignment.near_indptr, assignment.near
    state = assignment.random[0]
    goal, above = top[0], top[1]
    uphill, climbs = 0.0, 0
    temperature = hot
    stretch = 100
    factor = (cold / hot) ** (stretch / max(proposals, stretch)) if hot > 0 else 1.0
    for step in range(proposals):
        if step % stretch == 0 and step > 0:
            temperature *= factor
        state = next_state(state)
        if step % 2 == 1 and len(hot_ranks) > 0:
            u = hot_ranks[draw(state, len(hot_ranks))]
        else:
            u = active[draw(state, len(active))]
        state = next_state(state)
        x = places[peer[indptr[u] + draw(state, indptr[u + 1] - indptr[u])]]
        state = next_state(state)
        slot = near[near_indptr[x] + draw(state, near_indptr[x + 1] - near_indptr[x])]
        v = item_at[slot]
        a, b = places[u], places[v]
        if a == b:
            continue
        count = reroute(loads, places, u, v)
        worse = 0.0
        for k in range(count):
            now = load[touched[k]]
            then = now + change[touched[k]]
            worse += eighth_power(then / unit) - eighth_power(now / unit)
        if worse > 0:
            uphill += worse
            climbs += 1
        state = next_state(state)
        threshold = 0.0
        if temperature > 0:
            threshold = -temperature * log((np.int64(state >> np.uint64(11)) + 1) * 2.0**-53)
        if worse > threshold:
            settle(loads, count, False)
            continue
        for k in range(count):
            now = load[touched[k]]
            above += int(now + change[touched[k]] >= goal) - int(now >= goal)
        settle(loads, count, True)
        places[u], places[v] = b, a
        slot_of[v], slot_of[u] = slot_of[u], slot
        item_at[slot] = u
        item_at[slot_of[v]] = v
        if above == 0:
            goal, above = highest(load)
            best[:] = places
    assignment.random[0] = state
    top[0], top[1] = goal, above
    return uphill / climbs if climbs else 0.0


@njit
def highest(load: Ints) -> tuple[int, int]:
    """Return the highest load, and how many links carry it."""
    most, count = 0, 0
    for link in range(len(load)):
        if load[link] > most:
            most, count = load[link], 1
        elif load[link] == most:
            count += 1
    return most, count


@njit
def exchange(
    loads: LinkLoads, assignment: Assignment, ranks: Ints, candidates: int, most: int, carriers: int
) -> bool:
    """Make the first exchange of one of the ranks that gains; whether there is one.

    Slots are tried in rounds: one near each of the rank's peers, then a next one, and so on.
    ``most`` is the highest load, and ``carriers`` how many links carry it.
    """
    indptr, peer = loads.indptr, loads.peer
    load, change, touched = loads.load, loads.change, loads.touched
    places, slot_of, item_at = assignment.places, assignment.slot_of, assignment.item_at
    near_indptr, near = assignment.near_indptr, assignment.near
    for u in ranks:
        trials, turn, more = 0, 0, True
        while more and trials < candidates:
            more = False
            for i in range(indptr[u], indptr[u + 1]):
                x = places[peer[i]]
                if near_indptr[x] + turn >= near_indptr[x + 1] or trials >= candidates:
                    continue
                more = True
                slot = near[near_indptr[x] + turn]
                v = item_at[slot]
                if places[u] == places[v]:
                    continue
                trials += 1
                count = reroute(loads, places, u, v)
                above, total, worse = carriers, 0, False
                for k in range(count):
                    now = load[touched[k]]
                    then = now + change[touched[k]]
                    worse |= then > most
                    above += int(then == most) - int(now == most)
                    total += then - now
                if worse or above > carriers or (above == carriers and total >= 0):
                    settle(loads, count, False)
                    continue
                settle(loads, count, True)
                places[u], places[v] = places[v], places[u]
                slot_of[v], slot_of[u] = slot_of[u], slot
                item_at[slot] = u
                item_at[slot_of[v]] = v
                return True
            turn += 1
    return False

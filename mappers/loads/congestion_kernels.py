"""Compiled exchanges against the highest link load: annealed, or the first that helps."""

from __future__ import annotations

from math import log

import numpy as np

from hopmap.arrays import Ints
from hopmap.compilation import njit
from hopmap.mappers.basic_kernels import below, eighth_power, following
from hopmap.mappers.exchanges.annealing_kernels import Assignment

from .link_loads_kernels import LinkLoads, forget, reroute, settle


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
        state = following(state)
        if step % 2 == 1 and len(hot_ranks) > 0:
            u = hot_ranks[below(state, len(hot_ranks))]
        else:
            u = active[below(state, len(active))]
        state = following(state)
        x = places[peer[indptr[u] + below(state, indptr[u + 1] - indptr[u])]]
        state = following(state)
        slot = near[near_indptr[x] + below(state, near_indptr[x + 1] - near_indptr[x])]
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
        state = following(state)
        threshold = 0.0
        if temperature > 0:
            threshold = -temperature * log((np.int64(state >> np.uint64(11)) + 1) * 2.0**-53)
        if worse > threshold:
            forget(loads, count)
            continue
        for k in range(count):
            now = load[touched[k]]
            above += int(now + change[touched[k]] >= goal) - int(now >= goal)
        settle(loads, count)
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
        tried, turn, more = 0, 0, True
        while more and tried < candidates:
            more = False
            for i in range(indptr[u], indptr[u + 1]):
                x = places[peer[i]]
                if near_indptr[x] + turn >= near_indptr[x + 1] or tried >= candidates:
                    continue
                more = True
                slot = near[near_indptr[x] + turn]
                v = item_at[slot]
                if places[u] == places[v]:
                    continue
                tried += 1
                count = reroute(loads, places, u, v)
                above, total, worse = carriers, 0, False
                for k in range(count):
                    now = load[touched[k]]
                    then = now + change[touched[k]]
                    worse |= then > most
                    above += int(then == most) - int(now == most)
                    total += then - now
                if worse or above > carriers or (above == carriers and total >= 0):
                    forget(loads, count)
                    continue
                settle(loads, count)
                places[u], places[v] = places[v], places[u]
                slot_of[v], slot_of[u] = slot_of[u], slot
                item_at[slot] = u
                item_at[slot_of[v]] = v
                return True
            turn += 1
    return False

"""Compiled link loads under exchanges: what an exchange of two ranks adds to every link.

Routes are walked, not stored: an exchange costs the routes of the two ranks' messages, before and
after, and memory is linear in links and pairs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hopmap.arrays import Bools, Ints
from hopmap.compilation import njit, subroutine
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

    `settle` or `forget` has to follow.
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
def settle(loads: LinkLoads, count: int) -> None:
    """Load the links with what the exchange adds."""
    load, change, touched, marked = loads.load, loads.change, loads.touched, loads.marked
    for k in range(count):
        link = touched[k]
        load[link] += change[link]
        change[link] = 0
        marked[link] = False


@subroutine
def forget(loads: LinkLoads, count: int) -> None:
    """Leave the links as they are."""
    change, touched, marked = loads.change, loads.touched, loads.marked
    for k in range(count):
        link = touched[k]
        change[link] = 0
        marked[link] = False


@njit
def crossing(loads: LinkLoads, places: Ints, least: int, found: Ints) -> int:
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
            found[count] = rank
            count += 1
    return count

"""Compiled dual bisection: halves of the network and, for each, the ranks that go there.

A domain is a range of slots of the nodes in the order that `halve_nodes` finds, with the ranks and
dummies that are there in any order. Domains are split breadth first, all of one depth in turn.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hopmap.arrays import Floats, Ints, Words
from hopmap.compilation import njit, subroutine
from hopmap.mappers.basic_kernels import Graph, sort_by
from hopmap.mappers.cost_model import CostModel
from hopmap.topologies.routing import Router, distance

from .halving_kernels import TRIES, evolve

SAMPLES: Any = np.int64(4)  # nodes that stand for a domain where distances are averaged
OF_HALVES: Any = np.int64(8)  # the same for a half
MANY, SMALL = 4096, 128  # with so many slots domains of few, most of the work, are grown once


@subroutine
def mean_hops(
    router: Router, nodes: Ints, lo: int, hi: int, start: int, stop: int, samples: int
) -> float:
    """Mean distance between nodes[lo:hi] and nodes[start:stop], of so many nodes on each side."""
    rows, columns = min(samples, hi - lo), min(samples, stop - start)
    total = 0.0
    for i in range(rows):
        a = nodes[lo + (2 * i + 1) * (hi - lo) // (2 * rows)]
        for j in range(columns):
            b = nodes[start + (2 * j + 1) * (stop - start) // (2 * columns)]
            total += distance(router, a, b)
    return total / (rows * columns)


@subroutine
def _find_pulls(
    router: Router, nodes: Ints, domains: Ints, here: int, some: Ints, pull: Floats
) -> None:
    """Fill in by how much the second half of domain `here` is farther from some domains."""
    for e in some:
        pull[e] = 0.0
        for half in range(2):
            begin, end = domains[here, 1 - half], domains[here, 2 - half]
            far = mean_hops(router, nodes, begin, end, domains[e, 0], domains[e, 2], SAMPLES)
            pull[e] += far if half == 0 else -far


@subroutine
def _separation(router: Router, nodes: Ints, lo: int, mid: int, hi: int) -> float:
    """How much farther apart the halves are than what is within them."""
    within = mean_hops(router, nodes, lo, mid, lo, mid, OF_HALVES)
    within += mean_hops(router, nodes, mid, hi, mid, hi, OF_HALVES)
    return mean_hops(router, nodes, lo, mid, mid, hi, OF_HALVES) - within / 2


@subroutine
def _cut_at(key: Ints, slots: Ints, ordered: Ints) -> int:
    """Where the key changes, nearest to half of the slots; 0 if it never does."""
    total = 0
    for x in ordered:
        total += slots[x]
    best, best_off, before = 0, total, 0
    for i in range(1, len(ordered)):
        before += slots[ordered[i - 1]]
        if key[ordered[i]] != key[ordered[i - 1]] and abs(2 * before - total) < best_off:
            best, best_off = i, abs(2 * before - total)
    return best


@subroutine
def _with_slots(slots: Ints) -> tuple[Ints, int]:
    """Return the nodes that have slots, and their number."""
    nodes, count = np.empty(len(slots), dtype=np.int64), 0
    for node in range(len(slots)):
        if slots[node] > 0:
            nodes[count] = node
            count += 1
    return nodes[:count], count


@njit
def halve_nodes(router: Router, keys: Ints, slots: Ints, by_distance: bool) -> tuple[Ints, Ints]:
    """Split the nodes in two again and again, across the key along which the halves are farthest.

    `keys`, shape (keys, nodes), are coordinates to cut across. With `by_distance` it cuts between
    two far nodes as well: by how much nearer a node is to one of them.

    Returns
    -------
    nodes : ndarray(int64, shape=(nodes,))
        All nodes with slots; every domain is a range of them.
    domains : ndarray(int64, shape=(2 * nodes - 1, 4))
        First node, first of the second half, end, and number of the first half's domain; the
        second half's is the next. Breadth first; the middle of a single node is its end.
    """
    nodes, count = _with_slots(slots)
    domains = np.zeros((2 * count - 1, 4), dtype=np.int64)
    domains[0, 2] = count
    used = 1
    numbers, nearer = np.empty(len(slots), dtype=np.int64), np.empty(len(slots), dtype=np.int64)
    for x in range(len(slots)):
        numbers[x] = x
    orders = np.empty((2, count), dtype=np.int64)
    spare, other = np.empty(count, dtype=np.int64), 0
    d = 0
    while d < used:
        lo, hi = domains[d, 0], domains[d, 2]
        domains[d, 1] = hi
        if hi - lo > 1:
            here = nodes[lo:hi]
            sort_by(numbers, here, spare)
            best, best_mid, best_apart = here, (hi - lo) // 2, -1.0
            ordered = orders[other, : hi - lo]
            for k in range(len(keys) + (1 if by_distance else 0)):
                if k < len(keys):
                    key = keys[k]
                else:
                    a = b = here[0]
                    for _turn in range(2):
                        a, far = b, -1
                        for x in here:
                            if distance(router, a, x) > far:
                                b, far = x, distance(router, a, x)
                    for x in here:
                        nearer[x] = distance(router, a, x) - distance(router, b, x)
                    key = nearer
                for i in range(hi - lo):
                    ordered[i] = here[i]
                sort_by(key, ordered, spare)
                mid = _cut_at(key, slots, ordered)
                if mid == 0:
                    continue
                apart = _separation(router, ordered, 0, mid, hi - lo)
                if apart > best_apart + 1e-9:
                    best, best_mid, best_apart = ordered, mid, apart
                    other = 1 - other
                    ordered = orders[other, : hi - lo]
            for i in range(hi - lo):
                here[i] = best[i]
            domains[d, 1], domains[d, 3] = lo + best_mid, used
            domains[used, 0], domains[used, 2] = lo, lo + best_mid
            domains[used + 1, 0], domains[used + 1, 2] = lo + best_mid, hi
            used += 2
        d += 1
    return nodes, domains[:used]


@njit
def halve_levels(spans: Ints, slots: Ints) -> tuple[Ints, Ints]:
    """Split a hierarchy of nodes in two again and again, always between its subsystems.

    Subsystems of one level are equally far apart, so that any halves of like size are best.
    `spans`, shape (levels,), are the nodes of a subsystem, ascending, the first 1. Returns
    what `halve_nodes` does.
    """
    nodes, count = _with_slots(slots)
    before = np.zeros(count + 1, dtype=np.int64)
    for i in range(count):
        before[i + 1] = before[i] + slots[nodes[i]]
    domains = np.zeros((2 * count - 1, 4), dtype=np.int64)
    domains[0, 2] = count
    used = 1
    for d in range(2 * count - 1):
        lo, hi = domains[d, 0], domains[d, 2]
        domains[d, 1] = hi
        if hi - lo == 1:
            continue
        span = 1
        for wider in spans:
            if nodes[lo] // wider != nodes[hi - 1] // wider:
                span = wider
        mid = 0
        for cut in range(lo + 1, hi):
            if nodes[cut] // span == nodes[cut - 1] // span:
                continue
            off = abs(2 * before[cut] - before[lo] - before[hi])
            if mid == 0 or off < abs(2 * before[mid] - before[lo] - before[hi]):
                mid = cut
        domains[d, 1], domains[d, 3] = mid, used
        domains[used, 0], domains[used, 2] = lo, mid
        domains[used + 1, 0], domains[used + 1, 2] = mid, hi
        used += 2
    return nodes, domains


@njit
def split_ranks(
    model: CostModel,
    nodes: Ints,
    domains: Ints,
    slot_indptr: Ints,
    items: Ints,
    domain_of: Ints,
    some: tuple[int, int],
    tries: int,
    random: Words,
) -> None:
    """Bring the ranks and dummies of some domains into the order of the slots, in place.

    `slot_indptr` counts the slots of `nodes` in their order; `domain_of` is where every item is,
    at first in domain 0. A pair that leaves a domain pulls its rank towards the half that is nearer
    to the other rank's domain.
    """
    router, indptr, peer, weight = model.router, model.indptr, model.peer, model.weight
    slots = len(items)
    local = np.empty(slots, dtype=np.int64)
    local[:] = -1
    pull = np.empty(len(domains))
    known = np.empty(len(domains), dtype=np.int64)  # for which domain a pull was found
    known[:] = -1
    others = np.empty(len(domains), dtype=np.int64)  # those that a domain talks to
    for d in range(some[0], some[1]):
        lo, mid, hi, first = domains[d, 0], domains[d, 1], domains[d, 2], domains[d, 3]
        if mid == hi:
            continue
        start, stop = slot_indptr[lo], slot_indptr[hi]
        n = stop - start
        here = np.empty(n, dtype=np.int64)
        entries = 0
        for i in range(n):
            here[i] = items[start + i]
            local[here[i]] = i
            entries += indptr[here[i] + 1] - indptr[here[i]]
        apart = max(_separation(router, nodes, lo, mid, hi), 0.1)
        sub_indptr = np.zeros(n + 1, dtype=np.int64)
        sub_peer = np.empty(entries, dtype=np.int64)
        sub_weight = np.empty(entries)
        outer, outer_domain = np.empty(entries, dtype=np.int64), np.empty(entries, dtype=np.int64)
        outer_weight = np.empty(entries)
        bias = np.zeros(n)
        count, outside, seen = 0, 0, 0
        for i in range(n):
            u = here[i]
            for k in range(indptr[u], indptr[u + 1]):
                v = peer[k]
                if local[v] >= 0:
                    sub_peer[count] = local[v]
                    sub_weight[count] = weight[k] * apart
                    count += 1
                else:
                    e = domain_of[v]
                    if known[e] != d:
                        known[e] = d
                        others[seen] = e
                        seen += 1
                    outer[outside], outer_domain[outside] = i, e
                    outer_weight[outside] = weight[k]
                    outside += 1
            sub_indptr[i + 1] = count
        _find_pulls(router, nodes, domains, d, others[:seen], pull)
        for k in range(outside):
            bias[outer[k]] += outer_weight[k] * pull[outer_domain[k]]
        target = slot_indptr[mid] - start
        inner = Graph(sub_indptr, sub_peer, sub_weight)
        growths = 1 if slots > MANY and n <= SMALL else TRIES
        side = evolve(inner, bias, target, tries, random, growths)
        left, right = start, start + target
        for i in range(n):
            local[here[i]] = -1
            if side[i] == 0:
                items[left] = here[i]
                domain_of[here[i]] = first
                left += 1
            else:
                items[right] = here[i]
                domain_of[here[i]] = first + 1
                right += 1

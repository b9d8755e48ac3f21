"""Compiled: where vertices of a lattice are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hopmap.arrays import Bools, Ints
from hopmap.compilation import njit, subroutine

LOOKS = 6  # at vertices, for each that has got a cell
FEW = 8  # vertices for each fault that means nothing
CLEAR = 3  # evidence for a cell that is enough
NOWHERE = -(1 << 62)  # no cell


@njit
def count_short_rings(indptr: Ints, peer: Ints) -> Ints:
    """Rings of three or four that each edge is in, shape (2 * edges,)."""
    n = len(indptr) - 1
    found = np.zeros(len(peer), dtype=np.int64)
    ways = np.zeros(n, dtype=np.int64)  # of two steps from v; a third step ends at its peers
    for v in range(n):
        lo, hi = indptr[v], indptr[v + 1]
        for i in range(lo, hi):
            for j in range(indptr[peer[i]], indptr[peer[i] + 1]):
                ways[peer[j]] += 1
        for i in range(lo, hi):
            ways[peer[i]] += 1
        ways[v] = 0
        for i in range(lo, hi):
            for j in range(indptr[peer[i]], indptr[peer[i] + 1]):
                found[i] += max(ways[peer[j]] - 1, 0)
        for i in range(lo, hi):
            for j in range(indptr[peer[i]], indptr[peer[i] + 1]):
                ways[peer[j]] = 0
            ways[peer[i]] = 0
    return found


@subroutine
def _entry(table: Ints, cell: Ints, number: int) -> int:
    """Where in the table the vertex of a cell is, or would be."""
    slot = (number * 0x9E3779B97F4A7C1 >> 20) & (len(table) - 1)
    while table[slot] >= 0 and cell[table[slot]] != number:
        slot = (slot + 1) & (len(table) - 1)
    return slot


class Growth(NamedTuple):
    """Vertices of a lattice, some of which have a cell."""

    indptr: Ints
    peer: Ints
    # step, two_steps: what one or two steps of the stencil add to the number of a cell
    step: Ints  # shape (2, neighbours): from even cells, from odd ones
    two_steps: Ints
    cell: Ints  # number of each that is placed
    placed: Bools
    missing: Ints  # peers without a cell
    table: Ints  # who is in a cell, see `_entry`
    marked: Bools  # none but in `_choose`
    weight: int  # of a peer around a cell; a stranger there weighs -1


@subroutine
def _choose(growth: Growth, w: int, far: bool) -> tuple[int, int]:
    """Best cell of a vertex, and by how much it is better than others.

    That is the free cell around which it has most peers, two at least. The last peer of a vertex
    whose other cells are taken goes to the last one.

    - `far`: one peer is enough; of cells with equally many the best has most of those whom
      `_are_ahead` counts, and fewest vertices around it that are no peers.
    """
    indptr, peer, step, placed = growth.indptr, growth.peer, growth.step, growth.placed
    for i in range(indptr[w], indptr[w + 1]):
        growth.marked[peer[i]] = True
    best, second, chosen = 0, 0, NOWHERE
    looked = 0
    for i in range(indptr[w], indptr[w + 1]):
        u = peer[i]
        last = placed[u] and growth.missing[u] == 1
        if not placed[u] or (looked > 1 and not last):
            continue
        looked += 1
        free, only = 0, NOWHERE
        odd = growth.cell[u] % 2
        from_u, back = step[odd], step[1 - odd]
        for s in range(len(from_u)):
            cell = growth.cell[u] + from_u[s]
            if growth.table[_entry(growth.table, growth.cell, cell)] >= 0:
                continue
            free, only = free + 1, cell
            peers, strangers = 0, 0
            for r in range(len(back)):
                there = growth.table[_entry(growth.table, growth.cell, cell + back[r])]
                if there >= 0:
                    peers += growth.marked[there]
                    strangers += not growth.marked[there]
            if peers < (1 if far else 2):
                continue
            score = growth.weight * peers - strangers
            if far:
                score += _are_ahead(growth, w, cell)
            if score > best:
                if chosen != cell:
                    second = best
                best, chosen = score, cell
            elif chosen != cell:
                second = max(second, score)
        if last and free == 1:
            best, second, chosen = CLEAR, 0, only
            break
    for i in range(indptr[w], indptr[w + 1]):
        growth.marked[peer[i]] = False
    return chosen, best - second


@subroutine
def _are_ahead(growth: Growth, w: int, cell: int) -> int:
    """Placed peers of the peers of a vertex in a cell: those two steps away, less the others."""
    indptr, peer, two_steps, found = growth.indptr, growth.peer, growth.two_steps, 0
    for i in range(indptr[w], indptr[w + 1]):
        u = peer[i]
        for j in range(indptr[u], indptr[u + 1]):
            if not growth.placed[u] and growth.placed[peer[j]]:
                near = False
                for steps in two_steps:
                    near |= growth.cell[peer[j]] == cell + steps
                found += 1 if near else -1
    return found


@subroutine
def _faults(growth: Growth, w: int) -> tuple[int, int]:
    """Around a vertex that was placed: peers there; strangers there and placed peers elsewhere."""
    indptr, peer, there, strangers, peers = growth.indptr, growth.peer, 0, 0, 0
    for s in growth.step[growth.cell[w] % 2]:
        v = growth.table[_entry(growth.table, growth.cell, growth.cell[w] + s)]
        if v >= 0:
            found = False
            for i in range(indptr[w], indptr[w + 1]):
                found |= peer[i] == v
            there += found
            strangers += not found
    for i in range(indptr[w], indptr[w + 1]):
        peers += growth.placed[peer[i]]
    return there, strangers + peers - there


@njit
def grow(
    indptr: Ints,
    peer: Ints,
    step: Ints,
    two_steps: Ints,
    cell: Ints,
    placed: Bools,
    weight: int,
    far: bool,
) -> int:
    """Give vertices their cells in a lattice, from a few that have one; return how many have.

    Each goes to a cell that is clearly its own (see `_choose`). Where nothing is clear, the vertex
    whose cell is clearest from afar is placed.

    A lattice takes a look or two for each vertex; what is none could take hundreds, so that `LOOKS`
    end it, or faults at a third of all pairs and cells.

    - `step`, `two_steps`, `weight`: see `Growth`.
    - `cell` and `placed`, shape (vertices,): they are filled.
    - `far`: whether it goes on where nothing is clear.
    """
    n = len(indptr) - 1
    size = 1
    while size < 4 * n:
        size *= 2
    missing, table, marked = np.empty(n, np.int64), np.full(size, -1), np.zeros(n, dtype=np.bool_)
    growth = Growth(indptr, peer, step, two_steps, cell, placed, missing, table, marked, weight)
    queue, queued = np.empty(n, dtype=np.int64), np.zeros(n, dtype=np.bool_)
    aside, unclear = np.empty(n, dtype=np.int64), np.zeros(n, dtype=np.bool_)
    fresh = np.empty(n, dtype=np.int64)  # placed, their neighbours not yet told
    head, waiting, left, new, at = 0, 0, 0, 0, 0
    for v in range(n):
        missing[v] = indptr[v + 1] - indptr[v]
        if placed[v]:
            table[_entry(table, cell, cell[v])] = v
            fresh[new], new = v, new + 1
    done, looks, right, wrong = new, 0, 0, 0
    while looks <= LOOKS * done and wrong <= right // 2 + n // FEW:
        while new > 0:
            new -= 1
            v = fresh[new]
            for i in range(indptr[v], indptr[v + 1]):
                u = peer[i]
                missing[u] -= 1
                if not placed[u] and not queued[u]:
                    queue[(head + waiting) % n], queued[u] = u, True
                    waiting += 1
        w, chosen, clear = -1, NOWHERE, 0
        if waiting > 0:
            w = queue[head]
            head, waiting, queued[w], looks = (head + 1) % n, waiting - 1, False, looks + 1
            chosen, clear = _choose(growth, w, False)
            if clear < 2:
                if not unclear[w]:
                    aside[left], left, unclear[w] = w, left + 1, True
                continue
        elif far:
            for _ in range(left):
                at = (at + 1) % max(left, 1)
                while at < left and placed[aside[at]]:
                    left -= 1
                    aside[at] = aside[left]
                if at >= left:
                    continue
                looks += 1
                best, margin = _choose(growth, aside[at], True)
                if best != NOWHERE and (w < 0 or margin > clear):
                    w, chosen, clear = aside[at], best, margin
                if clear >= CLEAR:
                    break
        if w < 0:
            break
        placed[w], cell[w] = True, chosen
        table[_entry(table, cell, chosen)] = w
        there, faults = _faults(growth, w)
        right, wrong = right + there, wrong + faults
        fresh[new], new, done = w, new + 1, done + 1
    return done

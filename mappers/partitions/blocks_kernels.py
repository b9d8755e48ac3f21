"""Compiled refinement of many vertices on few nodes: moves by what they save, and balance.

Source: Sanders and Schulz, Engineering multilevel graph partitioning algorithms, ESA 2011: local
searches of FM from single vertices of the boundary, each of which ends when it has not gained for
a while and goes back to its best state; here a move gains what the mapping costs less by it, as in
Faraj and others, SEA 2020. A block is what is on one node.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

import numpy as np

from hopmap.arrays import Floats, Ints, Ints32, Words
from hopmap.compilation import njit, subroutine
from hopmap.mappers.basic_kernels import draw, next_state

if TYPE_CHECKING:
    from .vcycles import Vertices

STALE = 0.02  # part of what all rounds have gained that the next one gains at least, or is the last


@subroutine
def loads(block: Ints32, size: Ints, blocks: int) -> Ints:
    """Size of all vertices of each block."""
    load = np.zeros(blocks, dtype=np.int64)
    for v in range(len(block)):
        load[block[v]] += size[v]
    return load


@njit
def block_cost(indptr: Ints, peer: Ints, weight: Floats, block: Ints32, far: Floats) -> float:
    """Sum of weight times distance, every pair once."""
    cost = 0.0
    for u in range(len(block)):
        for i in range(indptr[u], indptr[u + 1]):
            cost += weight[i] * far[block[u], block[peer[i]]]
    return cost / 2


@subroutine
def _best_move(
    v: int,
    indptr: Ints,
    peer: Ints,
    weight: Floats,
    size: Ints,
    block: Ints32,
    load: Ints,
    room: Ints,
    far: Floats,
    near: Floats,
    found: Ints32,
) -> tuple[float, int]:
    """Gain and block of a vertex's best move to a neighbour's block with room; -1 if none.

    `near` (zero everywhere) and `found` are scratch, a number for each block.
    """
    own, count = block[v], 0
    for i in range(indptr[v], indptr[v + 1]):
        b = block[peer[i]]
        if near[b] == 0.0:
            found[count] = b
            count += 1
        near[b] += weight[i]
    best, target = 0.0, -1
    if count > 1 or (count == 1 and found[0] != own):
        here = 0.0
        for j in range(count):
            here += near[found[j]] * far[own, found[j]]
        for k in range(count):
            b = found[k]
            if b == own or load[b] + size[v] > room[b]:
                continue
            gain = here
            for j in range(count):
                gain -= near[found[j]] * far[b, found[j]]
            emptier = target >= 0 and load[b] - room[b] < load[target] - room[target]
            if target < 0 or gain > best or (gain == best and emptier):
                best, target = gain, b
    for j in range(count):
        near[found[j]] = 0.0
    return best, target


@njit
def improve(
    graph: Vertices,
    block: Ints32,
    room: Ints,
    far: Floats,
    rounds: int,
    patience: int,
    random: Words,
) -> float:
    """Search locally from every vertex of the boundary, in rounds, in place; return what is saved.

    Blocks never get more than their room; what is above it in the beginning leaves first. A vertex
    moves once a round, and a search ends after `patience` moves that do not gain. It is over
    after a round that gains next to nothing.
    """
    indptr, peer, weight, size = graph
    n, blocks = len(block), len(room)
    near, found = np.zeros(blocks), np.empty(blocks, dtype=np.int32)
    load = loads(block, size, blocks)
    moved_in = np.zeros(n, dtype=np.int32)
    moved, origin = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int32)
    seeds, changed = np.empty(n, dtype=np.int64), np.arange(n)
    changed_in, changes = np.zeros(n, dtype=np.int32), n
    heavy = 1.0 + weight.sum() * far.max()  # outweighs every gain
    total = 0.0
    state = random[0]
    for turn in range(1, rounds + 1):
        many = 0
        for k in range(changes):
            v = changed[k]
            over = load[block[v]] > room[block[v]]
            for i in range(indptr[v], indptr[v + 1]):
                if over or block[peer[i]] != block[v]:
                    seeds[many] = v
                    many += 1
                    break
        for i in range(many - 1, 0, -1):
            state = next_state(state)
            j = draw(state, i + 1)
            seeds[i], seeds[j] = seeds[j], seeds[i]
        gained, relieved, changes = 0.0, 0, many
        changed[:many] = seeds[:many]
        for k in range(many):
            changed_in[seeds[k]] = turn
        for k in range(many):
            seed = int(seeds[k])
            if moved_in[seed] == turn:
                continue
            gain, target = _best_move(
                seed, indptr, peer, weight, size, block, load, room, far, near, found
            )
            if target < 0:
                continue
            heap: list[tuple[float, int]] = [(-gain, seed)]
            count, best_count = 0, 0
            saved, best_saved, relief, best_relief = 0.0, 0.0, 0, 0
            while len(heap) > 0 and count - best_count < patience:
                key, v = heappop(heap)
                if moved_in[v] == turn:
                    continue
                gain, target = _best_move(
                    v, indptr, peer, weight, size, block, load, room, far, near, found
                )
                if target < 0:
                    continue
                own = block[v]
                less = min(max(load[own] - room[own], 0), size[v])
                if gain + heavy * less < -key:
                    heappush(heap, (-gain - heavy * less, v))
                    continue
                moved_in[v] = turn
                moved[count], origin[count] = v, own
                count += 1
                block[v] = target
                load[own] -= size[v]
                load[target] += size[v]
                saved += gain
                relief += less
                if relief > best_relief or (relief == best_relief and saved > best_saved):
                    best_count, best_saved, best_relief = count, saved, relief
                for i in range(indptr[v], indptr[v + 1]):
                    u = peer[i]
                    if moved_in[u] != turn:
                        gain, target = _best_move(
                            u, indptr, peer, weight, size, block, load, room, far, near, found
                        )
                        if target >= 0:
                            own = block[u]
                            less = min(max(load[own] - room[own], 0), size[u])
                            heappush(heap, (-gain - heavy * less, u))
            for j in range(count - 1, best_count - 1, -1):
                back = moved[j]
                load[block[back]] -= size[back]
                block[back] = origin[j]
                load[block[back]] += size[back]
            gained += best_saved
            relieved += best_relief
            for j in range(best_count):
                kept = moved[j]
                if changed_in[kept] != turn:
                    changed_in[kept] = turn
                    changed[changes] = kept
                    changes += 1
                for i in range(indptr[kept], indptr[kept + 1]):
                    u = peer[i]
                    if changed_in[u] != turn:
                        changed_in[u] = turn
                        changed[changes] = u
                        changes += 1
        total += gained
        if gained <= STALE * total and relieved == 0:
            break
    random[0] = state
    return total


@njit
def fit(indptr: Ints, peer: Ints, weight: Floats, block: Ints32, room: Ints, far: Floats) -> None:
    """Move vertices, all of size 1, out of blocks above their room, the cheapest first, in place.

    A vertex without a neighbour in a block with room goes to the block with room that is nearest.
    """
    blocks = len(room)
    ones = np.ones(len(block), dtype=np.int64)
    load = loads(block, ones, blocks)
    near, found = np.zeros(blocks), np.empty(blocks, dtype=np.int32)
    for own in range(blocks):
        if load[own] <= room[own]:
            continue
        heap: list[tuple[float, int]] = [(0.0, 0)]
        heap.clear()
        for v in range(len(block)):
            if block[v] == own:
                gain, target = _best_move(
                    v, indptr, peer, weight, ones, block, load, room, far, near, found
                )
                heappush(heap, (-gain if target >= 0 else np.inf, v))
        while load[own] > room[own]:
            key, v = heappop(heap)
            gain, target = _best_move(
                v, indptr, peer, weight, ones, block, load, room, far, near, found
            )
            if target >= 0 and -gain > key:
                heappush(heap, (-gain, v))
                continue
            if target < 0:
                for b in range(blocks):
                    if load[b] < room[b] and (target < 0 or far[own, b] < far[own, target]):
                        target = b
            block[v] = target
            load[own] -= 1
            load[target] += 1

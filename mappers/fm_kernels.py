"""Compiled bisection of a graph into two sides of exact sizes: multilevel, with FM refinement.

Sources: Fiduccia and Mattheyses, A linear-time heuristic for improving network partitions, DAC
1982; Karypis and Kumar, A fast and high quality multilevel scheme for partitioning irregular
graphs, SISC 1998 (heavy-edge matching, greedy growing). Every vertex may have a bias, what side 1
costs it more than side 0: that is how external pairs pull (terminal propagation).

O(passes * pairs * log(vertices)) a level.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from .draw_kernels import below, following

COARSE = 40  # vertices at which coarsening stops
TRIES = 4  # greedy growths of the coarsest graph
PASSES = 4


@njit(cache=True)
def _raise(heap, at, key, i):
    """Move the vertex in slot i of a max-heap upwards."""
    u = heap[i]
    while i > 0:
        parent = (i - 1) >> 1
        if key[heap[parent]] >= key[u]:
            break
        heap[i] = heap[parent]
        at[heap[i]] = i
        i = parent
    heap[i] = u
    at[u] = i


@njit(cache=True)
def _sink(heap, at, key, i, length):
    """Move the vertex in slot i of a max-heap downwards."""
    u = heap[i]
    while True:
        child = 2 * i + 1
        if child >= length:
            break
        if child + 1 < length and key[heap[child + 1]] > key[heap[child]]:
            child += 1
        if key[heap[child]] <= key[u]:
            break
        heap[i] = heap[child]
        at[heap[i]] = i
        i = child
    heap[i] = u
    at[u] = i


@njit(cache=True)
def _take(heap, at, key, u, length):
    """Take a vertex out of a heap and return the new length."""
    i = at[u]
    last = length - 1
    at[u] = -1
    if i != last:
        moved = heap[last]
        heap[i] = moved
        at[moved] = i
        _raise(heap, at, key, i)
        _sink(heap, at, key, at[moved], last)
    return last


@njit(cache=True)
def _gains(indptr, peer, weight, bias, side, gain):
    """What moving each vertex to the other side saves."""
    for u in range(len(side)):
        total = bias[u] if side[u] == 1 else -bias[u]
        for i in range(indptr[u], indptr[u + 1]):
            total += weight[i] if side[peer[i]] != side[u] else -weight[i]
        gain[u] = total


@njit(cache=True)
def refine(indptr, peer, weight, size, bias, side, target, slack, exact):
    """FM passes, in place: moves by best gain, each vertex once, back to the best state met.

    Side 0 may be off its target by `slack` on the way, and in the end if not `exact`.
    """
    n = len(side)
    gain = np.empty(n)
    heaps = np.empty((2, n), dtype=np.int32)
    at = np.empty(n, dtype=np.int32)
    moved = np.empty(n, dtype=np.int32)
    allowed = 0 if exact else slack
    excess = -target
    for u in range(n):
        if side[u] == 0:
            excess += size[u]
    for _ in range(PASSES):
        _gains(indptr, peer, weight, bias, side, gain)
        lengths = np.zeros(2, dtype=np.int64)
        for u in range(n):
            s = side[u]
            heaps[s, lengths[s]] = u
            at[u] = lengths[s]
            lengths[s] += 1
        for s in range(2):
            for i in range(lengths[s] // 2 - 1, -1, -1):
                _sink(heaps[s], at, gain, i, lengths[s])
        count, best_count = 0, 0
        saved, best_saved = 0.0, 0.0
        best_off = max(abs(excess) - allowed, 0)
        start_off = best_off
        patience = max(30, n // 8)
        while count - best_count < patience or best_off > 0:
            s = -1
            if lengths[0] > 0:
                u = heaps[0, 0]
                if excess - size[u] >= -slack or excess > slack:
                    s = 0
            if lengths[1] > 0:
                v = heaps[1, 0]
                if excess + size[v] <= slack or excess < -slack:
                    if s < 0 or gain[v] > gain[heaps[0, 0]] or excess < -slack:
                        s = 1
            if s == 1 and excess > slack:
                s = 0 if lengths[0] > 0 else -1
            if s < 0:
                break
            u = heaps[s, 0]
            lengths[s] = _take(heaps[s], at, gain, u, lengths[s])
            saved += gain[u]
            excess += size[u] if s == 1 else -size[u]
            side[u] = 1 - s
            moved[count] = u
            count += 1
            for i in range(indptr[u], indptr[u + 1]):
                v = peer[i]
                if side[v] == s:
                    gain[v] += 2 * weight[i]
                    if at[v] >= 0:
                        _raise(heaps[s], at, gain, at[v])
                else:
                    gain[v] -= 2 * weight[i]
                    if at[v] >= 0:
                        _sink(heaps[1 - s], at, gain, at[v], lengths[1 - s])
            off = max(abs(excess) - allowed, 0)
            if off < best_off or (off == best_off and saved > best_saved + 1e-9):
                best_off, best_saved, best_count = off, saved, count
        for k in range(count - 1, best_count - 1, -1):
            u = moved[k]
            side[u] = 1 - side[u]
            excess += size[u] if side[u] == 0 else -size[u]
        if best_saved <= 1e-9 and best_off == start_off:
            break


@njit(cache=True)
def grow(indptr, peer, weight, size, bias, side, target, seed):
    """Grow side 0 from the seed, or from whoever gains most (-1), until it reaches its target."""
    n = len(side)
    side[:] = 1
    gain = np.empty(n)
    _gains(indptr, peer, weight, bias, side, gain)
    heap = np.arange(n).astype(np.int32)
    at = np.arange(n).astype(np.int32)
    length = n
    if seed >= 0:
        gain[seed] = np.inf
    for i in range(n // 2 - 1, -1, -1):
        _sink(heap, at, gain, i, length)
    total = 0
    while length > 0 and total < target:
        u = heap[0]
        length = _take(heap, at, gain, u, length)
        if total + size[u] > target and 2 * (target - total) < size[u]:
            continue
        side[u] = 0
        total += size[u]
        for i in range(indptr[u], indptr[u + 1]):
            v = peer[i]
            if at[v] >= 0:
                gain[v] += 2 * weight[i]
                _raise(heap, at, gain, at[v])


@njit(cache=True)
def cut_cost(indptr, peer, weight, bias, side):
    """Weight between the sides and biases of side 1."""
    cost = 0.0
    for u in range(len(side)):
        if side[u] == 1:
            cost += bias[u]
            for i in range(indptr[u], indptr[u + 1]):
                if side[peer[i]] == 0:
                    cost += weight[i]
    return cost


@njit(cache=True)
def match(indptr, peer, weight, size, largest, draws):
    """Match each vertex with its heaviest free peer, in random order; return groups, their number.

    Weights are rated by the sizes that they join; nothing larger than `largest` comes out.
    """
    n = len(size)
    order = np.arange(n)
    state = draws[0]
    for i in range(n - 1, 0, -1):
        state = following(state)
        j = below(state, i + 1)
        order[i], order[j] = order[j], order[i]
    draws[0] = state
    group = np.full(n, -1, dtype=np.int32)
    groups = 0
    for k in range(n):
        u = order[k]
        if group[u] >= 0:
            continue
        best, rated = -1, 0.0
        for i in range(indptr[u], indptr[u + 1]):
            v = peer[i]
            if group[v] < 0 and v != u and size[u] + size[v] <= largest:
                rating = weight[i] / (size[u] * size[v])
                if rating > rated:
                    best, rated = v, rating
        group[u] = groups
        if best >= 0:
            group[best] = groups
        groups += 1
    return group, groups


@njit(cache=True)
def contract(indptr, peer, weight, group, groups):
    """Graph of the groups: pairs between the same two groups are added up, those within left out."""
    n = len(group)
    starts = np.zeros(groups + 1, dtype=np.int64)
    for u in range(n):
        starts[group[u] + 1] += 1
    for g in range(groups):
        starts[g + 1] += starts[g]
    members = np.empty(n, dtype=np.int32)
    fill = starts[:-1].copy()
    for u in range(n):
        members[fill[group[u]]] = u
        fill[group[u]] += 1
    new_indptr = np.zeros(groups + 1, dtype=np.int64)
    new_peer = np.empty(len(peer), dtype=np.int64)
    new_weight = np.empty(len(peer), dtype=weight.dtype)
    slot = np.full(groups, -1, dtype=np.int64)
    count = 0
    for g in range(groups):
        first = count
        for k in range(starts[g], starts[g + 1]):
            u = members[k]
            for i in range(indptr[u], indptr[u + 1]):
                h = group[peer[i]]
                if h == g:
                    continue
                if slot[h] < first:
                    slot[h] = count
                    new_peer[count] = h
                    new_weight[count] = weight[i]
                    count += 1
                else:
                    new_weight[slot[h]] += weight[i]
        new_indptr[g + 1] = count
    return new_indptr, new_peer[:count].copy(), new_weight[:count].copy()


@njit(cache=True)
def bisect(indptr, peer, weight, bias, target, draws):
    """Side (0 or 1) of every vertex, `target` of them on side 0, with little between the sides."""
    n = len(bias)
    size = np.ones(n, dtype=np.int64)
    levels = [(indptr, peer, weight, size, bias, np.empty(0, dtype=np.int32))]
    largest = max(n // 16, 1)
    while len(levels[-1][3]) > COARSE:
        ip, pe, we, sz, bi, _ = levels[-1]
        group, groups = match(ip, pe, we, sz, largest, draws)
        if groups > 0.95 * len(sz):
            break
        ip2, pe2, we2 = contract(ip, pe, we, group, groups)
        sz2 = np.zeros(groups, dtype=np.int64)
        bi2 = np.zeros(groups)
        for u in range(len(sz)):
            sz2[group[u]] += sz[u]
            bi2[group[u]] += bi[u]
        levels.append((ip2, pe2, we2, sz2, bi2, group))
    ip, pe, we, sz, bi, _ = levels[-1]
    best = np.empty(0, dtype=np.int8)
    best_cost = np.inf
    slack = np.int64(sz.max()) if len(sz) else np.int64(1)
    biased = np.abs(bi).max() > 0 if len(bi) else False
    for attempt in range(TRIES):
        side = np.ones(len(sz), dtype=np.int8)
        draws[0] = following(draws[0])
        seed = -1 if biased and attempt == 0 else below(draws[0], len(sz))
        grow(ip, pe, we, sz, bi, side, target, seed)
        refine(ip, pe, we, sz, bi, side, target, slack, slack == 1)
        cost = cut_cost(ip, pe, we, bi, side)
        if cost < best_cost:
            best, best_cost = side, cost
    side = best
    for k in range(len(levels) - 1, 0, -1):
        group = levels[k][5]
        ip, pe, we, sz, bi, _ = levels[k - 1]
        fine = np.empty(len(sz), dtype=np.int8)
        for u in range(len(sz)):
            fine[u] = side[group[u]]
        side = fine
        refine(ip, pe, we, sz, bi, side, target, np.int64(sz.max()), k == 1)
    return side

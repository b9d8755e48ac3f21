"""Compiled refinement of blocks, a few at a time: the ranks of two blocks, or of four, split anew.

Source: the pairwise refinement of Sanders and Schulz, Engineering multilevel graph partitioning
algorithms, ESA 2011, with a whole multilevel bisection for each pair of blocks. What is split keeps
the sizes of its blocks, and its ranks unless less weight is cut. All this is right where two blocks
are equally far from any third, as in a hierarchy.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from .draw_kernels import below, following
from .fm_kernels import cut_cost, refine
from .halving_kernels import bisect


@njit(cache=True)
def refine_pairs(
    indptr: NDArray[np.int64],
    peer: NDArray[np.int64],
    weight: NDArray[np.int64],
    block: NDArray[np.int64],
    pairs: NDArray[np.int64],
    blocks: int,
    tries: int,
    draws: NDArray[np.uint64],
) -> float:
    """Split pairs of blocks anew, in turn and in place; a pair a, b is a * blocks + b.

    Returns the weight saved.
    """
    local = np.full(len(block), -1, dtype=np.int64)
    saved = 0.0
    for key in pairs:
        a, b = key // blocks, key % blocks
        saved += _split(indptr, peer, weight, block, a, b, tries, False, local, draws)
    return saved


@njit(cache=True)
def regroup(
    indptr: NDArray[np.int64],
    peer: NDArray[np.int64],
    weight: NDArray[np.int64],
    block: NDArray[np.int64],
    parent: NDArray[np.int64],
    trials: int,
    draws: NDArray[np.uint64],
) -> float:
    """Split three or four blocks with a common parent that talk anew, and keep what cuts no more.

    In place; returns the weight saved.
    """
    pairs = talking(indptr, peer, block, parent)
    blocks = len(parent)
    local = np.full(len(block), -1, dtype=np.int64)
    chosen = np.empty(4, dtype=np.int64)
    saved = 0.0
    for _trial in range(trials):
        if len(pairs) < 2:
            break
        draws[0] = following(draws[0])
        key = pairs[below(draws[0], len(pairs))]
        chosen[0], chosen[1] = key // blocks, key % blocks
        count = 2
        draws[0] = following(draws[0])
        most, start = 3 + below(following(draws[0]), 2), below(draws[0], len(pairs))
        for k in range(len(pairs)):
            key = pairs[(start + k) % len(pairs)]
            a, b = key // blocks, key % blocks
            has_a, has_b = (chosen[:count] == a).any(), (chosen[:count] == b).any()
            if has_a != has_b and count < most:
                chosen[count] = b if has_a else a
                count += 1
        if count < 3:
            continue
        before = block.copy()
        cut = _cut(indptr, peer, weight, block, chosen[:count])
        # Throw all into one pot, fill the first half of the blocks, then the blocks of each half.
        sizes = np.zeros(blocks, dtype=np.int64)
        for u in range(len(block)):
            sizes[block[u]] += 1
        half = count // 2
        first, second = chosen[0], chosen[half]
        for k in range(1, count):
            into = first if k < half else second
            if chosen[k] != into:
                for u in range(len(block)):
                    if block[u] == chosen[k]:
                        block[u] = into
        _split(indptr, peer, weight, block, first, second, 1, True, local, draws)
        for lo, hi in ((0, half), (half, count)):
            if hi - lo == 2:
                whole, other = chosen[lo], chosen[lo + 1]
                excess = sizes[other]
                for u in range(len(block)):
                    if block[u] == whole and excess > 0:
                        block[u] = other
                        excess -= 1
                _split(indptr, peer, weight, block, whole, other, 1, True, local, draws)
        for i in range(count):
            for j in range(i):
                _split(indptr, peer, weight, block, chosen[j], chosen[i], 1, False, local, draws)
        less = cut - _cut(indptr, peer, weight, block, chosen[:count])
        if less < 0:
            block[:] = before
        else:
            saved += less
    return saved


@njit(cache=True)
def talking(
    indptr: NDArray[np.int64],
    peer: NDArray[np.int64],
    block: NDArray[np.int64],
    parent: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Pairs a < b of blocks with a common parent that talk, as a * blocks + b."""
    keys = np.empty(len(peer), dtype=np.int64)
    count = 0
    for u in range(len(block)):
        for i in range(indptr[u], indptr[u + 1]):
            a, b = block[u], block[peer[i]]
            if a < b and parent[a] == parent[b]:
                keys[count] = a * len(parent) + b
                count += 1
    return np.unique(keys[:count])


@njit(cache=True)
def _cut(
    indptr: NDArray[np.int64],
    peer: NDArray[np.int64],
    weight: NDArray[np.int64],
    block: NDArray[np.int64],
    chosen: NDArray[np.int64],
) -> float:
    """Weight between the chosen blocks."""
    cut = 0.0
    for u in range(len(block)):
        if (chosen == block[u]).any():
            for i in range(indptr[u], indptr[u + 1]):
                other = block[peer[i]]
                if other < block[u] and (chosen == other).any():
                    cut += weight[i]
    return cut


@njit(cache=True)
def _split(
    indptr: NDArray[np.int64],
    peer: NDArray[np.int64],
    weight: NDArray[np.int64],
    block: NDArray[np.int64],
    a: int,
    b: int,
    tries: int,
    anyway: bool,
    local: NDArray[np.int64],
    draws: NDArray[np.uint64],
) -> float:
    """Split the ranks of blocks a and b anew, in place; return the weight saved.

    They stay where they are if nothing better is found, unless `anyway`. `local` is -1 everywhere.
    """
    n, entries, target = 0, 0, 0
    here = np.empty(len(block), dtype=np.int64)
    for u in range(len(block)):
        if block[u] == a or block[u] == b:
            here[n] = u
            local[u] = n
            n += 1
            entries += indptr[u + 1] - indptr[u]
            if block[u] == a:
                target += 1
    sub_indptr = np.zeros(n + 1, dtype=np.int64)
    sub_peer = np.empty(entries, dtype=np.int64)
    sub_weight = np.empty(entries)
    side = np.zeros(n, dtype=np.int8)
    used = 0
    for m in range(n):
        u = here[m]
        side[m] = 0 if block[u] == a else 1
        for i in range(indptr[u], indptr[u + 1]):
            if local[peer[i]] >= 0:
                sub_peer[used] = local[peer[i]]
                sub_weight[used] = weight[i]
                used += 1
        sub_indptr[m + 1] = used
    sub_peer, sub_weight = sub_peer[:used].copy(), sub_weight[:used].copy()
    bias, size = np.zeros(n), np.ones(n, dtype=np.int64)
    before = cut_cost(sub_indptr, sub_peer, sub_weight, bias, side)
    least = before
    if anyway:
        least = np.inf
    else:
        refine(sub_indptr, sub_peer, sub_weight, size, bias, side, target, 1, True)
        least = cut_cost(sub_indptr, sub_peer, sub_weight, bias, side)
    for _ in range(tries):
        trial = bisect(sub_indptr, sub_peer, sub_weight, bias, target, draws)
        cut = cut_cost(sub_indptr, sub_peer, sub_weight, bias, trial)
        if cut < least:
            side, least = trial, cut
    for m in range(n):
        local[here[m]] = -1
        if least < before or anyway:
            block[here[m]] = a if side[m] == 0 else b
    return before - least if anyway else max(before - least, 0.0)

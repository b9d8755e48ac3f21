"""Compiled refinement of blocks in pairs: the ranks of two blocks are bisected anew.

Source: the pairwise refinement of Sanders and Schulz, Engineering multilevel graph partitioning
algorithms, ESA 2011, with a whole multilevel bisection for each pair of blocks.
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
    parent: NDArray[np.int64],
    tries: int,
    draws: NDArray[np.uint64],
) -> float:
    """Bisect every pair of blocks with a common parent that talk, in random order, in place.

    Two blocks keep their sizes, and their ranks only if no bisection cuts less. Right where a pair
    is as far from any third block as the other, as in a hierarchy. Returns the weight saved.
    """
    blocks, items = len(parent), len(block)
    keys = np.empty(len(peer), dtype=np.int64)
    count = 0
    for u in range(items):
        for i in range(indptr[u], indptr[u + 1]):
            a, b = block[u], block[peer[i]]
            if a < b and parent[a] == parent[b]:
                keys[count] = a * blocks + b
                count += 1
    pairs = np.unique(keys[:count])
    for k in range(len(pairs) - 1, 0, -1):
        draws[0] = following(draws[0])
        j = below(draws[0], k + 1)
        pairs[k], pairs[j] = pairs[j], pairs[k]
    local = np.full(items, -1, dtype=np.int64)
    saved = 0.0
    for key in pairs:
        a, b = key // blocks, key % blocks
        n, entries, target = 0, 0, 0
        here = np.empty(items, dtype=np.int64)
        for u in range(items):
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
        refine(sub_indptr, sub_peer, sub_weight, size, bias, side, target, 1, True)
        least = cut_cost(sub_indptr, sub_peer, sub_weight, bias, side)
        for _ in range(tries):
            trial = bisect(sub_indptr, sub_peer, sub_weight, bias, target, draws)
            cut = cut_cost(sub_indptr, sub_peer, sub_weight, bias, trial)
            if cut < least:
                side, least = trial, cut
        for m in range(n):
            local[here[m]] = -1
            if least < before:
                block[here[m]] = a if side[m] == 0 else b
        saved += max(before - least, 0.0)
    return saved

"""Compiled dual bisection of a small graph of sized vertices onto the halves of a network.

Sources: as `bisections.bisection_kernels`, which places ranks of size 1 exactly; here vertices have
sizes, and a half gets what is proportional to its room, give or take the slack that is left to it.
The slack of a step is that of Schulz and Woydt, SharedMap, ACDA 2025 (adaptive imbalance): the root
of what is left over, of as many steps as there are below.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hopmap.arrays import Bools, Floats, Ints, Ints8, Ints32, Words
from hopmap.compilation import njit, subroutine
from hopmap.mappers.basic_kernels import below, contract, following, grouped
from hopmap.mappers.bisections.fm_kernels import cut_cost, grow, refine
from hopmap.mappers.bisections.halving_kernels import COARSE, match

if TYPE_CHECKING:
    from .vcycles import Vertices


@njit
def split_domains(
    graph: Vertices,
    domain_of: Ints32,
    domains: Ints,
    split: Bools,
    rooms: Ints,
    sums: Floats,
    tries: int,
    random: Words,
) -> None:
    """Send the vertices of some domains to their halves, and these to theirs, in place.

    `domain_of` is the domain of every vertex. `domains`, shape (2 * blocks - 1, 4), are those of
    `bisection_kernels.halve_nodes`, of blocks in the order of the halves, and `split` says which
    are split. `rooms` is the size that the first so many blocks can take, and `sums`, shape (blocks
    + 1, blocks + 1), the sum of the distances of the first so many to the first so many. At every
    step the best of `tries` bisections is taken.
    """
    indptr, peer, weight, size = graph
    local = np.full(len(size), -1, dtype=np.int64)
    members = [np.empty(0, dtype=np.int64) for _ in domains]
    starts, order = grouped(domain_of, len(domains))
    for d in range(len(domains)):
        members[d] = order[starts[d] : starts[d + 1]]
    for d in range(len(domains)):
        if not split[d]:
            continue
        lo, mid, hi, first = domains[d, 0], domains[d, 1], domains[d, 2], domains[d, 3]
        here = members[d]
        entries, total = 0, 0
        for i in range(len(here)):
            local[here[i]] = i
            entries += indptr[here[i] + 1] - indptr[here[i]]
            total += size[here[i]]
        within = _mean(sums, lo, mid, lo, mid) + _mean(sums, mid, hi, mid, hi)
        apart = max(_mean(sums, lo, mid, mid, hi) - within / 2, 0.1)
        sub_indptr = np.zeros(len(here) + 1, dtype=np.int64)
        sub_peer, sub_weight = np.empty(entries, dtype=np.int64), np.empty(entries)
        bias = np.zeros(len(here))
        count = 0
        for i in range(len(here)):
            u = here[i]
            for k in range(indptr[u], indptr[u + 1]):
                v = peer[k]
                if local[v] >= 0:
                    sub_peer[count] = local[v]
                    sub_weight[count] = weight[k] * apart
                    count += 1
                else:
                    start, stop = domains[domain_of[v], 0], domains[domain_of[v], 2]
                    pull = _mean(sums, mid, hi, start, stop) - _mean(sums, lo, mid, start, stop)
                    bias[i] += weight[k] * pull
            sub_indptr[i + 1] = count
        whole = rooms[hi] - rooms[lo]
        target = int(total * ((rooms[mid] - rooms[lo]) / whole) + 0.5)
        steps = np.ceil(np.log2(hi - lo))
        spare = (whole / max(total, 1)) ** (1 / steps) - 1 if whole > total else 0.0
        slack = int(min(target, total - target) * spare)
        side = _two_sides(
            sub_indptr, sub_peer[:count], sub_weight[:count], size[here], bias, target, slack,
            tries, random,
        )  # fmt: skip
        for i in range(len(here)):
            local[here[i]] = -1
            domain_of[here[i]] = first + side[i]
        members[first], members[first + 1] = here[side == 0], here[side == 1]


@subroutine
def _mean(sums: Floats, lo: int, hi: int, start: int, stop: int) -> float:
    """Mean distance between two ranges of blocks."""
    total = sums[hi, stop] - sums[lo, stop] - sums[hi, start] + sums[lo, start]
    return float(total / ((hi - lo) * (stop - start)))


@subroutine
def _two_sides(
    indptr: Ints,
    peer: Ints,
    weight: Floats,
    size: Ints,
    bias: Floats,
    target: int,
    slack: int,
    tries: int,
    random: Words,
) -> Ints8:
    """Best of so many multilevel bisections, and as many more V-cycles of it."""
    best, best_cost = np.zeros(len(size), dtype=np.int8), np.inf
    for attempt in range(2 * tries):
        side = _cycle(
            indptr, peer, weight, size, bias, best, attempt >= tries, target, slack, random
        )
        cost = cut_cost(indptr, peer, weight, bias, side)
        if cost < best_cost:
            best, best_cost = side, cost
    return best


@subroutine
def _cycle(
    indptr: Ints,
    peer: Ints,
    weight: Floats,
    size: Ints,
    bias: Floats,
    side: Ints8,
    given: bool,
    target: int,
    slack: int,
    random: Words,
) -> Ints8:
    """Coarsen, within the sides if they are given, else grow them; refine on every level."""
    label = side
    levels = [(indptr, peer, weight, size, bias, np.empty(0, dtype=np.int32))]
    largest = max(int(size.sum()) // 16, 1)
    while len(levels[-1][3]) > COARSE:
        ip, pe, we, sz, bi, _ = levels[-1]
        group, groups = match(ip, pe, we, sz, largest, label, random)
        if groups > 0.95 * len(sz):
            break
        coarse = contract(ip, pe, we, group, groups)
        sizes, biases = np.zeros(groups, dtype=np.int64), np.zeros(groups)
        labels = np.empty(groups, dtype=np.int8)
        for v in range(len(sz)):
            sizes[group[v]] += sz[v]
            biases[group[v]] += bi[v]
            labels[group[v]] = label[v]
        levels.append((coarse[0], coarse[1], coarse[2], sizes, biases, group))
        label = labels
    for k in range(len(levels) - 1, -1, -1):
        ip, pe, we, sz, bi, _ = levels[k]
        if k < len(levels) - 1:
            group = levels[k + 1][5]
            fine = np.empty(len(sz), dtype=np.int8)
            for v in range(len(sz)):
                fine[v] = label[group[v]]
            label = fine
        elif not given and len(sz) > 0:
            label = np.ones(len(sz), dtype=np.int8)
            random[0] = following(random[0])
            grow(ip, pe, we, sz, bi, label, target, below(random[0], len(sz)))
        most = int(sz.max()) if len(sz) > 0 else 0
        refine(ip, pe, we, sz, bi, label, target, max(slack, most), False)
    return label

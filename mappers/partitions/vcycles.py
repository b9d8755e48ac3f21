"""V-cycles: a graph coarsened, its blocks split or refined where it is small, refined going back.

Blocks are ranges of nodes, in the order of the halves of the network (`bisections`): a cycle takes
every vertex from its range to one of a finer front, the last of which are single nodes, or stays
on one front. What blocks cost each other are mean distances of their nodes. On every level single
vertices move first (`blocks_kernels`), then pairs of blocks are cut again (`corridor_kernels`).
Into few blocks a coarse graph is split several times, and the best of these goes on.

A graph is split by dual bisection, compiled at the end of this file. Sources: as
`bisections.bisection_kernels`, which places ranks of size 1 exactly; here vertices have sizes, and
a half gets what is proportional to its room, give or take the slack that is left to it. The slack
of a step is that of Schulz and Woydt, SharedMap, ACDA 2025 (adaptive imbalance): the root of what
is left over, of as many steps as there are below.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from hopmap.arrays import Bools, Floats, Ints, Ints8, Ints32, Words
from hopmap.compilation import njit, subroutine
from hopmap.mappers.basic_kernels import Graph, contract, draw, group_by_block, next_state
from hopmap.mappers.bisections.fm_kernels import cut_cost, grow, refine
from hopmap.mappers.bisections.halving_kernels import COARSE, match
from hopmap.mappers.bisections.recursive_bisection import halves
from hopmap.mappers.cost_model import NEAR, CostModel
from hopmap.topologies.families.hierarchy import hierarchy
from hopmap.topologies.topology import Topology

from .blocks_kernels import block_cost, fit, improve
from .corridor_kernels import recut

COARSEST = 128  # vertices a block where coarsening stops
SMALLEST = 24  # vertices a block that there are at least
TRIES = 8  # bisections of the coarsest graph, at every step
FEW = 16  # blocks whose first cycle is worth longer searches, for they are far apart
RUNNERS, RACE = 8, 24_000  # first partitions into few blocks, and vertices where the best is kept
ROUNDS, QUICK = 30, 3  # of local searches on every level, most of them; on the way to many blocks
PATIENCE, SHORT = 40, 15  # moves of a search that do not gain; with many blocks
PART = 0.1  # of a block that is in a corridor at most
DEEP, WIDER = 6.0, 1.5  # vertices from border to end of a corridor; times that on coarser levels
TURNS = 3  # times that pairs of few blocks are cut again, many once


class Vertices(NamedTuple):
    """Undirected graph of sized vertices, every edge listed at both ends, weights above 0."""

    indptr: Ints
    peer: Ints
    weight: Floats
    size: Ints


class Machine(NamedTuple):
    """A network as it is halved."""

    nodes: Ints  # shape (blocks,): nodes with slots, every domain a range of them
    domains: Ints  # shape (2 * blocks - 1, 4): as `bisection_kernels.halve_nodes` returns them
    # domains that are split no further for the moment: the whole, finer ones, single nodes
    fronts: tuple[Ints, ...]
    rooms: Ints  # shape (blocks + 1,): vertices that the first so many nodes take
    far: Floats  # shape (blocks, blocks): what a pair of weight 1 costs
    # shape (blocks + 1, blocks + 1): sum of `far` between the first so many nodes and the first so
    # many
    sums: Floats


def vertices_of(model: CostModel, ranks: int) -> Vertices:
    """Graph of the ranks, without the pairs that weigh nothing."""
    keep = model.weight > 0
    starts = np.concatenate(([0], np.cumsum(keep)))[model.indptr[: ranks + 1]]
    weight = model.weight[keep].astype(np.float64)
    return Vertices(starts, model.peer[keep], weight, np.ones(ranks, dtype=np.int64))


def machine_of(model: CostModel, topology: Topology) -> Machine:
    """Halve the network, and measure it."""
    nodes, domains = halves(model, topology)
    hops = np.array([topology.distance(node, nodes) for node in nodes])
    near = np.where(hops <= 1, -1, 0)
    far = (near if model.kind == NEAR else hops).astype(np.float64)
    sums = np.zeros((len(nodes) + 1, len(nodes) + 1))
    sums[1:, 1:] = far.cumsum(axis=0).cumsum(axis=1)
    rooms = np.concatenate(([0], np.cumsum(topology.slots[nodes])))
    return Machine(nodes, domains, fronts_of(topology, nodes, domains), rooms, far, sums)


def fronts_of(topology: Topology, nodes: Ints, domains: Ints) -> tuple[Ints, ...]:
    """Whole network, its subsystems level by level where it has levels, then single nodes."""
    fronts = [np.zeros(1, dtype=np.int64)]
    for span in np.cumprod((1, *(hierarchy(topology) or (1,))[:-1]))[::-1].tolist():
        now, done = fronts[-1].tolist()[::-1], []
        while now:
            d = now.pop()
            low, middle, high, first = domains[d].tolist()
            if middle == high or nodes[low] // span == nodes[high - 1] // span:
                done.append(d)
            else:
                now += [first + 1, first]
        fronts.append(np.array(done))
    # A level of which every subsystem has one part with slots splits nothing.
    return (*(a for a, b in pairwise(fronts) if len(a) < len(b)), fronts[-1])


def vcycle(
    graph: Vertices, block: Ints32, machine: Machine, begin: int, end: int, random: Words
) -> Ints32:
    """Take every vertex from its block of front `begin` to one of front `end`, or stay and refine.

    `block` is the domain of every vertex, by its number on front `begin`.
    """
    front, blocks = machine.fronts[end], len(machine.fronts[end])
    levels, groups = [graph], []
    largest = max(len(graph.size) // (SMALLEST * blocks), 1)
    while len(levels[-1].size) > COARSEST * blocks:
        fine = levels[-1]
        # Expansion*2 of Holtgrewe, Sanders and Schulz: weight squared over the sizes.
        label: Any = block
        squared = Graph(fine.indptr, fine.peer, fine.weight**2)
        group, count = match(squared, fine.size, largest, label, random)
        if count > 0.95 * len(fine.size):
            break
        pieces = contract(Graph(*fine[:3]), group, count)
        size = np.bincount(group, weights=fine.size, minlength=count).astype(np.int64)
        levels.append(Vertices(*pieces, size))
        groups.append(group)
        block = _of_groups(group, count, block)
    far, room = mean_cost(machine, front), _room(machine, front, len(graph.size))
    few, splits = blocks <= FEW, begin != end
    rounds = QUICK if splits and not few else ROUNDS

    def smooth(block: Ints32, k: int) -> None:
        search = (levels[k], block, room, far, rounds, PATIENCE if few else SHORT, random)
        improve(*search)
        deep, turns = int(DEEP * WIDER**k), TURNS if few else 1
        if recut(levels[k], block, room, far, PART, deep, turns) > 0 and few:
            improve(*search)

    runs: list[tuple[float, float, int, Ints32]] = []
    for _ in range(RUNNERS if splits and few else 1):
        split = _split(levels[-1], block, machine, begin, end, random) if splits else block.copy()
        k = len(levels) - 1
        smooth(split, k)
        while k and splits and few and len(levels[k - 1].size) <= RACE:
            k -= 1
            split = split[groups[k]]
            smooth(split, k)
        load = np.bincount(split, weights=levels[k].size, minlength=blocks)
        above = float(np.maximum(load - room, 0).sum())
        runs.append((above, block_cost(*levels[k][:3], split, far), len(runs), split))
    block = min(runs)[3]
    while k:
        k -= 1
        block = block[groups[k]]
        smooth(block, k)
    if (np.bincount(block, minlength=blocks) > room).any():
        fit(*graph[:3], block, room, far)
        smooth(block, 0)
    return block


def _of_groups(group: Ints32, count: int, block: Ints32) -> Ints32:
    """Block of each group, that of all its members."""
    coarse = np.empty(count, dtype=np.int32)
    coarse[group] = block
    return coarse


def _split(
    graph: Vertices, block: Ints32, machine: Machine, begin: int, end: int, random: Words
) -> Ints32:
    """Block of the finer front for every vertex, by dual bisection."""
    domain_of = machine.fronts[begin][block].astype(np.int32)
    number = np.full(len(machine.domains), -1, dtype=np.int32)
    number[machine.fronts[end]] = np.arange(len(machine.fronts[end]))
    split = np.zeros(len(machine.domains), dtype=np.bool_)
    now = machine.fronts[begin].tolist()
    while now:
        d = now.pop()
        if number[d] < 0:
            split[d] = True
            now += [machine.domains[d, 3], machine.domains[d, 3] + 1]
    split_domains(
        graph, domain_of, machine.domains, split, machine.rooms, machine.sums, TRIES, random
    )
    return number[domain_of]


def mean_cost(machine: Machine, front: Ints) -> Floats:
    """Mean cost of a pair between two domains."""
    low, high = machine.domains[front, 0], machine.domains[front, 2]
    rows = machine.sums[high] - machine.sums[low]
    means: Floats = rows[:, high] - rows[:, low]
    return means / np.outer(high - low, high - low)


def _room(machine: Machine, front: Ints, vertices: int) -> Ints:
    """Vertices that each domain takes: its share, and of the slack what finer fronts leave to it.

    Source: Schulz and Woydt, SharedMap, ACDA 2025: the root of the slack for each step.
    """
    rooms, low, high = machine.rooms, machine.domains[front, 0], machine.domains[front, 2]
    room = rooms[high] - rooms[low]
    part = np.log2(len(front)) / max(np.log2(len(rooms) - 1), 1.0)
    slack = (rooms[-1] / vertices) ** (part - 1.0)
    share = -(-room * vertices // rooms[-1])
    clipped: Ints = np.clip((room * slack).astype(np.int64), share, room)
    return clipped


def first_level(graph: Vertices, machine: Machine, starts: int, random: Words) -> Ints32:
    """Place all vertices on the first level: the best of so many partitions."""
    nowhere = np.zeros(len(graph.size), dtype=np.int32)
    some = [vcycle(graph, nowhere, machine, 0, 1, random) for _ in range(starts)]
    return min(some, key=lambda split: _first_cost(graph, machine, split))


def _first_cost(graph: Vertices, machine: Machine, split: Ints32) -> float:
    """Cost of the first level, all else apart."""
    return block_cost(*graph[:3], split, mean_cost(machine, machine.fronts[1]))


def descend(
    graph: Vertices, machine: Machine, block: Ints32, random: Words, level: int = 1
) -> Ints32:
    """Place vertices of a level on those below."""
    for above in range(level, len(machine.fronts) - 1):
        block = vcycle(graph, block, machine, above, above + 1, random)
    return block


def place_at_once(graph: Vertices, machine: Machine, random: Words) -> Ints32:
    """Place all vertices on the level above single nodes at once, then on these."""
    level = max(len(machine.fronts) - 2, 1)
    nowhere = np.zeros(len(graph.size), dtype=np.int32)
    return descend(graph, machine, vcycle(graph, nowhere, machine, 0, level, random), random, level)


def other_start(graph: Vertices, machine: Machine, best: Ints32, random: Words) -> Ints32:
    """Return the result of another first level where that is better, else `best`."""
    lows = machine.domains[machine.fronts[1], 0]
    now = (np.searchsorted(lows, best, side="right") - 1).astype(np.int32)
    made = first_level(graph, machine, 1, random)
    if _first_cost(graph, machine, made) >= _first_cost(graph, machine, now):
        return best
    return descend(graph, machine, made, random)


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

    `domain_of` is the domain of every vertex. `domains`, shape (2 * blocks - 1, 4), come from
    `bisection_kernels.halve_nodes`, of blocks in the order of the halves, and `split` says which
    are split. `rooms` is the size that the first so many blocks can take, and `sums`, shape (blocks
    + 1, blocks + 1), the sum of the distances of the first so many to the first so many. At every
    step the best of `tries` bisections is taken.
    """
    indptr, peer, weight, size = graph
    local = np.full(len(size), -1, dtype=np.int64)
    members = [np.empty(0, dtype=np.int64) for _ in domains]
    starts, order = group_by_block(domain_of, len(domains))
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
        inner = Graph(sub_indptr, sub_peer[:count], sub_weight[:count])
        side = _two_sides(inner, size[here], bias, target, slack, tries, random)
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
    graph: Graph, size: Ints, bias: Floats, target: int, slack: int, tries: int, random: Words
) -> Ints8:
    """Best of so many multilevel bisections, and as many more V-cycles of it."""
    best, best_cost = np.zeros(len(size), dtype=np.int8), np.inf
    for attempt in range(2 * tries):
        side = _cycle(graph, size, bias, best, attempt >= tries, target, slack, random)
        cost = cut_cost(graph, bias, side)
        if cost < best_cost:
            best, best_cost = side, cost
    return best


@subroutine
def _cycle(
    graph: Graph,
    size: Ints,
    bias: Floats,
    side: Ints8,
    has_blocks: bool,
    target: int,
    slack: int,
    random: Words,
) -> Ints8:
    """Coarsen, within the sides if there are any, else grow them; refine on every level."""
    label = side
    levels = [(graph, size, bias, np.empty(0, dtype=np.int32))]
    largest = max(int(size.sum()) // 16, 1)
    while len(levels[-1][1]) > COARSE:
        here, sz, bi, _ = levels[-1]
        group, groups = match(here, sz, largest, label, random)
        if groups > 0.95 * len(sz):
            break
        sizes, biases = np.zeros(groups, dtype=np.int64), np.zeros(groups)
        labels = np.empty(groups, dtype=np.int8)
        for v in range(len(sz)):
            sizes[group[v]] += sz[v]
            biases[group[v]] += bi[v]
            labels[group[v]] = label[v]
        levels.append((contract(here, group, groups), sizes, biases, group))
        label = labels
    for k in range(len(levels) - 1, -1, -1):
        here, sz, bi, _ = levels[k]
        if k < len(levels) - 1:
            group = levels[k + 1][3]
            fine = np.empty(len(sz), dtype=np.int8)
            for v in range(len(sz)):
                fine[v] = label[group[v]]
            label = fine
        elif not has_blocks and len(sz) > 0:
            label = np.ones(len(sz), dtype=np.int8)
            random[0] = next_state(random[0])
            grow(here, sz, bi, label, target, draw(random[0], len(sz)))
        most = int(sz.max()) if len(sz) > 0 else 0
        refine(here, sz, bi, label, target, max(slack, most), False)
    return label

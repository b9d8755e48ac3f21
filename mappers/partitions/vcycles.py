"""V-cycles: a graph coarsened, its blocks split or refined where it is small, refined going back.

Blocks are ranges of nodes, in the order of the halves of the network (`bisections`): a cycle takes
every vertex from its range to one of a finer front, the last of which are single nodes, or stays
on one front. What blocks cost each other are mean distances of their nodes. On every level single
vertices move first (`blocks_kernels`), then pairs of blocks are cut anew (`corridor_kernels`).
Into few blocks a coarse graph is split several times, and the best of these goes on.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from hopmap.arrays import Floats, Ints, Ints32, Words
from hopmap.topologies import Topology, hierarchy

COARSEST = 128  # vertices a block where coarsening stops
SMALLEST = 24  # vertices a block that there are at least
TRIES = 8  # bisections of the coarsest graph, at every step
FEW = 16  # blocks whose first cycle is worth longer searches, for they are far apart
RUNNERS, RACE = 8, 24_000  # first partitions into few blocks, and vertices where the best is kept
ROUNDS, QUICK = 30, 3  # of local searches on every level, most of them; on the way to many blocks
PATIENCE, SHORT = 40, 15  # moves of a search that do not gain; with many blocks
PART = 0.1  # of a block that is in a corridor at most
DEEP, WIDER = 6.0, 1.5  # vertices from border to end of a corridor; times that on coarser levels
TURNS = 3  # times that pairs of few blocks are cut anew, many once
DEPTH = 3  # halvings from one front to the next where the network has no levels


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


def fronts_of(topology: Topology, nodes: Ints, domains: Ints) -> tuple[Ints, ...]:
    """Whole network, then its subsystems level by level; without levels, by depth."""
    sizes = hierarchy(topology)
    spans = [] if sizes is None else np.cumprod((1, *sizes[:-1]))[::-1].tolist()
    fronts = [np.zeros(1, dtype=np.int64)]
    while len(fronts[-1]) < len(nodes):
        span = spans[len(fronts) - 1] if spans else 0
        now = [(int(d), 0) for d in fronts[-1]]
        done: list[int] = []
        while now:
            d, depth = now.pop()
            low, middle, high, first = domains[d].tolist()
            within = nodes[low] // span == nodes[high - 1] // span if span else depth == DEPTH
            if middle == high or within:
                done.append(d)
            else:
                now += [(first + 1, depth + 1), (first, depth + 1)]
        fronts.append(np.array(done))
    # A level of which every subsystem has one part with slots splits nothing.
    return (*(a for a, b in pairwise(fronts) if len(a) < len(b)), fronts[-1])


def vcycle(
    graph: Vertices, block: Ints32, machine: Machine, begin: int, end: int, random: Words
) -> Ints32:
    """Take every vertex from its block of front `begin` to one of front `end`, or stay and refine.

    `block` is the domain of every vertex, by its number on front `begin`.
    """
    from hopmap.mappers.basic_kernels import contract
    from hopmap.mappers.bisections.halving_kernels import match

    from .blocks_kernels import block_cost, fit, improve
    from .corridor_kernels import recut

    front, blocks = machine.fronts[end], len(machine.fronts[end])
    levels, groups = [graph], []
    largest = max(len(graph.size) // (SMALLEST * blocks), 1)
    while len(levels[-1].size) > COARSEST * blocks:
        fine = levels[-1]
        # Expansion*2 of Holtgrewe, Sanders and Schulz: weight squared over the sizes.
        label: Any = block
        group, count = match(
            fine.indptr, fine.peer, fine.weight**2, fine.size, largest, label, random
        )
        if count > 0.95 * len(fine.size):
            break
        pieces = contract(*fine[:3], group, count)
        size = np.bincount(group, weights=fine.size, minlength=count).astype(np.int64)
        levels.append(Vertices(*pieces, size))
        groups.append(group)
        block = _of_groups(group, count, block)
    far, room = between(machine, front), _room(machine, front, len(graph.size))
    few, splits = blocks <= FEW, begin != end
    rounds = QUICK if splits and not few else ROUNDS

    def refine(block: Ints32, k: int) -> None:
        search = (levels[k], block, room, far, rounds, PATIENCE if few else SHORT, random)
        improve(*search)
        deep, turns = int(DEEP * WIDER**k), TURNS if few else 1
        if recut(levels[k], block, room, far, PART, deep, turns) > 0 and few:
            improve(*search)

    runs: list[tuple[float, float, int, Ints32]] = []
    for _ in range(RUNNERS if splits and few else 1):
        split = _split(levels[-1], block, machine, begin, end, random) if splits else block.copy()
        k = len(levels) - 1
        refine(split, k)
        while k and splits and few and len(levels[k - 1].size) <= RACE:
            k -= 1
            split = split[groups[k]]
            refine(split, k)
        load = np.bincount(split, weights=levels[k].size, minlength=blocks)
        above = float(np.maximum(load - room, 0).sum())
        runs.append((above, block_cost(*levels[k][:3], split, far), len(runs), split))
    block = min(runs)[3]
    while k:
        k -= 1
        block = block[groups[k]]
        refine(block, k)
    if (np.bincount(block, minlength=blocks) > room).any():
        fit(*graph[:3], block, room, far)
        refine(block, 0)
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
    from .dual_bisection_kernels import split_domains

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


def between(machine: Machine, front: Ints) -> Floats:
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

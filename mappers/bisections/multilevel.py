"""Multilevel mapping: groups of ranks onto groups of nodes, then finer and finer.

The future work of Schulz and Traeff (Better process mapping and sparse quadratic assignment, 2017,
section 6) for any network. Nodes are grouped by the halves of `bisection`, depth by depth; ranks by
heavy-edge matchings, with as many groups at every depth. The coarsest groups are annealed from
random places; on the way down the members of a group go to the halves of its place, and whole
groups are exchanged again, at lower temperatures. Distances of groups are means of true hops. On
the finest level single ranks are annealed by the objective itself, and then whole blocks of nodes
exchange their ranks, in pairs and in cycles of three, from large blocks to small ones, with the
exact cost from true distances.

O(moves * degree); tables of distances up to 2,048 groups, and fewer where time is short; deeper
levels take over what is above.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hopmap.arrays import Ints, Words
from hopmap.mappers.cost_model import HOPS, CostModel
from hopmap.mappers.distances import FARTHEST, table_router
from hopmap.mappers.exchanges.annealing import AnnealingSearch, Cooling
from hopmap.mappers.exchanges.assignment import assignment_to_groups
from hopmap.mappers.mapper import mapper
from hopmap.mappers.objectives import MOST as MOST_COST
from hopmap.mappers.objectives import ObjectiveName, farthest
from hopmap.mappers.orders.node_orders import random_mapping
from hopmap.mappers.stop import Moves, Watch, keep
from hopmap.topologies import Mapping, Topology
from hopmap.traces import Traffic

from .recursive_bisection import exchange_blocks, slot_layers

if TYPE_CHECKING:
    from hopmap.mappers.basic_kernels import Graph

COARSEST = 32  # groups where coarsening stops
MOST = 2048  # groups whose distances are kept in a table
SCALE = 16.0  # of mean distances, which are kept as whole numbers
PER_RANK = 2_000
HOT, WARM = 0.5, 0.15  # first temperature on the coarsest level and on all others
GROUPS = 0.4  # of a budget for groups of ranks
COLD = 0.05  # last temperature, in units of the first


class Level(NamedTuple):
    """Groups of nodes and as many groups of ranks."""

    # shape (groups + 1,): group g holds slots ``starts[g]:starts[g + 1]`` in the order of the
    # halves
    starts: Ints
    group_of: Ints  # group of each item of the next finer level
    graph: Graph  # traffic between the groups of ranks


@mapper("multilevel", source="Schulz, Traeff 2017, section 6")
def multilevel(
    traffic: Traffic,
    topology: Topology,
    *,
    rng: np.random.Generator,
    initial: Mapping | None = None,
    objective: ObjectiveName = "hop_bytes",
    stop: Moves,
) -> Mapping:
    """Map groups of ranks onto groups of nodes, refined by exchanges of groups on every level.

    - `initial`: returned if nothing better is found.
    - `moves`: proposals, shared by the levels; by default 2,000 a rank, and with a time budget four
      tenths of it for the groups and the rest for the ranks.
    """
    watch, moves = stop.watch(), stop.or_usual(stop.moves, PER_RANK * traffic.ranks)
    if initial is None:
        initial = random_mapping(traffic, topology, rng=rng)
    search = AnnealingSearch(traffic, topology, initial, objective, rng, watch)
    with keep(lambda: search.mapping):
        anneal_by_levels(search, rng, Moves(watch.remaining(), moves=moves))
        search.assign(search.best)
        exchange_blocks(search, 200 * traffic.ranks if moves is None else moves // 10)
    return search.mapping


def anneal_by_levels(search: AnnealingSearch, rng: np.random.Generator, share: Moves) -> None:
    """Place groups of ranks level by level, then anneal single ranks."""
    levels, rest = share.part(GROUPS), share.part(1 - GROUPS)
    hot = place_by_levels(search, rng, levels.moves, levels.seconds)
    search.cool(hot, COLD * hot, moves=rest.moves, seconds=rest.seconds)


def place_by_levels(
    search: AnnealingSearch, rng: np.random.Generator, moves: int | None, seconds: float | None
) -> float:
    """Assign everybody from the coarsest level down; return the temperature to go on from.

    Moves and seconds are shared by the levels, half of what is left to each coarser one. Levels
    whose distances would take longer than is left are not annealed.
    """
    from . import block_moves_kernels

    nodes, layers = slot_layers(search.model, search.topology)
    slots = search.topology.slots
    slot_nodes = np.repeat(nodes, slots[nodes])
    levels = _coarsen(search.model, layers, rng)
    scale = table_scale(search.model, search.topology)
    end = None if seconds is None else search.watch.now() + seconds
    place: Ints | None = None
    now, table = search.watch.now, 0.0  # seconds for the next table, four times the last
    for depth, level in enumerate(levels):
        groups = len(level.starts) - 1
        if place is None:
            place = rng.permutation(groups).astype(np.int64)
        in_time = (end is None or now() + table < end) and not search.watch.over()
        if groups <= MOST and in_time:
            begin = now()
            hops = block_moves_kernels.group_hops(
                search.model.router, slot_nodes, level.starts, 4, scale
            )
            table = 4 * (now() - begin)
            model = CostModel(table_router(hops), HOPS, *level.graph)
            share = 2.0 ** (depth + 1 - len(levels))
            left = None if end is None else max(end - now(), 0.0) * share
            budget = None if moves is None else int(moves * share / 2)
            place = _anneal(
                model, place, HOT if depth == 0 else WARM, budget, left, search.watch, rng
            )
        finer = levels[depth + 1].starts if depth + 1 < len(levels) else layers[-1]
        place = _expand(level, finer, place)
    if place is None:  # too small for levels
        search.assign(rng.permutation(slot_nodes))
        return HOT * search.scale()
    search.assign(slot_nodes[place])
    return WARM * search.scale()


def table_scale(model: CostModel, topology: Topology) -> float:
    """`SCALE`, or less where distances would not fit a table of int16 or costs by it 64 bits."""
    longest = farthest(topology)
    if longest * SCALE > FARTHEST:
        longest = topology.diameter()
    fits = min(FARTHEST, MOST_COST / max(int(model.weight.sum()) // 2, 1))
    return min(SCALE, fits / max(longest, 1))


def _coarsen(model: CostModel, layers: list[Ints], rng: np.random.Generator) -> list[Level]:
    """Group the ranks, as many groups as there are of nodes, coarsest level first."""
    from hopmap.mappers.basic_kernels import Graph, contract

    random = rng.integers(1, 2**63, size=1, dtype=np.uint64)
    graph = Graph(model.indptr, model.peer, model.weight.astype(np.float64))
    size = np.ones(len(model.indptr) - 1, dtype=np.int64)
    levels: list[Level] = []
    for starts in layers[-2::-1]:
        groups = len(starts) - 1
        if groups < COARSEST:
            break
        group_of = _group(graph, size, groups, random)
        graph = contract(graph, group_of.astype(np.int32), groups)
        size = np.bincount(group_of, weights=size, minlength=groups).astype(np.int64)
        whole = graph._replace(weight=graph.weight.astype(np.int64))
        levels.append(Level(starts, group_of, whole))
    return levels[::-1]


def _group(graph: Graph, size: Ints, groups: int, random: Words) -> Ints:
    """Pair items by a heavy-edge matching until exactly so many groups are left."""
    from . import halving_kernels

    largest = 2 * -(-int(size.sum()) // len(size))
    label = np.zeros(len(size), dtype=np.int8)
    matched, count = halving_kernels.match(graph, size, largest, label, random)
    group_of = matched.astype(np.int64)
    if count > groups:
        # Singles that found no peer are paired in the order of their sizes, smallest first.
        members = np.bincount(group_of, minlength=count)
        total = np.bincount(group_of, weights=size, minlength=count)
        order = np.lexsort((np.arange(count), total, members))
        new = np.arange(count)
        merged = order[: 2 * (count - groups)]
        new[merged[: count - groups]] = merged[count - groups :][::-1]
        group_of = np.unique(new[group_of], return_inverse=True)[1].astype(np.int64)
    elif count < groups:
        # Too many pairs: the last ones come apart again.
        second = np.ones(len(group_of), dtype=np.bool_)
        second[np.unique(group_of, return_index=True)[1]] = False
        later = np.flatnonzero(second)[: groups - count]
        group_of[later] = np.arange(count, count + len(later))
    return group_of


def _expand(level: Level, finer: Ints, place: Ints) -> Ints:
    """Group of nodes of every item of the next finer level: in its group's place, or near by."""
    inside = np.searchsorted(level.starts, finer[:-1], side="right") - 1  # parent of each place
    items = np.argsort(place[level.group_of], kind="stable")
    wanted = place[level.group_of][items]
    # Items and places in the order of the parents; the k-th item of a parent takes its k-th place.
    room = np.bincount(inside, minlength=len(place))
    rank = np.arange(len(items)) - np.searchsorted(wanted, wanted)
    fits = rank < room[wanted]
    first = np.searchsorted(inside, np.arange(len(place)))
    found = np.full(len(items), -1, dtype=np.int64)
    found[items[fits]] = first[wanted[fits]] + rank[fits]
    free = np.setdiff1d(np.arange(len(finer) - 1), found[found >= 0])
    late = items[~fits]
    found[late] = free[: len(late)]
    return found


def _anneal(
    model: CostModel,
    place: Ints,
    hot: float,
    moves: int | None,
    seconds: float | None,
    watch: Watch,
    rng: np.random.Generator,
) -> Ints:
    """Anneal one level."""
    assignment = assignment_to_groups(model, np.ones(len(place), dtype=np.int64), place, rng)
    if not len(assignment.active):
        return place
    cooling = Cooling(model, assignment, watch)
    scale = cooling.scale()
    cooling.cool(hot * scale, COLD * hot * scale, moves=moves, seconds=seconds)
    return cooling.best

"""Recursive bisection of both graphs: halves of the network take halves of the ranks.

Sources: Pellegrini and Roman, Scotch: dual recursive bipartitioning, HPCN 1996; Hoefler and Snir,
Generic topology mapping strategies, ICS 2011 (LibTopoMap). The network is cut across the dimension
along which its halves are farthest apart, between two far nodes where there are no dimensions, and
in a hierarchy between subsystems; the ranks by a multilevel bisection of exact sizes
(`halving_kernels`). Pairs that leave a domain pull with their true mean distances, taken from a few
nodes of each domain. O(pairs * log(ranks)^2).

`ruin_and_recreate` improves who goes to which subsystem of a hierarchy: from the largest level
down, the ranks of a few subsystems with a common parent are pooled and split again, hot at
first and then colder. That is exact, as what is outside is equally far from all of them. The levels
below start from where their ranks are. Multisection along a hierarchy is Schulz and Traeff's (2017,
section 3.1). `exchange_blocks` lets whole blocks of nodes exchange their ranks, on any network.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hopmap.arrays import Ints, Ints32, Words
from hopmap.mappers.cost_model import CostModel
from hopmap.mappers.exchanges.annealing import AnnealingSearch
from hopmap.mappers.mapper import mapper
from hopmap.mappers.objectives import ObjectiveName, cost_model
from hopmap.mappers.options import Count
from hopmap.mappers.stop import part_spent
from hopmap.topologies import Mapping, Topology, hierarchy
from hopmap.traces import Traffic

SLICE = 4096  # slots of the domains that are split between two looks at the clock
FEW = 0.05  # part of those who talk that a level of matching makes less, or is the last
MOST = 8  # subsystems that are split at once
CYCLES = 0.8  # part of the splits that begin with how they are split now
SOME = 4_000  # ranks split between two looks at the clock
SHARE = 0.65  # of the time that is left, for each level


@mapper("recursive_bisection", source="Pellegrini, Roman 1996; Hoefler, Snir 2011")
def recursive_bisection(
    traffic: Traffic,
    topology: Topology,
    *,
    rng: np.random.Generator,
    objective: ObjectiveName = "hop_bytes",
    tries: Count = 1,
) -> Mapping:
    """Halves of the ranks onto halves of the network, again and again.

    - `objective`: what weighs a pair: its bytes, its messages, or 1 (cardinality).
    - `tries`: bisections of which the best is taken, at every step.
    """
    model = cost_model(traffic, topology, objective)
    return bisect_nodes(model, topology, rng, tries)[: traffic.ranks]


def bisect_nodes(
    model: CostModel,
    topology: Topology,
    rng: np.random.Generator,
    tries: int = 1,
    over: Callable[[], bool] = lambda: False,
) -> Ints:
    """Node of every rank and dummy by recursive bisection.

    Domains are split from the largest to the smallest, so that it can end early. Once it is `over`,
    every rank stays in its current domain, next to the ranks that it talks to most (see
    `cluster_ranks`).
    """
    from . import bisection_kernels

    nodes, domains = halves(model, topology)
    slot_indptr = np.concatenate(([0], np.cumsum(topology.slots[nodes]))).astype(np.int64)
    items = rng.permutation(len(model.indptr) - 1).astype(np.int64)
    random = rng.integers(1, 2**63, size=1, dtype=np.uint64)
    domain_of = np.zeros_like(items)
    slots = np.cumsum(slot_indptr[domains[:, 2]] - slot_indptr[domains[:, 0]])
    first = 0
    while first < len(domains) and not over():
        done = slots[first - 1] if first else 0
        end = max(int(np.searchsorted(slots, done + SLICE, side="right")), first + 1)
        bisection_kernels.split_ranks(
            model, nodes, domains, slot_indptr, items, domain_of, (first, end), tries, random
        )
        first = end
    if first < len(domains):
        place = np.empty_like(items)
        place[cluster_ranks(model, random)] = np.arange(len(items))
        items = items[np.lexsort((place[items], domains[domain_of[items], 0]))]
    places = np.empty_like(items)
    places[items] = np.repeat(nodes, topology.slots[nodes])
    return places


def cluster_ranks(model: CostModel, random: Words) -> Ints:
    """Ranks and dummies in an order in which those that talk to each other are near.

    They are matched in pairs, the pairs again, and so on; O(pairs), a few per cent of a bisection.
    Placed in it along the halves of the network, they are a start by themselves.
    """
    from hopmap.mappers.basic_kernels import Graph, contract

    from . import halving_kernels

    graph = Graph(model.indptr, model.peer, model.weight.astype(np.float64))
    slots = len(model.indptr) - 1
    size = np.ones(slots, dtype=np.int64)
    groupings: list[Ints32] = []
    while len(graph.peer):
        label = np.zeros(len(size), dtype=np.int8)
        group, groups = halving_kernels.match(graph, size, slots, label, random)
        if len(size) - groups < FEW * np.count_nonzero(np.diff(graph.indptr)):
            break  # many talk to few
        groupings.append(group)
        graph = contract(graph, group, groups)
        size = np.bincount(group, weights=size, minlength=groups).astype(np.int64)
    order = np.arange(len(size))
    for group in reversed(groupings):
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        order = np.argsort(place[group], kind="stable")
    return order


def halves(model: CostModel, topology: Topology) -> tuple[Ints, Ints]:
    """Nodes in an order in which every domain is a range, and the domains."""
    from . import bisection_kernels

    sizes = hierarchy(topology)
    if sizes is not None:
        spans = np.cumprod((1, *sizes[:-1])).astype(np.int64)
        return bisection_kernels.halve_levels(spans, topology.slots)
    boxes = bool(topology.dims)
    numbers = np.arange(topology.nodes, dtype=np.int64)[None, :]
    keys = np.ascontiguousarray(topology.coords.T, dtype=np.int64) if boxes else numbers
    return bisection_kernels.halve_nodes(model.router, keys, topology.slots, not boxes)


def slot_layers(model: CostModel, topology: Topology) -> tuple[Ints, list[Ints]]:
    """Nodes in the order of the halves, and for every depth where the groups of slots start.

    The last layer is of single slots.
    """
    nodes, domains = halves(model, topology)
    indptr = np.concatenate(([0], np.cumsum(topology.slots[nodes]))).astype(np.int64)
    layers = []
    depth = np.zeros(len(domains), dtype=np.int64)
    for d, (_, mid, hi, first) in enumerate(domains):
        if mid < hi:
            depth[first] = depth[first + 1] = depth[d] + 1
    starts = {0}
    for d in range(int(depth.max()) + 1):
        starts |= set(domains[depth == d, 0].tolist())
        layers.append(np.append(indptr[sorted(starts)], indptr[-1]))
    while np.diff(layers[-1]).max() > 1:
        middle = (layers[-1][:-1] + layers[-1][1:]) // 2
        layers.append(np.unique(np.concatenate((layers[-1], middle))))
    return nodes, layers


def spans_of(topology: Topology) -> list[int]:
    """Nodes of a subsystem, level by level from the second largest down to more than one slot."""
    sizes = hierarchy(topology) or ()
    least = 1 if topology.slots.max(initial=0) > 1 else 2
    spans = np.unique(np.cumprod((1, *sizes)))
    return [int(span) for span in spans[::-1] if least <= span < topology.nodes]


def exchange_blocks(search: AnnealingSearch, proposals: int) -> None:
    """Let whole blocks of nodes exchange their ranks, large ones first, where that gains."""
    from . import block_moves_kernels

    if not len(search.assignment.active) or search.done():
        return
    nodes, layers = slot_layers(search.model, search.topology)
    indptr = search.assignment.slot_indptr
    slots = search.topology.slots[nodes]
    first = np.cumsum(slots) - slots
    order = np.repeat(indptr[nodes] - first, slots) + np.arange(int(slots.sum()))
    layers = [starts for starts in layers[:-1] if len(starts) > 4]
    for starts in layers:
        tries = max(1, proposals // len(layers) * (len(starts) - 1) // len(order))
        while tries > 0 and not search.done():
            some = min(tries, max(1, (len(starts) - 1) * 10))
            saved = block_moves_kernels.move_blocks(
                search.model, search.assignment, order, starts, some
            )
            tries -= some
            search.note_gain(saved)


def ruin_and_recreate(
    search: AnnealingSearch,
    rng: np.random.Generator,
    *,
    most: int,
    trials: int | None = None,
    seconds: float | None = None,
) -> None:
    """Split the ranks of a few subsystems with a common parent again, the largest level first.

    2 to `most` are split at once. The first temperature is the mean weight of a pair. There are
    `trials` on each level for each subsystem, or `seconds` for all levels, of which `SHARE` of what
    is left goes to each.
    """
    from hopmap.mappers.basic_kernels import Graph

    from . import block_moves_kernels

    topology, model, now = search.topology, search.model, search.watch.now
    random = rng.integers(1, 2**63, size=1, dtype=np.uint64)
    end = None if seconds is None else now() + seconds
    above, spans = topology.nodes, spans_of(topology)
    graph = Graph(model.indptr, model.peer, model.weight.astype(np.float64))
    heat = float(graph.weight.mean()) if len(graph.weight) else 0.0
    for span in spans:
        block = search.assignment.places // span
        groups = topology.nodes // span
        parent = np.arange(groups) // (above // span)
        together = min(most, above // span)
        above = span
        begin = now()
        part_of_rest = SHARE if span != spans[-1] else 1.0
        share = None if end is None else part_of_rest * (end - begin)
        some = max(SOME * groups // (together * len(block)), 1)
        made, part = 0, 0.0
        while part < 1 and not search.done():
            block_moves_kernels.recreate(
                graph, block, parent, together, some, heat * (1 - part), CYCLES, random
            )
            made += some
            search.report()
            part = part_spent(made, trials and trials * groups, now() - begin, share)
        search.assign(_in_order(block, search.assignment.slot_of, topology))


def _in_order(group: Ints, slot_of: Ints, topology: Topology) -> Ints:
    """Node of everybody: within their group in the order in which they are now."""
    nodes = np.repeat(np.arange(topology.nodes, dtype=np.int64), topology.slots)
    places = np.empty_like(nodes)
    places[np.lexsort((slot_of, group))] = nodes
    return places

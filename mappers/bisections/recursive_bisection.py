"""Recursive bisection of both graphs: halves of the network take halves of the ranks.

Sources: Pellegrini and Roman, Scotch: dual recursive bipartitioning, HPCN 1996; Hoefler and Snir,
Generic topology mapping strategies, ICS 2011 (LibTopoMap). The network is cut across the dimension
along which its halves are farthest apart, between two far nodes where there are no dimensions, and
in a hierarchy between subsystems; the ranks by a multilevel bisection of exact sizes
(`halving_kernels`). Pairs that leave a domain pull with their true mean distances, taken from a few
nodes of each domain.

O(pairs * log(ranks)^2).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hopmap.arrays import Ints, Ints32, Words
from hopmap.mappers.cost_model import CostModel
from hopmap.mappers.mapper import mapper
from hopmap.mappers.objectives import ObjectiveName, cost_model
from hopmap.mappers.options import Count
from hopmap.topologies import Mapping, Topology, hierarchy
from hopmap.traces import Traffic

SLICE = 4096  # slots of the domains that are split between two looks at the clock
FEW = 0.05  # part of those who talk that a level of matching makes less, or is the last


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

    Parameters
    ----------
    objective : str
        What weighs a pair: its bytes, its messages, or 1 (cardinality).
    tries : int
        Bisections of which the best is taken, at every step.
    """
    model = cost_model(traffic, topology, objective)
    return bisected(model, topology, rng, tries)[: traffic.ranks]


def bisected(
    model: CostModel,
    topology: Topology,
    rng: np.random.Generator,
    tries: int = 1,
    over: Callable[[], bool] = lambda: False,
) -> Ints:
    """Node of every rank and dummy by recursive bisection.

    Domains are split from the largest to the smallest, so that it can end early: once it is `over`,
    everybody is in the domain that they have got to, beside those that they talk to most (see
    `clustered`).
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
        place[clustered(model, random)] = np.arange(len(items))
        items = items[np.lexsort((place[items], domains[domain_of[items], 0]))]
    places = np.empty_like(items)
    places[items] = np.repeat(nodes, topology.slots[nodes])
    return places


def clustered(model: CostModel, random: Words) -> Ints:
    """Ranks and dummies in an order in which those that talk to each other are near.

    They are matched in pairs, the pairs again, and so on; O(pairs), a few per cent of a bisection.
    Placed in it along the halves of the network, they are a start by themselves.
    """
    from hopmap.mappers.basic_kernels import contract

    from . import halving_kernels

    indptr, peer, weight = model.indptr, model.peer, model.weight.astype(np.float64)
    slots = len(indptr) - 1
    size = np.ones(slots, dtype=np.int64)
    groupings: list[Ints32] = []
    while len(peer):
        label = np.zeros(len(size), dtype=np.int8)
        group, groups = halving_kernels.match(indptr, peer, weight, size, slots, label, random)
        if len(size) - groups < FEW * np.count_nonzero(np.diff(indptr)):
            break  # many talk to few
        groupings.append(group)
        indptr, peer, weight = contract(indptr, peer, weight, group, groups)
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

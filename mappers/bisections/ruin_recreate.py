"""Sections of a hierarchy: who goes to which subsystem, improved a few subsystems at a time.

From the largest level down, the ranks of a few subsystems with a common parent are thrown together
and split anew (`ruin_recreate_kernels`), hot at first and then colder. In a hierarchy that is
exact: what is outside is equally far from all of them. The levels below start from where their
ranks are.
Multisection along a hierarchy is Schulz and Traeff's (2017, section 3.1).
"""

from __future__ import annotations

import numpy as np

from hopmap.arrays import Ints
from hopmap.mappers.exchanges.annealing import AnnealingSearch
from hopmap.mappers.stop import part_spent
from hopmap.topologies import Topology, hierarchy

MOST = 12  # subsystems that are split at once
SOME = 4_000  # ranks split between two looks at the clock
SHARE = 0.65  # of the time that is left, for each level


def spans_of(topology: Topology) -> list[int]:
    """Nodes of a subsystem, level by level from the second largest down to more than one slot."""
    sizes = hierarchy(topology) or ()
    least = 1 if topology.slots.max(initial=0) > 1 else 2
    spans = np.unique(np.cumprod((1, *sizes)))
    return [int(span) for span in spans[::-1] if least <= span < topology.nodes]


def ruin_and_recreate(
    search: AnnealingSearch,
    rng: np.random.Generator,
    *,
    hot: float,
    trials: int | None = None,
    seconds: float | None = None,
) -> None:
    """Split the ranks of a few subsystems with a common parent anew, the largest level first.

    `hot` is the first temperature, in mean weights of a pair. There are `trials` on each level for
    each subsystem, or `seconds` for all levels, of which `SHARE` of what is left goes to each.
    """
    from . import ruin_recreate_kernels

    topology, model, now = search.topology, search.model, search.watch.now
    random = rng.integers(1, 2**63, size=1, dtype=np.uint64)
    end = None if seconds is None else now() + seconds
    above, spans = topology.nodes, spans_of(topology)
    weight = model.weight.astype(np.float64)
    heat = hot * float(weight.mean()) if len(weight) else 0.0
    for span in spans:
        block = search.assignment.places // span
        groups = topology.nodes // span
        parent = np.arange(groups) // (above // span)
        most = min(MOST, above // span)
        above = span
        begin = now()
        share = None if end is None else (SHARE if span != spans[-1] else 1.0) * (end - begin)
        some = max(SOME * groups // (most * len(block)), 1)
        made, part = 0, 0.0
        while part < 1 and not search.done():
            ruin_recreate_kernels.recreate(
                model.indptr, model.peer, weight, block, parent, most, some,
                heat * (1 - part), random,
            )  # fmt: skip
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

"""Integrated: a graph of many vertices partitioned and mapped in one, for any network.

Sources: Faraj, van der Grinten, Meyerhenke, Traeff and Schulz, High-quality hierarchical process
mapping, SEA 2020: multilevel, every move valued by what the mapping costs. Schulz and Woydt,
SharedMap, ACDA 2025: one level of the hierarchy after another, with an adaptive imbalance. Here on
any network: pairs that leave a domain pull by their mean distance.

1. From the whole network to its subsystems, level by level, to single nodes: a V-cycle each (see
   `vcycles`), several for the first level, of which the best is kept; without levels straight to
   the nodes. A time budget may suffice for a quicker way only, which goes to the level above the
   nodes at once. On hierarchies vertices of a grid (see `cartesian.structure`) are cut into boxes
   instead, across the longest side each time.
2. In turn: another first level, from which the others are rebuilt if it is better than the one
   there is, and a V-cycle of the whole mapping.

A node takes as many vertices as it has slots, never more; `imbalance` of `map_ranks` gives them.
For some tens of vertices a node and more; with as many ranks as slots nothing can move alone, and
`auto` is the one to call. O(pairs log(nodes)) a cycle; the table of distances holds `MOST` nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hopmap.arrays import Ints32, Words
from hopmap.mappers.cartesian.grid import find_structures
from hopmap.mappers.mapper import mapper
from hopmap.mappers.objectives import ObjectiveName, cost_model
from hopmap.mappers.options import Count, CountOrZero
from hopmap.mappers.stop import Interrupted, Stop, Watch
from hopmap.topologies import Mapping, MappingError, Topology, hierarchy
from hopmap.traces import Traffic

if TYPE_CHECKING:
    from .vcycles import Machine, Vertices

MOST = 2048
STARTS = 3  # partitions of the first level, unless time is short
CYCLES = 2  # turns of step 2 without a time budget


def few_nodes(name: str, _: Traffic, topology: Topology) -> None:
    """Raise `MappingError` unless the table of distances is small enough."""
    used = int(np.count_nonzero(topology.slots))
    if used > MOST:
        raise MappingError(
            f"mapper {name}: {topology.spec} has {used:,} nodes with slots: expected {MOST:,} "
            "at most"
        )


@mapper("integrated", source="Faraj and others 2020; Schulz, Woydt 2025", needs=few_nodes)
def integrated(
    traffic: Traffic,
    topology: Topology,
    *,
    rng: np.random.Generator,
    initial: Mapping | None = None,
    objective: ObjectiveName = "hop_bytes",
    starts: Count | None = None,
    cycles: CountOrZero | None = None,
    stop: Stop,
) -> Mapping:
    """Partition and map a graph of many vertices a node in one: multilevel, level by level.

    - `initial`: mapping to refine, which is not worsened; else it is made.
    - `starts`: partitions made of the first level, the best of which is kept; by default 3, where
      the time budget suffices.
    - `cycles`: turns after that, of step 2; if there is no time budget either 2.
    - `seconds`, `clock`, `progress`: time budget, elapsed or of the processor, and its callback.
      The first mapping is made even if that exceeds the budget.
    """
    from .blocks_kernels import block_cost
    from .vcycles import machine_of, other_start, vcycle, vertices_of

    few_nodes("integrated", traffic, topology)
    watch = stop.watch()
    model = cost_model(traffic, topology, objective, few=True)
    graph, machine = vertices_of(model, traffic.ranks), machine_of(model, topology)
    random = rng.integers(1, 2**63, size=1, dtype=np.uint64)
    number = np.full(topology.nodes, -1, dtype=np.int32)
    number[machine.nodes] = np.arange(len(machine.nodes))
    last = len(machine.fronts) - 1
    most = stop.or_usual(cycles, CYCLES)
    best = None if initial is None else number[initial]
    done = 0
    try:
        if best is None:
            best = _boxes(traffic, topology, machine)
        if best is None:
            best = _start(graph, machine, starts, watch, random)
        cost = block_cost(*graph[:3], best, machine.far)
        while (most is None or done < most) and not watch.over():
            watch.report(done, most, f"{objective} {cost:.0f}")
            if done % 2 == 0 and last > 0:
                made = other_start(graph, machine, best, random)
            else:
                made = vcycle(graph, best, machine, last, last, random)
            value = block_cost(*graph[:3], made, machine.far)
            if value < cost:
                best, cost = made, value
            done += 1
    except KeyboardInterrupt:
        if best is None:
            raise
        raise Interrupted(machine.nodes[best]) from None
    return machine.nodes[best]


def _start(
    graph: Vertices, machine: Machine, starts: int | None, watch: Watch, random: Words
) -> Ints32:
    """Place all vertices, with a time budget quickly, and level by level if that leaves time."""
    from .blocks_kernels import block_cost
    from .vcycles import descend, first_level, place_at_once

    if len(machine.fronts) == 1:
        return np.zeros(len(graph.size), dtype=np.int32)
    made, begin = [], watch.now()
    if starts is None and watch.end is not None:
        made.append(place_at_once(graph, machine, random))
    left = watch.remaining()
    if not made or left is None or left > (STARTS + 1) * (watch.now() - begin):
        first = first_level(graph, machine, starts or STARTS, random)
        made.append(descend(graph, machine, first, random))
    return min(made, key=lambda block: block_cost(*graph[:3], block, machine.far))


def _boxes(traffic: Traffic, topology: Topology, machine: Machine) -> Ints32 | None:
    """Cut vertices that are a grid into boxes along the levels of a hierarchy; None of others."""
    found = find_structures(traffic, lambda: True)[1] if hierarchy(topology) is not None else ()
    cells = next(iter(found), None)
    if cells is None:
        return None
    block, parts = np.zeros(traffic.ranks, dtype=np.int32), {0: np.arange(traffic.ranks)}
    for d, (low, middle, high, first) in enumerate(machine.domains.tolist()):
        here = parts.pop(d)
        if middle == high:
            block[here] = low
            continue
        longest = np.argsort(np.ptp(cells.coords[here], axis=0), kind="stable")
        here = here[np.lexsort(cells.coords[here][:, longest].T)]
        room = machine.rooms[[low, middle, high]]
        share = round(len(here) * (room[1] - room[0]) / (room[2] - room[0]))
        parts[first], parts[first + 1] = here[:share], here[share:]
    return block

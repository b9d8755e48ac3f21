"""A*: the best mapping of a small case, proved; a beam search with the same bound beyond.

Source: Shen and Tsai, A graph matching approach to optimal task assignment in distributed computing
systems using a minimax criterion, IEEE Transactions on Computers C-34 (1985), which the HAEC thesis
(section 5.1) tried and gave up for want of a good bound. The bound here is ours:

A state places the first ranks of a fixed order; its children place the next one on every node with
room. Pairs fall into three kinds, and no pair into two:

1. Both ranks placed: their cost is known.
2. One placed: every unplaced rank will be on some node that has room now, so that its pairs with
   placed ranks cost at least the least of their sums over these nodes.
3. None placed: rank u has unplaced peers of weights w1 >= w2 >= ...; no two of these get the same
   slot, so that of any k of them the cheapest costs at least as much as the k-th cheapest slot does
   from the node that has it best. By the rearrangement inequality the pairs of u cost at least the
   sum of w_i times the i-th cheapest. Summed over u every pair counts twice: half of it, rounded
   up, is a lower bound. It depends on the order only and is computed once.

The sum of the three never exceeds the cost of any completion (it is admissible). States form a tree
and a child takes its parent's bound if that is higher, so that the first complete state that leaves
the heap is optimal. The search starts with the best of the initial mapping and MinMD
(rule=connected), improved by MAPPER on machines of up to 1,024 slots. It only opens states that may
beat it. All costs are integers, so that this is exact; cardinality is minimised negated.

Order: heaviest total first, then the heaviest connection to ranks in the order already. On meshes,
tori and the HAEC Box the first rank tries one node of each set of mirror images only.

Beyond `exact` ranks, or once `states` states are made, a beam sets in: at most `beam` states of
each depth are expanded, the best first, and at most `beam` children of each are kept. A state
expanded costs O(open ranks * nodes * peers + children * nodes * peers), a state kept 40 bytes:
0.1 s for LU on 64 nodes, 12 s on 512, and hours on 4,096 without a time budget.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hopmap.arrays import Bools, Ints
from hopmap.mappers.cost_model import NEAR, CostModel
from hopmap.mappers.exchanges.bokhari import Jumps, bokhari
from hopmap.mappers.greedy.minmd import minmd
from hopmap.mappers.mapper import mapper
from hopmap.mappers.objectives import ObjectiveName, cost_model, get_objective
from hopmap.mappers.options import Count, CountOrZero
from hopmap.mappers.stop import Stop, keep
from hopmap.topologies import Mapping, Topology
from hopmap.topologies.box_kernels import BoxRouter
from hopmap.traces import Traffic

if TYPE_CHECKING:
    from .astar_kernels import SearchTask, States

START_SLOTS = 1024  # largest machine on which MAPPER improves the mapping to start from


@mapper("astar", source="Shen and Tsai 1985; HAEC thesis, section 5.1")
def astar(
    traffic: Traffic,
    topology: Topology,
    *,
    rng: np.random.Generator,
    initial: Mapping | None = None,
    objective: ObjectiveName = "hop_bytes",
    exact: CountOrZero = 12,
    states: Count = 1_000_000,
    beam: Count = 32,
    stop: Stop,
) -> Mapping:
    """Optimal mapping of a small case by A*, a beam search beyond.

    ``stopped`` is called with "optimal" where the result is proved.
    """
    from . import astar_kernels
    from .astar_kernels import CUT, DONE, STATES

    ranks = traffic.ranks
    model = cost_model(traffic, topology, objective)
    named = get_objective(objective)
    watch = stop.watch()
    best = minmd(traffic, topology, rule="connected")
    if initial is not None and _cost(model, initial) < _cost(model, best):
        best = initial.copy()
    if topology.slots.sum() <= START_SLOTS:
        best = bokhari(
            traffic,
            topology,
            rng=rng,
            initial=best,
            objective=objective,
            how=Jumps(),
            stop=replace(stop.part(1 / 4), progress=None),
        )
    task = _task(model, topology, best)
    width = 0 if ranks <= exact else beam
    steps = max(1, 2_000_000 // (topology.nodes * (topology.nodes + 10)))
    room = steps * topology.nodes
    tree = _grow(None, 1 + room)
    finished = False
    with keep(lambda: task.node_of):
        astar_kernels.start(task, tree)
        while not finished and not watch.over():
            made = int(task.counters[STATES])
            if width == 0 and made > states:
                width = beam
                task.expanded[:] = 0
            if made + room > len(tree.parent):
                tree = _grow(tree, 2 * len(tree.parent) + room)
            finished = astar_kernels.expand(model, task, tree, width, steps)
            cost = int(task.counters[DONE])
            watch.report(made, None, f"states, {named.name} {named.value(cost)}")
    if not finished:
        stop.finish("budget")
    elif task.counters[CUT] >= task.counters[DONE]:
        stop.finish("optimal")
    return task.node_of


def _cost(model: CostModel, node_of: Mapping) -> int:
    from hopmap.mappers import cost_kernels

    return int(cost_kernels.total_cost(model, node_of))


def _task(model: CostModel, topology: Topology, best: Mapping) -> SearchTask:
    from . import astar_kernels
    from .astar_kernels import FAR, SearchTask

    ranks = len(best)
    worst = 0 if model.kind == NEAR else topology.diameter()
    order = placing_order(model, ranks)
    most = astar_kernels.count_close(model, topology.slots, worst)
    return SearchTask(
        order=order,
        slots=topology.slots,
        first=first_nodes(topology),
        unplaced=astar_kernels.unplaced_bounds(model, order, most),
        expanded=np.zeros(ranks + 1, dtype=np.int64),
        node_of=best,
        counters=np.array([0, 0, FAR, _cost(model, best)], dtype=np.int64),
    )


def placing_order(model: CostModel, ranks: int) -> Ints:
    """Heaviest rank first, then the heaviest connection to those before; of equals the lower."""
    total = np.array(
        [model.weight[model.indptr[r] : model.indptr[r + 1]].sum() for r in range(ranks)],
        dtype=np.int64,
    )
    connection = np.zeros(ranks, dtype=np.int64)
    left = np.ones(ranks, dtype=np.bool_)
    order = np.empty(ranks, dtype=np.int64)
    for depth in range(ranks):
        rest = np.flatnonzero(left)
        rank = rest[np.lexsort((rest, -total[rest], -connection[rest]))[0]]
        order[depth] = rank
        left[rank] = False
        peers = slice(model.indptr[rank], model.indptr[rank + 1])
        connection[model.peer[peers]] += model.weight[peers]
    return order


def first_nodes(topology: Topology) -> Bools:
    """One node at least of every set of nodes that symmetry makes equal."""
    equal_slots = bool((topology.slots == topology.slots[0]).all())
    if not isinstance(topology.router, BoxRouter) or not equal_slots:
        return np.ones(topology.nodes, dtype=np.bool_)
    dims = np.array(topology.dims)
    # A ring turns into itself by a step, a line by reversal; two nodes are a line.
    lowest = np.where(topology.router.wraps, 0, (dims - 1) // 2)
    return np.asarray((topology.coords <= lowest).all(axis=1))


def _grow(tree: States | None, size: int) -> States:
    """Return the states with room for `size` of them."""
    from .astar_kernels import States

    kinds: list[Any] = [np.int64, np.int32, np.int32, np.int64, np.int64, np.int64]
    arrays: list[Any] = [np.empty(size, dtype=kind) for kind in kinds]
    before: tuple[Any, ...] = tree or ()
    for old, new in zip(before, arrays, strict=False):
        new[: len(old)] = old
    return States(*arrays)

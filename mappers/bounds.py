"""Costs that no mapping can undercut, so that a search that reaches one is done.

1. Nearest slots: of a rank's pairs the heaviest goes to the nearest slot that there is, the next
   one to the second nearest, and so on (the degree bound of the quadratic assignment problem; a
   pair is met from both ends). On boxes and hierarchies, where it is known which node has most
   others near it; elsewhere every pair is as close as two slots can be.
2. Grids: among s cells of a grid of d dimensions are at most d s - d s^((d-1)/d) pairs of
   neighbours (Loomis and Whitney 1949), so that the rest leaves the nodes of s slots, and the
   subsystems of s slots of a hierarchy, whatever is done. It is reached where these are cubes.

O(pairs log(pairs) + nodes).
"""

from __future__ import annotations

import numpy as np

from hopmap.arrays import Ints
from hopmap.topologies import Topology, hierarchy
from hopmap.topologies.box_kernels import GRID, BoxRouter
from hopmap.topologies.tree_kernels import TreeRouter

from .cost_model import HOPS, NEAR, CostModel
from .objectives import cost_bound, nearest


def lower_bound(model: CostModel, topology: Topology, cells: Ints | None) -> int:
    """Cost that no mapping of the model's traffic can undercut.

    `cells`, shape (ranks, dimensions), are the coordinates of the ranks, where they are a grid.
    """
    bounds = [cost_bound(model, topology), _near_slots(model, topology)]
    if cells is not None and model.kind == HOPS:
        bounds.append(_grid(model, topology, cells))
    return max(bounds)


def _near_slots(model: CostModel, topology: Topology) -> int:
    """Sum over the ranks of their pairs, the heaviest to the nearest slots, halved."""
    hops = _fewest_hops(topology)
    degree = np.diff(model.indptr)
    if hops is None or not len(model.peer):
        return -(2**62)
    if model.kind == NEAR:
        hops = np.where(hops <= 1, -1, 0)
    rank = np.repeat(np.arange(len(degree)), degree)
    heaviest_first = np.lexsort((-model.weight, rank))
    turn = np.arange(len(rank)) - model.indptr[rank]
    return -(-int((model.weight[heaviest_first] * hops[turn]).sum()) // 2)


def _fewest_hops(topology: Topology) -> Ints | None:
    """Distance of the nearest other slot, of the second nearest, ..., from where most are near."""
    from hopmap.topologies.switch_kernels import FatTreeRouter

    router, far = topology.router, np.zeros(1, dtype=np.int64)
    if isinstance(router, BoxRouter) and router.family == GRID:
        for length, wraps in zip(router.dims, router.wraps, strict=True):
            away = np.abs(np.arange(length) - length // 2)
            away = np.minimum(away, length - away) if wraps else away
            far = np.add.outer(far, away).ravel()
    elif isinstance(router, TreeRouter | FatTreeRouter):
        spans, costs = _levels(topology)
        far = np.repeat(costs, np.diff((0, *spans, topology.nodes)))
    else:
        return None
    return np.repeat(np.sort(far), int(topology.slots.max(initial=0)))[1:]


def _levels(topology: Topology) -> tuple[Ints, Ints]:
    """Nodes of a node, of a lowest subsystem, ..., and how far those are that just do not fit."""
    from hopmap.topologies.routing import distance

    spans = np.cumprod((1, *(hierarchy(topology) or ())))
    spans = spans[spans < topology.nodes]  # a highest level of one subsystem has no others
    costs = [0] + [distance(topology.router, 0, int(span)) for span in spans]
    return spans, np.array(costs)


def _grid(model: CostModel, topology: Topology, cells: Ints) -> int:
    """Sum over the levels of what must leave its nodes or subsystems, times what that costs."""
    from hopmap.topologies.switch_kernels import FatTreeRouter

    src = np.repeat(np.arange(len(model.indptr) - 1), np.diff(model.indptr))
    if len(src) == 0 or (np.abs(cells[src] - cells[model.peer]).sum(axis=1) != 1).any():
        return 0  # not only neighbours talk
    total, most = int(model.weight.sum()) // 2, int(model.weight.max())
    spans = np.array([1])
    costs = np.array([0, max(nearest(topology), 1)])
    if isinstance(topology.router, TreeRouter | FatTreeRouter):
        spans, costs = _levels(topology)
    bound = 0
    for span, farther in zip(spans, np.diff(costs), strict=True):
        slots = np.add.reduceat(topology.slots, np.arange(0, topology.nodes, span))
        within = sum(_neighbours(int(s), cells.shape[1]) for s in slots) * most
        bound += max(total - within, 0) * int(farther)
    return bound


def _neighbours(cells: int, dimensions: int) -> int:
    """Most pairs of neighbours among so many cells of a grid."""
    lines = dimensions * cells ** ((dimensions - 1) / dimensions)
    return int(dimensions * cells - lines + 1e-6)

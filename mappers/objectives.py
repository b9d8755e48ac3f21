"""What a mapper minimises or maximises, as one small interface.

| name | value of a mapping | better |
|---|---|---|
| cardinality | unordered rank pairs that talk and are at most one hop apart | higher |
| hop_messages | messages times hops, over all directed pairs | lower |
| hop_bytes | bytes times hops, over all directed pairs | lower |
| max_link_load | bytes on the busiest directed link, including other jobs' bytes | lower |

Cardinality is Bokhari's (1981) and counts a pair once, whichever direction talks. He places one
rank a node; where nodes take more, a pair on one node counts as well, as in the weak homomorphism
of Shen et al. (HAEC thesis, section 2.2), or ranks that share a node would be driven apart.
Self messages cost nothing. Distances are taken to be the same in both directions.

The first three are sums over pairs, which most searches need: in compiled code a
`kernels.CostModel`, always minimised (cardinality negated). `max_link_load` is what `congestion`,
`relieve` and `auto` minimise. Anything else is a function of the mapping, for `descend` and `auto`.
`default_objective` is what `auto` works for where nothing is said.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from hopmap.arrays import Ints
from hopmap.errors import choice, expect_one_of
from hopmap.topologies import (
    Mapping,
    MappingError,
    Topology,
    check_mapping,
    hierarchy,
)
from hopmap.topologies.box_kernels import GRID, BoxRouter
from hopmap.topologies.tree_kernels import TreeRouter
from hopmap.traces import Traffic, exact_sum

from .cost_model import HOPS, NEAR, CostModel

ObjectiveName = Literal["cardinality", "hop_messages", "hop_bytes"]
LoadName = Literal["max_link_load"]
LOAD: LoadName = "max_link_load"
Function: TypeAlias = Callable[[Mapping], float]  # of node_of, shape (ranks,); lower is better
MOST = 2**61  # of a cost in compiled code, which adds up to three of them in 64 bits


@dataclass(frozen=True)
class Objective:
    """One way to value a mapping, as a sum over pairs.

    - `kind`: `HOPS` or `NEAR` of `cost_model`.
    - `weigh`: weight of each row of an undirected traffic.
    - `maximised`: whether more is better; the cost model then holds the negated value.
    """

    name: str
    summary: str
    kind: int
    weigh: Callable[[Traffic], Ints]
    maximised: bool = False

    def value(self, cost: int) -> int:
        """Value of a mapping that has this cost in the cost model."""
        return -int(cost) if self.maximised else int(cost)


OBJECTIVES: dict[str, Objective] = {
    objective.name: objective
    for objective in (
        Objective(
            "cardinality",
            "rank pairs that talk and sit at most one hop apart",
            NEAR,
            lambda pairs: np.ones(pairs.pairs, dtype=np.int64),
            maximised=True,
        ),
        Objective("hop_messages", "messages times hops", HOPS, lambda pairs: pairs.messages),
        Objective("hop_bytes", "bytes times hops", HOPS, lambda pairs: pairs.bytes),
    )
}
assert set(OBJECTIVES) == set(get_args(ObjectiveName))


def get_objective(name: str) -> Objective:
    """Return the objective, or raise `MappingError` with the names that exist."""
    expect_one_of(MappingError, "objective", name, OBJECTIVES)
    return OBJECTIVES[name]


def default_objective(topology: Topology) -> ObjectiveName | LoadName:
    """Return what `auto` works for by default: hop-bytes; on dragonflies the busiest link.

    There hop-bytes order mappings little better than chance: Kendall's tau with the runtime is 0.1
    to 0.3, that of the busiest link 0.6 to 0.8, and runs are 7 to 17 % shorter. Elsewhere
    hop-bytes are at 0.6 to 0.7; on Dragonfly+ runs are 3 % shorter. See the table of
    families in ``benchmarks/objectives/README.md``.
    """
    from hopmap.topologies.graph_kernels import DetourRouter
    from hopmap.topologies.switch_kernels import DragonflyRouter

    router = topology.router
    if isinstance(router, DetourRouter):  # round links that are down
        router = router.base
    return LOAD if isinstance(router, DragonflyRouter) else "hop_bytes"


def cost_model(
    traffic: Traffic, topology: Topology, objective: str, *, few: bool = False
) -> CostModel:
    """Traffic, distances and objective as compiled code takes them; O(pairs) and the tables.

    Both directions of a pair are added up. Distances come from tables where the topology has few
    nodes, see `router_of`; with `few` only some distances for each node are asked for, so that no
    large table pays.
    """
    from .distances import router_of

    chosen = get_objective(objective)
    pairs = traffic.without_self().undirected()
    weight = chosen.weigh(pairs)
    if chosen.kind == HOPS:
        _check_sums(chosen.name, int(weight.sum()), topology)
    source = np.concatenate((pairs.src, pairs.dst)).astype(np.int64)
    peer = np.concatenate((pairs.dst, pairs.src)).astype(np.int64)
    order = np.argsort(source * traffic.ranks + peer)  # of pairs, which differ
    slots = max(int(topology.slots.sum()), traffic.ranks)
    indptr = np.searchsorted(source[order], np.arange(slots + 1)).astype(np.int64)
    both = np.concatenate((weight, weight))[order].astype(np.int64)
    router = router_of(topology, few=few)
    return CostModel(router, chosen.kind, indptr, peer[order], both)


def objective_value(
    traffic: Traffic, topology: Topology, node_of: ArrayLike, objective: str
) -> int:
    """Value of a mapping, shape (ranks,): a cardinality, a sum over pairs, or a load.

    `objective` is one of the table above.
    """
    mapping = check_mapping(node_of, topology, traffic.ranks)
    if objective == LOAD:
        loads = topology.loads(mapping[traffic.src], mapping[traffic.dst], traffic.bytes)
        if len(topology.carried):
            loads = loads + topology.carried
        return int(loads.max(initial=0))
    if objective not in OBJECTIVES:
        raise MappingError(choice("objective", objective, (*OBJECTIVES, LOAD)))
    chosen = get_objective(objective)
    pairs = traffic.without_self().undirected()
    far = topology.distance(mapping[pairs.dst], mapping[pairs.src])
    if chosen.kind == NEAR:
        return int((far <= 1).sum())
    return exact_sum(chosen.weigh(pairs), far)


def farthest(topology: Topology) -> int:
    """Bound of the distance of two nodes, without looking at all of them."""
    router = topology.router
    if isinstance(router, TreeRouter):
        return int(router.costs[-1])
    return topology.diameter() if topology.dims else topology.vertices


def _check_sums(name: str, weight: int, topology: Topology) -> None:
    """Refuse what compiled code cannot add up; `objective_value` and `evaluate` can."""
    if weight * farthest(topology) <= MOST:
        return
    longest = topology.diameter()
    if weight * longest > MOST:
        raise MappingError(
            f"objective {name}: {weight:,} {name.removeprefix('hop_')} over distances of up to "
            f"{longest:,} on {topology.spec}: expected a product of at most 2^61 for a search; "
            "divide one of the two"
        )


def with_free_slots(node_of: Mapping, topology: Topology) -> Ints:
    """Nodes of the ranks, then the nodes of the free slots in ascending order, shape (slots,)."""
    free = topology.slots - np.bincount(node_of, minlength=topology.nodes)
    return np.concatenate((node_of, np.repeat(np.arange(topology.nodes), free))).astype(np.int64)


def least_distance(topology: Topology) -> int:
    """Distance that no two slots can undercut."""
    if topology.slots.max(initial=0) > 1:
        return 0
    router = topology.router
    return int(router.costs[1]) if isinstance(router, TreeRouter) else 1


def cost_bound(model: CostModel, topology: Topology) -> int:
    """Cost that no mapping can undercut: every pair as close as two slots can be."""
    weight = int(model.weight.sum()) // 2
    return -weight if model.kind == NEAR else weight * least_distance(topology)


def lower_bound(model: CostModel, topology: Topology, cells: Ints | None) -> int:
    """Cost that no mapping of the model's traffic can undercut; O(pairs log(pairs) + nodes).

    1. `cost_bound`.
    2. Nearest slots: of a rank's pairs the heaviest goes to the nearest slot that there is, the
       next one to the second nearest, and so on (the degree bound of the quadratic assignment
       problem; a pair is met from both ends). On boxes and hierarchies, where it is known which
       node has most others near it; elsewhere every pair is as close as two slots can be.
    3. Grids: among s cells of a grid of d dimensions are at most d s - d s^((d-1)/d) pairs of
       neighbours (Loomis and Whitney 1949), so that the rest leaves the nodes of s slots, and the
       subsystems of s slots of a hierarchy, for any mapping. It is reached where these are cubes.

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
    costs = np.array([0, max(least_distance(topology), 1)])
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

"""KL: swaps of tasks at most t apart, best first, with locks, passes and rollback.

Source: "KL-based iterative improvement heuristic for topology aware mapping", section 3 (our
copy names no authors; benchmarks/reproduction has its tables), after Kernighan and Lin, An
efficient heuristic procedure for partitioning graphs, Bell System Technical Journal 49 (1970).
One pass:

1. Of all swaps of two unlocked tasks i, j on processors P_i, P_j with d(P_i, P_j) <= t make the one
   with the largest gain, even a negative one, and lock both.
2. Update the gains of the swaps that involve unlocked neighbours of i and j, each in O(1).
3. Repeat until no swap is left, then go back to where the cost was least.

Passes follow until the improvement of one falls below a threshold. Where the paper leaves things
open: of equal gains the pair of lowest processors is taken; the threshold is a share of the cost,
and 0 means passes until one improves nothing; an improvement of nothing always ends it. Beyond the
paper: other objectives, several slots on a node, and fewer ranks than slots: free slots take part
as tasks without edges, except among themselves.

Memory is linear in ranks, pairs and candidates, which are slots times half the slots within t; they
are found in O(slots * slots) distances, once. A pass costs O(candidates * peers) for the first
gains, and O(peers * candidates of a slot) a swap.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from hopmap.arrays import Ints
from hopmap.mappers.cost_model import CostModel
from hopmap.mappers.mapper import mapper
from hopmap.mappers.objectives import ObjectiveName, cost_model, get_objective, with_free_slots
from hopmap.mappers.options import Count, NonNegative
from hopmap.mappers.orders.node_orders import random_mapping
from hopmap.mappers.stop import Interrupted, Stop, Watch
from hopmap.topologies import Mapping, Topology
from hopmap.traces import Traffic, require_memory

from .assignment import in_slots

if TYPE_CHECKING:
    from .kl_kernels import Candidates, Pass

SLICE = 64  # swaps between two looks at the clock
PER_CANDIDATE = 36  # bytes: two slots, twice its number, gain, tree


@mapper("kl", source="KL for hop-bytes; Kernighan and Lin 1970")
def kl(
    traffic: Traffic,
    topology: Topology,
    *,
    rng: np.random.Generator,
    initial: Mapping | None = None,
    t: Count = 4,
    threshold: NonNegative = 0.0,
    objective: ObjectiveName = "hop_bytes",
    stop: Stop,
) -> Mapping:
    """Best swaps of ranks at most t apart with locks and rollback, from random by default.

    O(peers * candidates of a slot) a swap.

    - `initial`: mapping to start from; random by default. The result is never worse.
    - `t`: largest distance of two nodes that swap, in hops (on a hierarchy, its costs).
    - `threshold`: share of the cost that a pass has to gain for another one to follow.
    - `objective`: the paper's is hop_bytes.
    """
    from hopmap.mappers import cost_kernels

    from . import kl_kernels

    if initial is None:
        initial = random_mapping(traffic, topology, rng=rng)
    ranks = traffic.ranks
    model = cost_model(traffic, topology, objective)
    named = get_objective(objective)
    places = with_free_slots(initial, topology)
    watch = stop.watch()
    cost = int(cost_kernels.total_cost(model, places))
    candidates = find_candidates(model, topology, t)
    state = initial_state(places, len(candidates.low))
    try:
        for number in count(1):
            gained = _one_pass(model, candidates, state, ranks, watch)
            cost -= gained
            watch.report(number, None, f"{named.name} {named.value(cost)} after {number} passes")
            if gained <= 0 or gained < threshold * abs(cost + gained) or watch.over():
                break
    except KeyboardInterrupt:
        kl_kernels.roll_back(candidates, state)
        raise Interrupted(state.places[:ranks]) from None
    return state.places[:ranks]


def find_candidates(model: CostModel, topology: Topology, t: int) -> Candidates:
    """All pairs of slots on different nodes that are at most t apart."""
    from . import kl_kernels

    node = np.repeat(np.arange(topology.nodes), topology.slots).astype(np.int64)
    pairs = int(kl_kernels.count_within(model.router, node, t))
    require_memory(
        PER_CANDIDATE * pairs, f"mapper kl: t={t}: {pairs:,} swaps", "expected a smaller t"
    )
    return kl_kernels.find_within(model.router, node, t, pairs)


def initial_state(places: Ints, candidates: int) -> Pass:
    """State before the first pass; `begin` fills in the rest."""
    from .kl_kernels import Pass

    item_at, slot_of = in_slots(places)
    return Pass(
        places=places,
        item_at=item_at,
        slot_of=slot_of,
        gain=np.empty(candidates, dtype=np.int64),
        winner=np.zeros(candidates, dtype=np.int32),
        swapped=np.empty(len(places) // 2, dtype=np.int32),
        counts=np.zeros(4, dtype=np.int64),
    )


def _one_pass(
    model: CostModel, candidates: Candidates, state: Pass, ranks: int, watch: Watch
) -> int:
    """Swap until nothing is left or the time is over, roll back, and return what that gained."""
    from . import kl_kernels
    from .kl_kernels import DONE, MOST

    kl_kernels.begin(model, candidates, state, ranks)
    while not watch.over() and kl_kernels.swap_best(model, candidates, state, SLICE):
        watch.report(int(state.counts[DONE]), None, f"gained {state.counts[MOST]}")
    kl_kernels.roll_back(candidates, state)
    return int(state.counts[MOST])

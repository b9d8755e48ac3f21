"""Random sampling: the best of many random mappings.

Source: HAEC thesis, section 4.1 (10,000 samples; by cardinality, as its successor MapLib shows).
O(samples * (slots + pairs)).
"""

from __future__ import annotations

import numpy as np

from hopmap.mappers.budget import Interrupted, Progress, Watch
from hopmap.mappers.mapper import Count, Seconds, mapper
from hopmap.mappers.objectives import ObjectiveName, cost_model, objective_named
from hopmap.topologies import Mapping, Topology
from hopmap.traces import Traffic

BATCH = 50_000_000  # pairs and slots looked at between two looks at the clock


@mapper("random_sampling", source="HAEC thesis, section 4.1", presets={"thesis": {}})
def random_sampling(
    traffic: Traffic,
    topology: Topology,
    *,
    rng: np.random.Generator,
    samples: Count = 10_000,
    objective: ObjectiveName = "cardinality",
    seconds: Seconds = None,
    progress: Progress | None = None,
) -> Mapping:
    """Best of `samples` random mappings, the first of equals."""
    from hopmap.mappers import cost_kernels

    model = cost_model(traffic, topology, objective)
    named = objective_named(objective)
    watch = Watch(seconds, progress)
    slots = np.repeat(np.arange(topology.nodes, dtype=np.int64), topology.slots)
    best, best_cost = rng.permutation(slots), 0
    best_cost = cost_kernels.total_cost(model, best)
    batch = max(1, min(1000, BATCH // 10 // (len(slots) + len(model.peer) + 1)))
    done = 1
    try:
        while done < samples and not watch.over():
            rows = min(batch, samples - done)
            drawn = rng.permuted(np.broadcast_to(slots, (rows, len(slots))), axis=1)
            costs = cost_kernels.total_costs(model, drawn)
            first = int(costs.argmin())
            if costs[first] < best_cost:
                best, best_cost = drawn[first].copy(), int(costs[first])
            done += rows
            watch.report(done, samples, f"{named.name} {named.value(best_cost)}")
    except KeyboardInterrupt:
        raise Interrupted(best[: traffic.ranks]) from None
    return best[: traffic.ranks]

"""Genetic algorithm: roulette selection, ordered crossover of bounded sections, exchanges.

Source: HAEC thesis, section 3.4, Algorithm 3 and appendix A.1. Where that leaves things open:

- A string lists who is on each slot, node by node; free slots are dummy ranks without traffic.
- Roulette: a parent's share is how much better it is than the worst of its generation, plus one
  part in `population` of the best one's, so that nobody's share is zero.
- A matching section has 1 to `segment` letters: the thesis chose any length, found that this
  "may lead to a completely new configuration", and asks for a bound in its discussion (4.2).
- Every offspring also exchanges `mutations` random pairs of letters.
- "If accepted": an offspring that is better than both of its parents. After `tries` offspring per
  place the generation is filled up with the best parents.
- Elitism: the best string always lives on; a given mapping is one of the first generation.
- 100 generations, for the thesis blames its 10 for a result hardly above random sampling.

O(generations * population * tries * (slots + pairs)) at most.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hopmap.mappers.budget import Interrupted, Progress, Watch
from hopmap.mappers.mapper import Count, CountOrZero, Seconds, mapper
from hopmap.mappers.objectives import ObjectiveName, cost_model, objective_named, with_free_slots
from hopmap.topologies import Mapping, Topology
from hopmap.traces import Traffic

from . import genetic_kernels

BATCH = 20_000_000  # letters and pairs looked at between two looks at the clock


@mapper("genetic", source="HAEC thesis, Algorithm 3")
def genetic(
    traffic: Traffic,
    topology: Topology,
    *,
    rng: np.random.Generator,
    initial: Mapping | None = None,
    objective: ObjectiveName = "cardinality",
    population: Count = 100,
    generations: CountOrZero = 100,
    segment: Count = 8,
    mutations: CountOrZero = 1,
    tries: Count = 100,
    seconds: Seconds = None,
    progress: Progress | None = None,
) -> Mapping:
    """Genetic algorithm with ordered crossover of short sections."""
    model = cost_model(traffic, topology, objective)
    named = objective_named(objective)
    watch = Watch(seconds, progress)
    node_of_slot = np.repeat(np.arange(topology.nodes, dtype=np.int64), topology.slots)
    strings = rng.permuted(np.tile(np.arange(len(node_of_slot)), (population, 1)), axis=1)
    if initial is not None:
        strings[0] = np.argsort(with_free_slots(initial, topology), kind="stable")
    costs = genetic_kernels.string_costs(model, node_of_slot, strings)
    rows = max(1, min(population, BATCH // (len(node_of_slot) + len(model.peer) + 1)))
    try:
        for done in range(generations):
            watch.report(done, generations, f"{named.name} {named.value(int(costs.min()))}")
            children, child_costs = strings.copy(), costs.copy()
            best = int(costs.argmin())
            children[0], child_costs[0] = strings[best], costs[best]
            filled, tried = 1, 0
            while filled < population and tried < tries * population and not watch.over():
                random = rng.random((rows, 4 + 2 * mutations))
                filled = genetic_kernels.breed(
                    model, node_of_slot, strings, costs, _roulette(costs), segment, random,
                    children, child_costs, filled,
                )  # fmt: skip
                tried += rows
            rest = np.argsort(costs, kind="stable")[: population - filled]
            children[filled:], child_costs[filled:] = strings[rest], costs[rest]
            strings, costs = children, child_costs
            if watch.over():
                break
    except KeyboardInterrupt:
        raise Interrupted(_mapping(strings, costs, node_of_slot, traffic.ranks)) from None
    return _mapping(strings, costs, node_of_slot, traffic.ranks)


def _roulette(costs: NDArray[np.int64]) -> NDArray[np.float64]:
    """Cumulated share of every string, the last being 1."""
    fitness = (costs.max() - costs).astype(np.float64)
    fitness += max(fitness.max(), 1.0) / len(costs)
    return np.asarray(np.cumsum(fitness) / fitness.sum(), dtype=np.float64)


def _mapping(
    strings: NDArray[np.int64],
    costs: NDArray[np.int64],
    node_of_slot: NDArray[np.int64],
    ranks: int,
) -> Mapping:
    """Return the mapping that the best string means."""
    places = np.empty_like(node_of_slot)
    places[strings[costs.argmin()]] = node_of_slot
    return places[:ranks]

"""Genetic algorithm: roulette selection, ordered crossover of bounded sections, exchanges.

Source: HAEC thesis, section 3.4, Algorithm 3 and appendix A.1. Where that leaves things open:

- A string lists who is on each slot, node by node; free slots are dummy ranks without traffic.
- Roulette: a parent's share is how much better it is than the worst of its generation, plus one
  part in `population` of the best one's, so that no share is zero.
- A matching section has 1 to `segment` letters: the thesis chose any length, found that this
  "may lead to a completely new configuration", and asks for a bound in its discussion (4.2).
- Every offspring also exchanges `mutations` random pairs of letters.
- "If accepted": an offspring that is better than both of its parents. After `tries` offspring per
  place the generation is filled up with the best parents.
- Elitism: the best string always lives on; an initial mapping is one of the first generation.
- 100 generations, for the thesis blames its 10 for a result hardly above random sampling.

preset=thesis is what its authors ran (MapLib, mapper/mapping.py): 10 generations, shares in
proportion to the cardinality (roulette=plain), sections of any length (segment=none) that touch
neither end, strings that list every rank's slot (letters=slots), no elitism (elite=false).
Theirs breeds two children of a pair of parents, and until a generation is full or three hours are
over; ours one, and up to 1,000 a place.

O(generations * population * tries * (slots + pairs)) at most.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hopmap.arrays import Floats, Ints
from hopmap.mappers.mapper import mapper
from hopmap.mappers.objectives import ObjectiveName, cost_model, get_objective, with_free_slots
from hopmap.mappers.options import Count, CountOrZero
from hopmap.mappers.stop import Stop, keep
from hopmap.topologies import Mapping, MappingError, Topology
from hopmap.traces import Traffic

BATCH = 20_000_000  # letters and pairs looked at between two looks at the clock


@dataclass(frozen=True)
class Breeding:
    """How generations are bred."""

    # population, generations: strings of a generation, and how often a new one is bred
    population: Count = 100
    generations: CountOrZero = 100
    segment: Count | None = 8  # most letters of a matching section; any number for None
    mutations: CountOrZero = 1  # exchanges of two letters of every child
    tries: Count = 100  # most children per place of a generation
    # a parent's share: by how much it is better than the worst, or its cardinality
    roulette: Literal["scaled", "plain"] = "scaled"
    # what a string lists: the rank on each slot, or the slot of each rank
    letters: Literal["ranks", "slots"] = "ranks"
    elite: bool = True  # whether the best lives on


@mapper(
    "genetic",
    source="HAEC thesis, Algorithm 3",
    presets={
        "thesis": {
            "generations": 10,
            "segment": None,
            "tries": 1000,
            "roulette": "plain",
            "letters": "slots",
            "elite": False,
        }
    },
)
def genetic(
    traffic: Traffic,
    topology: Topology,
    *,
    rng: np.random.Generator,
    initial: Mapping | None = None,
    objective: ObjectiveName = "cardinality",
    breeding: Breeding,
    stop: Stop,
) -> Mapping:
    """Genetic algorithm with ordered crossover of short sections.

    An initial mapping is one of the first generation; the others are random.
    """
    from .genetic_kernels import Generation, breed, string_costs

    if breeding.roulette == "plain" and objective != "cardinality":
        raise MappingError(
            f"mapper genetic: roulette=plain: objective={objective}: expected cardinality"
        )
    population, of_ranks = breeding.population, breeding.letters == "slots"
    model = cost_model(traffic, topology, objective)
    named = get_objective(objective)
    watch, generations = stop.watch(), breeding.generations
    node_of_slot = np.repeat(np.arange(topology.nodes, dtype=np.int64), topology.slots)
    strings = rng.permuted(np.tile(np.arange(len(node_of_slot)), (population, 1)), axis=1)
    if initial is not None:
        ranks_in_order = np.argsort(with_free_slots(initial, topology), kind="stable")
        strings[0] = np.argsort(ranks_in_order) if of_ranks else ranks_in_order
    costs = string_costs(model, node_of_slot, strings, of_ranks)
    rows = max(1, min(population, BATCH // (len(node_of_slot) + len(model.peer) + 1)))

    def fittest() -> Mapping:
        return _mapping(strings[costs.argmin()], node_of_slot, of_ranks)[: traffic.ranks]

    with keep(fittest):
        for done in range(generations):
            watch.report(done, generations, f"{named.name} {named.value(int(costs.min()))}")
            parents, children = Generation(strings, costs), Generation(strings.copy(), costs.copy())
            best = int(costs.argmin())
            children.strings[0], children.costs[0] = strings[best], costs[best]
            filled, bred = int(breeding.elite), 0
            shares = _roulette(-costs if breeding.roulette == "plain" else _above_the_worst(costs))
            while filled < population and bred < breeding.tries * population and not watch.over():
                random = rng.random((rows, 4 + 2 * breeding.mutations))
                filled = breed(
                    model, node_of_slot, parents, shares, of_ranks, breeding.segment or 0, random,
                    children, filled,
                )  # fmt: skip
                bred += rows
            rest = np.argsort(costs, kind="stable")[: population - filled]
            children.strings[filled:], children.costs[filled:] = strings[rest], costs[rest]
            strings, costs = children
            if watch.over():
                break
    return fittest()


def _above_the_worst(costs: Ints) -> Floats:
    """By how much every string is better than the worst, and a little."""
    fitness = (costs.max() - costs).astype(np.float64)
    return np.asarray(fitness + max(fitness.max(), 1.0) / len(costs))


def _roulette(fitness: NDArray[Any]) -> Floats:
    """Cumulated share of every string, the last being 1; equal shares where none is fit."""
    if not fitness.any():
        fitness = np.ones(len(fitness))
    return np.asarray(np.cumsum(fitness) / fitness.sum(), dtype=np.float64)


def _mapping(string: Ints, node_of_slot: Ints, of_ranks: bool) -> Mapping:
    """Return the node of every rank and dummy rank that a string means."""
    if of_ranks:
        return node_of_slot[string]
    places = np.empty_like(node_of_slot)
    places[string] = node_of_slot
    return places

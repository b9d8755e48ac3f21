"""Annealing: exact costs on the way, budgets, and small problems solved."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopmap.mappers import map_ranks, objective_value
from hopmap.mappers.bisections.recursive_bisection import exchange_blocks
from hopmap.mappers.cost_kernels import own_costs, total_cost
from hopmap.mappers.exchanges.annealing import AnnealingSearch
from hopmap.mappers.exchanges.annealing_kernels import anneal
from hopmap.mappers.stop import Watch
from hopmap.topologies import topology_from_spec
from hopmap.traces import Traffic

SPECS = ["mesh:3x3", "torus:4x3", "haec:2x2x3", "mesh:2x2*3", "tree:2:3:2", "fattree:3x4"]


def some_traffic(ranks: int, seed: int) -> Traffic:
    rng = np.random.default_rng(seed)
    src, dst = np.nonzero(rng.random((ranks, ranks)) < 0.3)
    volume = rng.integers(1, 99, len(src))
    return Traffic.from_pairs(ranks, src, dst, np.ones(len(src)), volume)


def search_of(traffic, topology, objective="hop_bytes", seed=0) -> AnnealingSearch:
    start = map_ranks(traffic, topology, "random", seed=seed)
    return AnnealingSearch(
        traffic, topology, start, objective, np.random.default_rng(seed), Watch()
    )


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("objective", ["hop_bytes", "hop_messages", "cardinality"])
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 99), temperature=st.sampled_from([0.0, 5.0, 1000.0]))
def test_the_cost_saved_and_every_rank_s_own_cost_stay_exact(spec, objective, seed, temperature):
    topology = topology_from_spec(spec)
    search = search_of(some_traffic(int(topology.slots.sum()) - 1, seed), topology, objective, seed)
    before = total_cost(search.model, search.assignment.places)
    saved = anneal(search.model, search.assignment, temperature, temperature, 300)
    assignment = search.assignment
    assert before - saved == total_cost(search.model, assignment.places)
    assert np.array_equal(assignment.own, own_costs(search.model, assignment.places))
    assert np.array_equal(assignment.item_at[assignment.slot_of], np.arange(len(assignment.places)))
    slots = np.repeat(np.arange(topology.nodes), topology.slots)
    assert np.array_equal(slots[assignment.slot_of], assignment.places)
    assert temperature > 0 or saved >= 0


@pytest.mark.parametrize("temperature", [300.0, 1000.0])
def test_the_temperature_of_places_is_that_at_which_they_were_annealed(temperature):
    search = search_of(some_traffic(64, 1), topology_from_spec("torus:8x8"))
    found = []
    for _ in range(30):
        anneal(search.model, search.assignment, temperature, temperature, 20_000)
        found.append(search.temperature(10 * temperature))
    assert np.mean(found[5:]) == pytest.approx(temperature, rel=0.1)
    assert search.temperature(temperature / 4) == temperature / 4
    anneal(search.model, search.assignment, 0.0, 0.0, 1_000_000)
    assert search.temperature(10 * temperature) < temperature / 4


@pytest.mark.parametrize("spec", ["mesh:4x4", "torus:4x2x2", "haec:2x2x4", "mesh:2x4*2"])
def test_blocks_that_move_save_what_they_say(spec):
    topology = topology_from_spec(spec)
    search = search_of(some_traffic(int(topology.slots.sum()), 1), topology)
    before = search.cost
    exchange_blocks(search, 5000)
    assert search.cost < before
    assert search.cost == total_cost(search.model, search.assignment.places)
    assert np.array_equal(search.assignment.own, own_costs(search.model, search.assignment.places))
    assert search.best_cost == total_cost(search.model, search.best)


@pytest.mark.parametrize("mapper", ["annealing", "tabu(steps=200)", "multilevel", "auto"])
def test_six_ranks_are_placed_as_well_as_in_any_order(mapper):
    topology, traffic = topology_from_spec("mesh:3x2"), some_traffic(6, 4)
    orders = permutations(range(6))
    least = min(objective_value(traffic, topology, np.array(p), "hop_bytes") for p in orders)
    found = map_ranks(traffic, topology, mapper, seed=1)
    assert objective_value(traffic, topology, found, "hop_bytes") == least


@pytest.mark.parametrize("mapper", ["annealing", "multilevel", "auto"])
def test_more_moves_from_the_same_start_are_not_worse_on_average(mapper, compiled):
    topology, traffic = topology_from_spec("torus:4x4x2"), some_traffic(32, 7)
    few, many = (
        sum(
            objective_value(
                traffic, topology, map_ranks(traffic, topology, f"{mapper}(moves={n})", seed=s),
                "hop_bytes",
            )
            for s in range(5)
        )
        for n in (300, 100_000)
    )  # fmt: skip
    assert many < few

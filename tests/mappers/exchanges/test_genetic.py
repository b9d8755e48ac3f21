"""Genetic algorithm: its operators, and better than sampling."""

import numpy as np
import pytest

from hopmap.mappers import map_ranks, objective_value
from hopmap.mappers.exchanges.genetic import _roulette
from hopmap.mappers.exchanges.genetic_kernels import breed, ordered_crossover, string_costs
from hopmap.mappers.objectives import cost_model
from hopmap.topologies import topology_from_spec
from hopmap.traces import Traffic, lu_traffic
from support.slow import slow


def crossed(donor: str, receptor: str, start: int, stop: int) -> str:
    child = np.empty(len(donor), dtype=np.int64)
    ordered_crossover(
        np.array([int(c) for c in donor]), np.array([int(c) for c in receptor]), start, stop,
        np.empty(len(donor), dtype=np.bool_), child,
    )  # fmt: skip
    return "".join(map(str, child))


def test_ordered_crossover_of_appendix_a1():
    assert crossed("9845671320", "8712309546", 3, 6) == "2305679481"


def test_ordered_crossover_the_other_way_round():
    """D: delete 2, 3, 0 from A, slide the rest from behind the section, insert it."""
    assert crossed("8712309546", "9845671320", 3, 6) == "5672301984"


def test_the_roulette_favours_what_costs_less():
    """What each is better than the worst, 0, 6 and 3, and a third of the most besides."""
    shares = np.diff(_roulette(np.array([10, 4, 7])), prepend=0)
    assert shares == pytest.approx([2 / 15, 8 / 15, 5 / 15])
    assert np.diff(_roulette(np.array([5, 5])), prepend=0).tolist() == [0.5, 0.5]


def bred(parents, random) -> list[str]:
    """Accepted offspring of strings on a line of four, whose ranks talk in the order 0-1-2-3."""
    topology, line = topology_from_spec("mesh:4"), np.arange(3)
    traffic = Traffic.from_pairs(4, line, line + 1, [1] * 3, [1] * 3)
    model = cost_model(traffic, topology, "hop_bytes")
    strings = np.array([[int(c) for c in parent] for parent in parents])
    costs = string_costs(model, np.arange(4), strings)
    children, child_costs = np.zeros((len(random), 4), dtype=np.int64), np.zeros(len(random), int)
    filled = breed(
        model, np.arange(4), strings, costs, _roulette(costs), 1, np.array(random, dtype=float),
        children, child_costs, 0,
    )  # fmt: skip
    assert (
        child_costs[:filled].tolist()
        == string_costs(model, np.arange(4), children).tolist()[:filled]
    )
    return ["".join(map(str, child)) for child in children[:filled]]


def test_offspring_exchange_the_letters_of_the_drawn_slots():
    """Of one parent the crossover is the parent: what changes is what is exchanged."""
    assert bred(["1023"], [[0, 0, 0, 0, 0.1, 0.3]]) == ["0123"]
    assert bred(["1023"], [[0, 0, 0, 0, 0.6, 0.9]]) == []  # 1032 costs more
    assert bred(["1032"], [[0, 0, 0, 0, 0.1, 0.3, 0.6, 0.9]]) == ["0123"]


def test_parents_are_those_whose_share_is_drawn():
    """Of 0321 and 1023 the second one's share is the larger, three quarters."""
    assert bred(["0321", "1023"], [[0.3, 0.3, 0, 0, 0.1, 0.3]]) == ["0123"]
    assert bred(["0321", "1023"], [[0.2, 0.2, 0, 0, 0.3, 0.9]]) == ["0123"]


@pytest.mark.parametrize("spec", ["torus:4x4x4", *slow("mesh:4x4x4", "haec:4x4x4")])
@pytest.mark.parametrize("seeds", [1, *slow(3)])
def test_it_beats_random_sampling_clearly(compiled, spec, seeds):
    """Even the worst of three seeds against the best, and by 7 per cent on average."""
    traffic, topology = lu_traffic("C", 64), topology_from_spec(spec)

    def hops(mapper: str) -> list[int]:
        mappings = [map_ranks(traffic, topology, mapper, seed=seed) for seed in range(seeds)]
        return [objective_value(traffic, topology, m, "hop_messages") for m in mappings]

    genes, samples = hops("genetic"), hops("random_sampling")
    assert max(genes) < min(samples)
    assert np.mean(genes) < 0.93 * np.mean(samples)

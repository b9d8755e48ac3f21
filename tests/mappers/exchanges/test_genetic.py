"""Genetic algorithm: its operators, and better than sampling."""

import numpy as np
import pytest

from hopmap.mappers import map_ranks, objective_value
from hopmap.mappers.exchanges.genetic_kernels import ordered_crossover
from hopmap.topologies import topology_from_spec
from hopmap.traces import lu_traffic
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

"""Random sampling: the best of as many random mappings as it is told to draw."""

import numpy as np
import pytest

from hopmap.mappers import cost_kernels, map_ranks, objective_value
from hopmap.topologies import topology_from_spec
from hopmap.traces import Traffic, lu_traffic


def line_of(ranks: int) -> Traffic:
    first = np.arange(ranks - 1)
    return Traffic.from_pairs(ranks, first, first + 1, [1] * len(first), [8] * len(first))


def test_more_samples_of_a_seed_are_never_worse_and_soon_better():
    traffic, topology = lu_traffic("C", 64), topology_from_spec("torus:4x4x4")
    values = [
        objective_value(
            traffic, topology, map_ranks(traffic, topology, f"random_sampling(samples={n})"),
            "cardinality",
        )
        for n in (1, 30, 900)
    ]  # fmt: skip
    assert values == sorted(values)
    assert values[0] < values[1] < values[2]


@pytest.mark.parametrize("seed", range(4))
def test_the_best_is_kept_over_all_batches(seed):
    """Samples are drawn a thousand at a time."""
    traffic, topology = lu_traffic("C", 64), topology_from_spec("torus:4x4x4")
    values = [
        objective_value(
            traffic, topology,
            map_ranks(traffic, topology, f"random_sampling(samples={n})", seed=seed), "cardinality",
        )
        for n in range(1001, 8001, 1000)
    ]  # fmt: skip
    assert values == sorted(values)


@pytest.mark.parametrize("samples", [1, 2, 700, 2500])
def test_it_looks_at_as_many_mappings_as_it_is_told(monkeypatch, samples):
    looked = [1]  # the first, by itself
    costs = cost_kernels.total_costs

    def counted(model, drawn):
        looked.append(len(drawn))
        return costs(model, drawn)

    monkeypatch.setattr(cost_kernels, "total_costs", counted)
    map_ranks(line_of(9), topology_from_spec("mesh:3x3"), f"random_sampling(samples={samples})")
    assert sum(looked) == samples


@pytest.mark.parametrize("objective", ["cardinality", "hop_bytes"])
def test_enough_samples_of_few_mappings_find_the_best(objective):
    """Four ranks on a line have 24 mappings, two of them perfect."""
    traffic, topology = line_of(4), topology_from_spec("mesh:4")
    node_of = map_ranks(traffic, topology, f"random_sampling(samples=500, objective={objective})")
    assert node_of.tolist() in ([0, 1, 2, 3], [3, 2, 1, 0])


def test_every_mapping_is_as_likely_as_any_other():
    """One sample each of 600 seeds: the six orders of three ranks come 100 times, give or take."""
    traffic, topology = line_of(3), topology_from_spec("mesh:3")
    drawn = [
        tuple(map_ranks(traffic, topology, "random_sampling(samples=1)", seed=seed).tolist())
        for seed in range(600)
    ]
    counts = [drawn.count(each) for each in sorted(set(drawn))]
    assert len(counts) == 6
    assert sum((n - 100) ** 2 / 100 for n in counts) < 20.5  # chi square of 5 degrees at 0.1 %


def test_its_mean_cardinality_on_a_torus_is_that_of_chance():
    """Of 63 other nodes 6 are neighbours: 10.7 of 112 pairs in the mean of one sample."""
    traffic, topology = lu_traffic("C", 64), topology_from_spec("torus:4x4x4")
    values = [
        objective_value(
            traffic, topology, map_ranks(traffic, topology, "random_sampling(samples=1)", seed=s),
            "cardinality",
        )
        for s in range(300)
    ]  # fmt: skip
    assert np.mean(values) == pytest.approx(112 * 6 / 63, rel=0.06)

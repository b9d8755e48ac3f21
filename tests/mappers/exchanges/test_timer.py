"""TiMEr: what its mappings promise, and what it refuses."""

import numpy as np
import pytest

from hopmap.errors import HopmapWarning
from hopmap.mappers import map_ranks, objective_value
from hopmap.simulator import evaluate
from hopmap.topologies import MappingError, topology_from_spec
from hopmap.traces import Traffic, nas_traffic


def test_more_hierarchies_are_never_worse():
    """With one seed the first hierarchies are the same."""
    traffic, topology = nas_traffic("lu.A.64"), topology_from_spec("torus:8x8")
    start = map_ranks(traffic, topology, "random", seed=3)
    reached = [
        objective_value(
            traffic,
            topology,
            map_ranks(traffic, topology, f"timer(hierarchies={n})", initial=start),
            "hop_bytes",
        )
        for n in (1, 3, 10, 30, 100)
    ]
    assert reached == sorted(reached, reverse=True)
    assert reached[-1] < 0.6 * objective_value(traffic, topology, start, "hop_bytes")


@pytest.mark.parametrize("spec", ["mesh:4x4", "torus:4x6", "hypercube:5", "torus:4x2*4"])
def test_random_mappings_get_better(spec):
    topology = topology_from_spec(spec)
    traffic = nas_traffic("lu.A.16")
    start = map_ranks(traffic, topology, "random", seed=1)
    end = map_ranks(traffic, topology, "timer", initial=start)
    before, after = (objective_value(traffic, topology, m, "hop_bytes") for m in (start, end))
    assert after < before


def test_it_changes_the_partition_but_not_the_sizes_of_its_blocks():
    """Eight groups of four that talk among themselves, dealt over eight nodes of six slots."""
    rank = np.arange(32)
    src, dst = np.nonzero((rank[:, None] // 4 == rank // 4) & (rank[:, None] < rank))
    traffic = Traffic.from_pairs(32, src, dst, np.ones_like(src), np.ones_like(src))
    topology = topology_from_spec("mesh:4x2*6")
    start = rank % 8
    end = map_ranks(traffic, topology, "timer(hierarchies=200)", initial=start)
    assert np.bincount(end).tolist() == np.bincount(start).tolist()
    together = (end[src] == end[dst]).sum()
    assert (start[src] == start[dst]).sum() == 0
    assert together >= len(src) // 2


def cliques_and_chords(chords: int):
    """Eight cliques of four on a line of nodes, and far pairs of three bytes between them."""
    u, v = np.triu_indices(4, 1)
    first = np.arange(0, 32, 4)[:, None]
    far = np.random.default_rng(61).permutation(32).reshape(2, -1)[:, :chords]
    src = np.concatenate(((first + u).ravel(), far[0]))
    dst = np.concatenate(((first + v).ravel(), far[1]))
    size = np.where(np.arange(len(src)) < 48, 1, 3)
    return Traffic.from_pairs(32, src, dst, np.ones_like(src), size), np.arange(32) // 4


def test_a_cut_that_grows_more_than_coco_falls_is_warned_of(recwarn):
    topology = topology_from_spec("mesh:8*4")
    traffic, start = cliques_and_chords(14)
    with pytest.warns(HopmapWarning, match=r"mapper timer: Coco fell by 1\d.\d%, but what .* by 2"):
        end = map_ranks(traffic, topology, "timer", initial=start)
    costs = [evaluate(traffic, topology, m).bytes for m in (start, end)]
    fallen = 1 - costs[1].dilation.sum / costs[0].dilation.sum
    assert 0 < fallen < costs[1].ienlc.total / costs[0].ienlc.total - 1
    recwarn.clear()
    traffic, start = cliques_and_chords(0)
    map_ranks(traffic, topology, "timer", initial=np.roll(start, 1))
    assert not recwarn.list


def test_ranks_go_to_free_slots_only_if_told():
    topology = topology_from_spec("mesh:8x8")
    traffic = Traffic.from_pairs(2, [0], [1], [1], [1])
    start = np.array([0, 63])
    kept, moved = (
        map_ranks(traffic, topology, f"timer(free_slots={free})", initial=start)
        for free in ("false", "true")
    )
    assert sorted(kept) == [0, 63]
    assert topology.distance(*moved) < 14


@pytest.mark.parametrize("spec", ["torus:5x4", "haec:2x2x2"])
def test_networks_that_are_no_partial_cubes_are_refused(spec):
    topology, traffic = topology_from_spec(spec), nas_traffic("lu.S.4")
    with pytest.raises(MappingError, match=rf"^mapper timer: {spec} is no partial cube") as refused:
        map_ranks(traffic, topology, "sweep | timer")
    assert "\n" not in str(refused.value)


def test_cardinality_is_no_sum_over_cuts():
    topology, traffic = topology_from_spec("mesh:4"), nas_traffic("lu.S.4")
    with pytest.raises(MappingError, match=r"objective=cardinality: expected hop_bytes\|hop"):
        map_ranks(traffic, topology, "sweep | timer(objective=cardinality)")


def test_labels_that_are_too_long_are_refused():
    topology = topology_from_spec("cluster:12000*15")
    traffic = Traffic.from_pairs(180_000, [0], [1], [1], [1])
    with pytest.raises(MappingError, match="labels of 180000 ranks take 12004 digits each: expect"):
        map_ranks(traffic, topology, "sweep | timer")

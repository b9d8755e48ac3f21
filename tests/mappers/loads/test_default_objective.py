"""What `auto` works for by default, and how it lowers the load of the busiest link."""

import numpy as np
import pytest

from hopmap.mappers import LOAD, default_objective, map_ranks, objective_value
from hopmap.topologies import topology_from_spec
from hopmap.traces import Traffic


@pytest.mark.parametrize(
    ("spec", "objective"),
    [
        ("dragonfly:2x4x2", "max_link_load"),
        ("dragonfly:2x4x2*4", "max_link_load"),
        ("dragonfly+:2x4x4x5", "hop_bytes"),
        ("failed:links=3@dragonfly:2x4x2", "max_link_load"),
        ("names:n[00-71]@dragonfly:2x4x2", "max_link_load"),
        ("fattree:4x4:1x2", "hop_bytes"),
        ("failed:links=1@torus:4x4", "hop_bytes"),
        ("tree:4:4@1:10", "hop_bytes"),
        ("mesh:4x4", "hop_bytes"),
        ("hypercube:4", "hop_bytes"),
    ],
)
def test_the_busiest_link_is_the_default_objective_on_dragonflies_alone(spec, objective):
    assert default_objective(topology_from_spec(spec)) == objective


@pytest.mark.parametrize("spec", ["dragonfly:2x4x2", "torus:4x4x4"])
def test_auto_works_for_the_default_objective_and_for_no_other(spec):
    topology, traffic = topology_from_spec(spec), scattered(64)
    by_default, by_hop_bytes, by_load = (
        map_ranks(traffic, topology, f"auto(moves=4000{more})").tolist()
        for more in ("", ", objective=hop_bytes", ", objective=max_link_load")
    )
    assert by_hop_bytes != by_load
    assert by_default == (by_load if spec.startswith("dragonfly") else by_hop_bytes)
    assert by_default == map_ranks(traffic, topology, "auto(moves=4000, objective=none)").tolist()


def test_of_equal_loads_the_fewest_hop_bytes_count():
    """One heavy pair is the load of any mapping, so that the first would be as good as any."""
    topology, ring = topology_from_spec("dragonfly:2x4x2"), np.random.default_rng(2).permutation(64)
    ring = ring[ring > 1]
    src, dst = np.append(ring, 0), np.append(np.roll(ring, 1), 1)
    volume = np.append(np.ones(62, dtype=np.int64), 20)
    traffic = Traffic.from_pairs(64, src, dst, np.ones(63, dtype=np.int64), volume)
    order, mapped = (map_ranks(traffic, topology, m) for m in ("sweep", "auto(moves=20000)"))
    loads = [objective_value(traffic, topology, m, "max_link_load") for m in (order, mapped)]
    values = [objective_value(traffic, topology, m, "hop_bytes") for m in (order, mapped)]
    assert loads == [20, 20]
    assert values[1] < 0.95 * values[0]


@pytest.mark.parametrize(
    ("spec", "start"),
    [("dragonfly:2x8x1", "random"), ("fattree:16x8:1x4", "recursive_bisection")],
)
def test_it_is_not_behind_annealing_from_what_is_the_better_start_there(spec, start):
    topology, traffic = topology_from_spec(spec), blocks_and_corners((8, 4, 4))

    def mean_load(stage: str) -> float:
        mapped = (map_ranks(traffic, topology, stage, seed=seed) for seed in range(3))
        return float(np.mean([objective_value(traffic, topology, m, LOAD) for m in mapped]))

    ours = mean_load("auto(moves=60000, objective=max_link_load)")
    assert ours <= 1.03 * mean_load(f"{start} | congestion(moves=60000)")


def blocks_and_corners(dims: tuple[int, ...]) -> Traffic:
    """A stencil of 27 points in no order: faces, edges and corners weigh 64, 8 and 1."""
    cells = np.array(list(np.ndindex(*dims)))
    apart = np.abs(cells[:, None] - cells)
    near = np.argwhere(apart.max(axis=2) == 1)
    volume = np.array((64, 8, 1))[apart[tuple(near.T)].sum(axis=1) - 1]
    src, dst = np.random.default_rng(7).permutation(len(cells))[near].T
    return Traffic.from_pairs(len(cells), src, dst, np.ones_like(volume), volume)


def scattered(ranks: int) -> Traffic:
    """Points in space that talk to their six nearest, in no order."""
    rng = np.random.default_rng(5)
    points = rng.random((ranks, 3))
    near = np.argsort(((points[:, None] - points) ** 2).sum(axis=2))[:, 1:7]
    src = np.repeat(np.arange(ranks), 6)
    volume = rng.integers(1, 10, 6 * ranks)
    return Traffic.from_pairs(ranks, src, near.ravel(), np.ones_like(volume), volume)

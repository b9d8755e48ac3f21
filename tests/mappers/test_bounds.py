"""Lower bounds: reached where cubes of a grid fill nodes and subsystems, undercut by nothing."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopmap.mappers.cartesian.grid import find_grid
from hopmap.mappers.cost_kernels import total_costs
from hopmap.mappers.objectives import cost_model, lower_bound
from hopmap.topologies import topology_from_spec
from hopmap.traces import Traffic
from support.traffic import grid_traffic


def bound_of(traffic: Traffic, spec: str, objective: str = "hop_bytes") -> int:
    topology = topology_from_spec(spec)
    grid = find_grid(traffic)
    cells = None if grid is None else np.stack(np.unravel_index(grid.cells, grid.dims), axis=1)
    return lower_bound(cost_model(traffic, topology, objective), topology, cells)


@pytest.mark.parametrize(
    ("dims", "spec", "value"),
    [
        # 8,064 pairs at 1; all but 4 in each 2 x 2 farther by 9; all but 112 in 8 x 8 by 90 more.
        ((64, 64), "tree:4:16:64@1:10:100", 8064 + 9 * (8064 - 1024 * 4) + 90 * (8064 - 64 * 112)),
        # Cubes: 11,520 pairs, 4 in 2 x 2 x 1, 144 in 4 x 4 x 4.
        ((16, 16, 16), "tree:4:16:64@1:10:100", 11520 + 9 * (11520 - 4096) + 90 * (11520 - 9216)),
        # A highest level of a single subsystem has nothing beside it.
        ((8, 8), "tree:4:16:1@1:10:100", 112 + 9 * (112 - 16 * 4)),
        # On nodes of four slots 4 of the pairs of each 2 x 2 cost nothing.
        ((16, 16), "torus:8x8*4", 480 - 64 * 4),
        ((8, 8), "torus:4x4x4", 112),
        ((8, 8), "fattree:4x16", 2 * 112 + 2 * (112 - 16 * 4)),
    ],
)
def test_grids_have_the_bound_of_their_cubes(dims, spec, value):
    assert bound_of(grid_traffic(*dims, seed=1), spec) == value


def test_a_star_has_but_four_nodes_next_to_its_middle():
    """Weights 9, 5, 4, 3 at one hop, 2 at two; from the leaves all 23 at one: (25 + 23) / 2."""
    star = Traffic.from_pairs(6, [0] * 5, range(1, 6), [1] * 5, [9, 5, 4, 3, 2])
    assert bound_of(star, "mesh:5x5") == 24
    assert bound_of(star, "mesh:25") == -(-(23 + 9 + 5 + 8 + 6 + 6) // 2)
    assert bound_of(star, "mesh:5x5", "cardinality") == -(-(-4 - 5) // 2)
    assert bound_of(star, "tree:3:9@1:10") == -(-(23 + 9 + 5 + 40 + 30 + 20) // 2)


SPECS = ["mesh:2x3", "torus:6", "torus:3x2", "tree:2:3", "tree:3:2@0:5", "tree:2:3@4:4", "mesh:3*2"]
SPECS += ["tree:2:3:1", "fattree:2x3", "dragonfly:1x2x1", "haec:2x1x3", "mesh:7"]


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(SPECS), st.integers(0, 10**6), st.sampled_from(["grid", "any"]))
def test_no_mapping_undercuts_the_bound(spec, seed, kind):
    rng = np.random.default_rng(seed)
    topology = topology_from_spec(spec)
    if kind == "grid":
        whole = grid_traffic(3, 2, seed=seed)
        volume = rng.integers(1, 3, whole.pairs)
        traffic = Traffic.from_pairs(6, whole.src, whole.dst, whole.messages, volume)
    else:
        src, dst = np.nonzero(rng.random((6, 6)) < 0.5)
        traffic = Traffic.from_pairs(6, src, dst, np.ones(len(src)), rng.integers(1, 9, len(src)))
    slots = np.repeat(np.arange(topology.nodes), topology.slots)
    mappings = slots[np.array(list(permutations(range(len(slots)), 6)))]
    for objective in ("hop_bytes", "cardinality"):
        model = cost_model(traffic, topology, objective)
        assert bound_of(traffic, spec, objective) <= total_costs(model, mappings).min()

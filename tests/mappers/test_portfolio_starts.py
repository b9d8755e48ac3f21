"""Orders and starts of the portfolio: who takes part, and for how long."""

from __future__ import annotations

import numpy as np
import pytest
from generated import traffic_of

from hopmap.mappers import portfolio, portfolio_starts
from hopmap.mappers.portfolio_starts import STARTS
from support.portfolios import MESH, TREE, members, run_on, some_traffic
from support.traffic import grid_traffic


def test_folds_leave_time_for_moves(monkeypatch, compiled):
    def all_the_time(cells, topology, model, tries, over):
        while not over():
            pass
        return np.arange(topology.nodes)

    monkeypatch.setattr(portfolio_starts, "best_fold", all_the_time)
    run = run_on(MESH, grid_traffic(18, 16, seed=1), seconds=1.0, clock="cpu")
    assert "fold" in members(run)
    assert members(run)[-1].startswith("annealing from")


def test_networks_without_levels_have_one_bisection():
    """A hot round keeps next to nothing of it."""
    for spec, count in ((MESH, 1), ("torus:18x16", 1), (TREE, STARTS)):
        assert members(run_on(spec, moves=1000)).count("recursive_bisection") == count


def test_where_to_cut_a_ring_shows_without_its_shortcuts():
    run = run_on("tree:4:16:64@1:10:100", traffic_of("small_world", 4096), moves=1000)
    first, near, *others = (s.value for s in run.steps if s.member == "recursive_bisection")
    assert near < 0.97 * min(first, *others)


@pytest.mark.parametrize(
    ("kind", "spec", "takes_part"),
    [
        ("bipartite", "mesh:16x16", True),
        ("ba", "torus:16x16", True),
        ("bipartite", "tree:4:8:8@1:10:100", False),
        ("knn3d", "torus:8x8x4", False),
        ("lu", "mesh:16x16", False),
    ],
)
def test_a_construction_by_all_ranks_takes_part_where_bisections_separate_little(
    kind, spec, takes_part, monkeypatch
):
    traffic = traffic_of(kind, 256)
    monkeypatch.setattr(portfolio, "find_structures", lambda *_: (None, iter(())))
    run = run_on(spec, traffic, moves=1000)
    assert ("greedy_all_c" in members(run)) == takes_part
    monkeypatch.setattr(portfolio_starts, "GREEDY_RANKS", 255)
    assert "greedy_all_c" not in members(run_on(spec, traffic, moves=1000))


@pytest.mark.parametrize(
    ("traffic", "spec", "takes_part"),
    [
        (traffic_of("knn3d", 256), "torus:8x8x4", True),
        (traffic_of("knn3d", 250), "torus:8x8x4", True),
        (traffic_of("knn3d", 256), "tree:4:8:8@1:10:100", False),
        (grid_traffic(16, 16, seed=1), "torus:8x8x4", False),
        (some_traffic(256), "torus:8x8x4", False),
    ],
)
def test_points_in_space_are_embedded_in_boxes(traffic, spec, takes_part):
    assert ("embedding" in members(run_on(spec, traffic, moves=1000))) == takes_part


def test_few_ranks_on_many_nodes_are_embedded_side_by_side_too():
    """512 nodes: 64 ranks on all parts of the network, then in a box of 64."""
    run = run_on("torus:8x8x8", traffic_of("knn3d", 64), moves=1000)
    values = [step.value for step in run.steps if step.member == "embedding"]
    assert len(values) >= 2
    assert max(values[1::2]) < 0.8 * min(values[::2])

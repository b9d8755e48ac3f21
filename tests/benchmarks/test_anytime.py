"""What mappers are measured on: generated graphs, and how Scotch is told of a network."""

import numpy as np
import pytest
from anytime import COLUMNS, table
from anytime_peers import target
from every_mapper import natural_order
from generated import KINDS, networks_of, traffic_of
from pandas import DataFrame
from part_of_machine import jobs

from hopmap.topologies import check_mapping, topology_from_spec


def test_a_stencil_of_27_points_has_its_faces_edges_and_corners():
    """4 x 4 x 4: 3 * 48 faces of 64, 6 * 36 edges of 8, 4 * 27 corners of 1."""
    traffic = traffic_of("stencil27", 64, shuffle=False)
    sizes, counts = np.unique(traffic.bytes, return_counts=True)
    assert dict(zip(sizes.tolist(), counts.tolist(), strict=True)) == {64: 144, 8: 216, 1: 108}


@pytest.mark.parametrize("kind", KINDS)
def test_graphs_are_shuffled_and_the_same_every_time(kind):
    traffic, again, kept = (traffic_of(kind, 64, shuffle=s) for s in (True, True, False))
    assert traffic.ranks == 64
    assert np.array_equal(traffic.src, again.src)
    assert sorted(traffic.bytes) == sorted(kept.bytes)
    assert not np.array_equal(traffic.src, kept.src) or not np.array_equal(traffic.dst, kept.dst)


@pytest.mark.parametrize("ranks", [64, 2048, 32768])
def test_networks_have_a_node_for_each_rank(ranks):
    assert [topology_from_spec(s).nodes for s in networks_of(ranks).values()] == [ranks] * 3


def test_jobs_on_part_of_a_machine_have_a_node_for_each_rank():
    for nodes, case, topology in jobs():
        ranks, used = case.traffic.ranks, np.flatnonzero(topology.slots)
        check_mapping(natural_order(case, topology), topology, ranks)
        if nodes == "all":
            assert len(used) == topology.nodes > ranks
        else:
            run = int(nodes.removeprefix("runs of "))
            assert len(used) == ranks
            assert np.unique(used // run).size == -(-ranks // run)


def test_scotch_adds_the_costs_of_levels_up():
    for spec, words in {
        "tree:4:16:64@1:10:100": "tleaf 3 64 90 16 9 4 1\n",
        "tree:4:16:1@1:10:100": "tleaf 2 16 9 4 1\n",
        "fattree:4x4x4": "tleaf 3 4 2 4 2 4 2\n",
        "torus:4x8x8": "torus3D 4 8 8\n",
        "mesh:4x8": "mesh2D 4 8\n",
    }.items():
        assert target(topology_from_spec(spec)) == words
    text = target(topology_from_spec("dragonfly:1x2x1"))  # three groups of two
    assert text.startswith("deco 0\n6 15\n0 1 4\n")
    assert text.count("\n") == 2 + 6 + 5


def test_a_budget_is_compared_with_peers_that_took_no_longer():
    case = ["lu", 64, "mesh:8x8"]
    rows = [(0.0, "slow", 80, 0, 3.0), (0.0, "fast", 100, 0, 0.5)]
    rows += [(1.0, "descent", 95, 10, 0.4), (1.0, "annealing", 90, 50, 1.0)]
    rows += [(0.1, "descent", 110, 5, 0.1)]
    found = table(DataFrame([[*case, *row] for row in rows], columns=COLUMNS))
    assert found["peer"].tolist() == ["fast", "fast"]
    assert found["ratio"].tolist() == [0.9, 1.1]
    assert found["any"].tolist() == [90 / 80, 110 / 80]

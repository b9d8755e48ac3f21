"""Units that nodes belong to, and where their links are drawn."""

from itertools import pairwise

import numpy as np
import pytest

from hopmap.topologies import topology_from_spec
from hopmap.view.drawing import LINES, drawing_of
from hopmap.view.units import levels_of

LEVELS = {
    "torus:4x3x2": {"node": 24, "plane": 2},
    "haec:4x3x2": {"node": 24, "board": 2},
    "torus:4x3": {"node": 12, "row": 3},
    "torus:4": {"node": 4},
    "hypercube:4": {"node": 16, "box of 4": 4},
    "dragonfly:2x4x2": {"node": 72, "switch": 36, "group": 9},
    "dragonfly:1x4x2": {"node": 36, "group": 9},  # a switch a node
    "fattree:4x4": {"node": 16, "switch": 4},
    "fattree:8x4x2": {"node": 64, "switch": 8, "pod": 2},
    "cluster:16": {"node": 16},
    "tree:4:4:2": {"node": 32, "switch": 8, "part": 2},
    "tree:2:4:4:2": {"node": 64, "switch": 32, "part of 8": 8, "part of 32": 2},
    "dragonfly+:2x4x4x5x1": {"node": 40, "switch": 20, "group": 5},
}


@pytest.mark.parametrize("spec", LEVELS)
def test_nodes_belong_to_switches_groups_pods_planes_or_rows(spec):
    assert {each.name: each.units for each in levels_of(topology_from_spec(spec))} == LEVELS[spec]


def test_units_of_a_level_divide_the_units_of_the_next():
    for spec in ("dragonfly:2x4x2", "fattree:8x4x2", "tree:4:4:2"):
        levels = levels_of(topology_from_spec(spec))
        for small, large in pairwise(levels):
            pairs = np.unique(np.stack((small.of_node, large.of_node)), axis=1)
            assert pairs.shape[1] == small.units


def test_planes_of_a_torus_lie_next_to_each_other():
    torus = topology_from_spec("torus:4x3x5")
    drawing = drawing_of(torus, levels_of(torus), np.arange(torus.links))
    nodes = np.asarray(drawing["nodes"]).reshape(-1, 2)
    assert len(np.unique(nodes, axis=0)) == 60
    assert len(drawing["planes"]) == len(drawing["names"]) == 5
    for plane, corners in enumerate(drawing["planes"]):
        left, low, right, _, _, high, *_ = corners
        own = nodes[torus.coords[:, 2] == plane]
        assert (own >= [left, low]).all()
        assert (own <= [right, high]).all()
        others = nodes[torus.coords[:, 2] != plane]
        inside = (others > [left, low]).all(axis=1) & (others < [right, high]).all(axis=1)
        assert not inside.any()
    lines = np.asarray(drawing["lines"]).reshape(-1, 4)
    assert (lines[:, :2] == nodes[torus.link_from]).all()


def test_large_networks_of_switches_are_a_matrix():
    for spec, blocks in (("dragonfly:4x8x4", 33), ("fattree:8x8x8", 16)):
        network = topology_from_spec(spec)
        assert network.links > LINES
        drawing = drawing_of(network, levels_of(network), np.arange(network.links))
        unit = drawing["unit"]
        assert drawing["kind"] == "matrix"
        assert drawing["size"] == network.switches
        home = unit[network.link_to[network.link_from < network.nodes]]
        assert (unit[: network.nodes] == home).all()  # node links are on the diagonal
        assert len(drawing["names"]) == blocks
        assert sorted(np.unique(drawing["block"])) == list(range(blocks))


def test_switches_are_in_the_block_of_their_group_or_pod():
    network = topology_from_spec("fattree:8x8x8")
    drawing = drawing_of(network, levels_of(network), np.arange(network.links))
    assert drawing["names"][:2] == ["pod 0", "pod 1"]
    assert drawing["names"][8] == "switches 128 to 135"  # of the top, above all pods
    assert drawing["block"][:64].tolist() == np.repeat(np.arange(8), 8).tolist()
    assert drawing["block"][64:128].tolist() == np.repeat(np.arange(8), 8).tolist()


def test_networks_without_switches_or_planes_are_a_matrix_of_nodes():
    cube = topology_from_spec("hypercube:4")
    drawing = drawing_of(cube, levels_of(cube), np.arange(cube.links))
    assert drawing["names"] == ["box of 4 0", "box of 4 1", "box of 4 2", "box of 4 3"]
    assert drawing["size"] == 16
    assert drawing["unit"].tolist() == list(range(16))

"""Dragonfly+ against closed forms and shortest paths."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopmap.topologies import Topology, TopologyError, hierarchy, topology_from_spec
from support.slow import examples


def assert_minimal_walks(topology: Topology) -> None:
    """Every route is a walk through switches and a shortest path, with one global link at most."""
    graph = nx.DiGraph(zip(topology.link_from.tolist(), topology.link_to.tolist(), strict=True))
    shortest = dict(nx.all_pairs_shortest_path_length(graph))
    nodes = range(topology.nodes)
    u, v = np.repeat(nodes, topology.nodes), np.tile(nodes, topology.nodes)
    indptr, links = topology.routes(u, v)
    for i, (source, target) in enumerate(zip(u.tolist(), v.tolist(), strict=True)):
        route, here = links[indptr[i] : indptr[i + 1]], source
        for link in route:
            assert topology.link_from[link] == here
            here = topology.link_to[link]
            assert here >= topology.nodes or here == target
        assert here == target
        assert len(route) == shortest[source][target] == topology.distance(source, target)[0]
        assert (topology.link_kind[route] == 2).sum() <= 1


@examples(30)
@given(
    st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.integers(1, 4), st.integers(1, 4)
)
def test_routes_are_shortest(hosts, leaves, spines, groups, ports):
    if spines * ports < groups - 1:
        with pytest.raises(TopologyError, match=r"expected .* links a group"):
            topology_from_spec(f"dragonfly+:{hosts}x{leaves}x{spines}x{groups}x{ports}")
        return
    topology = topology_from_spec(f"dragonfly+:{hosts}x{leaves}x{spines}x{groups}x{ports}")
    assert topology.nodes == hosts * leaves * groups
    assert topology.switches == (leaves + spines) * groups
    ends = list(zip(topology.link_from.tolist(), topology.link_to.tolist(), strict=True))
    assert sorted(ends) == sorted((b, a) for a, b in ends)  # every link has one the other way
    if spines * ports // max(groups - 1, 1) == spines * ports / max(groups - 1, 1):
        assert_minimal_walks(topology)


def test_distances_by_hand():
    topology = topology_from_spec("dragonfly+:2x3x2x4")
    assert topology.distance(0, [0, 1, 2, 5, 6, 23]).tolist() == [0, 2, 4, 4, 5, 5]
    assert topology.diameter() == 5


def test_leonardo_by_hand():
    # 22 cells of 18 leaves and 18 spines: 18 global links between any two cells
    topology = topology_from_spec("dragonfly+:10x18x18x22")
    assert topology.nodes == 22 * 180
    assert np.bincount(topology.link_kind).tolist() == [2 * 3960, 2 * 22 * 18 * 18, 22 * 21 * 18]
    leaves = np.bincount(topology.link_from)[topology.nodes : topology.nodes + 22 * 18]
    assert (leaves == 10 + 18).all()


def test_targets_of_a_group_are_spread_over_its_global_links():
    topology = topology_from_spec("dragonfly+:2x4x4x3")
    loads = topology.loads(np.zeros(8, int), np.arange(8, 16), np.ones(8, int))
    assert loads[topology.link_kind == 2].max() == 2  # eight targets over four links


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("dragonfly+:2x2x1x5x1", "expected 4 links a group"),
        ("dragonfly+:0x2x1x5", "at least 1"),
        ("dragonfly+:2x2x2", "nodes a leaf, leaves a group"),
        ("dragonfly+:9999x9999x9x9", "expected at most"),
    ],
)
def test_what_cannot_be_is_refused(spec, message):
    with pytest.raises(TopologyError, match=message):
        topology_from_spec(spec)


def test_a_spec_names_the_same_topology_again():
    for spec in ("dragonfly+:2x3x4x5", "dragonfly+:2x3x4x5x2*4"):
        assert topology_from_spec(spec).spec == spec


def test_like_groups_are_a_hierarchy():
    assert hierarchy(topology_from_spec("dragonfly+:2x3x4x5")) == (2, 3, 5)


TABLE = """
NODE 0001 RACK 1 CELL 1 ROW 1 PARTITION 1  SWITCH 10100
NODE 0002 RACK 1 CELL 1 ROW 1 PARTITION 1  SWITCH 10100
NODE 0003 RACK 1 CELL 1 ROW 1 PARTITION 1  SWITCH 10101
NODE 0004 RACK 2 CELL 2 ROW 1 PARTITION 1  SWITCH 20100
NODE 0005 RACK 2 CELL 2 ROW 1 PARTITION 2  SWITCH 20101
"""


@pytest.fixture
def table(tmp_path):
    def written(text):
        path = tmp_path / "nodes.txt"
        path.write_text(text)
        return topology_from_spec(f"file:{path}")

    return written


def test_a_table_of_nodes_is_a_dragonfly_plus(table, tmp_path):
    topology = table(TABLE)
    assert topology.names == ("0001", "0002", "0003", "0004", "0005")
    assert topology.switches == 4 + 2 * 2  # as many spines as leaves
    assert topology.distance(0, [1, 2, 3, 4]).tolist() == [2, 4, 5, 5]
    assert_minimal_walks(topology)
    assert topology_from_spec(f"file:{tmp_path}/nodes.txt#3*4").switches == 4 + 2 * 3
    assert topology_from_spec(f"file:{tmp_path}/nodes.txt*4").slots.tolist() == [4] * 5


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("NODE 0003", "NODE 0002", "line 4: node 0002 twice: expected once"),
        ("SWITCH 20100", "SWITCH 10100", "line 5: switch 10100 in cell 2 and in 1"),
        ("PARTITION 2  SWITCH 20101", "PARTI", "line 6 is 'NODE 0005 .*: expected pairs of words"),
        ("PARTITION 2  SWITCH 20101", "PARTITION 2", "with NODE, CELL, SWITCH"),
    ],
)
def test_a_table_that_makes_no_sense_is_refused(table, before, after, message):
    with pytest.raises(TopologyError, match=message) as caught:
        table(TABLE.replace(before, after))
    assert "\n" not in str(caught.value)

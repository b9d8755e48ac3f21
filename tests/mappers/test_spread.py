"""Ranks spread as evenly as the nodes have slots, whatever the mapper."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hopmap as hm
from hopmap.mappers import map_ranks
from hopmap.topologies import MappingError, topology_from_spec
from hopmap.traces import Traffic, nas_traffic
from support.commands import as_json


@settings(deadline=None)
@given(st.lists(st.integers(0, 6), min_size=1, max_size=8), st.data())
def test_no_node_has_two_more_than_another_that_has_room(slots, data):
    """Section 2.2: the work spread as evenly as possible; exactly as many slots as ranks."""
    each = [max(slots[0], 1), *slots[1:]]
    network = topology_from_spec(f"mesh:{len(each)}*6")
    network = replace(network, slots=np.array(each))
    ranks = data.draw(st.integers(0, sum(each)))
    spread = network.evenly(ranks).slots
    assert spread.sum() == ranks
    assert (spread <= each).all()
    roomy = spread[spread < each]
    assert not roomy.size or spread.max() <= roomy.min() + 1


def test_ten_ranks_on_four_nodes_are_three_three_two_two():
    assert topology_from_spec("mesh:4*8").evenly(10).slots.tolist() == [3, 3, 2, 2]
    assert topology_from_spec("cluster:1*1+3*8").evenly(10).slots.tolist() == [1, 3, 3, 3]


def test_a_network_with_too_few_slots_stays_as_it_is_and_is_refused():
    network = topology_from_spec("mesh:2*2")
    assert network.evenly(5).slots.tolist() == [2, 2]
    with pytest.raises(MappingError, match="5 ranks do not fit on mesh:2"):
        map_ranks(Traffic.from_pairs(5, [], [], [], []), network.evenly(5), "sweep")


@pytest.mark.parametrize("mapper", ["sweep", "scan", "bokhari", "sweep | kl", "auto(moves=800)"])
def test_spread_ranks_take_every_node(mapper):
    """lu.S.8 on mesh:2x2x2*4 fills two nodes of eight, by all of these, or one rank a node."""
    packed = hm.map_ranks("lu.S.8", "mesh:2x2x2*4", mapper)
    spread = hm.map_ranks("lu.S.8", hm.Machine("mesh:2x2x2*4", balanced=True), mapper)
    assert len(set(packed.node_of.tolist())) == 2
    assert sorted(spread.node_of.tolist()) == list(range(8))
    assert spread.topology.slots.tolist() == [4] * 8


def test_a_start_that_is_not_spread_is_refused():
    with pytest.raises(MappingError, match="initial mapping: ranks 0, 1, 2, 3 on node 0: expected"):
        machine = hm.Machine("mesh:2x2x2*4", balanced=True)
        hm.map_ranks(nas_traffic("lu.S.8"), machine, "local_search", initial=[0] * 4 + [1] * 4)


def test_the_command_and_the_nodes_of_a_job(tmp_path):
    words = ("map", "lu.S.8", "-t", "mesh:2x2x2*4", "-m", "sweep")
    assert as_json(*words)["node_of"] == [0] * 4 + [1] * 4
    assert as_json(*words, "--balanced")["node_of"] == list(range(8))
    job = ("--nodelist", "node[1,4-5]", "--balanced")
    assert as_json(*words, *job)["node_of"] == [1, 1, 1, 4, 4, 4, 5, 5]

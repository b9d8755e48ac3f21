"""MinMD: Algorithm 2 by hand, and near the thesis' figures."""

import numpy as np
import pytest

from hopmap.mappers import map_ranks
from hopmap.mappers.greedy.greedy_kernels import order_by_hash
from hopmap.mappers.greedy.minmd import links_as_visited, pairs_as_popped
from hopmap.topologies import MappingError, topology_from_spec
from hopmap.traces import Traffic, nas_traffic
from support.traffic import published_hops


def test_the_heaviest_pair_sits_at_the_centre_and_partners_next_to_it():
    """mesh:5, centre 2: (0, 1) first, then 2 next to 1, then 3 next to 0, the silent 4 last."""
    traffic = Traffic.from_pairs(5, [0, 1, 3], [1, 2, 0], [1, 1, 1], [30, 20, 10])
    node_of = map_ranks(traffic, topology_from_spec("mesh:5"), "minmd")
    assert node_of.tolist() == [2, 3, 4, 1, 0]


def test_the_limit_of_ranks_a_node_rises_only_when_all_nodes_are_full():
    traffic = Traffic.from_pairs(4, [0, 1, 2], [1, 2, 3], [1, 1, 1], [3, 2, 1])
    node_of = map_ranks(traffic, topology_from_spec("mesh:3*2"), "minmd")
    assert sorted(node_of[:3].tolist()) == [0, 1, 2]
    assert node_of[3] == node_of[2]  # the nearest node with room once the limit is two


@pytest.mark.parametrize(
    ("spec", "published"), [("mesh:4x4x4", 302), ("torus:4x4x4", 229), ("haec:4x4x4", 169)]
)
def test_lu_on_64_nodes(spec, published):
    """Both counted as published; ties decide, and ours are never worse."""
    traffic, topology = nas_traffic("lu.C.64"), topology_from_spec(spec)

    def hops(mapper):
        return published_hops(traffic, topology, map_ranks(traffic, topology, mapper))

    assert 0.8 * published < hops("minmd") <= published
    assert hops("minmd(rule=connected)") < hops("minmd")


def test_connected_ranks_start_in_the_far_corner():
    """mesh:3x3: of the chain 0-1-2 the one with the least traffic goes first, then its partners.

    Rank 2 is as cheap everywhere and goes to node 8; 5 and 7 are next to it and equally far from
    node 0, then 2 and 4 next to 5.
    """
    traffic = Traffic.from_pairs(3, [0, 1], [1, 2], [1, 1], [30, 19])
    node_of = map_ranks(traffic, topology_from_spec("mesh:3x3"), "minmd(rule=connected)")
    assert node_of.tolist() == [2, 5, 8]


@pytest.mark.parametrize(
    ("keys", "listed"),
    [
        ([2, 1, 0], [0, 1, 2]),
        ([1, 17, 8, 10], [8, 1, 10, 17]),  # 17 finds place 1 taken and goes on to (5 + 17 + 1) % 8
        ([0, 16, 9], [0, 16, 9]),  # 16 goes on to 1 and 9, which finds that taken, to 15 % 8
        ([15, 16, 1, 2, 3, 4], [16, 1, 2, 3, 4, 15]),  # the sixth key makes the table one of 16
    ],
)
def test_old_dicts_list_their_keys_by_hash(keys, listed):
    assert np.array(keys)[order_by_hash(np.array(keys))].tolist() == listed


def test_maplib_takes_the_lightest_pair_first_and_of_equals_the_last():
    """A ring of four: (2, 3) of weight 1, then those of weight 2 from the end, (0, 1) at last."""
    traffic = Traffic.from_pairs(4, [0, 1, 2, 3, 1], [1, 2, 3, 0, 1], [9, 2, 1, 2, 5], [0] * 5)
    assert pairs_as_popped(traffic, traffic.messages).tolist() == [[2, 3], [1, 2], [0, 3], [0, 1]]


def test_maplib_goes_down_first_and_through_a_board_with_y_fastest():
    topology = topology_from_spec("haec:2x2x3")
    links = links_as_visited(topology)
    links = links[topology.link_from[links] == 4]
    assert topology.link_to[links].tolist() == [5, 6, 0, 2, 1, 3, 8, 10, 9, 11]


def test_maplibs_search_goes_on_from_the_node_met_last():
    """mesh:7, centre 3: 0 and 1 take 3 and 4. 2, a partner of 0, finds 4 taken but 2 free. Then 3,
    again of 0, meets 4, then 2, goes on from 2 and takes 1, though 5 is as near."""
    traffic = Traffic.from_pairs(5, [0, 0, 0, 0], [1, 2, 3, 4], [1, 2, 3, 4], [1, 1, 1, 1])
    topology = topology_from_spec("mesh:7")
    node_of = map_ranks(traffic, topology, "minmd(order=maplib, weight=messages)")
    assert node_of.tolist() == [3, 4, 2, 1, 0]
    printed = map_ranks(traffic, topology, "minmd(weight=messages)")
    assert printed.tolist() == [3, 1, 5, 2, 4]


def test_bytes_and_messages_weigh_differently():
    traffic = Traffic.from_pairs(3, [0, 1], [1, 2], [1, 9], [90, 10])
    topology = topology_from_spec("mesh:3")
    assert map_ranks(traffic, topology, "minmd").tolist() == [1, 2, 0]
    assert map_ranks(traffic, topology, "minmd(weight=messages)").tolist() == [0, 1, 2]


def test_connecting_ranks_has_no_order_of_maplib():
    with pytest.raises(MappingError, match="order=maplib and rule=connected are mutually excl"):
        map_ranks(
            nas_traffic("lu.S.4"), topology_from_spec("mesh:2x2"),
            "minmd(rule=connected, order=maplib)",
        )  # fmt: skip

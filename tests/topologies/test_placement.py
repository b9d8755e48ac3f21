"""What makes an array a mapping."""

import networkx as nx
import numpy as np
import pytest

from hopmap.topologies import (
    MappingError,
    TopologyError,
    check_fits,
    check_mapping,
    mesh,
    topology_from_spec,
    with_room,
)


def test_a_valid_mapping_comes_back_as_int64():
    mapping = check_mapping(np.array([3, 1, 0], dtype=np.int16), mesh((2, 2)), 3)
    assert mapping.dtype == np.int64
    assert mapping.tolist() == [3, 1, 0]


def test_several_ranks_may_share_a_node_up_to_its_slots():
    assert check_mapping([0, 0, 1, 1], mesh((2,), slots=2)).tolist() == [0, 0, 1, 1]
    with pytest.raises(MappingError, match=r"ranks 0, 1, 2 on node 0: expected 2 at most"):
        check_mapping([0, 0, 0, 1], mesh((2,), slots=2))


@pytest.mark.parametrize(
    ("node_of", "message"),
    [
        ([0, 1], "places 2 ranks: expected 3"),
        ([0, 1, 4], r"rank 2 on node 4: expected a node of mesh:2x2, 0\.\.3"),
        ([0, -1, 2], "rank 1 on node -1"),
        ([0, 1, 1], "ranks 1, 2 on node 1: expected 1"),
        ([0.5, 1, 2], "whole node number"),
        ([[0, 1, 2]], "one whole node number per rank"),
    ],
)
def test_wrong_mappings_are_named(node_of, message):
    with pytest.raises(MappingError, match=message):
        check_mapping(node_of, mesh((2, 2)), 3)


def test_a_job_has_the_nodes_that_it_was_given_and_all_links():
    whole = mesh((2, 2), slots=2)
    given = whole.only([3, 0, 3])
    assert given.slots.tolist() == [2, 0, 0, 2]
    assert (given.links, given.spec) == (whole.links, whole.spec)
    assert check_mapping([0, 3, 3, 0], given).tolist() == [0, 3, 3, 0]
    with pytest.raises(MappingError, match=r"rank 0 on node 1: this node is down or not the job's"):
        check_mapping([1], given)
    with pytest.raises(MappingError, match="5 ranks do not fit on 2 of the 4 nodes of mesh:2x2"):
        check_fits(5, given)


@pytest.mark.parametrize(
    ("nodes", "message"), [([], "expected at least one"), ([0, 4], r"has nodes 0\.\.3 only")]
)
def test_a_job_on_nodes_that_are_not_there_is_refused(nodes, message):
    with pytest.raises(TopologyError, match=message):
        mesh((2, 2)).only(nodes)


def test_too_few_slots_are_said_before_anything_runs():
    with pytest.raises(MappingError, match=r"9 ranks do not fit .* like mesh:2x2\*3"):
        check_fits(9, mesh((2, 2), slots=2))
    check_fits(8, mesh((2, 2), slots=2))


@pytest.mark.parametrize(
    ("spec", "ranks", "imbalance", "wider"),
    [
        ("tree:4:8:4@1:10:100", 2**18, 0.03, "tree:4:8:4@1:10:100*2109"),
        ("torus:4x4*2,ties=parity", 160, 0.1, "torus:4x4*11,ties=parity"),
        ("cluster:3*1+2*2", 70, 0, "cluster:3*10+2*20"),
        ("torus:4x4", 16, 0.03, "torus:4x4"),
        ("nodes:n[0-3]@names:n[0-7]@torus:8", 40, 0, "nodes:n[0-3]@names:n[0-7]@torus:8*10"),
    ],
)
def test_a_network_with_room_says_in_its_spec_what_a_node_takes(spec, ranks, imbalance, wider):
    network = topology_from_spec(spec)
    roomy = with_room(network, ranks, imbalance)
    assert roomy.spec == wider
    assert (topology_from_spec(wider).slots == roomy.slots).all()
    assert (roomy.slots > 0).tolist() == (network.slots > 0).tolist()


def test_a_network_that_cannot_say_its_slots_is_refused(tmp_path):
    file = tmp_path / "net.graphml"
    nx.write_graphml(nx.path_graph(3), file)
    with pytest.raises(MappingError, match="cannot say how many slots a node has: expected a net"):
        with_room(topology_from_spec(f"file:{file}"), 9, 0)

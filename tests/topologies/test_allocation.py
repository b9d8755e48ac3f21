"""Which free nodes a job gets."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopmap.topologies import MappingError, from_networkx, spec_of, topology_from_spec
from hopmap.topologies.allocation import POLICIES, allocate, switch_of

FAT = topology_from_spec("fattree:4x4:1x4")  # 4 nodes a leaf, 4 leaves
FREE = np.ones(16, dtype=np.bool_)


def rng(seed=0):
    return np.random.default_rng(seed)


def test_contiguous_takes_the_first_run_that_is_long_enough():
    free = FREE.copy()
    free[[2, 6]] = False  # runs of 2, 3 and 9
    assert allocate(FAT, free, 3, "contiguous", rng()).tolist() == [3, 4, 5]
    assert allocate(FAT, free, 4, "contiguous", rng()).tolist() == [7, 8, 9, 10]
    with pytest.raises(MappingError, match=r"no free nodes in a row of fattree.* have 10 slots"):
        allocate(FAT, free, 10, "contiguous", rng())


def test_a_node_without_slots_is_not_in_a_row():
    network = topology_from_spec("failed:node=2@mesh:6")
    assert allocate(network, np.ones(6, np.bool_), 3, "contiguous", rng()).tolist() == [3, 4, 5]


def test_a_node_hangs_on_the_switch_of_its_first_link():
    graph = nx.Graph([("a", "s"), ("a", "t"), ("b", "t"), ("b", "s")])
    for name, host in {"a": True, "b": True, "s": False, "t": False}.items():
        graph.nodes[name]["host"] = host
    network = from_networkx(graph)
    first = [network.link_to[network.link_from == node][0] - network.nodes for node in (0, 1)]
    assert switch_of(network).tolist() == first


def test_random_switches_fill_one_after_the_other():
    for seed in range(8):
        nodes = allocate(FAT, FREE, 9, "random-switches", rng(seed))
        taken = np.bincount(switch_of(FAT)[nodes], minlength=4)
        assert sorted(taken.tolist()) == [0, 1, 4, 4]
    seen = {tuple(allocate(FAT, FREE, 4, "random switches", rng(s))) for s in range(40)}
    assert seen == {(0, 1, 2, 3), (4, 5, 6, 7), (8, 9, 10, 11), (12, 13, 14, 15)}


def test_random_nodes_are_any_with_equal_chance():
    often = sum(
        np.bincount(allocate(FAT, FREE, 4, "random nodes", rng(s)), minlength=16)
        for s in range(400)
    )
    assert often.sum() == 1600
    assert 60 < often.min() <= often.max() < 140  # 100 in the mean, deviation 8.7


@given(st.sampled_from(sorted(POLICIES)), st.integers(0, 2**16 - 1), st.integers(1, 32))
def test_ranks_rise_over_free_nodes_and_fill_them(policy, mask, ranks):
    network = topology_from_spec("fattree:4x4:1x4*2")
    free = (mask >> np.arange(16) & 1).astype(np.bool_)
    try:
        nodes = allocate(network, free, ranks, policy, rng())
    except MappingError:
        assert policy == "contiguous" or 2 * free.sum() < ranks
        return
    assert len(nodes) == ranks
    assert free[nodes].all()
    assert (np.diff(nodes) >= 0).all()
    often = np.bincount(nodes)
    assert (often[often > 0][:-1] == 2).all()


@pytest.mark.parametrize(
    ("spec", "policy", "said"),
    [
        ("torus:4x4", "random switches", "nodes of torus:4x4 hang on no switch"),
        ("torus:4x4", "randm nodes", "did you mean random nodes"),
        ("torus:2x2", "random nodes", "9 ranks on 4 free nodes of torus:2x2 with 4 slots"),
    ],
)
def test_what_cannot_be_is_said_in_a_line(spec, policy, said):
    network = topology_from_spec(spec)
    with pytest.raises(MappingError, match=said):
        allocate(network, np.ones(network.nodes, dtype=np.bool_), 9, policy, rng())


def test_a_job_is_said_by_a_spec(tmp_path):
    """Failures are the machine's, then its nodes have names, then a job has some of them."""
    file = tmp_path / "hosts"
    file.write_text("n3 slots=4\nn1\nn3\n")
    assert spec_of("torus:4") == "torus:4"
    assert spec_of("torus:4", nodelist="node[1,3]") == "nodes:node[1,3]@torus:4"
    spec = spec_of("torus:4", names="n[0-3]", hosts=file, failures="link=0-1")
    assert spec == f"job:{file}@names:n[0-3]@failed:link=0-1@torus:4"
    network = topology_from_spec(spec)
    assert network.order.tolist() == [3, 1]
    assert network.slots.tolist() == [0, 1, 0, 5]  # four slots, and a line for one more
    assert network.links == 6
    assert spec_of(network, failures="node=1") == f"failed:node=1@{network.spec}"


def test_names_in_a_file_stand_in_the_spec(tmp_path):
    file = tmp_path / "names"
    file.write_text("n0\nn1\nn2\nlogin\n")
    assert spec_of("torus:4", names=file) == "names:n[0-2],login@torus:4"
    assert spec_of("torus:4", names=str(file)) == "names:n[0-2],login@torus:4"
    assert spec_of("torus:4", hosts=file) == "names:n[0-2],login@torus:4"
    file.write_text("n0\nn1\nn2\nn2\nlogin\n")
    spec = spec_of("torus:4", hosts=file)
    assert spec == f"job:{file}@names:n[0-2],login@torus:4"
    assert topology_from_spec(spec).slots.tolist() == [1, 1, 2, 1]


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({"hosts": "hosts", "nodelist": "a"}, "mutually exclusive"),
        ({"nodelist": "a"}, "nodes:a: host a: expected nodes of torus:2.*; --names says"),
        ({"names": "a,b", "nodelist": "c"}, r"host c: expected nodes of .*torus:2, a to b$"),
    ],
)
def test_nodes_that_make_no_spec_are_refused(named, message):
    with pytest.raises(MappingError, match=message):
        spec_of("torus:2", **named)

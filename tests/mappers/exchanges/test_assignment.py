"""What searches over exchanges start from."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from hopmap.mappers import distances
from hopmap.mappers.distances import router_of, table_of, table_router
from hopmap.mappers.exchanges import assignment
from hopmap.topologies import from_networkx, topology_from_spec
from hopmap.topologies.table_kernels import PartRouter, part_distance


@pytest.mark.parametrize("whole", [0, 1024])
@pytest.mark.parametrize(
    "spec",
    [
        "torus:5x4x3",
        "mesh:7x9",
        "haec:3x2x4",
        "hypercube:5",
        "dragonfly:2x4x2",
        "fattree:4x4",
        "tree:5*3",
        "tree:3:4:5@2:2:9",
        "tree:3:2:2@0:0:7",
    ],
)
def test_tables_have_the_distances_between_nodes_that_a_job_has(spec, whole, monkeypatch):
    """One table of few nodes, two small ones of more."""
    monkeypatch.setattr(distances, "WHOLE", whole)
    network = topology_from_spec(spec)
    there = np.flatnonzero(network.slots)
    job = network.only(np.random.default_rng(0).choice(there, len(there) // 2, False).tolist())
    router = router_of(job)
    assert isinstance(router, PartRouter)
    alike = not spec.startswith(("dragonfly", "tree:5*3"))
    assert (len(router.between) > 1) == (whole == 0 and alike)
    used = np.flatnonzero(job.slots)
    for a in used.tolist():
        found = [part_distance(router, a, b) for b in used.tolist()]
        assert found == job.distance(np.full(len(used), a), used).tolist()


def test_a_graph_has_its_table_already():
    """Nodes first, then switches: four nodes around one, two hops apart."""
    star = nx.star_graph(4)
    nx.set_node_attributes(star, {0: False}, "host")
    topology = from_networkx(star)
    router = router_of(topology)
    count = topology.nodes
    found = [[part_distance(router, a, b) for b in range(count)] for a in range(count)]
    every = np.arange(count)
    assert found == [topology.distance(np.full(count, a), every).tolist() for a in every]


def test_tables_of_many_nodes_are_small():
    topology = topology_from_spec("torus:16x16x32")
    router = router_of(topology)
    assert (len(router.between), len(router.within)) == (32, 256)


@pytest.mark.parametrize("spec", ["tree:4:200000@1:40000", "tree:70:70@1:40000"])
def test_where_tables_will_not_do_the_network_itself_answers(spec):
    topology = topology_from_spec(spec)
    assert router_of(topology) is topology.router


@pytest.mark.parametrize("spec", ["tree:4:16:4", "fattree:4x4x4x4", "tree:40:3:2", "tree:3:5:7:3"])
def test_who_is_near_is_the_same_in_every_group(spec):
    topology = topology_from_spec(spec)
    free = np.arange(topology.nodes)
    span = assignment._group_of_many(topology)
    router = table_router(table_of(topology.router, free))
    whole, grouped = (assignment._near_nodes(router, free, s) for s in (None, span))
    assert span is not None
    assert all(np.array_equal(a, b) for a, b in zip(whole, grouped, strict=True))


@pytest.mark.parametrize(
    ("spec", "near"),
    [
        ("tree:4:8:8@1:10:100", {1: 3}),  # the second shell is too far
        ("tree:4:8:8@1:2:9", {1: 3, 2: 28}),  # it holds the fourth nearest
        ("tree:6:8:8@1:2:9", {1: 5}),  # it does not
        ("dragonfly:2x4x4", {2: 1, 3: 14}),
        ("dragonfly:2x4x4*2", {2: 1, 3: 14}),
        ("dragonfly:2x4x4*4", {2: 1}),  # four slots suffice
        ("dragonfly:8x4x2", {2: 7}),
        ("torus:8x8x8", {1: 6}),
        ("torus:4x4", {1: 4, 2: 6}),  # the second ends within the first twelve
    ],
)
def test_the_next_shell_is_near_too_if_the_first_is_small_and_it_is_not_far(spec, near):
    """Distances, and how many nodes at each are near every node."""
    topology = topology_from_spec(spec)
    free = np.arange(topology.nodes)
    router = table_router(table_of(topology.router, free))
    x, y = assignment._near_nodes(router, free, None, int(topology.slots.max()))
    x, y = x[x != y], y[x != y]
    far = topology.distance(x, y)
    assert set(far.tolist()) == set(near)
    for distance, count in near.items():
        found = np.bincount(x[far == distance], minlength=topology.nodes)
        assert (found == count).all()


def test_nodes_that_are_near_in_several_ways_are_listed_once():
    """By a link and by their numbers, and at the ends of the order by themselves."""
    topology = topology_from_spec("torus:4x4")
    x, y = assignment._linked_nodes(topology, np.arange(1, 16))
    pairs = list(zip(x.tolist(), y.tolist(), strict=True))
    assert pairs == sorted(set(pairs))
    assert {(a, a) for a in range(1, 16)} <= set(pairs)
    assert (1, 13) in pairs  # by the link around
    assert not any(0 in pair for pair in pairs)

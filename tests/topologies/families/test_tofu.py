"""TofuD and jobs folded into it: distances by hand, neighbours, and what was measured on Fugaku."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopmap.topologies import Topology, TopologyError, topology_from_spec
from support.slow import examples

GROUP = 12


def node_at(x=0, y=0, z=0, a=0, b=0, c=0, *, groups):
    sizes = (*groups, 2, 3, 2)
    return int(np.ravel_multi_index((x, y, z, a, b, c), sizes, order="F"))


def assert_walk(topology: Topology, source: int, target: int) -> None:
    """The route is contiguous, leads from source to target, and is as long as the distance."""
    _, links = topology.routes(source, target)
    here = source
    for link in links:
        assert topology.link_from[link] == here
        here = topology.link_to[link]
    assert here == target
    assert len(links) == topology.distance(source, target)[0]


@pytest.mark.parametrize(
    ("place", "hops"),
    [
        ({"x": 1}, 1),
        ({"x": 4}, 1),  # X is a ring of five
        ({"y": 2}, 2),
        ({"z": 3}, 1),  # and Z one of four
        ({"a": 1}, 1),
        ({"b": 2}, 1),  # B is a ring of three
        ({"c": 1}, 1),
        ({"x": 2, "y": 2, "z": 2, "a": 1, "b": 1, "c": 1}, 9),
    ],
)
def test_distances_by_hand(place, hops):
    groups = (5, 5, 4)
    machine = topology_from_spec("tofud:5x5x4")
    assert machine.distance(0, node_at(**place, groups=groups)) == hops
    assert_walk(machine, 0, node_at(**place, groups=groups))


def test_ten_ports_a_node():
    machine = topology_from_spec("tofud:3x4x5")
    assert machine.nodes == GROUP * 60
    assert (np.bincount(machine.link_from) == 10).all()
    assert (np.bincount(machine.link_to) == 10).all()


def test_routes_go_through_groups_first_and_turn_inside_the_last():
    groups = (4, 4, 4)
    machine = topology_from_spec("tofud:4x4x4")
    _, links = machine.routes(0, node_at(1, 1, 1, 1, 1, 1, groups=groups))
    moved = machine.coords[machine.link_from[links]] != machine.coords[machine.link_to[links]]
    assert moved.argmax(axis=1).tolist() == [0, 1, 2, 3, 4, 5]


def test_the_longest_way_through_fugaku():
    machine = topology_from_spec("tofud:24x23x24")
    assert machine.diameter() == 12 + 11 + 12 + 1 + 1 + 1
    assert machine.nodes == 158976


def test_fugaku_takes_the_memory_of_its_links():
    topology_from_spec("tofud:2x2x2")
    tracemalloc.start()
    topology_from_spec("tofud:24x23x24,ties=parity")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**27  # 1.6 million links; a table of routes would have 2.5e10 rows


def neighbours(shape):
    """Pairs of nodes beside each other in a job's torus, x fastest."""
    nodes = np.arange(np.prod(shape)).reshape(shape[::-1])
    for axis, size in enumerate(nodes.shape):
        if size > 1:
            yield nodes.ravel(), np.roll(nodes, -1, axis=axis).ravel()


even = st.integers(1, 8).map(lambda half: 2 * half)


@examples(30)
@given(st.one_of(st.tuples(even, st.integers(1, 20), even), st.tuples(even, even), st.tuples(even)))
def test_neighbours_of_a_job_are_neighbours_in_tofud(shape):
    job = topology_from_spec(f"tofud:job={'x'.join(map(str, shape))}")
    assert (job.slots > 0).sum() == np.prod(shape)
    for ours, theirs in neighbours(shape):
        assert (job.distance(ours, theirs) == 1).all()


@examples(30)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_routes_of_a_job_are_walks(shape, random):
    job = topology_from_spec(f"tofud:job={'x'.join(map(str, shape))}")
    ranks = int(np.prod(shape))
    assert job.slots.tolist() == [1] * ranks + [0] * (job.nodes - ranks)
    assert len(np.unique(job.router.coords, axis=0)) == job.nodes
    for _ in range(5):
        assert_walk(job, random.randrange(ranks), random.randrange(ranks))


@pytest.mark.parametrize(
    ("shape", "groups"),
    [("2x2x2", 1), ("4x4x4", 8), ("8x8x8", 4 * 3 * 4), ("64x64", 16 * 22), ("32x256", 22 * 11 * 3)],
)
def test_groups_of_a_job(shape, groups):
    assert topology_from_spec(f"tofud:job={shape}").nodes == GROUP * groups


def test_a_dimension_too_long_for_y_and_b_goes_elsewhere():
    turned = topology_from_spec("tofud:job=32x256")
    assert turned.router.dims.tolist() == [22, 11, 3, 2, 3, 2]
    assert topology_from_spec("tofud:job=256x32").router.dims.tolist() == [22, 11, 3, 2, 3, 2]


def test_an_order_numbers_its_first_axis_first():
    plain = topology_from_spec("tofud:job=4x6x2")
    turned = topology_from_spec("tofud:job=4x6x2,order=YZX")
    nodes = np.arange(48).reshape(2, 6, 4)  # z, y, x
    same = nodes.transpose(2, 0, 1).ravel()  # x, z, y
    assert turned.router.coords[:48].tolist() == plain.router.coords[same].tolist()


def mean_busiest(topology, ranks, shifts):
    """Messages over the busiest link in a round of a pairwise alltoall, in the mean."""
    rank, one = np.arange(ranks), np.ones(ranks, dtype=np.int64)
    return np.mean([topology.loads(rank, (rank + k) % ranks, one).max() for k in shifts])


def test_pairwise_alltoall_of_4x4x4_loads_links_as_was_measured_on_fugaku():
    # 2.701 at 512 MiB and 2.744 at 64 MiB, in times of the buffer at 6.34 GB/s, where 2x2x2, which
    # has no contention, takes 1.03 and 0.91 of its 0.875.
    folded = topology_from_spec("tofud:job=4x4x4,order=YZX")
    flat = topology_from_spec("torus:4x4x4")
    assert mean_busiest(folded, 64, range(1, 64)) * 63 / 64 == pytest.approx(2.70, rel=0.04)
    assert mean_busiest(flat, 64, range(1, 64)) * 63 / 64 == 1.75


def test_recursive_doubling_on_64x64_loads_links_as_was_measured_on_fugaku():
    # allgather: 4.154 at 64 MiB; round k moves 2^k blocks of 4096.
    folded = topology_from_spec("tofud:job=64x64,order=YX")
    rank, one = np.arange(4096), np.ones(4096, dtype=np.int64)
    rounds = [folded.loads(rank, rank ^ 2**k, one).max() * 2**k / 4096 for k in range(12)]
    assert sum(rounds) == pytest.approx(4.15, rel=0.05)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("tofud:4x4", "expected groups along X, Y and Z"),
        ("tofud:job=2x2x2x2", "expected one to three sizes"),
        ("tofud:job=0x2", "expected one to three sizes of at least 1"),
        ("tofud:job=4x4,order=XYZ", "the axes of the job"),
        ("tofud:4x4x4,order=XYZ", "order requires job"),
        ("tofud:job=4x4,ties=parity", "ties=parity and job are mutually exclusive"),
        ("tofud:job=", "like tofud:24x23x24 or tofud:job=4x4x4"),
        ("tofud:1000000x1000000x1", "expected at most"),
        ("tofud:job=999999999x999999999", "expected at most"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(spec, message):
    with pytest.raises(TopologyError, match=message) as caught:
        topology_from_spec(spec)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "spec", ["tofud:2x3x4*4,ties=parity", "tofud:job=4x6x2*2,order=YZX", "tofud:job=8x8"]
)
def test_a_spec_names_the_same_topology_again(spec):
    topology = topology_from_spec(spec)
    assert topology.spec == spec
    assert topology_from_spec(topology.spec).link_to.tolist() == topology.link_to.tolist()

"""What messages cost their ranks, by their modes."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopmap.simulator import DeadlockError, Parameters, lower_bounds, program_of, simulate
from hopmap.simulator.explain.bounds import overheads
from hopmap.simulator.programs.from_traffic import program_of_traffic
from hopmap.simulator.programs.mpi_calls import SendMode
from hopmap.topologies import haec, mesh, topology_from_spec
from hopmap.traces import Traffic
from support.random_loops import any_runs
from support.slow import examples

GIVEN = Parameters(
    overhead_send=2e-6, overhead_recv=3e-6, overhead_per_byte=1e-9, copy_per_byte=1e-10,
    overhead_put_latency=1e-6, eager_limit=1000,
)  # fmt: skip


def test_every_mode_pays_what_the_engines_count():
    small, large = 100, 1000
    program = program_of(
        "modes",
        [
            [("send", 1, small), ("bsend", 1, small), ("send", 1, small), ("send", 1, small),
             ("isend", 1, large), ("wait", 4)],
            [("recv", 0, small), ("recv", 0, small), ("recv", 0, small), ("recv", 0, small),
             ("irecv", 0, large), ("wait", 4)],
        ],
    )  # fmt: skip
    mode = program.mode.copy()
    mode[[2, 9]], mode[[3, 10]] = SendMode.PUT, SendMode.HARDWARE
    sending, receiving = overheads(replace(program, mode=mode), GIVEN)
    np.testing.assert_allclose(sending[:7], [2.1e-6, 2.11e-6, 2.1e-6, 0, 2e-6, 0, 0])
    np.testing.assert_allclose(receiving[7:], [3.1e-6, 3.1e-6, 2.1e-6, 0, 0, 3e-6, 0])
    assert not sending[7:].any()
    assert not receiving[:7].any()


FREE = Parameters(
    overhead_send=0.0,
    overhead_recv=0.0,
    eager_limit=2**60,
    **{f"{end}_latency": 0.0 for end in ("injection", "ejection", "memory")},
    **{f"{end}_bandwidth": 1e300 for end in ("injection", "ejection", "memory")},
)


@pytest.mark.parametrize("engine", ["simpy", "compiled", "flow"])
@examples(100)
@given(run=any_runs())
def test_no_replay_is_faster_than_any_bound(engine, run):
    program, topology, node_of, parameters = run
    if engine == "flow":
        parameters = replace(parameters, nic="fifo", nic_rails=1)
    bounds = lower_bounds(program, topology, node_of, parameters=parameters)
    try:
        result = simulate(program, topology, node_of, parameters=parameters, engine=engine)
    except DeadlockError:
        return
    for bound in bounds.values():
        assert 0 < bound.seconds <= result.makespan * (1 + 1e-12)
    assert list(bounds.values()) == sorted(bounds.values(), key=lambda b: -b.seconds)


@examples(100)
@given(run=any_runs())
def test_without_gaps_no_replay_is_faster_than_without_contention(run):
    program, topology, node_of, parameters = run
    packets = replace(parameters, gap=0.0, gap_per_byte=0.0, copy_per_byte=0.0)
    alone = replace(packets, progress="asynchronous", nic="fifo", nic_rails=1)
    try:
        alone, packets = (
            simulate(program, topology, node_of, parameters=given, engine=engine)
            for given, engine in ((alone, "analytic"), (packets, "compiled"))
        )
    except DeadlockError:
        return
    assert (alone.finish <= packets.finish * (1 + 1e-12)).all()


@examples(50)
@given(
    st.sampled_from(["mesh:3x3", "torus:4x2*2", "haec:2x2x2", "fattree:2x3:1x2"]),
    st.lists(st.tuples(*(st.integers(0, 7),) * 2, st.integers(1, 10**6)), min_size=1),
    st.integers(1, 3),
)
def test_where_everything_is_received_the_link_bound_is_the_static_load(spec, pairs, rounds):
    topology = topology_from_spec(spec)
    ranks = min(8, int(topology.slots.sum()))
    node_of = np.repeat(np.arange(topology.nodes), topology.slots)[:ranks]
    source, target, size = (np.array(column) for column in zip(*pairs, strict=True))
    traffic = Traffic.from_pairs(ranks, source % ranks, target % ranks, np.ones(len(size)), size)
    bounds = lower_bounds(program_of_traffic(traffic, rounds=rounds), topology, node_of)
    bandwidth = np.array([kind.bandwidth for kind in topology.kinds])[topology.link_kind]
    load = topology.loads(node_of[traffic.src], node_of[traffic.dst], traffic.bytes) / bandwidth
    assert load.max() == (bounds["link"].seconds if "link" in bounds else 0.0)


@pytest.mark.parametrize("engine", ["simpy", "compiled", "analytic", "flow"])
def test_a_rank_alone_takes_its_bound(engine):
    program = program_of("alone", [[("compute", 0.25)], [("compute", 0.125)]])
    assert lower_bounds(program, mesh((2,)), [0, 1]) == {"rank": (0.25, "rank 0")}
    assert simulate(program, mesh((2,)), [0, 1], engine=engine).makespan == 0.25


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
@pytest.mark.parametrize("loop", [False, True])
def test_messages_over_one_link_take_bytes_over_bandwidth(engine, loop):
    sends, takes = [("send", 1, 65536)], [("recv", 0, 65536)]
    tasks = [[("repeat", 8, ops)] if loop else ops * 8 for ops in (sends, takes)]
    program = program_of("stream", tasks)
    topology = mesh((2,)).with_links(bandwidth=2.0**30, latency=0.0)
    bounds = lower_bounds(program, topology, [0, 1], parameters=FREE)
    assert bounds["link"] == (8 * 65536 / 2**30, "0 -> 1")
    result = simulate(program, topology, [0, 1], parameters=FREE, engine=engine)
    assert result.makespan == bounds["link"].seconds


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
@pytest.mark.parametrize(
    ("end", "place", "source", "targets"),
    [("injection", "node 0", 0, (1, 2)), ("ejection", "node 2", 2, (0, 1))],
)
def test_a_slow_end_of_a_node_is_its_bound(engine, end, place, source, targets):
    one, *rest = source, *targets
    ways = [(one, other) if end == "injection" else (other, one) for other in rest]
    program = program_of(
        "ends",
        [
            [("send", target, 2**20) for a, target in ways if a == rank]
            + [("recv", a, 2**20) for a, target in ways if target == rank]
            for rank in range(3)
        ],
    )
    parameters = replace(FREE, packet_size=2**20, **{f"{end}_bandwidth": 2.0**30})
    topology = mesh((3,)).with_links(bandwidth=1e300, latency=0.0)
    bounds = lower_bounds(program, topology, [0, 1, 2], parameters=parameters)
    assert bounds[end] == (2 * 2**20 / 2**30, place)
    result = simulate(program, topology, [0, 1, 2], parameters=parameters, engine=engine)
    assert result.makespan == bounds[end].seconds


@pytest.mark.parametrize("engine", ["simpy", "compiled", "analytic"])
def test_a_slow_end_point_of_a_rank_is_its_bound(engine):
    program = program_of("gaps", [[("send", 1, 1025)] * 3, [("recv", 0, 1025)] * 3])
    parameters = replace(FREE, gap=2.0**-10, gap_per_byte=2.0**-20)
    topology = mesh((2,)).with_links(bandwidth=1e300, latency=0.0)
    bounds = lower_bounds(program, topology, [0, 1], parameters=parameters)
    assert bounds["end point"] == (3 * 1024 * 2.0**-20 + 2 * 2.0**-10, "rank 0")
    result = simulate(program, topology, [0, 1], parameters=parameters, engine=engine)
    assert result.makespan == bounds["end point"].seconds


def test_what_nobody_waits_for_is_in_no_bound_of_a_server():
    size = 10**6
    unheard = program_of("unheard", [[("send", 1, size), ("isend", 1, size)], [("irecv", 0, size)]])
    parameters = replace(FREE, memory_bandwidth=1e9)
    for node_of in ([0, 1], [0, 0]):
        topology = mesh((2,), slots=2)
        assert lower_bounds(unheard, topology, node_of, parameters=parameters) == {}
        assert simulate(unheard, topology, node_of, parameters=parameters).makespan == 0
    # Of an IRECV in a loop only the last is waited for behind it.
    loop = [("repeat", 3, [("irecv", 0, size)])]
    program = program_of("loop", [[("repeat", 3, [("send", 1, size)])], loop])
    assert "link" not in lower_bounds(program, mesh((2,)), [0, 1], parameters=FREE)


def test_end_points_with_gaps_can_be_faster_with_contention_than_without():
    # Without contention the grant of rank 0's large message comes early, and the small one, which
    # rank 2 waits for, passes the end point behind it; behind all that rank 3 sends to rank 0, the
    # grant comes late, and the small one goes first.
    parameters = replace(FREE, eager_limit=2000, gap_per_byte=1e-6, control_bytes=1)
    topology = mesh((2,), slots=2).with_links(bandwidth=1e6, latency=0.0)
    tasks = [
        [("isend", 1, 5000), ("compute", 5e-6), ("send", 2, 10)],
        [("irecv", 0, 5000)],
        [("recv", 0, 10)],
        [("isend", 0, 1)] * 20,
    ]
    program = program_of("anomaly", tasks)
    alone, packets = (
        simulate(program, topology, [0, 1, 0, 1], parameters=parameters, engine=engine).makespan
        for engine in ("analytic", "compiled")
    )
    assert packets < alone / 10


def test_kinds_of_links_have_bandwidths_of_their_own():
    topology = haec((2, 2, 2)).with_links("wireless", bandwidth=1e9)
    topology = topology.with_links("optical", bandwidth=1e10)
    up = int(np.flatnonzero(topology.link_kind == 1)[0])
    ends = int(topology.link_from[up]), int(topology.link_to[up])
    program = program_of("up", [[("send", 1, 1000)], [("recv", 0, 1000)]])
    slow = 1e9 if topology.kinds[1].name == "wireless" else 1e10
    bounds = lower_bounds(program, topology, list(ends), parameters=FREE)
    assert bounds["link"] == (1000 / slow, f"{ends[0]} -> {ends[1]}")

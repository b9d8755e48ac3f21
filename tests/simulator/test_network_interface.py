"""Network interfaces whose queues take turns: ranks and peers in turn, control messages first.

Links here take no time, so that one place behind each is room enough, and turns are the same.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopmap.simulator import DeadlockError, ParameterError, Parameters, Record, program_of, simulate
from hopmap.topologies import mesh, torus
from support import free_ends
from support.random_runs import programs
from support.results import bits
from support.slow import examples

PACKET, BANDWIDTH = 1000, 1e9
TICK = PACKET / BANDWIDTH  # seconds of a packet
GIGABYTE = 2**30
PAIR = mesh((2,), slots=4)
FREE = Parameters(
    **free_ends.FREE | {"injection_bandwidth": BANDWIDTH}, nic="round_robin", packet_size=PACKET
)
engines = pytest.mark.parametrize("engine", ["simpy", "compiled"])
rooms = pytest.mark.parametrize("room", [0, 1])


def replayed(lists, node_of, engine="compiled", **parameters):
    topology = mesh((3,), slots=16).with_links(bandwidth=1e300, latency=0.0)
    fixed = replace(FREE, **parameters)
    program = program_of("turns", lists)
    return simulate(
        program, topology, node_of, parameters=fixed, engine=engine, record=Record(messages=True)
    )


def delivered(*given, **more):
    return replayed(*given, **more).message_times.delivered


def from_one_node(senders, size):
    """Everyone of the first node sends to one of the second."""
    sends = [[("send", senders + rank, size)] for rank in range(senders)]
    receives = [[("recv", rank, size)] for rank in range(senders)]
    return sends + receives, [0] * senders + [1] * senders


@engines
@rooms
def test_equal_ranks_of_a_node_finish_within_a_packet_of_each_other(engine, room):
    for senders in (2, 5, 16):
        times = delivered(*from_one_node(senders, 20 * PACKET), engine, network_buffer=room)
        assert times == pytest.approx((np.arange(senders) + 1 + 19 * senders) * TICK, rel=1e-9)
        one_by_one = delivered(*from_one_node(senders, 20 * PACKET), engine, nic="fifo")
        assert one_by_one == pytest.approx((np.arange(senders) + 1) * 20 * TICK, rel=1e-9)


@rooms
@pytest.mark.parametrize("peers", [[2, 3], [2, 2]])
def test_few_bytes_behind_a_gigabyte_leave_after_a_packet_unless_to_the_same_peer(peers, room):
    large = {"packet_size": 2**20, "network_buffer": room}
    lists = [[("isend", peers[0], GIGABYTE), ("isend", peers[1], 8)], [], [], []]
    lists[peers[0]].append(("recv", 0, GIGABYTE))
    lists[peers[1]].append(("recv", 0, 8))
    few = delivered(lists, [0, 0, 1, 2], **large)[1]
    if peers[0] == peers[1]:
        assert few == pytest.approx((GIGABYTE + 8) / BANDWIDTH, rel=1e-9)
    else:
        assert few == pytest.approx((2**20 + 8) / BANDWIDTH, rel=1e-9)
    # Those of another rank to the same peer need not wait either.
    lists = [[("send", 2, GIGABYTE)], [("send", 2, 8)], [("recv", 0, 0), ("recv", 1, 0)]]
    few = delivered(lists, [0, 0, 1], **large)[1]
    assert few == pytest.approx((2**20 + 8) / BANDWIDTH, rel=1e-9)


@engines
@rooms
def test_a_rank_with_many_peers_has_no_more_turns_than_one_with_a_single_peer(engine, room):
    size = 8 * PACKET
    lists = [[("isend", peer, size) for peer in (2, 3, 4)], [("send", 5, size)]]
    lists += [[("recv", rank, size)] for rank in (0, 0, 0, 1)]
    times = delivered(lists, [0, 0, 1, 1, 1, 1], engine, network_buffer=room)
    # Rank 0, which came first, has two packets served, then both alternate until rank 1 is done.
    assert times[3] == pytest.approx(17 * TICK, rel=1e-9)
    assert times[:3] == pytest.approx(np.array([30, 31, 32]) * TICK, rel=1e-9)


@engines
@rooms
def test_control_messages_pass_by_bulk_data(engine, room):
    # Rank 0's data take a second; rank 1 asks in the middle of one of their packets.
    lists = [
        [("rsend", 2, 10**9)],
        [("compute", 0.5005), ("send", 3, 10**6)],
        [("recv", 0, 10**9)],
        [("recv", 1, 10**6)],
    ]
    bulk = {"packet_size": 10**6, "eager_limit": 0, "control_bytes": 64, "network_buffer": room}
    turns, fifo = (
        replayed(lists, [0, 0, 1, 1], engine, nic=nic, **bulk).message_times.requested[1]
        for nic in ("round_robin", "fifo")
    )
    assert turns == pytest.approx(0.501, rel=1e-6)
    assert fifo == pytest.approx(1.0, rel=1e-6)


@engines
@rooms
def test_what_is_sent_first_begins_before_a_control_message_of_the_same_instant(engine, room):
    lists = [
        [("isend", 1, PACKET), ("isend", 1, 2 * PACKET), ("wait", 0), ("wait", 1)],
        [("irecv", 0, PACKET), ("irecv", 0, 2 * PACKET), ("wait", 0), ("wait", 1)],
    ]
    asking = {"eager_limit": 2 * PACKET, "control_bytes": PACKET, "network_buffer": room}
    found = replayed(lists, [0, 1], engine, **asking)
    assert found.message_times.delivered[0] == pytest.approx(TICK, rel=1e-9)


@engines
def test_a_message_alone_takes_what_it_takes_first_come_first_served(engine):
    program = program_of("alone", [[("send", 1, 12_345)], [("recv", 0, 12_345)]])
    cases = product((1, 2, 3), ("cut_through", "store_and_forward"), (0, 2**60))
    for rails, switching, eager_limit in cases:
        parameters = Parameters(
            packet_size=PACKET,
            switching=switching,
            eager_limit=eager_limit,
            control_bytes=64,
            injection_bandwidth=BANDWIDTH,
        )
        said = []
        for more in ({}, {"nic": "round_robin", "nic_rails": rails}):
            result = simulate(
                program, torus((5,)), [0, 2], parameters=replace(parameters, **more), engine=engine
            )
            columns = [result.finish, result.link_busy, result.link_waited, *result.injection]
            said.append([column.tobytes() for column in columns])
        assert said[0] == said[1], (rails, switching, eager_limit)


@engines
@pytest.mark.parametrize(("rails", "rounds"), [(1, 6), (2, 3), (3, 2), (6, 1), (7, 1)])
def test_every_rail_serves_a_packet_at_the_injection_bandwidth(engine, rails, rounds):
    result = replayed(*from_one_node(6, 10 * PACKET), engine, nic_rails=rails)
    assert result.makespan == pytest.approx(10 * rounds * TICK, rel=1e-9)
    assert result.injection.busy[0] == pytest.approx(60 * TICK, rel=1e-9)


@engines
def test_turns_change_no_bytes_and_messages_of_servers_and_no_order_of_a_pair(engine):
    rng = np.random.default_rng(3)
    lists = [[("irecv", p, 0) for p in range(6) for _ in range(5)] for _ in range(6)]
    for operations in lists:
        sizes = rng.integers(0, 9000, (6, 5)).tolist()
        operations += [("isend", p, size) for p in range(6) for size in sizes[p]]
        operations += [("wait", k) for k in range(len(operations))]
    node_of = [0, 0, 0, 1, 1, 2]
    fifo, *turns = (
        replayed(lists, node_of, engine, **more)
        for more in ({"nic": "fifo"}, {}, {"nic_rails": 2}, {"network_buffer": 1})
    )
    for result in turns:
        assert np.array_equal(result.link_bytes, fifo.link_bytes)
        assert np.array_equal(result.injection.bytes, fifo.injection.bytes)
        assert np.array_equal(result.injection.messages, fifo.injection.messages)
        assert result.events == fifo.events
        times = result.message_times
        for pair in range(36):
            mine = times.source * 6 + times.target == pair
            assert (np.diff(times.delivered[mine]) >= 0).all()


@engines
@pytest.mark.parametrize(("cargo", "leaves"), [("data", 7), ("request", 5)])
def test_whose_turn_it_is_is_settled_when_there_is_room_not_when_it_is_asked_for(
    engine, cargo, leaves
):
    """A slow link behind one place: packets of two ranks begin to cross it in turn, at every tick.

    A third comes between the fifth and the sixth: it is last of three, its request is next.
    """
    slow = mesh((2,), slots=6).with_links(bandwidth=BANDWIDTH, latency=0.0)
    few = "send" if cargo == "data" else "ssend"
    lists = [[("rsend", rank + 3, 9 * PACKET)] for rank in range(2)]
    lists += [[("compute", 4.5 * TICK), (few, 5, 10)], *([("recv", rank, 0)] for rank in range(3))]
    small = {"eager_limit": 2**60 if cargo == "data" else 0, "control_bytes": 10}
    times = simulate(
        program_of("room", lists),
        slow,
        [0, 0, 0, 1, 1, 1],
        parameters=replace(FREE, injection_bandwidth=1e300, network_buffer=1, **small),
        engine=engine,
        record=Record(messages=True),
    ).message_times
    came = times.delivered[2] if cargo == "data" else times.requested[2]
    assert came == pytest.approx((leaves + 0.01) * TICK, rel=1e-9)


@examples(60)
@given(programs(8), st.permutations([0, 1] * 4), st.booleans(), st.integers(0, 99))
def test_with_all_the_room_in_the_world_turns_are_as_without_limits(
    program, node_of, through, seed
):
    """Where every link has one buffer before it, and noise keeps apart what happens.

    A turn is settled before whatever else happens at its instant (SERVED) or behind it (PASSED). So
    nobody sends on at the instant at which a packet of its own has left: everyone pauses before
    every operation. Nor do answers leave at the pace at which requests come: packets are received
    at another one than they are sent at, in the golden ratio.
    """
    pausing = replace(program, compute=program.compute + 1e-7)
    parameters = Parameters(
        nic="round_robin",
        packet_size=700,
        eager_limit=2000,
        control_bytes=64,
        ejection_bandwidth=Parameters().injection_bandwidth * 2 / (1 + np.sqrt(5)),
        switching="cut_through" if through else "store_and_forward",
        noise_compute=0.3,
        noise_overhead=0.3,
        noise_start=1e-6,
        noise_seed=seed,
    )
    said = [
        outcome(pausing, node_of, replace(parameters, network_buffer=room)) for room in (0, 10**9)
    ]
    assert said[0] == said[1]


def outcome(program, node_of, parameters):
    """All that a run on two nodes says, or that it gets stuck."""
    try:
        return bits(simulate(program, PAIR, node_of, parameters=parameters, engine="simpy"))
    except DeadlockError as error:
        return str(error)


def test_ranks_of_one_node_use_its_memory_in_the_order_of_their_messages():
    lists, _ = from_one_node(3, 10 * PACKET)
    times = [delivered(lists, [1] * 6, nic=nic).tolist() for nic in ("fifo", "round_robin")]
    assert times[0] == times[1]


def test_rails_need_turns_and_turns_need_packets():
    with pytest.raises(ParameterError, match=r"nic\.rails 2: expected 1 with"):
        Parameters(nic_rails=2)
    for engine in ("flow", "analytic"):
        with pytest.raises(ParameterError, match=f"engine {engine} has no packets .*expected fifo"):
            replayed(*from_one_node(2, 1), engine)

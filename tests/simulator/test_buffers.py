"""Finite buffers, credits and virtual channels: closed forms, and what must hold of any run."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopmap.simulator import (
    DeadlockError,
    ParameterError,
    Parameters,
    Record,
    program_of,
    run_plan,
    simulate,
)
from hopmap.simulator.packets.compiled_engine import watch
from hopmap.simulator.routes import Channels
from hopmap.simulator.run_plan import plan_run
from hopmap.topologies import mesh, topology_from_spec, torus
from support.free_ends import as_fast_as
from support.random_runs import random_runs
from support.slow import examples

PACKET, BANDWIDTH, LATENCY = 1000, 1e9, 0.25e-6
TICK = PACKET / BANDWIDTH  # seconds of a packet
FREE = Parameters(**as_fast_as(BANDWIDTH), network_buffer=1, packet_size=PACKET)
ENGINES = ["simpy", "compiled"]
engines = pytest.mark.parametrize("engine", ENGINES)


def replayed(lists, topology, node_of, engine="simpy", **parameters):
    return simulate(
        program_of("buffers", lists),
        topology.with_links(bandwidth=BANDWIDTH, latency=LATENCY),
        node_of,
        parameters=replace(FREE, **parameters),
        engine=engine,
        record=Record(messages=True),
    )


def one_message(packets, hops, engine, **parameters):
    lists = [[("send", 1, packets * PACKET)], [("recv", 0, packets * PACKET)]]
    line = mesh((hops + 1,))
    return replayed(lists, line, [0, hops], engine, **parameters).message_times.delivered[0]


@engines
@pytest.mark.parametrize("buffer", [1, 2, 3, 100])
@pytest.mark.parametrize("delay", [0.0, 0.7e-6])
def test_a_place_is_taken_again_after_a_packet_and_two_latencies(engine, buffer, delay):
    """Cut-through: a place behind a link is taken when a packet enters the link, and known to be
    free when the tail has left it, a latency later, and its credit has come back."""
    packets, hops = 9, 3
    found = one_message(packets, hops, engine, network_buffer=buffer, network_credit_delay=delay)
    first = hops * LATENCY + TICK
    around = TICK + 2 * LATENCY + delay  # of the links between nodes, the slowest credits
    free = 0.0
    starts = []
    for packet in range(packets):
        free = max(free, starts[packet - buffer] + around) if packet >= buffer else free
        starts.append(free)
        free += TICK
    assert found == pytest.approx(first + starts[-1], rel=1e-12)


@engines
@pytest.mark.parametrize("switching", ["cut_through", "store_and_forward"])
def test_with_credits_of_flits_a_place_is_taken_again_a_flit_and_two_latencies_after_it_is_left(
    engine, switching
):
    """Wormhole: the next packet follows flit by flit, once the link is idle."""
    for buffer, flit in product([1, 2], [1, 100, PACKET - 1, PACKET, 2 * PACKET]):
        follow_flit_by_flit(engine, switching, buffer, flit)


def follow_flit_by_flit(engine, switching, buffer, flit):
    packets, hops = 9, 3
    found = one_message(
        packets, hops, engine, network_buffer=buffer, network_flit=flit, switching=switching
    )
    stored = switching == "store_and_forward"
    around = min(flit / BANDWIDTH, TICK) + 2 * LATENCY + stored * TICK
    free, starts = 0.0, []
    for packet in range(packets):
        free = max(free, starts[packet - buffer] + around) if packet >= buffer else free
        starts.append(free)
        free += TICK
    first = hops * LATENCY + TICK + stored * (hops + 1) * TICK
    assert found == pytest.approx(first + starts[-1], rel=1e-12)


@engines
@pytest.mark.parametrize("slow", [2, 5])
def test_a_packet_that_leaves_slowly_is_not_run_into_by_the_next_one(engine, slow):
    """To the node at full rate, into it at a part: the next packet's head comes when its tail, so
    many flits later, no longer finds anything of this one."""
    packets, flit, delay = 6, 10, 1.5 * TICK
    slowly = {"ejection_bandwidth": BANDWIDTH / slow, "network_credit_delay": delay}
    found = one_message(packets, 1, engine, network_flit=flit, **slowly)
    follows = slow * TICK - (PACKET - flit) / BANDWIDTH + 2 * LATENCY + delay
    assert follows > slow * TICK
    assert found == pytest.approx(LATENCY + (packets - 1) * follows + slow * TICK, rel=1e-12)


@engines
@pytest.mark.parametrize("spec", ["torus:5", "dragonfly:1x2x1"])
def test_packets_enter_the_network_by_any_channel_whatever_class_they_go_on_in(engine, spec):
    """Two channels of one place each: one for either class between switches, both from a node.

    Long after the message everyone sends to everyone, so that there are packets of both classes.
    """
    packets, far = 8, 5 * TICK
    network, slow = topology_from_spec(spec).with_links(latency=0.0), {"injection_latency": far}
    if spec.startswith("dragonfly"):
        network, slow = network.with_links("node", latency=far), {}
    ranks = range(network.nodes)
    lists = [
        [("compute", 999 * TICK)]
        + [("isend", other, PACKET) for other in ranks if other != rank]
        + [("recv", other, PACKET) for other in ranks if other != rank]
        for rank in ranks
    ]
    lists[0] = [("send", 1, packets * PACKET), *lists[0]]
    lists[1] = [("recv", 0, packets * PACKET), *lists[1]]
    found = simulate(
        program_of("enter", lists),
        network.with_links(bandwidth=BANDWIDTH),
        list(ranks),
        parameters=replace(FREE, network_virtual_channels=2, **slow),
        engine=engine,
        record=Record(messages=True),
    ).message_times.delivered[0]
    last = (packets // 2 - 1) * (TICK + 2 * far) + TICK  # two packets every credit's way around
    ends = 1 if spec.startswith("torus") else 2
    assert found == pytest.approx(last + ends * far + TICK, rel=1e-12)


@engines
@pytest.mark.parametrize("switching", ["cut_through", "store_and_forward"])
def test_the_virtual_channels_of_a_class_are_as_good_as_one_with_all_their_places(
    engine, switching
):
    for places in (2, 3):
        apart = {"network_buffer": 1, "network_virtual_channels": places}
        found = one_message(9, 3, engine, switching=switching, **apart)
        assert found == one_message(9, 3, engine, switching=switching, network_buffer=places)
    assert found < one_message(9, 3, engine, switching=switching)


@engines
@pytest.mark.parametrize("buffer", [1, 2, 5])
def test_a_store_and_forward_packet_holds_its_place_for_two_packets_and_two_latencies(
    engine, buffer
):
    packets, hops = 8, 2
    found = one_message(packets, hops, engine, network_buffer=buffer, switching="store_and_forward")
    around, free, starts = 2 * TICK + 2 * LATENCY, 0.0, []
    for packet in range(packets):
        free = max(free, starts[packet - buffer] + around) if packet >= buffer else free
        starts.append(free)
        free += TICK
    assert found == pytest.approx(starts[-1] + (hops + 2) * TICK + hops * LATENCY, rel=1e-12)


@engines
def test_what_waits_holds_up_what_is_behind_it_though_its_own_way_is_free(engine):
    """Nodes 0 and 1 send to 2, which can only take half of it; behind that, 0 sends to 1."""
    size = 50 * PACKET
    lists = [
        [("isend", 3, size), ("isend", 2, PACKET), ("wait", 0), ("wait", 1)],
        [("send", 3, size)],
        [("recv", 0, PACKET)],
        [("irecv", 0, size), ("irecv", 1, size), ("wait", 0), ("wait", 1)],
    ]
    line = mesh((3,), slots=2)
    times = [
        replayed(lists, line, [0, 1, 1, 2], engine, network_buffer=buffer).message_times.delivered
        for buffer in (0, 2)
    ]
    assert times[0][1] == pytest.approx(51 * TICK + LATENCY)  # node 0's own link is free
    assert times[1][1] > 90 * TICK  # every other packet of the link from 1 to 2 is node 1's
    assert times[1][0] < times[0][2] + 10 * TICK  # and that link is never idle for long


@engines
@pytest.mark.parametrize("arbitration", ["round_robin", "age"])
def test_a_link_that_many_ask_for_takes_one_of_each_in_turn_or_the_oldest(engine, arbitration):
    """Two inputs of one output: in turn both are done within a packet of each other; by age the
    one that began before is done first."""
    size = 20 * PACKET
    lists = [[("send", 2, size)], [("compute", 2.5 * TICK), ("send", 2, size)]]
    lists += [[("irecv", 0, size), ("irecv", 1, size), ("wait", 0), ("wait", 1)]]
    star = mesh((3,))
    got = replayed(
        lists, star, [0, 2, 1], engine, network_buffer=4, network_arbitration=arbitration
    )
    one, other = got.message_times.delivered
    if arbitration == "age":
        assert one == pytest.approx(20 * TICK + LATENCY)
        assert other == pytest.approx(one + 20 * TICK)
    else:
        assert 0 < other - one < 4 * TICK


def shift(ranks, far, size, rounds=4):
    """Everyone sends to the one so far away, again and again."""
    return program_of(
        "shift",
        [
            [("irecv", (r - far) % ranks, size)] * rounds
            + [("isend", (r + far) % ranks, size)] * rounds
            + [("wait", k) for k in range(2 * rounds)]
            for r in range(ranks)
        ],
    )


def test_a_message_is_there_when_the_last_of_its_packets_is_though_some_pass_others():
    """Two channels to a class, and many who ask: packets of a message pass one another."""
    few = replace(FREE, network_buffer=1, network_virtual_channels=4)
    square, size = torus((5, 3)), 7 * PACKET
    program = program_of(
        "everyone",
        [
            [("irecv", (r - k) % 15, size) for k in range(1, 15)]
            + [("isend", (r + k) % 15, size) for k in range(1, 15)]
            + [("wait", k) for k in range(28)]
            for r in range(15)
        ],
    )
    times = simulate(
        *(program, square, range(15)),
        parameters=few,
        engine="compiled",
        record=Record(messages=True),
    ).message_times.delivered
    plan = plan_run(program, square, np.arange(15), few)
    hops = watch(plan, np.arange(len(times)))
    ends = hops[hops["server"] >= plan.injection.stop]  # at ejection links, whose latency is 0
    last = np.zeros(len(times))
    np.maximum.at(last, ends["message"], ends["end"])
    assert (last == times).all()
    in_order = ends[np.lexsort((ends["end"], ends["message"]))]
    assert (np.diff(in_order["packet"])[np.diff(in_order["message"]) == 0] < 0).any()


@engines
def test_a_ring_needs_two_virtual_channels_and_then_never_stops(engine):
    ring, program = torus((8,)), shift(8, 3, 20 * PACKET)
    with pytest.raises(
        ParameterError, match=r"network.virtual_channels 1: on torus:8 .* ring of 8"
    ):
        simulate(program, ring, range(8), parameters=FREE, engine=engine)
    for channels in (2, 3, 8):
        parameters = replace(FREE, network_virtual_channels=channels)
        result = simulate(program, ring, range(8), parameters=parameters, engine=engine)
        assert result.link_bytes.sum() == 8 * 4 * 3 * 20 * PACKET


@engines
@pytest.mark.parametrize("routing", ["deterministic", "adaptive", "valiant"])
def test_a_network_that_stands_still_names_the_ring(engine, routing, monkeypatch):
    """Which by construction cannot be: here all share one channel against the rules."""
    none = np.zeros((8, 8), dtype=np.int16)
    monkeypatch.setattr(
        run_plan, "no_rings", lambda *given: (np.zeros(len(given[2]), dtype=int), 1)
    )
    monkeypatch.setattr(run_plan, "channels_of", lambda *_: Channels(none, 0, 0, 0, 1))
    parameters = replace(FREE, network_buffer=1, network_routing=routing)
    ring, program = torus((8,)), shift(8, 3, 20 * PACKET)
    with pytest.raises(DeadlockError, match="stands still") as raised:
        simulate(program, ring, range(8), parameters=parameters, engine=engine)
    said = str(raised.value)
    assert "8 of 8 ranks wait: rank 0: wait for" in said
    named = [int(link) for link in said.split("of links ")[1].split(";")[0].split(" -> ")[:6]]
    assert "8 virtual channels wait for each other" in said or routing == "valiant"
    for one, other in pairwise(named):
        assert ring.link_to[one] == ring.link_from[other]


@examples(100)
@given(
    random_runs(),
    st.integers(1, 4),
    st.integers(2, 5),
    st.sampled_from(["round_robin", "age"]),
    st.sampled_from([0.0, 1e-7]),
    st.sampled_from([0, 1, 300]),
)
def test_nothing_is_lost_whatever_the_buffers(run, buffer, channels, arbitration, delay, flit):
    """All bytes cross the same links as without limits; no credit is lost, no place taken twice."""
    program, topology, node_of, parameters = run
    few = replace(
        parameters,
        nic_rails=1,
        network_buffer=buffer,
        network_virtual_channels=channels,
        network_arbitration=arbitration,
        network_credit_delay=delay,
        network_flit=flit,
    )
    free = replace(few, network_buffer=0)
    try:
        any_number = simulate(program, topology, node_of, parameters=free, engine="simpy")
    except RuntimeError as error:
        with pytest.raises(type(error)):
            simulate(program, topology, node_of, parameters=few, engine="simpy")
        return
    limited = simulate(program, topology, node_of, parameters=few, engine="simpy")
    for column in ("link_messages", "link_bytes"):
        assert np.array_equal(getattr(limited, column), getattr(any_number, column))
    assert limited.events == any_number.events
    assert limited.controls == any_number.controls


@pytest.mark.parametrize(
    ("spec", "packets"), [("mesh:4x4", 7), ("fattree:4x4", 5), ("dragonfly:2x4x2", 3)]
)
def test_a_lone_message_with_room_enough_takes_as_long_as_without_limits(spec, packets):
    topology = topology_from_spec(spec)
    lists = [[("send", 1, packets * PACKET)], [("recv", 0, packets * PACKET)]]
    times = []
    for buffer in (0, 50):
        parameters = replace(FREE, network_buffer=buffer, network_virtual_channels=2)
        run = simulate(
            program_of("one", lists), topology, [0, topology.nodes - 1], parameters=parameters,
            engine="simpy",
        )  # fmt: skip
        times.append(run.makespan)
    assert times[0] == times[1]


@pytest.mark.parametrize("engine", ["flow", "analytic"])
def test_engines_without_packets_say_that_they_know_no_buffers(engine):
    with pytest.raises(ParameterError, match=rf"network.buffer 1: engine {engine} has no packets"):
        replayed([[("send", 1, 1)], [("recv", 0, 1)]], mesh((2,)), [0, 1], engine)


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"network_virtual_channels": 0}, "network.virtual_channels 0: expected at least 1"),
        ({"network_buffer": -1}, "network.buffer -1: expected at least 0"),
        ({"network_flit": -1}, "network.flit -1: expected at least 0"),
        ({"network_arbitration": "oldest"}, "network.arbitration 'oldest'"),
        ({"network_credit_delay": float("nan")}, "network.credit_delay nan: expected a finite"),
        ({"nic": "round_robin", "nic_rails": 2}, "nic.rails 2: expected 1 with network.buffer"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(parameters, expected):
    with pytest.raises(ParameterError, match=expected):
        replace(FREE, **parameters)

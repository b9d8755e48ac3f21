"""The compiled engine against the reference: the same bits, or the same words if a run is stuck."""

from __future__ import annotations

from dataclasses import replace

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
    simulate,
)
from hopmap.simulator.packets import compiled_engine
from hopmap.topologies import mesh, torus
from support.random_runs import random_runs
from support.results import bits
from support.slow import examples


def outcome(program, topology, node_of, parameters, engine, **more):
    """All that a run says: bytes of every column, or the message of a stuck one."""
    try:
        result = simulate(program, topology, node_of, parameters=parameters, engine=engine, **more)
    except DeadlockError as error:
        return str(error)
    return bits(result)


def agree(program, topology, node_of, parameters, **more):
    one, other = (
        outcome(program, topology, node_of, parameters, engine, **more)
        for engine in ("simpy", "compiled")
    )
    assert one == other
    return one


noises = st.fixed_dictionaries(
    {
        "noise_compute": st.sampled_from([0.0, 0.3]),
        "noise_overhead": st.sampled_from([0.0, 0.3, 2.0]),
        "noise_start": st.sampled_from([0.0, 1e-6]),
        "noise_distribution": st.sampled_from(["lognormal", "gamma"]),
        "noise_seed": st.integers(0, 2**32 - 1),
    }
)


@examples(100)
@given(random_runs(), noises, st.booleans())
def test_both_draw_the_same_noise(run, noise, operations):
    program, topology, node_of, parameters = run
    agree(
        *(program, topology, node_of, replace(parameters, **noise)),
        record=Record(operations=operations),
    )


limits = st.fixed_dictionaries(
    {
        "network_buffer": st.integers(1, 3),
        "network_virtual_channels": st.integers(2, 5),
        "network_arbitration": st.sampled_from(["round_robin", "age"]),
        "network_credit_delay": st.sampled_from([0.0, 1e-7]),
        "network_flit": st.sampled_from([0, 1, 500]),
        "nic_rails": st.just(1),
    }
)


@examples(160)
@given(random_runs(), limits, st.booleans(), st.sampled_from([0, 7]))
def test_both_let_packets_wait_for_the_same_room(run, few, operations, bins):
    program, topology, node_of, parameters = run
    agree(
        *(program, topology, node_of, replace(parameters, **few)),
        record=Record(operations=operations, bins=bins),
    )


@examples(300)
@given(random_runs(), st.booleans(), st.booleans(), st.sampled_from([0, 1, 7, 64]))
def test_both_engines_say_the_same(run, messages, operations, bins):
    agree(
        *run,
        record=Record(messages=messages, operations=operations, bins=bins),
    )


def exchange(ranks, size, rounds):
    """Everyone sends to everyone and receives from everyone, all at once."""
    others = [[(r + k) % ranks for k in range(1, ranks)] for r in range(ranks)]
    return program_of(
        "exchange",
        [
            [("irecv", p, size) for p in others[r] * rounds]
            + [("isend", p, size) for p in others[r] * rounds]
            + [("wait", k) for k in range(2 * rounds * (ranks - 1))]
            for r in range(ranks)
        ],
    )


@pytest.mark.parametrize("arbitration", ["round_robin", "age"])
@pytest.mark.parametrize("packet", [0, 500])
@pytest.mark.parametrize("flit", [0, 1])
def test_they_agree_where_room_comes_at_the_instant_at_which_it_is_left(packet, arbitration, flit):
    """Without latency a credit is there when the tail leaves, and without bytes all at once."""
    parameters = Parameters(
        packet_size=500,
        network_buffer=1,
        network_virtual_channels=4,
        network_arbitration=arbitration,
        network_flit=flit,
        injection_latency=0.0,
        ejection_latency=0.0,
        overhead_control=0.0,
    )
    network = torus((3, 2)).with_links(None, latency=0.0)
    agree(exchange(6, 2 * packet, 2), network, np.arange(6), parameters)


@pytest.mark.parametrize("switching", ["cut_through", "store_and_forward"])
@pytest.mark.parametrize("eager_limit", [0, 10**9])
def test_they_agree_where_many_packets_meet(switching, eager_limit):
    parameters = Parameters(
        packet_size=500, eager_limit=eager_limit, switching=switching, control_bytes=1200
    )
    program, topology = exchange(12, 6_400, 1), torus((3, 2, 2))
    said = agree(
        *(program, topology, np.arange(12), parameters), record=Record(operations=True, bins=50)
    )
    assert said["link_waited"] != np.zeros(topology.links).tobytes()


@pytest.mark.parametrize("arbitration", ["round_robin", "age"])
@pytest.mark.parametrize("eager_limit", [0, 10**9])
def test_they_agree_where_packets_wait_for_room(arbitration, eager_limit):
    parameters = Parameters(
        packet_size=500,
        eager_limit=eager_limit,
        control_bytes=1200,
        network_buffer=2,
        network_virtual_channels=4,
        network_arbitration=arbitration,
    )
    program, topology = exchange(15, 3_200, 1), torus((5, 3))
    said = agree(
        *(program, topology, np.arange(15), parameters), record=Record(operations=True, bins=50)
    )
    free = outcome(program, topology, np.arange(15), replace(parameters, network_buffer=0), "simpy")
    assert said["link_bytes"] == free["link_bytes"]
    assert said["makespan"] > free["makespan"]


@pytest.mark.parametrize("eager_limit", [0, 4000, 10**9])
@pytest.mark.parametrize(("gap", "gap_per_byte"), [(3e-6, 0.0), (0.0, 1e-9), (1e-6, 1e-10)])
def test_they_agree_where_messages_queue_at_the_end_points_of_ranks(gap, gap_per_byte, eager_limit):
    parameters = Parameters(
        packet_size=500, eager_limit=eager_limit, gap=gap, gap_per_byte=gap_per_byte
    )
    program, *place = exchange(8, 4_000, 2), torus((2, 2), slots=2), np.arange(8) // 2
    said = agree(program, *place, parameters, record=Record(messages=True))
    without = outcome(program, *place, replace(parameters, gap=0.0, gap_per_byte=0.0), "compiled")
    assert said["makespan"] > without["makespan"]
    assert said["events"] == without["events"]


@pytest.mark.parametrize("eager_limit", [0, 10**9])
def test_stopping_after_every_event_and_short_of_slots_changes_nothing(monkeypatch, eager_limit):
    program, topology = exchange(6, 3000, 3), mesh((3, 2))
    parameters = Parameters(gap=1e-6, eager_limit=eager_limit)
    whole = outcome(program, topology, range(6), parameters, "compiled")
    monkeypatch.setattr(compiled_engine, "SHARE", 1)
    monkeypatch.setattr(compiled_engine, "SPARE", 1)
    calls = []
    pieces = outcome(
        program, topology, range(6), parameters, "compiled", progress=lambda *n: calls.append(n)
    )
    assert pieces == whole
    assert calls == sorted(calls)
    assert calls[-1][1] == 90


def test_slots_are_for_what_is_in_flight_only(monkeypatch):
    tables = []
    enlarged = compiled_engine._enlarge
    monkeypatch.setattr(
        compiled_engine, "_enlarge", lambda *given: tables.append(enlarged(*given)) or tables[-1]
    )
    # A thousand messages of a thousand packets, which leave more slowly than they travel.
    ping = [("send", 1, 10**6), ("recv", 1, 0)] * 1000
    pong = [("recv", 0, 10**6), ("send", 0, 0)] * 1000
    parameters = Parameters(packet_size=1000, eager_limit=10**9, injection_bandwidth=1e9)
    simulate(
        program_of("ping", [ping, pong]),
        mesh((2,)),
        [0, 1],
        engine="compiled",
        parameters=parameters,
    )
    assert len(tables) == 1


def test_an_order_key_beyond_63_bits_is_an_error_of_one_line():
    program = program_of("large", [[("send", 1, 2**62)], [("recv", 0, 0)]])
    with pytest.raises(ParameterError, match=r"packet_size 1: .* expected at least \d+") as error:
        simulate(
            program, mesh((2,)), [0, 1], engine="compiled", parameters=Parameters(packet_size=1)
        )
    assert "\n" not in str(error.value)

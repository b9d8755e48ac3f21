"""Routes that are chosen on the way: closed forms, what each algorithm promises, equal engines."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopmap.simulator import ParameterError, Parameters, Record, program_of, simulate
from hopmap.simulator.explain.explain import explain
from hopmap.simulator.explain.makespan_bound import MakespanBound
from hopmap.simulator.parameters.keys import ROUTING
from hopmap.simulator.routes import goes_minimally, intermediate
from hopmap.simulator.steady_state import Steady
from hopmap.topologies import topology_from_spec
from support import free_ends
from support.random_runs import random_runs
from support.results import bits
from support.slow import examples, slow

PACKET, BANDWIDTH, LATENCY = 1000, 1e9, 0.25e-6
TICK = PACKET / BANDWIDTH  # seconds of a packet
FREE = Parameters(**free_ends.FREE, packet_size=PACKET)
engines = pytest.mark.parametrize("engine", ["simpy", "compiled"])
MINIMAL, DETOURS = ("adaptive", "spraying"), ("valiant", "ugal_l", "ugal_g", "par")


def replayed(lists, spec, node_of, routing, engine="simpy", *, latency=LATENCY, **parameters):
    return simulate(
        program_of("ways", lists),
        topology_from_spec(spec).with_links(bandwidth=BANDWIDTH, latency=latency),
        node_of,
        parameters=replace(FREE, network_routing=routing, **parameters),
        engine=engine,
        record=Record(messages=True),
    )


def one_each(pairs, packets, ranks):
    """Messages of so many packets, all at once."""
    lists = [[] for _ in range(ranks)]
    for source, target in pairs:
        lists[target].append(("irecv", source, packets * PACKET))
    for source, target in pairs:
        lists[source].append(("isend", target, packets * PACKET))
    return [ops + [("wait", k) for k in range(len(ops))] for ops in lists]


@engines
def test_of_two_shortest_ways_the_second_packet_takes_the_other(engine):
    run = replayed(one_each([(0, 3)], 2, 4), "mesh:2x2", range(4), "adaptive", engine)
    assert run.makespan == pytest.approx(2 * LATENCY + TICK, rel=1e-12)
    assert sorted(run.link_bytes) == [0] * 4 + [PACKET] * 4
    alone = replayed(one_each([(0, 3)], 2, 4), "mesh:2x2", range(4), "deterministic", engine)
    assert alone.makespan == pytest.approx(2 * LATENCY + 2 * TICK, rel=1e-12)


@engines
def test_a_packet_that_finds_all_idle_takes_the_topologys_own_route(engine):
    for spec in ("torus:4x3", "fattree:4x4", "dragonfly:2x4x2", "haec:2x2x3"):
        last = topology_from_spec(spec).nodes - 1
        ways = [
            replayed(one_each([(0, 1)], 1, 2), spec, [0, last], routing, engine).link_bytes
            for routing in ("deterministic", "adaptive", "ugal_l", "ugal_g")
        ]
        assert all((way == ways[0]).all() for way in ways)


@engines
def test_a_link_that_was_busy_once_is_as_good_as_one_that_never_was(engine):
    lists = [[("send", 3, PACKET), ("compute", 99 * TICK), ("send", 3, PACKET)], [], []]
    lists.append([("recv", 0, PACKET)] * 2)
    run = replayed(lists, "mesh:2x2", range(4), "adaptive", engine)
    assert sorted(run.link_bytes) == [0] * 6 + [2 * PACKET] * 2


@pytest.mark.parametrize("routing", ["ugal_l", "ugal_g"])
def test_places_that_are_taken_are_the_queues_of_finite_buffers(routing):
    """One source and target three links apart on a ring of 7. While nobody has taken a place both
    ways are equal; with n taken on the first link and none elsewhere any other way is better."""
    few = {"network_buffer": 4, "network_virtual_channels": 4, "injection_bandwidth": BANDWIDTH}
    runs = [
        replayed(one_each([(0, 3)], packets, 4), "torus:7", range(4), routing, **few)
        for packets in (1, 40)
    ]
    assert sorted(runs[0].link_bytes) == [0] * 11 + [PACKET] * 3
    assert runs[1].events > 40 * 5


@engines
def test_up_a_fat_tree_packets_of_one_leaf_take_all_ways(engine):
    """Three nodes send to targets that d-mod-k gives one and the same way up."""
    nodes = [0, 1, 2, 4, 8, 12]
    lists = one_each([(0, 3), (1, 4), (2, 5)], 10, 6)
    times = {
        routing: replayed(lists, "fattree:4x4", nodes, routing, engine).makespan
        for routing in ("deterministic", "adaptive")
    }
    assert times["deterministic"] == pytest.approx(4 * LATENCY + 30 * TICK, rel=1e-12)
    assert times["adaptive"] == pytest.approx(4 * LATENCY + 10 * TICK, rel=1e-12)


def test_valiant_makes_tornado_uniform():
    """A ring of 7: two ways of 12 / 7 links each in the mean, and all links alike."""
    pairs = [(r, (r + 3) % 7) for r in range(7)]
    lists = one_each(pairs, 3000, 7)
    fixed = replayed(lists, "torus:7", range(7), "deterministic", "compiled")
    assert sorted(fixed.link_bytes) == [0] * 7 + [3 * 3000 * PACKET] * 7
    run = replayed(lists, "torus:7", range(7), "valiant", "compiled")
    assert run.link_bytes.sum() / (7 * 3000 * PACKET) == pytest.approx(24 / 7, rel=0.01)
    mean = run.link_bytes.mean()
    assert np.abs(run.link_bytes / mean - 1).max() < 0.06
    assert run.makespan < 0.65 * fixed.makespan


def test_spraying_takes_all_shortest_ways_alike():
    lists = one_each([(0, 3)], 4000, 4)
    run = replayed(lists, "mesh:2x2", range(4), "spraying", "compiled")
    used = run.link_bytes[run.link_bytes > 0]
    assert len(used) == 4
    assert np.abs(used / (2000 * PACKET) - 1).max() < 0.05
    again = replayed(lists, "mesh:2x2", range(4), "spraying", "compiled", network_routing_seed=1)
    assert (run.link_bytes != again.link_bytes).any()


def test_valiant_draws_every_node_but_those_of_two_groups_once():
    sizes = [3, 2, 4, 1]
    first = np.cumsum(sizes) - sizes
    for low, high in [(0, 1), (0, 2), (1, 3), (2, 3)]:
        left = sum(sizes) - sizes[low] - sizes[high]
        given = int(first[low]), sizes[low], int(first[high]), sizes[high]
        got = Counter(intermediate(drawn, left, *given) for drawn in range(3 * left))
        group = np.repeat(range(4), sizes)
        assert got == dict.fromkeys(
            (node for node in range(10) if group[node] not in (low, high)), 3
        )
    assert Counter(intermediate(d, 5, 0, 0, 0, 0) for d in range(5)) == Counter(range(5))


@pytest.mark.parametrize(
    ("q_m", "h_m", "q_nm", "h_nm", "minimally"),
    [(0, 3, 0, 5, True), (5, 3, 3, 5, True), (5.1, 3, 3, 5, False), (1, 3, 0, 5, False)],
)
def test_ugal_takes_the_detour_if_queue_times_hops_are_less(q_m, h_m, q_nm, h_nm, minimally):
    assert goes_minimally(q_m, h_m, q_nm, h_nm) == minimally


@pytest.mark.parametrize("routing", DETOURS)
def test_detours_carry_what_one_global_link_cannot(routing):
    """Every node of a group of 8 sends to the next group, which one link joins to it."""
    spec, nodes, group = "dragonfly:2x4x2", 72, 8
    lists = one_each([(r, (r + group) % nodes) for r in range(nodes)], 60, nodes)
    fixed = replayed(lists, spec, range(nodes), "deterministic", "compiled")
    assert fixed.makespan > 8 * 60 * TICK
    found = replayed(lists, spec, range(nodes), routing, "compiled")
    assert found.makespan < 0.55 * fixed.makespan
    assert found.events > fixed.events
    # at most: node link, local, global, local, global, local, node link, and both ends
    assert found.events <= nodes * 60 * 9


def test_only_progressive_routing_sees_a_global_link_of_another_router():
    """Nodes 1 and 2 fill the global link of node 3's router; node 0's links are idle."""
    spec = "dragonfly:1x4x1"
    assert topology_from_spec(spec).hops([0, 1, 2, 3], 4).tolist() == [4, 4, 4, 3]
    lists = one_each([(0, 3), (1, 3)], 50, 5)
    lists[2:5:2] = [("compute", 40 * TICK), ("send", 4, PACKET)], [("recv", 2, PACKET)]
    runs = {
        routing: replayed(lists, spec, [1, 2, 0, 5, 4], routing)
        for routing in ("deterministic", "ugal_l", "ugal_g", "par")
    }
    late = {routing: run.message_times.delivered[2] / TICK for routing, run in runs.items()}
    assert late["deterministic"] > 80  # 40 are before it by then
    assert late["ugal_l"] == late["deterministic"]
    assert runs["ugal_l"].events == runs["deterministic"].events
    for routing in ("ugal_g", "par"):
        assert late[routing] < 60
        assert runs[routing].events > runs["deterministic"].events


@engines
@pytest.mark.parametrize("routing", ["ugal_l", "ugal_g"])
@pytest.mark.parametrize("spec", ["dragonfly:2x4x2", "torus:5x3"])
def test_one_hop_ahead_a_packet_does_not_see_the_packets_that_leave_with_it(spec, routing, engine):
    """Eight packets leave their node before the first reaches its router: all links look idle.

    Decided in the router, the later ones see the queue of the minimal way, and some go round it.
    """
    slow_links = {"network_buffer": 8, "network_virtual_channels": 5, "injection_latency": 1.0}
    slow_links["latency"] = 1.0
    last = topology_from_spec(spec).nodes - 1
    fixed, ahead, there = (
        replayed(one_each([(0, 1)], 8, 2), spec, [0, last], way, engine, **slow_links, **more)
        for way, more in (
            ("deterministic", {}),
            (routing, {"network_routing_decision": "one_hop_ahead"}),
            (routing, {}),
        )
    )
    assert (ahead.link_bytes == fixed.link_bytes).all()
    assert (there.link_bytes > 0).sum() > (fixed.link_bytes > 0).sum()


ways = st.fixed_dictionaries(
    {"network_routing": st.sampled_from(ROUTING[1:]), "network_routing_seed": st.integers(0, 9)}
)


def chosen(run, way):
    """A run by an algorithm that there is on its network."""
    program, topology, node_of, parameters = run
    if way["network_routing"] == "par" and not topology.spec.startswith("dragonfly"):
        way = way | {"network_routing": "valiant"}
    return program, topology, node_of, replace(parameters, **way)


def outcome(program, topology, node_of, parameters, engine, **more):
    try:
        result = simulate(program, topology, node_of, parameters=parameters, engine=engine, **more)
    except (RuntimeError, ParameterError) as error:
        return str(error)
    return bits(result)


@pytest.mark.parametrize("nic", ["fifo", *slow("round_robin")])
@examples(200)
@given(random_runs(), ways, st.booleans(), st.sampled_from([0, 7]), st.integers(1, 2))
def test_both_engines_send_packets_the_same_ways(nic, run, way, operations, links, rails):
    drawn = chosen(run, way | {"nic": nic, "nic_rails": 1 if nic == "fifo" else rails})
    one, other = (
        outcome(*drawn, engine, record=Record(operations=operations, bins=links))
        for engine in ("simpy", "compiled")
    )
    assert one == other


limits = st.fixed_dictionaries(
    {
        "network_buffer": st.integers(1, 3),
        "network_virtual_channels": st.integers(2, 7),
        "network_arbitration": st.sampled_from(["round_robin", "age"]),
        "network_credit_delay": st.sampled_from([0.0, 1e-7]),
        "network_flit": st.sampled_from([0, 500]),
        "network_routing_decision": st.sampled_from(["in_router", "one_hop_ahead"]),
        "nic_rails": st.just(1),
    }
)


@examples(120)
@given(random_runs(), ways, limits)
def test_both_engines_send_packets_the_same_ways_among_finite_buffers(run, way, few):
    program, topology, node_of, parameters = chosen(run, way)
    drawn = program, topology, node_of, replace(parameters, **few)
    assert outcome(*drawn, "simpy") == outcome(*drawn, "compiled")


def test_both_engines_count_the_room_of_an_instant_alike_though_packets_come_up_within_it():
    """Links of no latency: a packet of no bytes, for which there is room as a credit comes, sees
    the credits of that instant that came before."""
    lists = [[("irsend", 4, 9000), ("ibsend", 4, 10), ("ibsend", 1, 9000), ("issend", 2, 2500)]]
    lists += [[("irecv", 0, 0)], [("irecv", 0, 0)], [], [("irecv", 0, 0)] * 2]
    lists = [[*each, *(("wait", k) for k in range(len(each)))] for each in lists]
    run = [
        program_of("instant", lists),
        topology_from_spec("dragonfly:1x3x1*3").with_links(bandwidth=3 * BANDWIDTH, latency=0.0),
        [10, 1, 0, 11, 7],
        replace(
            *(FREE,), injection_bandwidth=BANDWIDTH, network_routing="ugal_l", network_buffer=1,
            network_virtual_channels=3, network_credit_delay=1e-7, network_arbitration="age",
            switching="store_and_forward", eager_limit=0,
        ),
    ]  # fmt: skip
    assert outcome(*run, "simpy") == outcome(*run, "compiled")


def everyone(ranks, packets):
    """Everyone sends to everyone, all at once."""
    pairs = [(r, (r + k) % ranks) for k in range(1, ranks) for r in range(ranks)]
    return one_each(pairs, packets, ranks)


@engines
@pytest.mark.parametrize(
    ("spec", "needed"),
    [
        ("torus:5x3", {"adaptive": 3, "spraying": 3, "valiant": 4, "ugal_l": 4, "ugal_g": 4}),
        ("mesh:3x3", {"adaptive": 2, "spraying": 2, "valiant": 2, "ugal_l": 2, "ugal_g": 2}),
        ("fattree:3x3", {"adaptive": 1, "spraying": 1, "valiant": 2, "ugal_l": 2, "ugal_g": 2}),
        (
            "dragonfly:1x3x1",
            {"adaptive": 3, "spraying": 3, "valiant": 3, "ugal_l": 3, "ugal_g": 3, "par": 4},
        ),
    ],
)
def test_with_one_place_a_channel_nothing_stands_still_and_nothing_is_lost(spec, needed, engine):
    nodes = topology_from_spec(spec).nodes
    lists = everyone(nodes, 3)
    for routing, channels in needed.items():
        few = {"network_buffer": 1, "network_virtual_channels": channels}
        run = replayed(lists, spec, range(nodes), routing, engine, **few)
        assert run.ejection.bytes.sum() == nodes * (nodes - 1) * 3 * PACKET, routing
        if channels > 1:
            few["network_virtual_channels"] -= 1
            with pytest.raises(ParameterError, match=rf"in a ring: expected {channels} at"):
                replayed(lists, spec, range(nodes), routing, engine, **few)


@engines
def test_a_packet_that_finds_its_own_link_full_takes_another(engine):
    """Two packets through a mesh of 2 x 2 whose buffers hold one: the second goes round."""
    few = {"network_buffer": 1, "network_virtual_channels": 2, "injection_bandwidth": BANDWIDTH}
    lists = one_each([(0, 3)], 6, 4)
    runs = {
        routing: replayed(lists, "mesh:2x2", range(4), routing, engine, **few)
        for routing in ("deterministic", "adaptive")
    }
    assert (runs["deterministic"].link_bytes > 0).sum() == 2
    assert (runs["adaptive"].link_bytes > 0).sum() == 4


@examples(100)
@given(random_runs(), ways)
def test_nothing_is_lost_and_minimal_ways_are_as_long_as_the_routes(run, way):
    program, topology, node_of, parameters = chosen(run, way | {"nic": "fifo", "nic_rails": 1})
    fixed = replace(parameters, network_routing="deterministic")
    try:
        expected = simulate(program, topology, node_of, parameters=fixed, engine="compiled")
    except RuntimeError as error:
        with pytest.raises(type(error)):
            simulate(program, topology, node_of, parameters=parameters, engine="compiled")
        return
    found = simulate(program, topology, node_of, parameters=parameters, engine="compiled")
    assert found.controls == expected.controls
    for end in ("injection", "ejection", "memory"):
        for column in ("messages", "bytes"):
            assert (
                getattr(getattr(found, end), column) == getattr(getattr(expected, end), column)
            ).all()
    if parameters.network_routing in MINIMAL:
        assert found.events == expected.events
        assert found.link_bytes.sum() == expected.link_bytes.sum()
    else:
        assert found.events <= 2 * expected.events + 2 * topology.links * expected.events


@pytest.mark.parametrize("engine", ["flow", "analytic"])
def test_engines_without_packets_say_that_they_know_fixed_routes_only(engine):
    with pytest.raises(ParameterError, match=rf"network.routing adaptive: engine {engine} has no"):
        replayed(one_each([(0, 1)], 1, 2), "mesh:2", range(2), "adaptive", engine)


def test_what_knows_fixed_routes_only_refuses_others():
    program, network = program_of("one", one_each([(0, 1)], 1, 2)), topology_from_spec("mesh:2")
    parameters = replace(FREE, network_routing="adaptive")
    with pytest.raises(ParameterError, match=r"network.routing adaptive: explain takes a run with"):
        explain(program, network, range(2), parameters=parameters)
    with pytest.raises(
        ParameterError, match=r"network.routing adaptive: the bound of the makespan"
    ):
        MakespanBound(program, network, parameters)
    with pytest.raises(ParameterError, match=r"network.routing par: mesh:2 has no groups"):
        simulate(program, network, range(2), parameters=replace(FREE, network_routing="par"))
    with pytest.raises(ParameterError, match=r"network.routing 'ecmp': expected one of"):
        replace(FREE, network_routing="ecmp")


def test_a_long_run_is_replayed_whole():
    lists = [[("repeat", 100, [("send", 1, PACKET)])], [("repeat", 100, [("recv", 0, PACKET)])]]
    run = simulate(
        *(program_of("long", lists), topology_from_spec("mesh:2"), range(2)),
        parameters=replace(FREE, network_routing="valiant"),
        steady=Steady(hops=1),
    )
    assert run.extrapolated is None
    assert "with network.routing valiant no two steps are the same" in run.whole

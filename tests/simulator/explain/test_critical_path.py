"""The critical path: without a hole from 0 to the makespan, and made of what the model says."""

from __future__ import annotations

from dataclasses import replace
from math import fsum

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopmap.simulator import (
    DeadlockError,
    ParameterError,
    Parameters,
    Record,
    Segment,
    composition,
    critical_path,
    lower,
    program_of,
    simulate,
)
from hopmap.simulator.packets.compiled_engine import watch
from hopmap.simulator.run_plan import plan_run
from hopmap.topologies import mesh, topology_from_spec, torus
from hopmap.traces import nas_folded
from support.free_ends import as_fast_as
from support.random_loops import any_runs
from support.results import plan_of
from support.slow import examples

EXAMPLES = examples(80)
COLUMNS = ("kind", "begin", "end", "rank", "message", "cargo", "server", "behind")


def followed(program, topology, node_of, parameters=None, engine="compiled"):
    """Result and critical path of a run."""
    parameters = replace(parameters or Parameters(), progress="asynchronous")
    result = simulate(
        program,
        topology,
        node_of,
        parameters=parameters,
        engine=engine,
        record=Record(operations=True),
    )
    return result, critical_path(plan_of(result), result)


def told(path):
    """Kinds and seconds of the segments."""
    return [Segment(kind).name for kind in path.kind], path.seconds.tolist()


limits = st.sampled_from([0, 1, 3]).flatmap(
    lambda room: st.fixed_dictionaries(
        {"network_buffer": st.just(room), "network_virtual_channels": st.integers(2, 5)}
        | ({"nic_rails": st.just(1)} if room else {})
    )
)


@EXAMPLES
@given(run=any_runs(), few=limits)
def test_segments_follow_one_another_from_the_beginning_to_the_makespan(run, few):
    program, topology, node_of, parameters = run
    parameters = replace(parameters, **few)
    try:
        result, path = followed(program, topology, node_of, parameters)
    except DeadlockError:
        return
    ends = np.concatenate(([0.0], path.end))
    assert (path.begin == ends[:-1]).all()
    assert ends[-1] == result.makespan
    assert (path.seconds > 0).all()
    assert fsum(path.seconds) == pytest.approx(result.makespan, rel=1e-12)
    whole = composition(path, result, topology, top=10**6)
    assert fsum(whole.seconds.values()) == pytest.approx(result.makespan, rel=1e-12)
    # What is of a rank, of a message, at a server.
    of_rank = path.kind <= Segment.END_POINT
    assert ((path.rank >= 0) == of_rank).all()
    assert ((path.server >= 0) == ~of_rank).all()
    assert ((path.message >= 0) == (path.kind >= Segment.END_POINT)).all()
    queued = path.kind == Segment.QUEUE
    assert ((path.behind >= 0) == queued).all()
    if not parameters.network_buffer:
        assert (path.behind != path.message)[queued & (path.cargo == 0)].all()
        assert whole.seconds["room"] == 0.0
    assert fsum(part for _, part in whole.ranks) == pytest.approx(
        fsum(path.seconds[of_rank]), rel=1e-12
    )
    for shares in (whole.kinds, whole.servers):
        behind = fsum(part for server in shares for *_, part in server.behind)
        assert behind == pytest.approx(fsum(path.seconds[queued]), rel=1e-12)
        for part in ("latency", "room"):
            found = fsum(getattr(server, part) for server in shares)
            assert found == pytest.approx(whole.seconds[part], rel=1e-12)


@EXAMPLES
@given(run=any_runs())
def test_without_contention_a_run_is_shorter_by_no_more_than_the_queues_of_its_path(run):
    program, topology, node_of, parameters = run
    parameters = replace(
        parameters, gap=0.0, gap_per_byte=0.0, copy_per_byte=0.0, nic="fifo", nic_rails=1
    )
    parameters = replace(parameters, progress="asynchronous")
    try:
        result, path = followed(program, topology, node_of, parameters)
        alone = simulate(program, topology, node_of, parameters=parameters, engine="analytic")
    except DeadlockError:
        return
    queues = fsum(path.seconds[path.kind == Segment.QUEUE])
    least = (result.makespan - queues) * (1 - 1e-9)
    assert least <= alone.makespan <= result.makespan * (1 + 1e-12)


@settings(max_examples=30, deadline=None)
@given(run=any_runs())
def test_both_engines_of_packets_have_the_same_path(run):
    try:
        paths = [followed(*run, engine=engine)[1] for engine in ("simpy", "compiled")]
    except DeadlockError:
        return
    for name in COLUMNS:
        one, other = (getattr(path, name) for path in paths)
        assert one.tobytes() == other.tobytes()


@EXAMPLES
@given(run=any_runs())
def test_hops_are_served_first_come_first_served(run):
    program, topology, node_of, parameters = run
    parameters = replace(parameters, nic="fifo", nic_rails=1)
    ready = plan_run(program, topology, node_of, parameters)
    try:
        result = simulate(program, topology, node_of, parameters=parameters, engine="compiled")
    except DeadlockError:
        return
    hops = watch(ready, np.arange(ready.messages))
    assert len(hops) == result.events
    for server in np.unique(hops["server"]):
        here = hops[hops["server"] == server]
        free = np.concatenate(([0.0], here["end"][:-1]))
        assert (np.diff(here["arrival"]) >= 0).all()
        assert (here["start"] == np.maximum(here["arrival"], free)).all()
        assert (here["end"] >= here["start"] + here["size"] / ready.bandwidth[server]).all()
        assert here["behind"].tolist() == [-1, *here["message"][:-1]]
    some = np.unique(hops["message"])[::2]
    kept = hops[np.isin(hops["message"], some)]
    assert np.array_equal(watch(ready, some), kept)


def test_a_small_synchronous_message_is_followed_to_its_receive_by_the_acknowledgement():
    lists = [[("ssend", 1, 8)], [("compute", 1.0), ("recv", 0, 8), ("compute", 1e-9)]]
    topology = mesh((2,)).with_links(latency=1e-3)
    _, path = followed(program_of("late", lists), topology, [0, 1])
    assert path.kind[0] == Segment.COMPUTE
    assert path.end[0] == 1.0
    assert set(path.cargo[1:].tolist()) == {3}
    lists[1][0] = ("compute", 1e-6)
    _, path = followed(program_of("early", lists), topology, [0, 1])
    assert path.kind[0] == Segment.SEND_OVERHEAD
    assert path.cargo[path.message >= 0].tolist() == sorted(path.cargo[path.message >= 0])


def test_no_path_is_followed_where_messages_wait_for_ranks_that_compute():
    program, parameters = program_of("none", [[]]), Parameters(progress="in_mpi_calls")
    result = simulate(
        program, mesh((2,)), [0], parameters=parameters, record=Record(operations=True)
    )
    with pytest.raises(ParameterError, match="path requires progress = asynchronous"):
        critical_path(plan_of(result), result)


def test_a_message_alone_spends_its_time_at_the_slowest_server():
    program = program_of("alone", [[("compute", 1e-5), ("send", 1, 50_000)], [("recv", 0, 50_000)]])
    parameters = Parameters(overhead_recv=3e-7, injection_bandwidth=5e9)
    topology = mesh((4,)).with_links(bandwidth=1e10, latency=1e-7)
    _, path = followed(program, topology, [0, 2], parameters)
    kinds, seconds = told(path)
    # All seven packets at the injection link; the tail of the last follows over the rest.
    assert kinds[:2] == ["COMPUTE", "SEND_OVERHEAD"]
    assert kinds[2:-5] == ["SERIALIZATION"] * 7
    assert kinds[-5:] == ["LATENCY"] * 4 + ["RECV_OVERHEAD"]
    assert seconds[:2] == pytest.approx([1e-5, 2e-7])
    assert fsum(seconds[2:-5]) == pytest.approx(50_000 / 5e9)
    assert seconds[-5:] == pytest.approx([2e-7, 1e-7, 1e-7, 2e-7, 3e-7])
    assert (path.server[2:-5] == topology.links).all()


def test_store_and_forward_serializes_at_every_server():
    program = program_of("alone", [[("send", 1, 4000)], [("recv", 0, 4000)]])
    parameters = Parameters(
        packet_size=1000,
        switching="store_and_forward",
        injection_bandwidth=1e9,
        ejection_bandwidth=1e9,
    )
    topology = mesh((4,)).with_links(bandwidth=1e9)
    result, path = followed(program, topology, [0, 3], parameters)
    shares = composition(path, result, topology).seconds
    assert shares["serialization"] == pytest.approx((3 + 2 + 4 - 1) * 1000 / 1e9)
    assert shares["queue"] == 0.0


def test_a_queue_names_the_link_and_who_is_in_front():
    # Both cross the link from 1 to 2; rank 0, which is as early, has the lower message.
    size = 8000
    program = program_of(
        "meet",
        [
            [("compute", 3e-6), ("send", 2, size)],
            [("compute", 3e-6), ("send", 3, size)],
            [("recv", 0, size)],
            [("recv", 1, size)],
        ],
    )
    parameters = Parameters(injection_bandwidth=1e300, ejection_bandwidth=1e300)
    topology = mesh((4,), slots=2).with_links(bandwidth=1e9, latency=0.0)
    result, path = followed(program, topology, [1, 1, 2, 2], parameters)
    whole = composition(path, result, topology)
    assert whole.seconds["queue"] == pytest.approx(size / 1e9)
    (link,) = [server for server in whole.servers if server.queue]
    assert (link.kind, link.place) == ("link", "1 -> 2")
    assert link.behind == [(0, 2, pytest.approx(size / 1e9))]
    assert link.serialization == pytest.approx(size / 1e9)


TICK, LATENCY = 1e-6, 0.25e-6  # seconds of a packet, and of a link
LINE = mesh((3,)).with_links(bandwidth=1e9, latency=LATENCY)
NARROW = Parameters(**as_fast_as(1e9), packet_size=1000)


@pytest.mark.parametrize("room", [1, 2])
def test_a_lone_message_waits_for_room_while_credits_come_back(room):
    """Every so many packets for two latencies, less what the packets between take."""
    packets = 9
    lists = [[("send", 1, packets * 1000)], [("recv", 0, packets * 1000)]]
    few = replace(NARROW, network_buffer=room)
    line = LINE.with_links(latency=2 * TICK)
    result, path = followed(program_of("alone", lists), line, [0, 2], few)
    shares = composition(path, result, line)
    around = TICK + 4 * TICK
    waits = (packets - 1) // room * (around - room * TICK)
    assert shares.seconds["room"] == pytest.approx(waits, rel=1e-9)
    assert shares.seconds["queue"] == 0.0
    assert shares.seconds["serialization"] == pytest.approx(packets * TICK)
    assert {server.place for server in shares.servers if server.room} <= {"node 0", "0 -> 1"}


def test_what_waits_behind_others_queues_and_what_an_idle_link_cannot_take_waits_for_room():
    """Two senders to one node share a link: with many places packets stand before that; with one
    the waiting is passed back to the sender, and each packet waits for a credit besides."""
    size = 20_000
    lists = [[("send", 2, size)], [("send", 2, size)], [("irecv", 0, size), ("irecv", 1, size)]]
    lists[2] += [("wait", 0), ("wait", 1)]
    seconds = {}
    for room in (1, 100):
        given = program_of("two", lists), LINE, [0, 1, 2], replace(NARROW, network_buffer=room)
        result, path = followed(*given)
        seconds[room] = composition(path, result, LINE).seconds
        assert fsum(seconds[room].values()) == pytest.approx(result.makespan, rel=1e-12)
    assert seconds[100]["room"] == 0.0
    assert seconds[100]["queue"] == pytest.approx(20 * TICK, rel=0.05)
    waits = seconds[100]["queue"] + 39 * 2 * LATENCY
    assert seconds[1]["room"] + seconds[1]["queue"] == pytest.approx(waits, rel=1e-9)
    assert seconds[1]["queue"] <= TICK


def test_the_path_adds_up_where_packets_of_a_message_pass_one_another():
    """Several channels to a class, and everyone sends to everyone: the path follows the packet that
    comes last, whatever its number, and no latency is longer than a link's."""
    ranks, size, ring = 15, 3000, torus((5, 3)).with_links(bandwidth=1e9, latency=1e-6)
    program = program_of(
        "everyone",
        [
            [("irecv", (r - k) % ranks, size) for k in range(1, ranks)]
            + [("isend", (r + k) % ranks, size) for k in range(1, ranks)]
            + [("wait", k) for k in range(2 * ranks - 2)]
            for r in range(ranks)
        ],
    )
    for room, channels in [(1, 4), (1, 6), (2, 4), (2, 6)]:
        few = {"network_buffer": room, "network_virtual_channels": channels}
        given = replace(NARROW, injection_bandwidth=3e9, **few)
        result, path = followed(program, ring, np.arange(ranks), given)
        assert path.begin[0] == 0.0
        assert (path.begin[1:] == path.end[:-1]).all()
        assert path.end[-1] == result.makespan
        travels = path.kind == Segment.LATENCY
        latency = plan_run(program, ring, np.arange(ranks), given).latency[path.server[travels]]
        assert path.seconds[travels] == pytest.approx(latency, rel=1e-6)


@pytest.mark.parametrize("late", ["sender", "receiver"])
def test_a_rendezvous_follows_whoever_is_late(late):
    pauses = {"sender": (5e-6, 1e-9), "receiver": (1e-9, 5e-6)}[late]
    program = program_of(
        "meet",
        [
            [("compute", pauses[0]), ("send", 1, 10**5)],
            [("compute", pauses[1]), ("recv", 0, 10**5)],
        ],
    )
    result, path = followed(program, mesh((2,)), [0, 1])
    assert Segment(path.kind[0]) == Segment.COMPUTE
    assert path.rank[0] == ("sender", "receiver").index(late)
    assert path.seconds[0] == 5e-6
    ways = {"sender": [1, 2, 0], "receiver": [2, 0]}[late]  # request, grant, data
    seen = path.cargo[path.server >= 0]
    assert seen[np.flatnonzero(np.diff(seen, prepend=-1))].tolist() == ways
    control = composition(path, result, mesh((2,))).control
    assert control == pytest.approx((len(ways) - 1) * (2e-7 + 1e-7 + 2e-7))


def test_a_sender_that_waits_follows_its_own_message_out_of_the_node():
    program = program_of("out", [[("send", 1, 10**6)], [("irecv", 0, 10**6)]])
    result, path = followed(program, mesh((2,)), [0, 1], Parameters(control_bytes=64))
    data = (path.cargo == 0) & (path.server >= 0)
    assert set(path.server[data]) == {2}  # injection of node 0, behind two links
    assert fsum(path.seconds[data]) == pytest.approx(10**6 / 24e9)
    assert result.finish.argmax() == 0


def test_end_points_are_on_the_path():
    program = program_of("gaps", [[("send", 1, 1001)] * 2, [("recv", 0, 1001)] * 2])
    parameters = Parameters(gap=1e-3, gap_per_byte=1e-6, overhead_send=0.0)
    _, path = followed(program, mesh((2,)), [0, 1], parameters)
    assert fsum(path.seconds[path.kind == Segment.END_POINT]) == pytest.approx(2e-3 + 1e-3)
    assert path.rank[0] == 0


@pytest.mark.parametrize("spec", ["mesh:4x2x2", "torus:4x4", "haec:2x2x2*2", "fattree:4x4"])
@pytest.mark.parametrize("eager_limit", [0, 64_000])
def test_the_path_of_a_recorded_run_adds_up(lowered, spec, eager_limit):
    program = lowered("mg.S.16")
    topology = topology_from_spec(spec)
    node_of = np.arange(16) // topology.slots[0]
    parameters = Parameters(eager_limit=eager_limit, compute_scale=1e-3)
    result, path = followed(program, topology, node_of, parameters)
    assert fsum(path.seconds) == pytest.approx(result.makespan, rel=1e-12)
    assert (path.begin[1:] == path.end[:-1]).all()
    assert len(np.unique(path.message)) > 100


def test_the_path_of_a_run_in_loops_adds_up():
    program = lower(nas_folded("lu.S.16", steps=4))
    result, path = followed(program, torus((4, 4)), np.arange(16))
    assert path.begin[0] == 0.0
    assert fsum(path.seconds) == pytest.approx(result.makespan, rel=1e-12)


@pytest.mark.parametrize(("engine", "recorded"), [("analytic", True), ("compiled", False)])
def test_a_path_needs_packets_and_recorded_operations(engine, recorded):
    run = program_of("one", [[("send", 1, 1)], [("recv", 0, 1)]]), mesh((2,)), [0, 1]
    result = simulate(*run, engine=engine, record=Record(operations=recorded))
    with pytest.raises(ParameterError, match=f"by {engine}: expected one by simpy or compiled"):
        critical_path(plan_of(result), result)


def test_nothing_takes_no_path():
    _, path = followed(program_of("nothing", [[], []]), mesh((2,)), [0, 1])
    assert len(path.kind) == 0

"""Times that can be written down: single messages, contention, and a published schedule.

o, O: overhead of sending and receiving; t: latencies; B: bandwidths; S bytes in packets of p.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from hopmap.simulator import ENGINES, Parameters, Record, program_of, simulate
from hopmap.topologies import haec, mesh, torus
from support.free_ends import FREE

EXACT = 1e-12
LINK, HOP = 10e9, 100e-9


def one_message(size, blocking=True):
    if blocking:
        return program_of("one", [[("send", 1, size)], [("recv", 0, size)]])
    return program_of("one", [[("isend", 1, size), ("wait", 0)], [("irecv", 0, size), ("wait", 0)]])


def time_of(size, hops, parameters, **links):
    topology = mesh((hops + 1,)).with_links(**links)
    return simulate(one_message(size), topology, [0, hops], parameters=parameters).makespan


@pytest.mark.parametrize("packet", [100_000_000, 8192, 1000])
def test_cut_through_is_latencies_plus_the_slowest_serialisation(packet):
    # T = o + t_injection + H t + t_ejection + S / min(B) + O, whatever the packets are.
    parameters = Parameters(packet_size=packet, eager_limit=2**60)
    for hops, size in product([1, 2, 7], [0, 1, 1000, 8192, 100_000, 12_345_678]):
        expected = (
            parameters.overhead_send
            + parameters.injection_latency
            + hops * HOP
            + parameters.ejection_latency
            + size / LINK
            + parameters.overhead_recv
        )
        found = time_of(size, hops, parameters)
        assert found == pytest.approx(expected, rel=EXACT), (hops, size)


@pytest.mark.parametrize("slowest", ["injection_bandwidth", "ejection_bandwidth"])
def test_cut_through_runs_at_the_slowest_server_wherever_it_is(slowest):
    parameters = Parameters(**FREE | {slowest: 1e9})
    expected = 3 * HOP + 1e6 / 1e9
    assert time_of(10**6, 3, parameters) == pytest.approx(expected, rel=EXACT)


def test_a_slow_link_holds_the_next_one_until_its_tail_is_off():
    # Links at 1 GB/s, ejection far faster: it is busy as long as the link before it.
    parameters = Parameters(**FREE, packet_size=10**9)
    topology = mesh((3,)).with_links(bandwidth=1e9, latency=0.0)
    result = simulate(one_message(1000), topology, [0, 2], parameters=parameters)
    assert result.link_busy.max() == pytest.approx(1e-6, rel=EXACT)
    assert result.ejection.busy.max() == pytest.approx(1e-6, rel=EXACT)
    assert result.makespan == pytest.approx(1e-6, rel=EXACT)


@pytest.mark.parametrize("hops", [1, 2, 7])
def test_store_and_forward_serialises_at_every_hop(hops):
    # T = o + H (t + S / B)
    parameters = Parameters(**FREE, switching="store_and_forward", packet_size=10**9)
    expected = hops * (HOP + 50_000 / LINK)
    assert time_of(50_000, hops, parameters) == pytest.approx(expected, rel=EXACT)


@pytest.mark.parametrize("hops", [1, 2, 7])
@pytest.mark.parametrize("packets", [1, 2, 50])
def test_packets_are_a_pipeline(hops, packets):
    # T = o + H t + (H + P - 1) p / B
    parameters = Parameters(**FREE, switching="store_and_forward", packet_size=1000)
    expected = hops * HOP + (hops + packets - 1) * 1000 / LINK
    assert time_of(1000 * packets, hops, parameters) == pytest.approx(expected, rel=EXACT)


def test_injection_and_ejection_are_two_more_hops_of_the_pipeline():
    # T = o + t_i + H t + t_e + (H + 2 + P - 1) p / B + O, when all bandwidths are equal
    parameters = Parameters(
        switching="store_and_forward",
        packet_size=1000,
        injection_bandwidth=LINK,
        ejection_bandwidth=LINK,
    )
    expected = 4 * 200e-9 + 3 * HOP + (3 + 2 + 20 - 1) * 1000 / LINK
    assert time_of(20_000, 3, parameters) == pytest.approx(expected, rel=EXACT)


def test_rendezvous_adds_a_request_and_a_grant():
    # Both are empty here: T = eager + 2 (t_i + H t + t_e)
    eager = time_of(10**6, 3, Parameters(eager_limit=2**60))
    waits = time_of(10**6, 3, Parameters(eager_limit=0))
    assert waits - eager == pytest.approx(2 * (200e-9 + 3 * HOP + 200e-9), rel=1e-9)
    controls = 8000
    longer = time_of(10**6, 3, Parameters(eager_limit=0, control_bytes=controls))
    assert longer - waits == pytest.approx(2 * controls / LINK, rel=1e-9)


def test_rendezvous_starts_when_the_receive_is_there():
    program = program_of("late", [[("send", 1, 10**6)], [("compute", 1.0), ("recv", 0, 10**6)]])
    parameters = Parameters(**FREE | {"eager_limit": 0})
    result = simulate(program, mesh((2,)), [0, 1], parameters=parameters)
    assert result.makespan == pytest.approx(1.0 + HOP + HOP + 10**6 / LINK, rel=EXACT)
    # The sender goes on when the last byte has left its node: at once, here.
    assert result.finish[0] == pytest.approx(1.0 + HOP, rel=EXACT)
    assert result.wait[0] == pytest.approx(1.0 + HOP, rel=EXACT)


def test_an_eager_sender_does_not_wait():
    result = simulate(one_message(1000), mesh((2,)), [0, 1])
    assert result.finish[0] == Parameters().overhead_send
    assert result.wait[0] == 0


@pytest.mark.parametrize("size", [1000, 10**6])
def test_blocking_calls_are_non_blocking_ones_that_are_waited_for(size):
    times = [
        simulate(one_message(size, blocking), mesh((4,)), [0, 3]).finish
        for blocking in (True, False)
    ]
    assert np.array_equal(*times)


@pytest.mark.parametrize("size", [0, 1000, 10**6])
def test_ranks_of_one_node_use_its_memory(size):
    parameters = Parameters(eager_limit=2**60)
    result = simulate(one_message(size), mesh((2,), slots=2), [1, 1], parameters=parameters)
    expected = 200e-9 + 200e-9 + size / 20e9 + 200e-9
    assert result.makespan == pytest.approx(expected, rel=EXACT)
    assert result.link_messages.sum() == 0
    assert result.injection.messages.sum() == 0
    assert result.memory.bytes.tolist() == [0, size]


def test_ping_pong_gives_the_parameters_back():
    sizes = np.array([0, 8192, 81920, 819200])
    parameters = Parameters(eager_limit=2**60)
    round_trips = []
    for size in sizes:
        program = program_of(
            "ping-pong",
            [[("send", 1, size), ("recv", 1, size)], [("recv", 0, size), ("send", 0, size)]],
        )
        topology = mesh((4,))
        round_trips.append(simulate(program, topology, [0, 3], parameters=parameters).makespan)
    beta, alpha = np.polyfit(sizes, np.array(round_trips) / 2, 1)
    assert beta == pytest.approx(1 / LINK, rel=1e-9)
    assert alpha == pytest.approx(4 * 200e-9 + 3 * HOP, rel=1e-9)


# Contention


@pytest.mark.parametrize("senders", [2, 5, 16])
@pytest.mark.parametrize("packet", [1000, 10**6])
def test_incast_takes_the_last_link_n_times(senders, packet):
    # All sit on one node and share its only link: n S / B.
    size = 10_000
    program = program_of(
        "incast",
        [[("send", senders, size)]] * senders
        + [[("irecv", s, size) for s in range(senders)] + [("wait", s) for s in range(senders)]],
    )
    topology = mesh((2,), slots=senders)
    parameters = Parameters(**FREE, packet_size=packet)
    result = simulate(program, topology, [0] * senders + [1], parameters=parameters)
    assert result.makespan == pytest.approx(HOP + senders * size / LINK, rel=EXACT)
    assert result.link_queue.max() == pytest.approx(
        (senders * size - min(size, packet)) / LINK, rel=1e-9
    )


def test_incast_from_all_sides_takes_the_ejection_link_n_times():
    size, senders = 10_000, 4
    center = 4  # of a 3x3 mesh; its neighbours are 1, 3, 5, 7
    program = program_of(
        "incast", [[("send", 4, size)]] * senders + [[("recv", s, size) for s in range(senders)]]
    )
    parameters = Parameters(**FREE | {"ejection_bandwidth": LINK})
    result = simulate(program, mesh((3, 3)), [1, 3, 5, 7, center], parameters=parameters)
    assert result.makespan == pytest.approx(HOP + senders * size / LINK, rel=EXACT)
    assert result.ejection.busy[center] == pytest.approx(senders * size / LINK, rel=EXACT)


def test_two_flows_share_a_link_packet_by_packet():
    # Nodes 0 and 1 send to 2 over the link from 1 to 2; both come in at its full speed.
    size, packet = 10**6, 1000
    program = program_of(
        "share", [[("send", 2, size)], [("send", 2, size)], [("recv", 0, size), ("recv", 1, size)]]
    )
    parameters = Parameters(**FREE | {"injection_bandwidth": LINK}, packet_size=packet)
    topology = mesh((3,)).with_links(latency=0.0)
    result = simulate(
        program, topology, [0, 1, 2], parameters=parameters, record=Record(messages=True)
    )
    first, last = np.sort(result.message_times.delivered)
    assert last == pytest.approx(2 * size / LINK, rel=EXACT)
    # Half the bandwidth each: both end within a packet of each other.
    assert first >= last - 2 * packet / LINK


def test_ranks_of_one_node_share_its_injection_link():
    size = 10**5
    program = program_of(
        "inject",
        [[("send", 2, size)], [("send", 3, size)], [("recv", 0, size)], [("recv", 1, size)]],
    )
    parameters = Parameters(**FREE | {"injection_bandwidth": LINK})
    # Up and down: two links, one injection.
    result = simulate(program, mesh((3,), slots=2), [1, 1, 0, 2], parameters=parameters)
    assert result.makespan == pytest.approx(HOP + 2 * size / LINK, rel=EXACT)


@pytest.mark.parametrize("n", [4, 8, 12])
def test_all_to_all_on_an_even_ring_loads_links_with_n_squared_over_8(n):
    operations = [
        [("irecv", s, 8) for s in range(n) if s != r] + [("send", d, 8) for d in range(n) if d != r]
        for r in range(n)
    ]
    result = simulate(program_of("all", operations), torus((n,), ties="parity"), range(n))
    assert result.link_messages.max() == n * n // 8
    assert result.link_messages.min() == n * n // 8


def ring_shift(n, size):
    return program_of(
        "shift",
        [
            [("irecv", (r - 1) % n, size), ("send", (r + 1) % n, size), ("wait", 0)]
            for r in range(n)
        ],
    )


def test_ring_shift_uses_every_upward_link_once_and_nobody_waits_for_a_link():
    n, size = 8, 50_000
    result = simulate(ring_shift(n, size), torus((n,)), range(n))
    assert sorted(result.link_messages.tolist()) == [0] * n + [1] * n
    assert result.makespan == time_of(size, 1, Parameters())


def test_disjoint_pairs_do_not_slow_each_other_down():
    size = 50_000
    program = program_of(
        "pairs",
        [[("send", r + 1, size)] if r % 2 == 0 else [("recv", r - 1, size)] for r in range(8)],
    )
    result = simulate(program, mesh((8,)), range(8))
    assert set(result.finish[1::2]) == {time_of(size, 1, Parameters())}
    assert result.link_waited.max() <= size / Parameters().packet_size * size / LINK


@pytest.mark.parametrize("engine", ENGINES)
def test_loggp_binomial_reduce(engine):
    """LogGOPSim's README: 8 ranks, 1024 bytes, L=2500 o=1500 G=6, in whole units of time."""
    o, latency, size = 1500.0, 2500.0, 1024
    operations = [
        [("recv", 4, size), ("recv", 2, size), ("recv", 1, size)],
        [("recv", 5, size), ("recv", 3, size), ("send", 0, size)],
        [("recv", 6, size), ("send", 0, size)],
        [("recv", 7, size), ("send", 1, size)],
        [("send", 0, size)],
        [("send", 1, size)],
        [("send", 2, size)],
        [("send", 3, size)],
    ]
    parameters = Parameters(**FREE | {"overhead_send": o, "overhead_recv": o}, gap_per_byte=6.0)
    # LogGP is the same latency between any two. In the HAEC Box that is a wireless hop: ranks with
    # an even number of ones in binary on one board, odd ones on the other.
    topology = haec((2, 2, 2)).with_links("wireless", bandwidth=1e300, latency=latency)
    result = simulate(
        program_of("reduce", operations),
        topology,
        [0, 4, 5, 1, 6, 2, 3, 7],
        parameters=parameters,
        engine=engine,
    )
    assert result.finish.tolist() == [34914, 24776, 13138, 13138, 1500, 1500, 1500, 1500]


@pytest.mark.parametrize("engine", ENGINES)
def test_loggp_train_of_messages(engine):
    """LogGP, 1995: the n-th message of k bytes is there at o + n (k-1) G + (n-1) g + L.

    Ranks of one node have end points of their own; a rendezvous' request has no gap, its data has.
    """
    o, gap, per_byte, latency, size, n = 10.0, 7.0, 3.0, 100.0, 21, 4
    free = FREE | {"overhead_send": o, "overhead_recv": o, "gap": gap, "gap_per_byte": per_byte}
    topology = mesh((2,), slots=2).with_links(bandwidth=1e300, latency=latency)
    train = [("isend", 2, size)] * n
    lists = [
        train,
        [("isend", 3, size)],
        [("recv", 0, size)] * n,
        [("recv", 1, size)],
    ]
    result = simulate(
        program_of("train", lists),
        topology,
        [0, 0, 1, 1],
        parameters=Parameters(**free),
        engine=engine,
        record=Record(messages=True),
    )
    times = result.message_times
    assert times.sent.tolist() == [10, 20, 30, 40, 10]
    # (k-1) G = 60: at the end point until 70, 137, 204, 271
    assert times.delivered.tolist() == [170, 237, 304, 371, 170]
    assert result.finish.tolist() == [40, 10, 381, 180]
    waits = simulate(
        program_of("one", [[("send", 1, size)], [("recv", 0, size)]]),
        topology,
        [0, 1],
        parameters=Parameters(**free | {"eager_limit": 0}),
        engine=engine,
    )
    assert waits.finish[1] == o + 3 * latency + (size - 1) * per_byte + o


@pytest.mark.parametrize("engine", ENGINES)
def test_bytes_of_an_eager_message_cost_both_ranks_time_and_those_of_a_rendezvous_none(engine):
    """LogGOPS's O: o + S O + t + S / B + S O + o; from the eager limit on, 3 t and no S O."""
    per_byte, topology = 1e-9, mesh((2,)).with_links(bandwidth=LINK, latency=HOP)
    parameters = Parameters(**FREE | {"eager_limit": 1001}, overhead_per_byte=per_byte)
    times = [
        simulate(one_message(size), topology, [0, 1], parameters=parameters, engine=engine).makespan
        for size in (1000, 1001)
    ]
    assert times[0] == pytest.approx(1000 * (2 * per_byte + 1 / LINK) + HOP, rel=EXACT)
    assert times[1] == pytest.approx(3 * HOP + 1001 / LINK, rel=EXACT)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_request_and_a_grant_are_handled_before_they_are_answered(engine):
    """A rendezvous takes 3 t + 2 c + S / B with c to handle a control message."""
    handling, topology = 2e-6, mesh((2,)).with_links(bandwidth=LINK, latency=HOP)
    parameters = Parameters(**FREE | {"eager_limit": 1000}, overhead_control=handling)
    run = [one_message(size) for size in (999, 1000)]
    eager, rendezvous = (
        simulate(each, topology, [0, 1], parameters=parameters, engine=engine).makespan
        for each in run
    )
    assert eager == pytest.approx(HOP + 999 / LINK, rel=EXACT)
    assert rendezvous == pytest.approx(3 * HOP + 2 * handling + 1000 / LINK, rel=EXACT)

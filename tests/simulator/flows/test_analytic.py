"""The analytic engine: the closed forms, and equal to packets wherever no two messages meet."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopmap.simulator import ENGINES, DeadlockError, Parameters, Record, program_of, simulate
from hopmap.topologies import mesh, topology_from_spec
from support.slow import examples

EXACT = 1e-12
SPECS = ["mesh:5", "torus:4x2*2", "mesh:3x3", "haec:2x2x2*2", "mesh:1*9"]
SPEEDS = st.sampled_from([1e9, 3e9, 10e9, 24e9])


@st.composite
def relays(draw):
    """Whoever gets a message sends the next one, so that no two are ever under way."""
    topology = topology_from_spec(draw(st.sampled_from(SPECS)))
    for kind in topology.kinds:
        topology = topology.with_links(kind.name, bandwidth=draw(SPEEDS), latency=1e-7)
    ranks = draw(st.integers(1, topology.nodes))
    hops = st.tuples(
        st.integers(0, ranks - 1),
        st.sampled_from([0, 1, 999, 5000, 70_000, 81_920]),
        st.booleans(),
        st.sampled_from([0.0, 1e-6]),
    )
    lists = [[] for _ in range(ranks)]
    source = 0
    for target, size, blocking, pause in draw(st.lists(hops, max_size=20)):
        lists[source].append(("compute", pause))
        if blocking and source != target:
            lists[source].append(("send", target, size))
            lists[target].append(("recv", source, size))
        else:
            lists[source].append(("isend", target, size))
            sent = len(lists[source]) - 1
            lists[target].append(("irecv", source, size))
            lists[target].append(("wait", len(lists[target]) - 1))
            lists[source].append(("wait", sent))
        source = target
    parameters = Parameters(
        eager_limit=draw(st.sampled_from([0, 2000, 10**6])),
        packet_size=draw(st.sampled_from([700, 8192, 10**6])),
        control_bytes=draw(st.sampled_from([0, 64])),
        overhead_send=draw(st.sampled_from([0.0, 2e-7])),
        gap_per_byte=draw(st.sampled_from([0.0, 1e-10])),
        injection_bandwidth=draw(SPEEDS),
        ejection_bandwidth=draw(SPEEDS),
        switching=draw(st.sampled_from(["cut_through", "store_and_forward"])),
    )
    return program_of("relay", lists), topology, np.arange(ranks), parameters


@examples(150)
@given(relays())
def test_alone_messages_take_as_long_as_their_packets_do(run):
    program, topology, node_of, parameters = run
    packets, alone = (
        simulate(
            program,
            topology,
            node_of,
            parameters=parameters,
            engine=engine,
            record=Record(messages=True),
        )
        for engine in ("simpy", "analytic")
    )
    assert (alone.messages, alone.bytes, alone.controls) == (
        packets.messages,
        packets.bytes,
        packets.controls,
    )
    for column in ("finish", "compute", "communicate", "wait", "link_busy"):
        ours, theirs = getattr(alone, column), getattr(packets, column)
        assert ours == pytest.approx(theirs, rel=EXACT, abs=EXACT * packets.makespan)
    for column in ("link_messages", "link_bytes"):
        assert np.array_equal(getattr(alone, column), getattr(packets, column))
    for ends in ("injection", "ejection", "memory"):
        ours, theirs = getattr(alone, ends), getattr(packets, ends)
        assert np.array_equal(ours.bytes, theirs.bytes)
        assert ours.busy == pytest.approx(theirs.busy, rel=EXACT, abs=EXACT * packets.makespan)
    for moment in ("sent", "delivered"):
        ours, theirs = (getattr(r.message_times, moment) for r in (alone, packets))
        assert ours == pytest.approx(theirs, rel=EXACT)


def test_messages_do_not_slow_each_other_down():
    size, senders = 10_000, 5
    lists = [[("send", senders, size)]] * senders
    lists = [*lists, [("recv", s, size) for s in range(senders)]]
    topology = mesh((2,), slots=senders)
    one = [[("send", 1, size)], [("recv", 0, size)]]
    times = [
        simulate(
            program_of("incast", some),
            topology,
            nodes,
            engine="analytic",
            record=Record(messages=True),
        ).message_times.delivered
        for some, nodes in ((lists, [0] * senders + [1]), (one, [0, 1]))
    ]
    assert set(times[0].tolist()) == set(times[1].tolist())


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_names_a_deadlock_in_the_same_words(engine):
    lists = [
        [("compute", 1.0), ("send", 1, 10**6), ("recv", 1, 10**6)],
        [("send", 0, 10**6), ("recv", 0, 10**6)],
        [("recv", 0, 8, 5)],
        [("isend", 0, 10**6), ("wait", 0)],
    ]
    with pytest.raises(DeadlockError) as error:
        simulate(program_of("stuck", lists), mesh((4,)), range(4), engine=engine)
    assert str(error.value) == (
        "stuck: deadlock after 1 s, 4 of 4 ranks wait: "
        "rank 0: send to rank 1 (tag 0, communicator 0); "
        "rank 1: send to rank 0 (tag 0, communicator 0); "
        "rank 2: recv from rank 0 (tag 5, communicator 0), which no rank sends; "
        "rank 3: wait for isend to rank 0 (tag 0, communicator 0), which no rank receives"
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_counts_progress_and_repeats_itself(engine):
    count = 1000
    program = program_of(
        "many",
        [
            [("isend", 1, 5000)] * count + [("wait", k) for k in range(count)],
            [("irecv", 0, 5000)] * count + [("wait", k) for k in range(count)],
        ],
    )
    one, other = (
        simulate(program, mesh((2,)), [0, 1], engine=engine, record=Record(messages=True))
        for _ in range(2)
    )
    assert one.finish.tobytes() == other.finish.tobytes()
    assert one.message_times.delivered.tobytes() == other.message_times.delivered.tobytes()
    assert one.link_messages.max() == count

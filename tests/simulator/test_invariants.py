"""What holds for every program, mapping and network."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopmap.simulator import ENGINES, Op, Parameters, Record, program_of, simulate
from hopmap.topologies import haec, mesh, topology_from_spec, torus
from support.slow import examples

EXAMPLES = examples(60)
SPECS = ["mesh:5", "torus:4x2*2", "mesh:3x3", "torus:5,ties=parity", "haec:2x2x2*2", "mesh:1*9"]
SPECS += ["hypercube:3", "fattree:2x3:1x2", "fattree:2x2x2,routing=ecmp", "dragonfly:1x2x1*2"]
SPECS += ["cluster:2*3+1"]


def operations_of(ranks, messages, pauses):
    """A program that cannot deadlock: every rank meets the messages in one common order."""
    lists = [[("compute", pause)] for pause in pauses]
    for source, target, size, tag, blocking, pause in messages:
        if pause:
            lists[source].append(("compute", pause))
        if source == target or not blocking:
            waits = {}
            for rank, word in ((target, "irecv"), (source, "isend")):
                other = source if word == "irecv" else target
                waits[word] = len(lists[rank])
                lists[rank].append((word, other, size, tag))
            lists[source].append(("wait", waits["isend"]))
            lists[target].append(("wait", waits["irecv"]))
        else:
            lists[source].append(("send", target, size, tag))
            lists[target].append(("recv", source, size, tag))
    return lists


@st.composite
def runs(draw, specs=SPECS, most=25, gaps=False):
    """Ranks, messages and pauses, a topology and a mapping, and parameters."""
    topology = topology_from_spec(draw(st.sampled_from(specs)))
    slots = np.repeat(np.arange(topology.nodes), topology.slots)
    ranks = draw(st.integers(1, len(slots)))
    rank = st.integers(0, ranks - 1)
    seconds = st.sampled_from([0.0, 0.0, 1e-6, 3.7e-6])
    message = st.tuples(
        rank,
        rank,
        st.sampled_from([0, 1, 999, 5000, 70_000]),
        st.integers(0, 1),
        st.booleans(),
        seconds,
    )
    messages = draw(st.lists(message, max_size=most))
    pauses = draw(st.lists(seconds, min_size=ranks, max_size=ranks))
    node_of = np.array(draw(st.permutations(slots.tolist())))[:ranks]
    parameters = Parameters(
        eager_limit=draw(st.sampled_from([0, 2000, 10**6])),
        packet_size=draw(st.sampled_from([700, 8192, 10**6])),
        control_bytes=draw(st.sampled_from([0, 64])),
        overhead_send=draw(st.sampled_from([0.0, 2e-7])),
        overhead_recv=draw(st.sampled_from([0.0, 3e-7])),
        gap=draw(st.sampled_from([0.0, 1e-6] if gaps else [0.0])),
        gap_per_byte=draw(st.sampled_from([0.0, 2e-10] if gaps else [0.0])),
        switching=draw(st.sampled_from(["cut_through", "store_and_forward"])),
    )
    return operations_of(ranks, messages, pauses), messages, topology, node_of, parameters


def replayed(run, **more):
    """Simulate a run that was drawn."""
    lists, _, topology, node_of, parameters = run
    return simulate(program_of("any", lists), topology, node_of, parameters=parameters, **more)


def columns(result):
    return [
        result.finish,
        result.compute,
        result.communicate,
        result.wait,
        result.link_messages,
        result.link_bytes,
        result.link_busy,
        result.link_queue,
        result.link_waited,
        *result.injection,
        *result.ejection,
        *result.memory,
        *result.message_times,
    ]


@pytest.mark.parametrize("engine", ENGINES)
@EXAMPLES
@given(run=runs(gaps=True))
def test_what_holds_of_every_run(engine, run):
    lists, _, topology, node_of, parameters = run
    program = program_of("any", lists)
    result, again = (
        simulate(
            program,
            topology,
            node_of,
            parameters=parameters,
            engine=engine,
            record=Record(operations=True),
        )
        for _ in range(2)
    )
    the_same_run_twice_gives_the_same_bytes(result, again)
    the_time_of_a_rank_is_computing_overhead_and_waiting(result)
    links_carry_what_the_static_metric_says(result, program, topology, node_of)
    operations_account_for_every_second_of_every_rank(result, program, parameters)
    receives_are_matched_one_to_one_on_their_channel(program)


def the_same_run_twice_gives_the_same_bytes(*results):
    one, other = map(columns, results)
    assert [column.tobytes() for column in one] == [column.tobytes() for column in other]


def the_time_of_a_rank_is_computing_overhead_and_waiting(result):
    parts = result.compute + result.communicate + result.wait
    assert np.allclose(result.finish, parts, rtol=1e-12, atol=0)
    assert (result.wait >= 0).all()


def links_carry_what_the_static_metric_says(result, program, topology, node_of):
    traffic = program.traffic()
    source, target = node_of[traffic.src], node_of[traffic.dst]
    assert np.array_equal(result.link_messages, topology.loads(source, target, traffic.messages))
    assert np.array_equal(result.link_bytes, topology.loads(source, target, traffic.bytes))
    away = source != target
    for servers, place, used in (
        (result.injection, source, away),
        (result.ejection, target, away),
        (result.memory, source, ~away),
    ):
        for counted, weight in (
            (servers.messages, traffic.messages),
            (servers.bytes, traffic.bytes),
        ):
            expected = np.bincount(place[used], weight[used], minlength=topology.nodes)
            assert np.array_equal(counted, expected)


def operations_account_for_every_second_of_every_rank(result, program, parameters):
    ops, times = result.operations, result.message_times
    kind = program.kind[ops.row]
    assert (np.diff(ops.row) == 1).all()  # no loops: every row once
    assert (ops.begin <= ops.ready).all()
    assert (ops.ready <= ops.end).all()
    assert np.array_equal(ops.end[kind == Op.FINISH], result.finish)
    same = np.diff(ops.task) == 0
    assert np.array_equal(ops.end[:-1][same], ops.begin[1:][same])
    assert (ops.begin[1:][~same] == 0).all()

    def by_rank(seconds):
        return np.bincount(ops.task, seconds, minlength=program.ranks)

    assert by_rank(ops.ready - ops.begin) == pytest.approx(result.compute)
    posted = ops.ready + np.where(kind <= Op.ISEND, parameters.overhead_send, 0.0)
    posted[kind == Op.FINISH] = 0.0
    waited = np.where(np.isnan(ops.woken), 0.0, ops.woken - posted)
    assert by_rank(waited) == pytest.approx(result.wait)

    # A send happens after its overhead; what ends a wait is what the model says.
    sends = np.flatnonzero(np.isin(kind, (Op.SEND, Op.ISEND)))
    assert np.array_equal(times.sent, ops.ready[sends] + parameters.overhead_send)
    assert np.array_equal(ops.message[sends], np.arange(result.messages))
    for blocked in np.flatnonzero(~np.isnan(ops.woken)):
        begun = ops.awaited[blocked]
        message = ops.message[begun]
        if kind[begun] in (Op.RECV, Op.IRECV):
            assert ops.woken[blocked] == times.delivered[message]
        else:
            assert times.size[message] >= parameters.eager_limit
            assert times.granted[message] <= ops.woken[blocked] <= times.delivered[message]
    eager = times.size < parameters.eager_limit
    assert np.isnan(times.requested[eager]).all()
    taken = np.flatnonzero(np.isin(kind, (Op.RECV, Op.IRECV)) & (ops.message >= 0))
    posted = np.full(result.messages, np.nan)
    posted[ops.message[taken]] = ops.ready[taken]
    granting = np.maximum(times.requested, posted)[~eager]
    for before, after in (
        (times.sent, times.departed),
        (times.departed, times.delivered),
        (times.sent[~eager], times.requested[~eager]),
        (granting, times.granted[~eager]),
        (times.granted[~eager], times.departed[~eager]),
    ):
        assert (before <= after).all()


def receives_are_matched_one_to_one_on_their_channel(program):
    rank = program.rank_of_row()
    sends, takes = program.sends(), program.receives()
    assert (takes >= 0).all()
    assert len(set(takes.tolist())) == len(takes)
    assert np.array_equal(rank[sends], program.peer[takes])
    assert np.array_equal(program.peer[sends], rank[takes])
    assert np.array_equal(program.tag[sends], program.tag[takes])
    assert set(program.kind[takes].tolist()) <= {Op.RECV, Op.IRECV}


@EXAMPLES
@given(runs())
def test_makespan_is_between_the_busiest_resource_and_one_after_the_other(run):
    lists, _, topology, _, parameters = run
    program = program_of("any", lists)
    result = replayed(run, record=Record(messages=True))
    assert (result.compute + result.communicate).max() <= result.makespan * (1 + 1e-12)
    # What is received is over before the end; here all is.
    over = max(np.max(result.message_times.delivered, initial=0.0), result.makespan)
    for busy in (result.link_busy, result.injection.busy, result.ejection.busy, result.memory.busy):
        assert busy.max(initial=0.0) <= over * (1 + 1e-12)
    bandwidth = np.array([kind.bandwidth for kind in topology.kinds])[topology.link_kind]
    assert (result.link_bytes / bandwidth <= result.link_busy * (1 + 1e-9) + 1e-15).all()

    slowest = min(bandwidth.min(initial=np.inf), 20e9)
    longest = 4e-7 + 100e-9 * topology.diameter()
    hops = topology.diameter() + 2
    serial = result.compute.sum() + result.communicate.sum()
    for size in program.size[program.sends()]:
        packet = min(size, parameters.packet_size)
        serial += 3 * longest + (size + hops * (packet + 2 * parameters.control_bytes)) / slowest
    assert result.makespan <= serial * (1 + 1e-9)


@EXAMPLES
@given(runs(specs=["torus:5x3", "torus:3x3x3"]), st.data())
def test_shifting_all_ranks_around_a_torus_changes_nothing(run, data):
    # Odd rings: at half an even ring the direct way is not the same everywhere.
    lists, _, topology, node_of, parameters = run
    dims = np.array(topology.dims)
    shift = np.array([data.draw(st.integers(0, d - 1)) for d in dims])
    strides = np.concatenate(([1], np.cumprod(dims[:-1])))
    moved = ((topology.coords + shift) % dims) @ strides
    here = replayed(run)
    there = replayed((lists, None, topology, moved[node_of], parameters))
    assert np.array_equal(here.finish, there.finish)
    assert sorted(here.link_bytes) == sorted(there.link_bytes)


def test_renaming_ranks_changes_nothing_where_no_two_events_coincide():
    # Rank numbers decide between events of one instant: pauses are random, and messages of one
    # packet, since trains of equal packets fall into step.
    rng = np.random.default_rng(1)
    topology = torus((4, 2), slots=2)
    parameters = Parameters(packet_size=10**6)
    for _ in range(20):
        ranks = 12
        messages = [
            (
                *rng.integers(0, ranks, 2),
                int(rng.integers(0, 10**5)),
                0,
                bool(rng.integers(2)),
                rng.random() * 1e-5,
            )
            for _ in range(40)
        ]
        pauses = rng.random(ranks) * 1e-5
        node_of = rng.permutation(np.repeat(np.arange(8), 2))[:ranks]
        name = rng.permutation(ranks)
        renamed = [(name[s], name[d], *rest) for s, d, *rest in messages]
        lists = operations_of(ranks, messages, pauses)
        old = replayed((lists, messages, topology, node_of, parameters))
        paused, placed = np.empty(ranks), np.empty(ranks, dtype=np.int64)
        paused[name], placed[name] = pauses, node_of
        lists = operations_of(ranks, renamed, paused)
        new = replayed((lists, renamed, topology, placed, parameters))
        assert np.array_equal(old.finish, new.finish[name])
        assert np.array_equal(old.link_busy, new.link_busy)


@EXAMPLES
@given(runs())
def test_all_twice_as_large_takes_exactly_twice_as_long(run):
    lists, _, topology, node_of, parameters = run
    twice = [
        [
            (word, *given)
            if word == "wait"
            else (word, 2 * given[0])
            if word == "compute"
            else (word, given[0], 2 * given[1], given[2])
            for word, *given in operations
        ]
        for operations in lists
    ]
    doubled = replace(
        parameters,
        **{
            key: 2 * getattr(parameters, key)
            for key in (
                "packet_size",
                "eager_limit",
                "control_bytes",
                "overhead_send",
                "overhead_recv",
                "injection_latency",
                "ejection_latency",
                "memory_latency",
            )
        },
    )
    slower = topology
    for kind in topology.kinds:
        slower = slower.with_links(kind.name, latency=2 * kind.latency)
    once, again = replayed(run), replayed((twice, None, slower, node_of, doubled))
    assert np.array_equal(again.finish, 2 * once.finish)
    assert np.array_equal(again.link_busy, 2 * once.link_busy)


@EXAMPLES
@given(runs())
def test_a_perfect_network_leaves_the_critical_path_of_the_computation(run):
    lists, messages, topology, node_of, parameters = run
    perfect = replace(
        parameters,
        **{
            f"{end}_{what}": value
            for end in ("injection", "ejection", "memory")
            for what, value in (("bandwidth", 1e300), ("latency", 0.0))
        },
        overhead_send=0.0,
        overhead_recv=0.0,
    )
    topology = topology.with_links(bandwidth=1e300, latency=0.0)
    result = replayed((lists, None, topology, node_of, perfect))

    clock = [operations[0][1] for operations in lists]
    for source, target, size, _, _, pause in messages:
        clock[source] += pause
        if size >= parameters.eager_limit:
            clock[source] = max(clock[source], clock[target])
        clock[target] = max(clock[target], clock[source])
    assert np.allclose(result.finish, clock, rtol=1e-12, atol=1e-250)


@EXAMPLES
@given(runs(most=40))
def test_eager_messages_of_a_pair_do_not_overtake_each_other(run):
    *given, parameters = run
    eager = *given, replace(parameters, eager_limit=2**60)
    times = replayed(eager, record=Record(messages=True)).message_times
    for source in range(len(run[0])):
        for target in range(len(run[0])):
            pair = (times.source == source) & (times.target == target)
            assert (np.diff(times.sent[pair]) >= 0).all()
            assert (np.diff(times.delivered[pair]) >= 0).all()


def test_packets_tend_to_fair_shares_as_they_shrink():
    # Three flows, from 1, 3 and 5 over the link from 4 to 7, end together if packets are small.
    size = 10**6
    lists = [[("send", 3, size)] for _ in range(3)] + [[("recv", s, size) for s in range(3)]]
    node_of, topology = [1, 3, 5, 7], mesh((3, 3)).with_links(latency=0.0)
    spreads = []
    for packet in (10**6, 10**5, 10**4, 10**3):
        parameters = Parameters(
            packet_size=packet,
            eager_limit=2**60,
            injection_bandwidth=10e9,
            ejection_bandwidth=10e9,
        )
        run = lists, None, topology, node_of, parameters
        result = replayed(run, record=Record(messages=True))
        spreads.append(np.ptp(result.message_times.delivered))
    assert np.all(np.diff(spreads) < 0)
    assert spreads[-1] < 0.01 * 3 * size / 10e9


def test_haec_uses_both_kinds_of_link():
    program = program_of(
        "z", [[("send", 1, 1000), ("send", 2, 500)], [("recv", 0, 1000)], [("recv", 0, 500)]]
    )
    topology = haec((2, 2, 2))
    result = simulate(program, topology, [0, 7, 1])
    by_kind = np.bincount(topology.link_kind, result.link_bytes)
    assert by_kind.tolist() == [500.0, 1000.0]

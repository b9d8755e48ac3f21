"""One-sided operations replayed: times by hand, powers of two, on every engine."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopmap.simulator import ENGINES, Parameters, Record, lower, lower_bounds, simulate
from hopmap.simulator.export.perfetto import write_perfetto
from hopmap.topologies import mesh, torus
from hopmap.traces import Kind
from hopmap.traces.trace import Lock
from hopmap.traces.traffic import one_sided_traffic_of
from support.free_ends import FREE
from support.made_traces import (
    atomic,
    fence,
    flush,
    get,
    group_sync,
    lock,
    made_window,
    put,
    unlock,
    window_trace,
)
from support.results import bits
from support.slow import examples

HOP, SEND, RECV = 2.0**-20, 2.0**-21, 2.0**-19
SIZE, SPEED = 2**16, 2.0**30
WIRE = SIZE / SPEED
LATE = 2.0**-6  # far behind all else
PARAMETERS = Parameters(
    **FREE | {"overhead_send": SEND, "overhead_recv": RECV}, packet_size=64 * SIZE
)
ASIDE = (0, "MPI_Comm_rank")  # a call that moves nothing
# Two ranks that meet: both send, both receive.
MEET = SEND + HOP + RECV
# From the begin of a put to its acknowledgement.
PUT = SEND + WIRE + HOP + HOP
ASK = SEND + HOP + HOP + RECV  # for a lock

engines = pytest.mark.parametrize("engine", ENGINES)


def finish(ranks, engine, node_of=None, groups=(), nodes=None, windows=(0,), **given):
    network = mesh((nodes or len(ranks),)).with_links(bandwidth=SPEED, latency=HOP)
    program = lower(window_trace(ranks, groups, windows))
    assert program.omitted == ()
    placed = np.arange(len(ranks)) if node_of is None else node_of
    parameters = replace(PARAMETERS, **given)
    result = simulate(program, network, placed, parameters=parameters, engine=engine)
    bound = lower_bounds(program, network, placed, parameters=parameters)
    assert max((each.seconds for each in bound.values()), default=0.0) <= result.makespan
    return result.finish.tolist()


@engines
def test_a_put_that_is_flushed_takes_its_way_and_that_of_an_acknowledgement(engine):
    assert finish([[put(0, 1, SIZE), flush(0, 1)], [ASIDE]], engine) == [PUT, 0.0]


@engines
@pytest.mark.parametrize("hops", [2, 3])
def test_over_several_links_both_ways_are_longer(engine, hops):
    ranks = [[put(0, 1, SIZE), flush(0, 1)], [ASIDE]]
    expected = SEND + WIRE + 2 * hops * HOP
    assert finish(ranks, engine, [0, hops], nodes=hops + 1) == [expected, 0.0]


@engines
def test_a_put_that_is_complete_here_alone_is_not_acknowledged(engine):
    assert finish([[put(0, 1, SIZE), flush(0, 1, there=False)], [ASIDE]], engine) == [SEND, 0.0]


@engines
def test_a_large_put_asks_for_nothing_and_is_complete_here_when_its_data_have_left(engine):
    ranks = [[put(0, 1, SIZE), flush(0, 1, there=False)], [ASIDE]]
    left = SEND + WIRE + (HOP if engine == "flow" else 0)
    assert finish(ranks, engine, eager_limit=0, injection_bandwidth=SPEED)[0] == pytest.approx(left)


@engines
def test_a_get_is_a_request_and_the_data_that_come_back(engine):
    expected = SEND + HOP + WIRE + HOP + RECV
    assert finish([[get(0, 1, SIZE), flush(0, 1)], [ASIDE]], engine) == [expected, 0.0]


@engines
def test_an_atomic_operation_takes_data_there_and_brings_some_back(engine):
    ranks = [[atomic(0, 1, SIZE, 2 * SIZE), flush(0, 1)], [ASIDE]]
    assert finish(ranks, engine) == [SEND + WIRE + HOP + 2 * WIRE + HOP + RECV, 0.0]


@engines
def test_one_that_brings_nothing_back_is_like_a_put(engine):
    ranks = [[atomic(0, 1, SIZE, 0, name="MPI_Accumulate", sort=0), flush(0, 1)], [ASIDE]]
    assert finish(ranks, engine) == [PUT, 0.0]


@engines
@pytest.mark.parametrize("progress", ["asynchronous", "in_mpi_calls"])
def test_a_target_that_computes_takes_no_part_and_loses_no_time(engine, progress):
    ranks = [
        [put(0, 1, SIZE, 1), get(0, 1, SIZE, 2), flush(0, 1, 2)],
        [ASIDE, (1.25, "MPI_Comm_rank")],
    ]
    # The get's request follows the put through the network, and its data pass the acknowledgement.
    there = SEND + WIRE + HOP
    assert finish(ranks, engine, progress=progress) == [there + WIRE + HOP + RECV, 1.0]


@engines
def test_several_puts_are_acknowledged_at_once_by_the_last(engine):
    ranks = [[*(put(0, 1, SIZE) for _ in range(3)), flush(0, 1)], [ASIDE]]
    given = {"parameters": PARAMETERS, "engine": engine}
    sent = simulate(lower(window_trace(ranks)), mesh((2,)), [0, 1], **given)
    assert sent.messages == 3 + 1
    if engine in ("simpy", "compiled"):  # one behind the other: WIRE > SEND
        assert finish(ranks, engine)[0] == SEND + 3 * WIRE + 2 * HOP


@engines
def test_a_fence_is_a_barrier_behind_the_slowest_operation(engine):
    ranks = [
        [made_window(0), put(0, 1, SIZE), fence(0, 1)],
        [made_window(0), put(0, 0, 8 * SIZE), fence(0, 1)],
    ]
    slow = MEET + SEND + 8 * WIRE + HOP + HOP
    assert finish(ranks, engine) == [slow + MEET, slow + SEND + RECV]


@engines
def test_a_fence_completes_what_no_record_says(engine):
    ranks = [[put(0, 1, SIZE), fence(0)], [fence(0)]]
    assert finish(ranks, engine) == [PUT + SEND + RECV, PUT + MEET]


@engines
def test_an_origin_waits_for_the_notice_of_its_target_and_the_target_for_the_end(engine):
    ranks = [
        [
            group_sync(0, "start", 1),
            put(0, 1, SIZE),
            group_sync(0, "complete", 1, numbers=(1,)),
        ],
        [(0, "MPI_Comm_rank"), group_sync(LATE + 0.25, "post", 0), group_sync(0, "wait", 0)],
    ]
    opened = LATE + SEND + HOP + RECV
    ended = opened + PUT + SEND
    assert finish(ranks, engine, groups=([0], [1])) == [ended, ended + HOP + RECV]


def two_locks(sort):
    """Ranks 1 and 2, both beside rank 0, put into its memory; rank 1 released it first."""
    ranks = [[lock(0, 0, sort), put(0, 0, SIZE), unlock(at, 0, 1)] for at in (0, 0.125)]
    return [[ASIDE], *ranks]


@engines
def test_who_locks_exclusively_waits_for_the_one_before(engine):
    first = ASK + PUT + SEND
    second = first + HOP + HOP + RECV + PUT + SEND
    assert finish(two_locks(Lock.EXCLUSIVE), engine, [1, 0, 2]) == [0.0, first, second]


@engines
def test_shared_locks_are_granted_at_once_and_released_without_a_message(engine):
    found = finish(two_locks(Lock.SHARED), engine, [1, 0, 2])
    assert found == [0.0, ASK + PUT, ASK + PUT]


@engines
def test_shared_locks_beside_an_exclusive_one_wait_for_it_alone(engine):
    ranks = [*two_locks(Lock.EXCLUSIVE), [lock(0, 0, Lock.SHARED), unlock(0.1875, 0)]]
    first = ASK + PUT + SEND
    second = first + HOP + HOP + RECV + PUT + SEND
    third = second + HOP + 2 * HOP + RECV + SEND  # from two links away
    assert finish(ranks, engine, [1, 0, 2, 3]) == [0.0, first, second, third]


@engines
def test_each_target_acknowledges_what_a_release_of_all_completes(engine):
    ranks = [[put(0, 1, 4 * SIZE), put(0, 2, SIZE, 2), unlock(0, -1)], [ASIDE], [ASIDE]]
    assert finish(ranks, engine, [1, 0, 2])[0] == SEND + 4 * WIRE + HOP + HOP


@engines
def test_a_release_completes_what_no_record_says_at_its_own_target(engine):
    ranks = [[lock(0, 1, Lock.SHARED), put(0, 1, SIZE), unlock(0, 1)], [ASIDE]]
    assert finish(ranks, engine)[0] == ASK + PUT


@engines
def test_the_end_of_an_access_completes_what_no_record_says(engine):
    ranks = [
        [group_sync(0, "start", 1), put(0, 1, SIZE), group_sync(0, "complete", 1)],
        [group_sync(0, "post", 0), group_sync(0, "wait", 0)],
    ]
    opened = SEND + HOP + RECV
    assert finish(ranks, engine, groups=([0], [1]))[0] == opened + PUT + SEND


@engines
def test_a_notice_to_others_completes_nothing(engine):
    ranks = [
        [put(0, 1, SIZE), flush(0, 1, there=False), group_sync(0, "post", 1)],
        [(0, "MPI_Comm_rank"), group_sync(LATE + 0.25, "start", 0)],
    ]
    assert finish(ranks, engine, groups=([0], [1]))[0] == SEND + SEND


@engines
def test_a_request_is_complete_where_it_is_waited_for(engine):
    about = {"peer": -1, "size": -1, "received": -1, "tag": 0, "request": 1}
    waits = (0, "MPI_Wait", (Kind.RMA_OP_COMPLETE_NON_BLOCKING, about))
    assert finish([[get(0, 1, SIZE), waits], [ASIDE]], engine)[0] == SEND + 2 * HOP + WIRE + RECV


@engines
def test_numbers_of_operations_are_those_of_a_window(engine):
    ranks = [
        [
            put(0, 1, 4 * SIZE),
            put(0, 2, SIZE, window=1),
            flush(0, 1, window=1),
            flush(1.25, 1, window=0),
        ],
        [ASIDE],
        [ASIDE],
    ]
    found = finish(ranks, engine, [1, 0, 2], windows=(0, 0))[0]
    assert found == 2 * SEND + WIRE + HOP + HOP + 1.0


@engines
def test_a_lock_of_one_window_is_none_of_another(engine):
    ranks = [
        [ASIDE],
        [lock(0, 0, Lock.SHARED), put(0, 0, SIZE), unlock(0, 0, 1)],
        [lock(0, 0, window=1), unlock(LATE, 0, window=1)],
    ]
    assert finish(ranks, engine, [1, 0, 2], windows=(0, 0))[1] == ASK + PUT


def test_what_is_not_replayed_is_told():
    tries = {"peer": 1, "size": -1, "received": -1, "tag": 0, "request": 0, "operation": 1}
    waits = {"peer": -1, "size": -1, "received": -1, "tag": 0}
    ranks = [
        [
            (0, None, (Kind.RMA_TRY_LOCK, tries)),
            (0, None, (Kind.RMA_WAIT_CHANGE, waits)),
            lock(0, 1),
            put(0, 1, 8),
            group_sync(0, "other"),
        ],
        [ASIDE],
    ]
    told = {each.what: each.count for each in lower(window_trace(ranks, ([1],))).omitted}
    assert told == {
        "one-sided operations that nothing completes: not waited for": 1,
        "locks that are never released": 1,
        "locks that are tried, and waits for a change of memory: left out": 2,
        "groups synchronised outside of MPI_Win_start, post, complete and wait": 1,
    }


RANKS = 4
targets, sizes = st.integers(0, RANKS - 1), st.sampled_from([0, 1, 8192, 100_000])
accesses = st.one_of(
    st.builds(put, st.just(0), targets, sizes, targets),
    st.builds(get, st.just(0), targets, sizes, targets),
    st.builds(atomic, st.just(0), targets, sizes, sizes, targets),
)
sorts = st.sampled_from([Lock.EXCLUSIVE, Lock.SHARED])


@st.composite
def epochs(draw):
    """Calls of each rank: fences, with accesses, flushes and locks in between, all released."""
    ranks = [[made_window(0)] for _ in range(RANKS)]
    at = 0.0
    for _ in range(draw(st.integers(1, 3))):
        for calls in ranks:
            calls += draw(st.lists(accesses, max_size=4))
            if draw(st.booleans()):
                calls.append(flush(0, *range(RANKS), there=draw(st.booleans())))
            if draw(st.booleans()):
                target, inner, at = draw(targets), draw(st.lists(accesses, max_size=2)), at + 1
                calls += [lock(0, target, draw(sorts)), *inner, unlock(at, target)]
            calls.append(fence(at, *range(RANKS)))
    return [[(at, *call) for at, call in _rising(calls)] for calls in ranks]


def _rising(calls):
    """Times that never decrease."""
    times = np.maximum.accumulate([call[0] for call in calls]).tolist()
    return [(at, call[1:]) for at, call in zip(times, calls, strict=True)]


@examples(60)
@given(
    epochs(),
    st.permutations(range(RANKS)),
    st.fixed_dictionaries(
        {
            "progress": st.sampled_from(["asynchronous", "in_mpi_calls"]),
            "eager_limit": st.sampled_from([0, 64_000]),
            "overhead_per_byte": st.sampled_from([0.0, 1e-10]),
            "overhead_put_latency": st.sampled_from([0.0, 1e-7]),
            "copy_per_byte": st.sampled_from([0.0, 1e-10]),
            "noise_overhead": st.sampled_from([0.0, 0.3]),
            "nic": st.sampled_from(["fifo", "round_robin"]),
        }
    ),
)
def test_both_engines_of_packets_agree_and_all_that_is_moved_arrives(ranks, node_of, given):
    trace = window_trace(ranks)
    program, network = lower(trace), torus((2, 2))
    about = {"parameters": Parameters(**given)}
    results = [
        simulate(program, network, node_of, engine=engine, **about)
        for engine in ("simpy", "compiled")
    ]
    assert bits(results[0]) == bits(results[1])
    moved = one_sided_traffic_of(trace)
    assert program.one_sided_traffic().bytes.sum() == moved.bytes.sum()
    about["parameters"] = Parameters(**given | {"nic": "fifo"})  # flows take no turns
    flow = simulate(program, network, node_of, engine="flow", **about)
    assert (flow.messages, flow.bytes) == (results[0].messages, results[0].bytes)


def test_what_serves_memory_is_called_so(tmp_path):
    program = lower(window_trace([[put(0, 1, 8), flush(0, 1)], [ASIDE]]))
    told = [program.describe(row) for row in range(program.operations)]
    assert told[:3] == [
        "irecv from rank 1 (window 0, one-sided)",
        "iput to rank 1 (window 0, one-sided)",
        "wait for iput to rank 1 (window 0, one-sided)",
    ]
    assert "one-sided operations of others" in told
    assert "ianswer to rank 0 (window 0, one-sided)" in told
    network, node_of = mesh((2,)), np.arange(2)
    result = simulate(program, network, node_of, record=Record(operations=True), engine="simpy")
    write_perfetto(tmp_path / "run.json", program, result, network, node_of)
    events = json.loads((tmp_path / "run.json").read_text())["traceEvents"]
    names = {event.get("args", {}).get("name") for event in events if event["ph"] == "M"}
    assert "memory 1" in names

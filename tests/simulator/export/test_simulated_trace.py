"""Simulated runs as traces: the recording's events at new times, and programs without one."""

from __future__ import annotations

import re
import shutil
import subprocess

import numpy as np
import pytest

from hopmap.simulator import (
    ENGINES,
    Parameters,
    Record,
    lower,
    program_of,
    program_of_traffic,
    retime,
    simulate,
    trace_of_program,
)
from hopmap.topologies import mesh, torus
from hopmap.traces import (
    Kind,
    TraceError,
    Traffic,
    nas_folded,
    nas_trace,
    read_trace,
    summarize,
    traffic_of,
    write_trace,
)

SHIPPED = ["edge.X.8", "is.S.16", "lu.S.4", "mg.S.16"]


def replayed(program, engine="compiled", **parameters):
    return simulate(
        program,
        torus((4, 4)),
        np.arange(program.ranks),
        engine=engine,
        parameters=Parameters(**parameters),
        record=Record(operations=True),
    )


def sums(trace):
    """All that a trace counts; its name, its length and what was ignored apart."""
    counted = summarize(trace).to_dict()
    del counted["duration"], counted["ignored"]
    return {**counted, "events": trace.events}


def order_within_ranks(trace):
    steps = np.diff(trace.time)
    steps[trace.offsets[1:-1] - 1] = 0
    return steps.min()


def messages_of(trace):
    """Times of all point-to-point messages, by channel and there sorted: sent, received."""
    record = np.flatnonzero(trace.kind > Kind.LEAVE)
    kind, row = trace.kind[record], trace.ref[record]
    rank, peer = trace.rank_of_event()[record], trace.records.peer[row]
    times = []
    for kinds, source, target in (
        ((Kind.SEND, Kind.ISEND), rank, peer),
        ((Kind.RECV, Kind.IRECV), peer, rank),
    ):
        some = np.flatnonzero(np.isin(kind, kinds))
        columns = trace.records.tag[row], trace.records.comm[row], target, source
        by = np.lexsort([trace.time[record[some]], *(column[some] for column in columns)])
        times.append(trace.time[record[some[by]]])
    return times


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("scale", [0.0, 1.0])
def test_traffic_collectives_and_all_else_are_the_recordings(recording, lowered, name, scale):
    trace, program = recording(name), lowered(name)
    result = replayed(program, compute_scale=scale)
    run = retime(trace, program, result)
    assert traffic_of(run).same_as(traffic_of(trace))
    assert sums(run) == sums(trace)
    for column in ("kind", "ref", "offsets", "records", "regions", "communicators"):
        assert getattr(run, column) is getattr(trace, column)
    assert run.time.max() == result.makespan
    ends = run.offsets[1:][np.diff(run.offsets) > 0] - 1
    assert np.array_equal(run.time[ends], result.finish)
    assert run.time.min() >= 0
    assert order_within_ranks(run) >= 0


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["lu.S.4", "mg.S.16"])
def test_nothing_is_received_before_it_is_sent(recording, lowered, name, engine):
    trace, program = recording(name), lowered(name)
    result = replayed(program, engine, compute_scale=0.0)
    sent, received = messages_of(retime(trace, program, result))
    assert len(received) == len(sent) > 100
    assert (sent <= received).all()


def test_a_send_by_hand_between_user_regions():
    """Rank 0 computes 4 s with a user's region from 1 to 3 s; scaled by half that is 0.5 to 1.5."""
    from hopmap.traces import Records, Trace

    blank = np.full(2, -1)
    events = [
        *((0, Kind.ENTER, 1.0, 2), (0, Kind.LEAVE, 3.0, 2)),
        *((0, Kind.ENTER, 4.0, 0), (0, Kind.SEND, 4.5, 0), (0, Kind.LEAVE, 9.0, 0)),
        *((0, Kind.ENTER, 10.0, 2), (0, Kind.LEAVE, 11.0, 2)),
        *((1, Kind.ENTER, 0.0, 1), (1, Kind.RECV, 0.0, 1), (1, Kind.LEAVE, 7.0, 1)),
    ]
    rank, kind, time, ref = (np.array(column) for column in zip(*events, strict=True))
    trace = Trace(
        "by hand",
        np.searchsorted(rank, [0, 1, 2]),
        kind.astype(np.uint8),
        time,
        ref.astype(np.int32),
        Records(
            np.array([1, 0], dtype=np.int32),
            np.zeros(2, dtype=np.int32),
            np.zeros(2, dtype=np.int32),
            np.full(2, 255, dtype=np.uint8),
            np.array([10, 10]),
            blank,
            blank,
        ),
        ("MPI_Send", "MPI_Recv", "work"),
        (np.arange(2, dtype=np.int32),),
    )
    program = lower(trace)
    result = simulate(
        program,
        mesh((2,)).with_links(bandwidth=1.0, latency=0.0),
        [0, 1],
        parameters=Parameters(
            compute_scale=0.5,
            overhead_send=0.25,
            overhead_recv=0.5,
            injection_bandwidth=1e300,
            injection_latency=0.0,
            ejection_bandwidth=1e300,
            ejection_latency=0.0,
        ),
        record=Record(operations=True),
    )
    run = retime(trace, program, result)
    # Sent at 2.25, there 10 s later; 2 s of computation become 1 s behind the send.
    assert run.time.tolist() == [0.5, 1.5, 2, 2.25, 2.25, 2.75, 3.25, 0, 12.75, 12.75]


@pytest.mark.parametrize("name", ["edge.X.8", "lu.S.4"])
def test_written_archives_are_read_again(recording, lowered, tmp_path, name):
    trace, program = recording(name), lowered(name)
    result = replayed(program)
    run = retime(trace, program, result)
    write_trace(run, tmp_path / "run", node_of=np.arange(program.ranks))
    again = read_trace(tmp_path / "run")
    assert sums(again) == sums(trace)
    assert [c.tolist() for c in again.communicators] == [c.tolist() for c in trace.communicators]
    # Ticks are picoseconds.
    assert np.array_equal(np.rint(again.time * 1e12), np.rint(run.time * 1e12))
    assert np.rint(again.time.max() * 1e12) == np.rint(result.makespan * 1e12)


@pytest.mark.skipif(not shutil.which("otf2-print"), reason="no otf2-print on this machine")
def test_otf2_print_reads_it_and_its_last_timestamp_is_the_makespan(recording, lowered, tmp_path):
    trace, program = recording("is.S.16"), lowered("is.S.16")
    result = replayed(program, compute_scale=0.0)
    write_trace(retime(trace, program, result), tmp_path / "run")
    printed = subprocess.run(
        ["otf2-print", str(tmp_path / "run" / "traces.otf2")],
        check=True,
        capture_output=True,
        text=True,
    )
    assert printed.stderr == ""
    stamps = [
        int(found[1]) for found in re.finditer(r"^[A-Z_]+ +\d+ +(\d+) ", printed.stdout, re.M)
    ]
    assert len(stamps) >= trace.events
    assert max(stamps) == round(result.makespan * 1e12)
    sends = re.findall(r"^MPI_I?SEND .*Length: (\d+)", printed.stdout, re.M)
    traffic = traffic_of(trace)
    assert (len(sends), sum(map(int, sends))) == (traffic.messages.sum(), traffic.bytes.sum())


def test_a_run_that_is_its_own_trace_replays_in_the_same_time():
    """Without a network's cost and with computation alone, the new trace is lowered to the same."""
    trace = nas_trace("lu.S.8", steps=2)
    program = lower(trace)
    result = replayed(program)
    run = retime(trace, program, result)
    again = lower(run)
    assert np.array_equal(again.kind, program.kind)
    assert again.compute == pytest.approx(program.compute, abs=1e-12)
    assert replayed(again).makespan == pytest.approx(result.makespan, rel=1e-9)


def test_traffic_without_a_trace_becomes_calls():
    rng = np.random.default_rng(1)
    source, target = rng.integers(0, 6, (2, 40))
    traffic = Traffic.from_pairs(6, source, target, rng.integers(1, 5, 40), rng.integers(0, 9, 40))
    program = program_of_traffic(traffic, rounds=2, name="rounds")
    result = replayed(program, "flow")
    run = trace_of_program(program, result)
    assert traffic_of(run).same_as(program.p2p_traffic())
    assert run.time.max() == result.makespan
    assert order_within_ranks(run) >= 0
    # It is a trace like any other: it replays to the same.
    again = lower(run)
    assert again.dropped == {}
    assert replayed(again, "flow", compute_scale=0.0).makespan == result.makespan


def test_loops_of_a_program_are_written_out():
    body = [("send", 1, 8), ("recv", 1, 8)]
    program = program_of("loops", [[("repeat", 5, body)], [("recv", 0, 8), ("send", 0, 8)] * 5])
    run = trace_of_program(program, replayed(program))
    assert traffic_of(run).messages.tolist() == [5, 5]
    assert (run.kind == Kind.RECV).sum() == 10


def test_what_does_not_belong_together_is_refused(recording):
    trace, other = recording("lu.S.4"), nas_trace("lu.S.4", steps=1)
    program = lower(trace)
    silent = simulate(program, torus((4, 4)), range(4), engine="compiled")
    with pytest.raises(TraceError, match=r"expected simulate\(record=Record\(operations=True\)\)"):
        retime(trace, program, silent)
    result = replayed(program)
    with pytest.raises(TraceError, match=r"expected the program that lu.S.4 .1 steps. is"):
        retime(other, program, result)
    with pytest.raises(TraceError, match=r"a timeline of another program"):
        retime(other, lower(other), result)
    with pytest.raises(TraceError, match=r"collectives: expected the trace"):
        trace_of_program(program, result)
    folded = nas_folded("lu.S.4", steps=3)
    looped = lower(folded)
    with pytest.raises(TraceError, match=r"expected the program that"):
        retime(folded.trace, looped, replayed(looped))

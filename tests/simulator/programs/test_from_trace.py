"""From records of MPI calls to operations: what is kept, in which order, matched with what."""

from __future__ import annotations

import numpy as np
import pytest

from hopmap.simulator import Parameters, lower, simulate
from hopmap.simulator.programs.mpi_calls import SendMode
from hopmap.topologies import mesh
from hopmap.traces import Trace, TraceError, traffic_of
from support.made_traces import K, operations, recv, send, trace_of


def test_time_between_calls_is_computation_and_time_in_them_is_not():
    trace = trace_of(
        [
            [(1.0, "MPI_Comm_rank"), (2.0, "MPI_Send", send(1)), (4.0, "work"), (5.0, "MPI_Wtime")],
            [(0.5, "MPI_Recv", recv(0)), (8.0, "MPI_Comm_size")],
        ]
    )
    program = lower(trace)
    assert operations(program, 0) == ["SEND", "FINISH"]
    # 0 to 1 and 1.25 to 2; 2.25 to 5; 5.25 is the last event.
    assert program.compute.tolist() == [1.75, 2.75, 0.5, 7.25]
    assert program.p2p_traffic().same_as(traffic_of(trace))


def test_records_outside_any_region_are_calls_of_their_own():
    program = lower(trace_of([[(1.0, None, send(1))], [(1.5, None, recv(0))]]))
    assert operations(program, 0) == ["SEND", "FINISH"]
    assert program.compute.tolist() == [1.0, 0.0, 1.5, 0.0]


def test_only_the_outermost_mpi_region_is_a_call():
    trace = trace_of([[(1.0, "MPI_Sendrecv", send(0), recv(0))]])
    # MPI_Sendrecv calls MPI_Send inside: ENTER ENTER ... LEAVE LEAVE.
    nested = Trace(
        "nested",
        np.array([0, 6]),
        np.array([K.ENTER, K.ENTER, K.SEND, K.LEAVE, K.RECV, K.LEAVE], dtype=np.uint8),
        np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
        np.array([0, 1, 0, 1, 1, 0], dtype=np.int32),
        trace.records,
        ("MPI_Sendrecv", "MPI_Send"),
        trace.communicators,
    )
    program = lower(nested)
    assert operations(program) == ["IRECV", "ISEND", "WAIT", "WAIT", "FINISH"]
    assert program.compute.tolist() == [1.0, 0.0, 0.0, 0.0, 0.0]


def test_sendrecv_cannot_deadlock():
    ring = [
        [(0.0, "MPI_Sendrecv", send((r + 1) % 4, 10**6), recv((r - 1) % 4, 10**6))]
        for r in range(4)
    ]
    program = lower(trace_of(ring))
    assert operations(program) == ["IRECV", "ISEND", "WAIT", "WAIT", "FINISH"]
    assert program.target[:4].tolist() == [-1, -1, 1, 0]
    simulate(program, mesh((4,)), range(4), parameters=Parameters(eager_limit=0))


def test_a_partner_that_does_not_exist_is_an_error():
    with pytest.raises(TraceError, match=r"made: rank 1, event 1: partner 7: expected a rank"):
        lower(trace_of([[], [(0.0, "MPI_Send", send(7))]]))


def test_a_region_left_twice_is_an_error():
    trace = trace_of([[(0.0, "MPI_Wtime")], [(0.0, "MPI_Wtime")]])
    trace.kind[2] = K.LEAVE
    with pytest.raises(TraceError, match=r"made: rank 1, event 0: leaves MPI_Wtime without"):
        lower(trace)


def test_a_cut_trace_ends_its_open_call_with_the_rank():
    trace = trace_of(
        [[(0.0, "MPI_Wtime"), (1.0, "MPI_Send", send(1))], [(0.0, "MPI_Recv", recv(0))]]
    )
    keep = np.delete(np.arange(trace.events), 4)  # rank 0's last LEAVE
    cut = Trace(
        "cut",
        np.array([0, 4, 7]),
        trace.kind[keep],
        trace.time[keep],
        trace.ref[keep],
        trace.records,
        trace.regions,
        trace.communicators,
    )
    assert operations(lower(cut), 0) == ["SEND", "FINISH"]
    assert operations(lower(cut), 1) == ["RECV", "FINISH"]


def test_the_kth_send_of_a_channel_meets_its_kth_receive():
    sender = [(float(k), "MPI_Send", send(1, k, tag)) for k, tag in enumerate([1, 2, 1, 2, 1])]
    taker = [(float(k), "MPI_Recv", recv(0, 9, tag)) for k, tag in enumerate([2, 1, 1, 1, 2])]
    program = lower(trace_of([sender, taker]))
    first = program.offsets[1]
    assert (program.receives() - first).tolist() == [1, 0, 2, 4, 3]


def test_communicators_are_channels_of_their_own():
    trace = trace_of(
        [
            [(0.0, "MPI_Send", send(1, comm=1)), (1.0, "MPI_Send", send(1, comm=0))],
            [(0.0, "MPI_Recv", recv(0, comm=0)), (1.0, "MPI_Recv", recv(0, comm=1))],
        ],
        communicators=[[0, 1], [1, 0]],
    )
    program = lower(trace)
    assert (program.receives() - program.offsets[1]).tolist() == [1, 0]


def test_an_empty_trace_is_an_empty_run():
    program = lower(trace_of([[], []]))
    assert simulate(program, mesh((2,)), range(2)).makespan == 0


def test_sends_have_the_mode_of_the_call_that_they_were_recorded_in():
    isend = K.ISEND, {"peer": 1, "size": 8, "request": 1}
    done = K.ISEND_COMPLETE, {"request": 1}
    calls = [
        (1.0, "MPI_Ssend", send(1)),
        (2.0, None, send(1)),  # a lone record, behind the call
        (3.0, "mpi_bsend_", send(1)),
        (4.0, "MPI_Irsend", isend),
        (5.0, "MPI_Wait", done),
        (6.0, "MPI_Send", send(1)),
        (7.0, "MPI_Recv", recv(1)),
    ]
    others = [(8.0 + k, "MPI_Recv", recv(0)) for k in range(5)]
    program = lower(trace_of([calls, [(0.5, None, send(0)), *others]]))
    sends = program.sends()
    modes = [SendMode(mode).name for mode in program.mode[sends]]
    assert modes == ["SYNCHRONOUS", "STANDARD", "BUFFERED", "READY", "STANDARD", "STANDARD"]
    assert not np.delete(program.mode, sends).any()
    assert program.describe(int(sends[0])).startswith("ssend to rank 1")

"""From records of MPI calls to operations: what is kept, in which order, matched with what."""

from __future__ import annotations

import numpy as np
import pytest

from hopmap.simulator import DeadlockError, Op, Parameters, lower, simulate
from hopmap.simulator.programs.send_modes import SendMode
from hopmap.topologies import mesh
from hopmap.traces import Collective, Kind, Records, Trace, TraceError, traffic_of

K = Kind
COLUMNS = {
    "peer": -1,
    "comm": 0,
    "tag": 0,
    "operation": 255,
    "size": 0,
    "received": 0,
    "request": -1,
}


def trace_of(ranks, communicators=None, name="made"):
    """Trace from lists of (time, "MPI_...", what happens in the call...), one list per rank.

    What happens is (kind, columns); a call named None is a lone record.
    """
    regions = sorted({call[1] for calls in ranks for call in calls if call[1]})
    kind, time, ref, offsets = [], [], [], [0]
    columns = {key: [] for key in COLUMNS}
    for calls in ranks:
        for begin, region, *happens in calls:
            if region:
                kind.append(K.ENTER)
                time.append(begin)
                ref.append(regions.index(region))
            for what, given in happens:
                kind.append(what)
                time.append(begin)
                ref.append(len(columns["peer"]))
                for key, missing in COLUMNS.items():
                    columns[key].append(given.get(key, missing))
            if region:
                kind.append(K.LEAVE)
                time.append(begin + 0.25)
                ref.append(regions.index(region))
        offsets.append(len(kind))
    dtypes = {"operation": np.uint8, "size": np.int64, "received": np.int64, "request": np.int64}
    return Trace(
        name=name,
        offsets=np.array(offsets, dtype=np.int64),
        kind=np.array(kind, dtype=np.uint8),
        time=np.array(time, dtype=np.float64),
        ref=np.array(ref, dtype=np.int32),
        records=Records(
            **{key: np.array(v, dtype=dtypes.get(key, np.int32)) for key, v in columns.items()}
        ),
        regions=tuple(regions),
        communicators=tuple(
            np.array(members, dtype=np.int32) for members in communicators or [range(len(ranks))]
        ),
    )


def send(peer, size=8, tag=0, **more):
    return K.SEND, {"peer": peer, "size": size, "tag": tag, **more}


def recv(peer, size=8, tag=0, **more):
    return K.RECV, {"peer": peer, "size": size, "tag": tag, **more}


def collective(operation, sent=0, received=0, root=-1, comm=0, kind=K.COLLECTIVE_END, **more):
    return kind, {
        "operation": operation,
        "size": sent,
        "received": received,
        "peer": root,
        "comm": comm,
        **more,
    }


def operations(program, strand=0):
    rows = range(program.offsets[strand], program.offsets[strand + 1])
    return [Op(program.kind[row]).name for row in rows]


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


def test_requests_are_paired_though_their_numbers_come_again():
    calls = []
    for step in range(3):
        calls += [
            (
                10.0 * step,
                "MPI_Startall",
                (K.ISEND, {"peer": 1, "size": 5 + step, "request": 5}),
                (K.IRECV_REQUEST, {"request": 6}),
            ),
            (
                10.0 * step + 5,
                "MPI_Waitall",
                (K.ISEND_COMPLETE, {"request": 5}),
                (K.IRECV, {"peer": 1, "size": 7 + step, "tag": step, "request": 6}),
            ),
        ]
    other = [(1.0 + 9 * k, "MPI_Sendrecv", send(0, 7 + k, k), recv(0, 5 + k, 0)) for k in range(3)]
    program = lower(trace_of([calls, other]))
    assert operations(program) == ["IRECV", "ISEND", "WAIT", "WAIT"] * 3 + ["FINISH"]
    assert program.target[:12].tolist() == [-1, -1, 1, 0, -1, -1, 5, 4, -1, -1, 9, 8]
    # A receive is described by its completion.
    assert program.tag[[0, 4, 8]].tolist() == [0, 1, 2]
    assert program.size[[0, 4, 8]].tolist() == [7, 8, 9]
    assert (program.receives() >= 0).all()


def test_cancelled_and_never_completed_receives_are_dropped_and_counted():
    calls = [
        (0.0, "MPI_Irecv", (K.IRECV_REQUEST, {"request": 1})),
        (1.0, "MPI_Irecv", (K.IRECV_REQUEST, {"request": 2})),
        (2.0, "MPI_Isend", (K.ISEND, {"peer": 0, "size": 1, "request": 3})),
        (2.0, "MPI_Isend", (K.ISEND, {"peer": 0, "size": 1, "tag": 1, "request": 4})),
        (2.0, "MPI_Isend", (K.ISEND, {"peer": 0, "size": 1, "tag": 2, "request": 5})),
        (3.0, "MPI_Wait", (K.REQUEST_CANCELLED, {"request": 1})),
        (3.0, "MPI_Wait", (K.REQUEST_CANCELLED, {"request": 5})),
        (4.0, "MPI_Test", (K.REQUEST_TEST, {"request": 2})),
    ]
    program = lower(trace_of([calls]))
    # Two messages are left over: nobody can tell which one the receive took.
    assert operations(program) == ["ISEND", "ISEND", "FINISH"]
    assert program.dropped == {"cancelled requests": 2, "receives never completed": 1}
    assert program.receives().tolist() == [-1, -1]
    simulate(program, mesh((1,)), [0])


@pytest.mark.parametrize(
    "happens",
    [
        [(K.IRECV, {"peer": 0, "request": 3})],
        [(K.IRECV_REQUEST, {"request": 3}), (K.ISEND_COMPLETE, {"request": 3})],
        [(K.ISEND, {"peer": 0, "request": 4}), (K.ISEND_COMPLETE, {"request": 3})],
    ],
)
def test_a_completion_without_its_request_is_an_error(happens):
    calls = [(float(k), "MPI_Wait", what) for k, what in enumerate(happens)]
    with pytest.raises(
        TraceError, match=r"made: rank 0, event \d: I.* of request 3, which was not"
    ):
        lower(trace_of([calls]))


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


def barrier(comm=0):
    return collective(Collective.BARRIER, comm=comm)


def test_collectives_never_match_the_applications_messages():
    trace = trace_of(
        [
            [
                (0.0, "MPI_Barrier", barrier()),
                (1.0, "MPI_Send", send(1 - r)),
                (2.0, "MPI_Barrier", barrier()),
                (3.0, "MPI_Recv", recv(1 - r)),
            ]
            for r in range(2)
        ]
    )
    program = lower(trace)
    assert program.traffic().messages.tolist() == [3, 3]
    assert program.p2p_traffic().same_as(traffic_of(trace))
    contexts = program.context[program.sends()]
    assert contexts.tolist() == [1, 0, 1] * 2
    assert program.tag[program.sends()].tolist() == [0, 0, 1] * 2
    assert program.collectives[1].tolist() == [Collective.BARRIER] * 2


def test_members_of_a_communicator_count_in_its_own_order():
    # A broadcast from world rank 2 in the communicator (2, 0), while rank 1 does nothing.
    calls = [
        [(0.0, "MPI_Bcast", collective(Collective.BCAST, 0, 100, root=2, comm=1))],
        [],
        [(0.0, "MPI_Bcast", collective(Collective.BCAST, 200, 100, root=2, comm=1))],
    ]
    traffic = lower(trace_of(calls, communicators=[[0, 1, 2], [2, 0]])).traffic()
    assert (traffic.src.tolist(), traffic.dst.tolist(), traffic.bytes.tolist()) == ([2], [0], [100])


def test_communicators_of_one_or_no_member_move_nothing():
    calls = [[(0.0, "MPI_Barrier", barrier(1)), (1.0, "MPI_Barrier", barrier(2))]] * 2
    program = lower(trace_of(calls, communicators=[[0, 1], [], [0]]))
    assert program.traffic().pairs == 0


def test_making_and_freeing_handles_synchronises():
    calls = [
        [
            (0.0, "MPI_Init", collective(Collective.CREATE_HANDLE)),
            (8.0 + r, "MPI_Finalize", collective(Collective.DESTROY_HANDLE)),
        ]
        for r in range(4)
    ]
    program = lower(trace_of(calls), {"barrier": "dissemination"})
    result = simulate(program, mesh((4,)), range(4))
    assert program.traffic().messages.sum() == 2 * 8
    assert program.chosen == {"barrier": {"dissemination": 2}}
    assert program.traffic().bytes.sum() == 0
    assert (result.finish > 3 + (8 - 0.25)).all()


def iallreduce(request):
    happens = {"operation": Collective.ALLREDUCE, "sent": 64, "received": 64}
    return (K.COLLECTIVE_REQUEST, {"request": request, "comm": -1}), collective(
        **happens, kind=K.COLLECTIVE_COMPLETE, request=request
    )


def test_non_blocking_collectives_go_on_in_the_background():
    begin, end = iallreduce(3)
    wait = [
        [(0.0, "MPI_Iallreduce", begin), (5.0, "MPI_Wait", end)],
        [(0.0, "MPI_Iallreduce", begin), (9.0, "MPI_Wait", end)],
    ]
    program = lower(trace_of(wait))
    assert program.rank_of.tolist() == [0, 0, 1, 1]
    assert operations(program, 0) == ["START", "WAIT", "FINISH"]
    assert operations(program, 1) == ["IRECV", "ISEND", "WAIT", "WAIT", "FINISH"]
    assert program.target[program.kind == Op.START].tolist() == [1, 3]
    result = simulate(program, mesh((2,)), range(2))
    # All is done long before the waits: 4.75 and 8.75 s of computation and no waiting.
    assert result.finish.tolist() == [4.75, 8.75]
    assert result.wait.tolist() == [0.0, 0.0]


def test_what_a_background_collective_adds_up_takes_time_beside_its_rank():
    begin, end = iallreduce(3)
    wait = [[(0.0, "MPI_Iallreduce", begin), (5.0, "MPI_Wait", end)]] * 2
    program = lower(trace_of(wait), {"allreduce": "recursive_doubling"})

    def finish(seconds):
        working = Parameters(collective_reduce_per_byte=seconds / 32)
        return simulate(program, mesh((2,)), range(2), parameters=working).finish

    assert finish(4.0).tolist() == finish(0.0).tolist()  # done before the wait
    assert finish(7.0) == pytest.approx(7.0, rel=1e-4)


def test_a_background_collective_does_not_hold_up_the_rank_that_others_need():
    # Rank 1 completes the collective first and sends then; rank 0 receives before it completes.
    begin, end = iallreduce(1)
    program = lower(
        trace_of(
            [
                [
                    (0.0, "MPI_Iallreduce", begin),
                    (1.0, "MPI_Recv", recv(1)),
                    (2.0, "MPI_Wait", end),
                ],
                [
                    (0.0, "MPI_Iallreduce", begin),
                    (1.0, "MPI_Wait", end),
                    (2.0, "MPI_Send", send(0)),
                ],
            ]
        )
    )
    simulate(program, mesh((2,)), range(2))


def test_a_background_collective_that_gets_stuck_is_named():
    begin, end = iallreduce(1)
    program = lower(
        trace_of(
            [
                [(0.0, "MPI_Iallreduce", begin), (1.0, "MPI_Wait", end)],
                [
                    (0.0, "MPI_Recv", recv(0)),
                    (1.0, "MPI_Iallreduce", begin),
                    (2.0, "MPI_Wait", end),
                ],
            ]
        )
    )
    with pytest.raises(DeadlockError) as error:
        simulate(program, mesh((2,)), range(2))
    assert str(error.value).endswith(
        "2 of 2 ranks wait: rank 0: wait for non-blocking collective; rank 0 in the background: "
        "wait for irecv from rank 1 (allreduce, collective 0 of communicator 0); "
        "rank 1: recv from rank 0 (tag 0, communicator 0), which nobody sends"
    )


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (
            [barrier(), barrier()],
            [barrier()],
            "rank 1 takes part in 1 collectives and rank 0 in 2: expected the same number",
        ),
        (
            [barrier(), barrier()],
            [barrier(), collective(Collective.ALLREDUCE, 16, 16)],
            "collective 1: rank 0 has operation BARRIER and rank 1 operation ALLREDUCE: expected",
        ),
        (
            [collective(Collective.BCAST, 0, 8, root=0)],
            [collective(Collective.BCAST, 0, 8, root=1)],
            "collective 0: rank 0 has root 0 and rank 1 root 1: expected the same",
        ),
        ([barrier(1)], [], "communicator 1: rank 0 is not a member"),
    ],
)
def test_members_that_do_not_agree_are_an_error(first, second, message):
    calls = [
        [(float(k), "MPI_Coll", what) for k, what in enumerate(happens)]
        for happens in (first, second)
    ]
    with pytest.raises(TraceError) as error:
        lower(trace_of([*calls, []], communicators=[[0, 1], [1, 2]]))
    assert message in str(error.value)


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

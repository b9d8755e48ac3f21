"""Collectives of a trace: who takes part, apart from messages, in the background."""

from __future__ import annotations

import pytest

from hopmap.simulator import DeadlockError, Op, Parameters, lower, simulate
from hopmap.topologies import mesh
from hopmap.traces import Collective, TraceError, traffic_of
from support.made_traces import K, barrier, collective, operations, recv, send, trace_of


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
        "rank 1: recv from rank 0 (tag 0, communicator 0), which no rank sends"
    )


def test_members_on_the_roots_side_of_an_inter_communicator_name_no_root():
    """MPI_ROOT is the root itself; the others of its group give MPI_PROC_NULL."""
    recorded = [(24, 0, 0), (0, 0, -1), (0, 8, 0), (0, 8, 0)]
    calls = [[(0.0, "MPI_Bcast", collective(Collective.BCAST, *of))] for of in recorded]
    program = lower(trace_of(calls))
    assert set(program.traffic().bytes.tolist()) == {8}


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

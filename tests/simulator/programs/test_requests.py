"""Which record completes which request, and which requests are dropped."""

from __future__ import annotations

import pytest

from hopmap.simulator import lower, simulate
from hopmap.topologies import mesh
from hopmap.traces import TraceError
from support.made_traces import K, operations, recv, send, trace_of


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

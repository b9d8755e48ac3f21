"""Matched probes receive what they found, in the place in which they found it."""

from __future__ import annotations

import pytest

from hopmap.simulator import lower
from hopmap.traces import Kind, TraceError, read_trace, traffic_of, write_trace
from support.archives import archive_of, finish_of, region

UNMATCHED = 0xFFFFFFFFFFFFFFFF


@pytest.fixture
def made(tmp_path):
    """Rank 0 sends at 1 and at 2.9 s, 8 and 16 bytes; rank 1 does what it is told to do."""

    def make(fill):
        with archive_of(tmp_path / "made", 2) as a:
            sender = a.events(a.masters[0])
            sender.enter(0, a.send)
            sender.leave(0, a.send)
            for at, size in ((1000, 8), (2900, 16)):
                sender.enter(at, a.send)
                sender.mpi_send(at, 1, a.world, 7, size)
                sender.leave(at, a.send)
            fill(a, a.events(a.masters[1]))
        return tmp_path / "made"

    return make


def call(a, events, at, name, *records):
    called = region(a, name)
    events.enter(at, called)
    for what, *arguments in records:
        if what in ("mpi_recv", "mpi_probe"):
            arguments = [0, a.world, 7, *arguments]
        getattr(events, what)(at, *arguments)
    events.leave(at, called)


def test_a_matched_receive_takes_its_message_from_the_next_one(made):
    def fill(a, events):
        call(a, events, 1000, "MPI_Mprobe", ("mpi_probe", 5))
        call(a, events, 1000, "MPI_Mrecv", ("mpi_mrecv", 5, 8))
        call(a, events, 2900, "MPI_Recv", ("mpi_recv", 16))

    folder = made(fill)
    assert finish_of(folder) == [2.9, 2.9]
    program = lower(read_trace(folder))
    assert program.size[program.offsets[1] : -1].tolist() == [0, 16]
    assert (program.receives() >= 0).all()


def test_it_is_matched_at_its_probe_and_not_where_it_is_fetched(made):
    """A receive between the two takes the second message; what comes behind the probe waits."""

    def fill(a, events):
        call(a, events, 1000, "MPI_Improbe", ("mpi_probe", 5))
        call(a, events, 2900, "MPI_Recv", ("mpi_recv", 16))
        call(a, events, 3000, "MPI_Mrecv", ("mpi_mrecv", 5, 8))

    folder = made(fill)
    program = lower(read_trace(folder))
    assert (program.receives() - program.offsets[1]).tolist() == [0, 1]
    # Behind the probe it computes until 2.9 s, behind the receive 0.1 s.
    assert finish_of(folder) == [2.9, 3.0]


def test_non_blocking_ones_are_posted_at_their_probe_and_awaited_at_their_end(made):
    """Their request has the number of one that ends between the two."""

    def fill(a, events):
        isend, wait = region(a, "MPI_Isend"), region(a, "MPI_Wait")
        events.enter(0, isend)
        events.mpi_isend(0, 1, a.world, 3, 4, 9)
        events.leave(0, isend)
        call(a, events, 1000, "MPI_Mprobe", ("mpi_probe", 5))
        events.enter(1000, wait)
        events.mpi_isend_complete(1000, 9)
        events.leave(1000, wait)
        call(a, events, 1500, "MPI_Imrecv", ("mpi_imrecv_request", 5, 9))
        call(a, events, 2900, "MPI_Recv", ("mpi_recv", 16))
        call(a, events, 4000, "MPI_Wait", ("mpi_imrecv", 9, 8))

    folder = made(fill)
    program = lower(read_trace(folder))
    first = program.offsets[1]
    # ISEND, IRECV, WAIT for the ISEND, RECV, WAIT for the IRECV.
    assert (program.target[first:-1] - first)[[2, 4]].tolist() == [0, 1]
    assert program.receives().tolist() == [first + 1, first + 3, -1]
    assert finish_of(folder) == [2.9, 4.0]


def test_plain_probes_are_no_receives(made):
    def fill(a, events):
        call(a, events, 1000, "MPI_Probe", ("mpi_probe", UNMATCHED))
        call(a, events, 1000, "MPI_Recv", ("mpi_recv", 8))
        call(a, events, 2900, "MPI_Recv", ("mpi_recv", 16))

    trace = read_trace(made(fill))
    assert (trace.kind == Kind.PROBE).sum() == 1
    assert (lower(trace).receives() >= 0).all()


def test_archives_with_them_are_written_as_they_were(made, tmp_path):
    def fill(a, events):
        call(a, events, 1000, "MPI_Mprobe", ("mpi_probe", 5))
        call(a, events, 1100, "MPI_Imrecv", ("mpi_imrecv_request", 5, 9))
        call(a, events, 1200, "MPI_Wait", ("mpi_imrecv", 9, 8))
        call(a, events, 2900, "MPI_Mprobe", ("mpi_probe", 5))
        call(a, events, 2900, "MPI_Mrecv", ("mpi_mrecv", 5, 16))

    folder = made(fill)
    trace = read_trace(folder)
    write_trace(trace, tmp_path / "again")
    again = read_trace(tmp_path / "again")
    assert trace.kind.tolist() == again.kind.tolist()
    for mine, theirs in zip(trace.records, again.records, strict=True):
        assert mine.tolist() == theirs.tolist()
    assert traffic_of(trace).messages.tolist() == [2]
    assert finish_of(tmp_path / "again") == finish_of(folder) == [2.9, 2.9]


@pytest.mark.parametrize(
    ("records", "said"),
    [
        ([("mpi_mrecv", 5, 8)], "event 1: MRECV of message 5, which was not probed for"),
        ([("mpi_imrecv", 9, 8)], "event 1: IMRECV of request 9, which was not begun"),
        (
            [("mpi_probe", 5), ("mpi_mrecv", 5, 8), ("mpi_mrecv", 5, 8)],
            "event 3: MRECV of message 5, which was not probed for",
        ),
    ],
)
def test_what_does_not_fit_together_is_an_error(made, records, said):
    folder = made(lambda a, events: call(a, events, 0, "MPI_Mrecv", *records))
    with pytest.raises(TraceError, match=f"rank 1, {said}"):
        lower(read_trace(folder))

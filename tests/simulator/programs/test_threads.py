"""Ranks of several threads, by hand: they compute, or call MPI, at once. Ticks are ms."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from otf2.enums import CollectiveOp, Paradigm, RegionRole

from hopmap.simulator import Op, lower
from hopmap.simulator.export.simulated_trace import expect_one_thread
from hopmap.simulator.programs.from_trace import SERIALISED
from hopmap.traces import TraceError, read_trace
from hopmap.traces.trace import THREAD_LEVELS
from support.archives import archive_of, call, finish_of, region, replayed
from support.slow import examples


def second(a, rank=0):
    return a.events(a.definitions.location("thread 1", group=a.processes[rank]))


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
def test_a_thread_computes_while_another_is_in_a_call(filled, engine):
    """The second thread receives for 1 s while the first computes for 1.8 s."""

    def fill(a):
        call(a.events(a.masters[0]), 0, region(a, "MPI_Wtime"))
        call(a.events(a.masters[0]), 1800, region(a, "MPI_Wtime"))
        inside = [("mpi_recv", 1, a.world, 7, 8)]
        call(second(a), 0, region(a, "MPI_Recv"), 1000, inside=inside)
        call(a.events(a.masters[1]), 0, a.send, inside=[("mpi_send", 0, a.world, 7, 8)])

    assert finish_of(filled(fill, 2), engine) == [1.8, 0.0]


def test_workers_compute_while_the_master_communicates(filled):
    """The master receives within a parallel region, and waits for the worker at its end."""

    def fill(a):
        master, worker = a.events(a.masters[0]), second(a)
        parallel = region(a, "!$omp parallel", Paradigm.OPENMP, region_role=RegionRole.PARALLEL)
        barrier = region(
            a,
            "!$omp implicit barrier",
            Paradigm.OPENMP,
            region_role=RegionRole.IMPLICIT_BARRIER,
        )
        master.enter(0, parallel)
        inside = [("mpi_recv", 1, a.world, 7, 8)]
        call(master, 0, region(a, "MPI_Recv"), 1000, inside=inside)
        call(master, 1000, barrier, 1800)
        master.leave(1800, parallel)
        worker.enter(0, parallel)
        call(worker, 1800, barrier)
        worker.leave(1800, parallel)
        call(a.events(a.masters[1]), 0, a.send, inside=[("mpi_send", 0, a.world, 7, 8)])

    assert finish_of(filled(fill, 2)) == [1.8, 0.0]


def test_workers_that_wait_or_are_idle_do_not_compute(filled):
    def fill(a):
        worker, work = second(a), region(a, "work", Paradigm.COMPILER)
        barrier = region(a, "barrier", Paradigm.OPENMP, region_role=RegionRole.BARRIER)
        call(a.events(a.masters[0]), 0, region(a, "MPI_Wtime"), 1000)
        call(worker, 100, work, 200)
        call(worker, 300, barrier, 900)

    assert finish_of(filled(fill)) == [0.1]


def test_a_rank_is_done_when_all_its_threads_are(filled):
    def fill(a):
        call(a.events(a.masters[0]), 0, region(a, "MPI_Wtime"), 1000)
        call(second(a), 0, region(a, "work", Paradigm.COMPILER), 1800)

    assert finish_of(filled(fill)) == [1.8]


def test_a_call_is_no_shorter_than_that_and_no_longer_than_it_takes(filled):
    """The message comes after 2 s; what is computed beside the call is over by then."""

    def fill(a):
        call(a.events(a.masters[0]), 0, region(a, "MPI_Wtime"))
        call(a.events(a.masters[0]), 1500, region(a, "MPI_Wtime"))
        inside = [("mpi_recv", 1, a.world, 7, 8)]
        call(second(a), 0, region(a, "MPI_Recv"), 1500, inside=inside)
        sender = a.events(a.masters[1])
        call(sender, 0, region(a, "MPI_Wtime"))
        call(sender, 2000, a.send, inside=[("mpi_send", 0, a.world, 7, 8)])

    assert finish_of(filled(fill, 2)) == [2.0, 2.0]


def test_tasks_of_collectives_and_of_threads_stand_side_by_side(filled):
    def fill(a):
        ibarrier, wait = region(a, "MPI_Ibarrier"), region(a, "MPI_Wait")
        for rank, master in enumerate(a.masters):
            events = a.events(master)
            call(events, 0, ibarrier, inside=[("non_blocking_collective_request", 1)])
            events.enter(100, wait)
            events.non_blocking_collective_complete(
                400, CollectiveOp.BARRIER, a.world, 0xFFFFFFFF, 0, 0, 1
            )
            events.leave(400, wait)
            if rank != 1:
                call(second(a, rank), 100, a.main, 300)

    folder = filled(fill, 3)
    program = lower(read_trace(folder))
    assert program.rank_of.tolist() == [0, 0, 0, 1, 1, 2, 2, 2]
    # What a thread computes is a task without operations, behind the collective's.
    alone = np.diff(program.offsets) == 1
    assert alone.tolist() == [False, False, True, False, False, False, False, True]
    assert program.compute[program.offsets[1:] - 1].round(9).tolist()[2::5] == [0.2, 0.2]
    assert sorted(program.target[program.kind == Op.START].tolist()) == [1, 2, 4, 6, 7]
    assert replayed(program).finish.round(9).tolist() == [0.3, 0.1, 0.3]


def test_what_a_thread_computes_beside_mpi_io_lasts_no_longer_than_that(filled):
    def fill(a):
        call(a.events(a.masters[0]), 0, region(a, "MPI_File_write"), 10000)
        call(second(a), 1000, region(a, "work", Paradigm.USER), 9000)

    assert finish_of(filled(fill)) == [10.0]


def test_a_thread_that_polls_does_not_hide_what_another_computes(filled):
    """The message is there at once; the first thread computes for 10 s all the same."""

    def fill(a):
        work, test = region(a, "work", Paradigm.USER), region(a, "MPI_Test")
        master, worker = a.events(a.masters[0]), second(a)
        call(master, 0, work, 10000)
        call(worker, 0, region(a, "MPI_Irecv"), inside=[("mpi_irecv_request", 1)])
        for at in range(0, 10000, 100):
            call(worker, at, test, at + 10)
        call(worker, 10000, test, inside=[("mpi_irecv", 1, a.world, 7, 8, 1)])
        call(master, 10000, region(a, "MPI_Wtime"))
        call(a.events(a.masters[1]), 0, a.send, inside=[("mpi_send", 0, a.world, 7, 8)])

    folder = filled(fill, 2)
    assert finish_of(folder) == [10.0, 0.0]
    assert [entry.seconds for entry in lower(read_trace(folder)).omitted] == [0.0]


@pytest.mark.parametrize("idle", ["flush", "tool"])
@pytest.mark.parametrize("who", ["worker", "master"])
def test_a_thread_that_writes_out_its_trace_does_not_compute(filled, who, idle):
    """One thread is in a call from 1 to 9 s; the other one's work has 5 s that are not its."""

    def fill(a):
        threads = [a.events(a.masters[0]), second(a)]
        calls, works = threads if who == "worker" else threads[::-1]
        tool = region(a, "flush", Paradigm.MEASUREMENT_SYSTEM)
        call(threads[0], 0, region(a, "MPI_Wtime"))
        calls.enter(1000, region(a, "MPI_Barrier"))
        works.enter(1000, region(a, "work", Paradigm.USER))
        if idle == "flush":
            works.buffer_flush(2000, 7000)
        else:
            call(works, 2000, tool, 7000)
        calls.leave(9000, region(a, "MPI_Barrier"))
        works.leave(9000, region(a, "work", Paradigm.USER))
        call(threads[0], 9000, region(a, "MPI_Wtime"))

    assert finish_of(filled(fill)) == [4.0]


NOBODY = 0xFFFFFFFF


def threads_of(a, rank, count=2):
    more = [a.definitions.location(f"thread {k}", group=a.processes[rank]) for k in range(1, count)]
    return [a.events(each) for each in (a.masters[rank], *more)]


def send(a, events, at, to, tag, until=None):
    call(events, at, a.send, until, inside=[("mpi_send", to, a.world, tag, 8)])


def recv(a, events, at, source, tag, until=None):
    called = region(a, "MPI_Recv")
    call(events, at, called, until, inside=[("mpi_recv", source, a.world, tag, 8)])


def barrier(a, events, at, comm, until):
    events.enter(at, a.barrier)
    events.mpi_collective_begin(at)
    events.mpi_collective_end(until, CollectiveOp.BARRIER, comm, NOBODY, 0, 0)
    events.leave(until, a.barrier)


def fill_receive_and_send(a):
    """One thread receives for 1 s, the other sends after 0.5 s; rank 1 does both after 1 s."""
    one, other = threads_of(a, 0)
    recv(a, one, 0, 1, 1, until=1000)
    send(a, other, 500, 1, 2)
    (peer,) = threads_of(a, 1, 1)
    send(a, peer, 1000, 0, 1)
    recv(a, peer, 1000, 0, 2)


def finish(folder, level=-1):
    trace = replace(read_trace(folder), thread_level=level)
    program = lower(trace)
    found = [replayed(program, engine).finish.round(9).tolist() for engine in ("simpy", "compiled")]
    assert found[0] == found[1]
    return found[0], [each for each in program.omitted if each.what == SERIALISED]


def test_a_send_leaves_at_its_time_though_another_thread_is_in_a_call(filled):
    """One thread receives from 0 on; the other sends after 0.8 s; the answer comes 1 s later."""

    def fill(a):
        one, other = threads_of(a, 0)
        recv(a, one, 0, 1, 1, until=1800)
        send(a, other, 800, 1, 2)
        (peer,) = threads_of(a, 1, 1)
        recv(a, peer, 0, 0, 2, until=800)
        send(a, peer, 1800, 0, 1)

    assert finish(filled(fill, 2)) == ([1.8, 1.8], [])


def test_collectives_of_two_threads_on_two_communicators_in_opposite_orders(filled):
    """Legal under MPI_THREAD_MULTIPLE; one after the other they would wait for ever.

    The first call begins at 0, the last 0.11 s later.
    """

    def fill(a):
        a.barrier = region(a, "MPI_Barrier")
        pair = a.definitions.comm("copy", group=a.group(range(2)))
        for rank, comms in ((0, (a.world, pair)), (1, (pair, a.world))):
            one, other = threads_of(a, rank)
            barrier(a, one, 100 + 10 * rank, comms[0], 500)
            barrier(a, other, 200 + 10 * rank, comms[1], 500)

    assert finish(filled(fill, 2)) == ([0.11, 0.11], [])


def test_each_thread_computes_between_its_own_calls(filled):
    """One thread sends at 0, 0.4 and 0.9 s while the other receives until 1 s."""

    def fill(a):
        one, other = threads_of(a, 0)
        recv(a, one, 0, 1, 9, until=1000)
        for k, at in enumerate((0, 400, 900)):
            send(a, other, at, 1, k, until=at + 100)
        send(a, one, 1200, 1, 5)
        (peer,) = threads_of(a, 1, 1)
        send(a, peer, 1000, 0, 9)
        for k in range(3):
            recv(a, peer, 1000, 0, k)
        recv(a, peer, 1000, 0, 5, until=1200)

    # Calls take no time here: 0.3 and 0.4 s between the sends; 0.2 s behind the receive.
    assert finish(filled(fill, 2)) == ([1.2, 1.2], [])


def test_calls_that_do_not_overlap_follow_each_other(filled):
    """A thread sends 1 ms after another has received: it may have waited for that."""

    def fill(a):
        one, other = threads_of(a, 0)
        recv(a, one, 0, 1, 1, until=500)
        send(a, other, 501, 1, 2)
        (peer,) = threads_of(a, 1, 1)
        send(a, peer, 700, 0, 1)
        recv(a, peer, 700, 0, 2, until=900)

    assert finish(filled(fill, 2)) == ([0.701, 0.701], [])


def test_three_threads_have_three_sequences(filled):
    """The last of three receives ends the rank, whichever thread made it."""

    def fill(a):
        for tag, events in enumerate(threads_of(a, 0, 3)):
            recv(a, events, 10 * tag, 1, tag, until=2000)
        (peer,) = threads_of(a, 1, 1)
        for tag, at in ((2, 300), (0, 900), (1, 1500)):
            send(a, peer, at, 0, tag)

    assert finish(filled(fill, 2)) == ([1.5, 1.5], [])


@pytest.mark.parametrize("level", ["FUNNELED", "SERIALIZED"])
def test_where_mpi_serialises_calls_they_are_made_one_after_the_other(filled, level):
    """The send waits for the receive before it, and that is said."""
    folder = filled(fill_receive_and_send, 2)
    found, said = finish(folder, THREAD_LEVELS.index(level))
    assert found == [1.0, 1.0]
    assert [str(each) for each in said] == [f"{SERIALISED}: 1"]
    assert finish(folder, THREAD_LEVELS.index("MULTIPLE")) == ([1.0, 1.0], [])


def test_what_one_thread_begins_and_another_ends_is_not_taken_apart(filled):
    def fill(a):
        one, other = threads_of(a, 0)
        call(one, 0, region(a, "MPI_Irecv"), 100, inside=[("mpi_irecv_request", 7)])
        inside = [("mpi_irecv", 1, a.world, 1, 8, 7)]
        call(other, 50, region(a, "MPI_Wait"), 1000, inside=inside)
        (peer,) = threads_of(a, 1, 1)
        send(a, peer, 900, 0, 1)

    found, said = finish(filled(fill, 2))
    assert found == [0.9, 0.9]
    assert [str(each) for each in said] == [f"{SERIALISED}: 1"]


def test_threads_are_read_with_the_events_they_made(filled):
    def fill(a):
        one, other = threads_of(a, 0)
        send(a, one, 0, 0, 1, until=300)
        recv(a, other, 100, 0, 1, until=200)

    trace = read_trace(filled(fill, 1))
    assert trace.thread is not None
    assert np.unique(trace.thread).tolist() == [0, 1]
    assert trace.thread.tolist() == [0, 1, 1, 1, 0, 0]


def test_what_another_thread_does_is_called_so(filled):
    trace = read_trace(filled(fill_receive_and_send, 2))
    program = lower(trace)
    (start,) = np.flatnonzero(program.kind == Op.START)
    assert program.describe(start) == "what another thread does"
    with pytest.raises(TraceError, match="several threads of a rank call MPI"):
        expect_one_thread(trace)


STEPS = st.lists(st.tuples(st.booleans(), st.integers(0, 9), st.integers(0, 9)), max_size=6)


@examples(40, 15)
@given(st.lists(STEPS, min_size=2, max_size=3))
@example([[(False, 1, 0)], [(True, 0, 1)]])  # both send as they receive
def test_where_nothing_takes_time_a_replay_ends_as_the_recording_did(tmp_path_factory, talks):
    """Thread k of rank 0 talks to thread k of rank 1: who sends, and what both compute before."""
    folder = tmp_path_factory.mktemp("drawn") / "made"
    ends = [0, 0]
    with archive_of(folder, 2) as a:
        events = [threads_of(a, rank, len(talks)) for rank in (0, 1)]
        for each in (events[0][0], events[1][0]):
            call(each, 0, region(a, "MPI_Wtime"))
        for tag, steps in enumerate(talks):
            now = [0, 0]
            for sender, *gaps in steps:
                begin = [now[rank] + gaps[rank] for rank in (0, 1)]
                now = [max(begin) if rank != sender else begin[rank] for rank in (0, 1)]
                now[1 - sender] = max(begin[1 - sender], begin[sender])
                send(a, events[sender][tag], begin[sender], 1 - sender, tag)
                to = events[1 - sender][tag]
                recv(a, to, begin[1 - sender], int(sender), tag, until=now[1 - sender])
            ends = [max(pair) for pair in zip(ends, now, strict=True)]
    assert finish(folder)[0] == [end / 1000 for end in ends]

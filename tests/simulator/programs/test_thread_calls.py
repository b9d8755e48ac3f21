"""Threads of a rank that call MPI at once: closed cases by hand, in ms, under both engines."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from otf2.enums import CollectiveOp

from hopmap.simulator import lower
from hopmap.simulator.programs.from_trace import SERIALISED
from hopmap.traces import read_trace
from hopmap.traces.trace import THREAD_LEVELS
from support.archives import call, region, replayed

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
    """Sends of 0, 0.4 and 0.9 s by one thread beside a receive that ends at 1 s by the other."""

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
    """A thread sends what another has received just before: it may have waited for that."""

    def fill(a):
        one, other = threads_of(a, 0)
        recv(a, one, 0, 1, 1, until=500)
        send(a, other, 500, 1, 2)
        (peer,) = threads_of(a, 1, 1)
        send(a, peer, 700, 0, 1)
        recv(a, peer, 700, 0, 2, until=900)

    assert finish(filled(fill, 2)) == ([0.7, 0.7], [])


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

    def fill(a):
        one, other = threads_of(a, 0)
        recv(a, one, 0, 1, 1, until=1000)
        send(a, other, 500, 1, 2)
        (peer,) = threads_of(a, 1, 1)
        send(a, peer, 1000, 0, 1)
        recv(a, peer, 1000, 0, 2)

    folder = filled(fill, 2)
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

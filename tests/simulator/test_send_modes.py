"""MPI's modes of sending, copies of early messages, and progress in calls: times by hand.

Nothing takes time but what is named: a hop takes h, a byte of computation or copying what is said.
"""

from __future__ import annotations

import pytest

from hopmap.simulator import ENGINES, DeadlockError, Parameters, program_of, simulate
from hopmap.topologies import mesh

HOP = 2.0**-20
SMALL, LARGE = 8, 2**20
FREE = {
    f"{end}_{what}": value
    for end in ("injection", "ejection", "memory")
    for what, value in (("latency", 0.0), ("bandwidth", 1e300))
} | {"overhead_send": 0.0, "overhead_recv": 0.0}

engines = pytest.mark.parametrize("engine", ENGINES)


def replayed(lists, engine, **parameters):
    topology = mesh((2,)).with_links(bandwidth=1e300, latency=HOP)
    given = Parameters(**FREE | parameters)
    return simulate(program_of("modes", lists), topology, [0, 1], parameters=given, engine=engine)


def finish(lists, engine, **parameters):
    return pytest.approx(replayed(lists, engine, **parameters).finish.tolist(), rel=1e-12)


def same(lists, engine, **parameters):
    one, other = replayed(lists, engine), replayed(lists, engine, **parameters)
    return one.finish.tolist() == other.finish.tolist()


@engines
def test_large_buffered_sends_both_ways_before_the_receives_do_not_block(engine):
    both = [[("bsend", 1 - rank, LARGE), ("recv", 1 - rank, LARGE)] for rank in range(2)]
    # Request, grant and data go in the background.
    assert finish(both, engine) == [3 * HOP, 3 * HOP]
    stuck = [[("send", 1 - rank, LARGE), ("recv", 1 - rank, LARGE)] for rank in range(2)]
    with pytest.raises(DeadlockError, match="send to rank 1"):
        replayed(stuck, engine)


@engines
def test_a_buffered_send_is_over_when_its_data_are_copied(engine):
    lists = [[("bsend", 1, LARGE)], [("recv", 0, LARGE)]]
    assert finish(lists, engine, copy_per_byte=2.0**-20) == [1.0, 1.0 + 3 * HOP]
    lists = [[("ibsend", 1, SMALL), ("wait", 0)], [("recv", 0, SMALL)]]
    assert finish(lists, engine, copy_per_byte=0.125) == [1.0, 1.0 + HOP]


@engines
@pytest.mark.parametrize("late", [0.0, 1.0])
def test_a_small_synchronous_send_is_over_when_its_acknowledgement_is_back(engine, late):
    for first, *behind in ([("ssend", 1, SMALL)], [("issend", 1, SMALL), ("wait", 0)]):
        lists = [[first, *behind], [("compute", late), ("recv", 0, SMALL)]]
        received = max(late, HOP)
        assert finish(lists, engine) == [received + HOP, received]
    result = replayed(lists, engine)
    assert result.controls == 1
    assert result.link_messages.sum() == 1


@engines
def test_a_large_synchronous_send_is_a_rendezvous(engine):
    of = [
        [[(f"{letter}send", 1, LARGE)], [("compute", 1.0), ("recv", 0, LARGE)]]
        for letter in ("", "s")
    ]
    standard, synchronous = (replayed(lists, engine) for lists in of)
    assert standard.finish.tolist() == synchronous.finish.tolist()
    assert synchronous.controls == 2


@engines
def test_a_synchronous_send_that_nobody_receives_is_stuck(engine):
    with pytest.raises(DeadlockError, match=r"ssend to rank 1 .*which no rank receives"):
        replayed([[("ssend", 1, SMALL)], []], engine)


@engines
def test_a_ready_send_asks_for_nothing_whatever_its_size(engine):
    lists = [[("compute", 1.0), ("rsend", 1, LARGE)], [("recv", 0, LARGE)]]
    result = replayed(lists, engine)
    assert result.finish[1] == pytest.approx(1.0 + HOP, rel=1e-12)
    assert result.controls == 0
    # Its buffer is free when the last byte has left (flow: has arrived); of a small one, at once.
    slow = replayed(lists, engine, injection_bandwidth=2.0**20)
    assert slow.finish[0] == pytest.approx(2.0 + (HOP if engine == "flow" else 0.0), rel=1e-12)
    lists = [[("compute", 1.0), ("rsend", 1, SMALL)], [("recv", 0, SMALL)]]
    assert replayed(lists, engine, injection_bandwidth=1.0).finish[0] == 1.0


@engines
def test_a_message_that_comes_before_its_receive_is_copied_when_that_is_posted(engine):
    copying = {"copy_per_byte": 0.125}
    late = [[("send", 1, SMALL)], [("compute", 1.0), ("recv", 0, SMALL)]]
    assert finish(late, engine, **copying) == [0.0, 2.0]
    posted = [[("send", 1, SMALL)], [("recv", 0, SMALL)]]
    assert finish(posted, engine, **copying) == [0.0, HOP]
    # Posting is what copies: IRECV, not its WAIT.
    lists = [("compute", 1.0), ("irecv", 0, SMALL), ("compute", 0.25), ("wait", 1)]
    result = replayed([[("send", 1, SMALL)], lists], engine, **copying)
    assert result.finish[1] == 2.25
    assert result.communicate[1] == 1.0
    # A rendezvous has nowhere to copy from.
    late = [[("send", 1, LARGE)], [("compute", 1.0), ("recv", 0, LARGE)]]
    assert same(late, engine, **copying)


@engines
def test_by_calls_a_request_is_granted_when_the_receiver_no_longer_computes(engine):
    lists = [
        [("send", 1, LARGE)],
        [("irecv", 0, LARGE), ("compute", 1.0), ("wait", 0)],
    ]
    assert replayed(lists, engine).finish[1] == 1.0
    by_calls = replayed(lists, engine, progress="in_mpi_calls")
    assert by_calls.finish[1] == pytest.approx(1.0 + 2 * HOP, rel=1e-12)
    # Any call will do.
    lists[1][1:2] = [("compute", 0.5), ("isend", 0, 0, 1), ("compute", 0.5)]
    hops = 2 if engine == "flow" else 1
    by_calls = replayed(lists, engine, progress="in_mpi_calls")
    assert by_calls.finish[0] == pytest.approx(0.5 + hops * HOP, rel=1e-12)


@engines
def test_by_calls_granted_data_leave_when_the_sender_no_longer_computes(engine):
    lists = [[("isend", 1, LARGE), ("compute", 1.0), ("wait", 0)], [("recv", 0, LARGE)]]
    assert replayed(lists, engine).finish[1] == pytest.approx(3 * HOP, rel=1e-12)
    by_calls = replayed(lists, engine, progress="in_mpi_calls")
    assert by_calls.finish[1] == pytest.approx(1.0 + HOP, rel=1e-12)


@engines
def test_by_calls_an_acknowledgement_waits_for_the_receiver_to_call(engine):
    lists = [[("ssend", 1, SMALL)], [("irecv", 0, SMALL), ("compute", 1.0), ("wait", 0)]]
    assert finish(lists, engine) == [2 * HOP, 1.0]
    assert finish(lists, engine, progress="in_mpi_calls") == [1.0 + HOP, 1.0]


@engines
def test_by_calls_ranks_that_wait_or_have_finished_answer_at_once(engine):
    lists = [[("send", 1, LARGE)], [("irecv", 0, LARGE)]]
    for waits in ([], [("wait", 0)]):
        here = [lists[0], lists[1] + waits]
        assert same(here, engine, progress="in_mpi_calls")


@engines
def test_an_eager_send_from_the_users_buffer_is_over_once_its_last_byte_has_left(engine):
    second, later = {"injection_bandwidth": float(SMALL)}, 2.0**-3
    for behind in ([("send", 1, SMALL)], [("isend", 1, SMALL), ("wait", 0)]):
        lists = [behind, [("recv", 0, SMALL)]]
        assert finish(lists, engine, **second) == [0.0, 1 + HOP]
        # A flow has left when it has arrived.
        left = 1 + HOP if engine == "flow" else 1.0
        assert finish(lists, engine, **second, eager_completion=later) == [left + later, 1 + HOP]
    # A rank that computes meanwhile does not wait, and one that sends again does.
    lists = [[("isend", 1, SMALL), ("compute", 4.0), ("wait", 0)], [("recv", 0, SMALL)]]
    assert finish(lists, engine, **second, eager_completion=later) == [4.0, 1 + HOP]
    if engine != "flow":
        lists = [[("send", 1, SMALL)] * 3, [("recv", 0, SMALL)] * 3]
        both = finish(lists, engine, **second, eager_completion=later)
        assert both == [3 * (1 + later), 3 + 2 * later + HOP]


@engines
def test_other_sends_are_over_as_before(engine):
    for word, size in (("send", LARGE), ("bsend", SMALL), ("ssend", SMALL), ("rsend", LARGE)):
        assert same([[(word, 1, size)], [("recv", 0, size)]], engine, eager_completion=1.0)


@engines
def test_a_message_to_a_rank_with_many_senders_asks_first(engine):
    topology = mesh((3,)).with_links(bandwidth=1e300, latency=HOP)
    late, small = 1.0, SMALL // 2

    def finish_of(size, peers):
        send, receives = [("send", 1, size)], [("recv", 0, size), ("recv", 2, size)]
        program = program_of("gather", [send, [("compute", late), *receives], send])
        given = Parameters(**FREE, eager_peers=peers, eager_limit_beyond=SMALL)
        result = simulate(program, topology, [0, 1, 2], parameters=given, engine=engine)
        return result.finish.tolist()

    for size, peers in ((SMALL, 0), (SMALL, 2), (small, 1)):
        assert finish_of(size, peers) == [0.0, late, 0.0]
    # The second grant leaves when the first message is there; a flow has left when it is there.
    left = 2 if engine == "flow" else 1
    expected = [late + left * HOP, late + 4 * HOP, late + (2 + left) * HOP]
    assert finish_of(SMALL, 1) == pytest.approx(expected, rel=1e-12)

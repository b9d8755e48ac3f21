"""Collectives that make handles, recorded on a communicator of which only some members call.

The network takes microseconds, so that times are those of computation and waiting.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopmap.simulator import lower, simulate
from hopmap.simulator.programs.from_collectives import SOME_MEMBERS
from hopmap.topologies import mesh
from hopmap.traces import TraceError, read_trace, write_trace
from support.collective_calls import collective, recv, send, trace_of_calls

GROUP, SPLIT = "MPI_Comm_create_group", "MPI_Comm_split"


def make(begin, end, region=GROUP, **more):
    return collective("CREATE_HANDLE", begin, end, region, **more)


def barrier(begin, end, **more):
    return collective("BARRIER", begin, end, **more)


@pytest.fixture
def replayed(tmp_path):
    """Write calls as an archive, read them, replay them: the program and its run."""

    def replay(ranks, communicators=()):
        write_trace(trace_of_calls(ranks, communicators), tmp_path / "made.otf2")
        program = lower(read_trace(tmp_path / "made.otf2"))
        return program, simulate(program, mesh((len(ranks),)), range(len(ranks)))

    return replay


def test_members_of_a_new_communicator_wait_for_each_other_and_for_nobody_else(replayed):
    # Ranks 0 and 1 are together at 1 s; rank 0 then computes 3 s. Ranks 2 and 3 compute 2 s.
    program, run = replayed(
        [
            [make(0, 1), barrier(4, 4)],
            [make(1, 1), barrier(1.5, 4)],
            [barrier(2, 4)],
            [barrier(2, 4)],
        ],
        [[0, 1]],
    )
    assert run.makespan == pytest.approx(4, abs=1e-4)
    assert run.wait == pytest.approx([1, 2.5, 2, 2], abs=1e-4)
    assert program.notes == {SOME_MEMBERS: 1}


@pytest.mark.parametrize("region", ["PMPI_Comm_create_group", "mpi_comm_create_group_f08_"])
def test_names_of_functions_of_a_group_are_known_in_every_language(replayed, region):
    ranks = [[make(at, at + 2, region), barrier(7, 7)] for at in (0, 1, 4, 5)]
    _, run = replayed(ranks, [[0, 1], [2, 3]])
    # Ranks 0 and 1 are together at 1 s and then compute for 5 and 4 s; 2 and 3 at 5, for 1 and 0 s.
    assert run.wait == pytest.approx([1, 1, 1, 1], abs=1e-4)


@pytest.mark.parametrize("communicators", [[[0, 1], [2, 3]], []], ids=["known", "by time"])
def test_two_groups_that_call_after_each_other_do_not_wait_for_each_other(replayed, communicators):
    # Every rank calls once. If the four were one barrier, rank 0 would wait for rank 2, which
    # waits for rank 0's message.
    big = 10**7
    program, run = replayed(
        [
            [make(0, 1), send(2, 1, 2, big)],
            [make(1, 1)],
            [recv(0, 0, 2, big), make(2, 3)],
            [make(3, 3)],
        ],
        communicators,
    )
    assert run.makespan == pytest.approx(3, abs=0.1)
    assert program.notes == {SOME_MEMBERS: 2}


def test_groups_that_overlap_are_told_apart_by_time(replayed):
    # {0, 1} at 1 s, then {1, 2} at 3 s; which is first at rank 1 no communicator says.
    _, run = replayed([[make(0, 1)], [make(1, 1), make(1, 3)], [make(3, 3)]], [[0, 1], [1, 2]])
    assert run.wait == pytest.approx([1, 2, 0], abs=1e-4)


def test_leaders_that_join_two_sides_wait_for_each_other(replayed):
    # MPI_Intercomm_create, on the peer communicator, where only the leaders 0 and 2 have one.
    _, run = replayed(
        [[make(0, 2, "MPI_Intercomm_create")], [], [make(2, 2, "MPI_Intercomm_create")], []]
    )
    assert run.wait == pytest.approx([2, 0, 0, 0], abs=1e-4)


def test_what_all_members_make_is_together_beside_what_some_make(replayed):
    # A split by all, around it two communicators of ranks 0 and 1, the second not by rank 2.
    _, run = replayed(
        [
            [make(0, 1), make(1, 4, SPLIT), make(4, 5)],
            [make(1, 1), make(2, 4, SPLIT), make(5, 5)],
            [make(4, 4, SPLIT)],
        ],
        [[0, 1], [0, 1]],
    )
    assert run.wait == pytest.approx([1 + 3 + 1, 2, 0], abs=1e-4)


def test_those_that_took_part_are_together_where_others_recorded_nothing(replayed):
    # Rank 2's recording ends early: no MPI_Finalize.
    last = "MPI_Finalize"
    program, run = replayed(
        [
            [barrier(1, 1), collective("DESTROY_HANDLE", 2, 5, last)],
            [barrier(1, 1), collective("DESTROY_HANDLE", 5, 5, last)],
            [barrier(1, 1)],
        ]
    )
    assert run.wait == pytest.approx([3, 0, 0], abs=1e-4)
    assert program.notes == {SOME_MEMBERS: 1}
    assert sum(program.chosen["barrier"].values()) == 2


def test_one_that_makes_a_handle_alone_waits_for_nobody(replayed):
    program, run = replayed([[make(1, 1), barrier(2, 2)], [barrier(2, 2)]])
    assert run.makespan == pytest.approx(2, abs=1e-4)
    assert program.notes == {SOME_MEMBERS: 1}


def test_other_collectives_that_differ_in_number_stay_an_error(replayed):
    with pytest.raises(TraceError) as error:
        replayed([[make(0, 1), barrier(1, 1), barrier(2, 2)], [make(0, 1), barrier(1, 1)]])
    assert str(error.value).endswith(
        "communicator 0: rank 1 takes part in 1 collectives and rank 0 in 2: expected the same "
        "number"
    )


def test_handles_of_all_members_stay_in_order_whatever_the_times(replayed):
    program, run = replayed([[make(0, 0, SPLIT)], [make(9, 9, SPLIT)]])
    assert run.wait == pytest.approx([9, 0], abs=1e-4)
    assert program.notes == {}


@st.composite
def runs(draw):
    """Calls of a run: groups that make communicators, and messages, of 2 to 5 ranks."""
    ranks = draw(st.integers(2, 5))
    calls, clock, groups = [[] for _ in range(ranks)], [0.0] * ranks, []
    pause = st.integers(0, 9)
    some = st.lists(st.integers(0, ranks - 1), unique=True, min_size=1)
    for kind in draw(st.lists(st.sampled_from(["group", "message"]), max_size=12)):
        together = draw(some) if kind == "group" else draw(st.permutations(range(ranks)))[:2]
        begin = [clock[rank] + draw(pause) for rank in together]
        end = max(begin) + 1
        for rank, at in zip(together, begin, strict=True):
            clock[rank] = end
            other = together[rank == together[0]] if kind == "message" else None
            calls[rank].append(
                make(at, end)
                if kind == "group"
                else (send if rank == together[0] else recv)(other, at, end, 10**6)
            )
        if kind == "group" and len(together) < ranks:
            groups.append(together)
    return calls, groups


@settings(deadline=None)
@given(runs(), st.booleans())
def test_what_ran_runs_whoever_makes_handles_with_whom(run, communicators_are_known):
    calls, groups = run
    program = lower(trace_of_calls(calls, groups if communicators_are_known else ()))
    assert simulate(program, mesh((len(calls),)), range(len(calls))).makespan >= 0

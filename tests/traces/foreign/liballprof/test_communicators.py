"""Who is in a communicator that processes name by a handle, their rank in it and its size."""

from __future__ import annotations

import pytest

from hopmap.traces import Collective, Kind, TraceError

from ..read_back import collectives, pairs
from .written import INT, Rank, read


def communicators(trace, rank):
    """Communicator of each message and collective of a rank, the first and last apart."""
    mine = slice(trace.offsets[rank], trace.offsets[rank + 1])
    rows = trace.ref[mine][trace.kind[mine] > Kind.LEAVE]
    return trace.records.comm[rows].tolist()[1:-1]


def test_one_handle_at_several_processes_is_one_communicator(tmp_path):
    """However the processes come to use them."""
    ranks = [Rank(r, 3) for r in range(3)]
    for rank in ranks[:2]:
        for handle in ((70, 71), (71, 70))[rank.rank]:
            rank.call("Barrier", rank.comm(handle, size=2))
    trace = read(tmp_path, ranks)
    assert [communicators(trace, rank) for rank in range(3)] == [[2, 3], [3, 2], []]
    assert [each.tolist() for each in trace.communicators[2:]] == [[0, 1]] * 2


def test_handles_that_differ_are_one_communicator_if_they_come_at_the_same_turn(tmp_path):
    """They are addresses in the processes."""
    ranks = [Rank(r, 3) for r in range(3)]
    for rank, (a, b, c, d) in zip(ranks[1:], ((1, 2, 3, 4), (14, 13, 12, 11)), strict=True):
        own = rank.rank - 1
        talk = rank.recv if own else rank.send
        rank.call("Barrier", rank.comm(a, own, 2))
        talk(1 - own, 2, comm=rank.comm(b, own, 2))
        rank.call("Bcast", 7, 2, INT, 1, rank.comm(c, own, 2))
        rank.call("Allreduce", 7, 8, 2, INT, 1, rank.comm(d, own, 2))
        rank.call("Barrier", rank.comm(d, own, 2)).call("Barrier", rank.comm(b, own, 2))
    trace = read(tmp_path, ranks)
    assert communicators(trace, 1) == communicators(trace, 2) == [2, 3, 4, 5, 5, 3]
    assert pairs(trace) == [(1, 2, 1, 8)]


def test_a_copy_of_the_world_has_messages_of_its_own_and_one_alone_talks_to_itself(tmp_path):
    a, b = Rank(0, 2), Rank(1, 2)
    a.send(1, 1).send(1, 2, comm=a.comm(6001)).send(0, 3, comm=a.comm(8000, 0, 1))
    a.recv(0, 3, comm=a.comm(8000, 0, 1))
    b.recv(0, 9, comm=b.comm(6001)).recv(0, 9).send(0, 4, comm=b.comm(8000, 0, 1))
    b.recv(0, 4, comm=b.comm(8000, 0, 1))
    trace = read(tmp_path, [a, b])
    assert pairs(trace) == [(0, 0, 1, 12), (0, 1, 2, 12), (1, 1, 1, 16)]
    sizes = trace.records.size[trace.ref[trace.kind == Kind.RECV]]
    assert sizes.tolist() == [12, 8, 4, 16]


def test_members_of_a_split_follow_from_its_colours(tmp_path):
    ranks = [Rank(r, 4) for r in range(4)]
    for rank in ranks:
        rank.call("Comm_split", rank.comm(), rank.rank % 2, -rank.rank, 1)
        mine = rank.comm(7000, 1 - rank.rank // 2, 2)
        if rank.rank < 2:
            rank.send(0, 5, comm=mine)
        else:
            rank.recv(1, 5, comm=mine)
        rank.call("Barrier", mine)
    trace = read(tmp_path, ranks)
    assert pairs(trace) == [(0, 2, 1, 20), (1, 3, 1, 20)]
    assert [each.tolist() for each in trace.communicators[2:]] == [[2, 0], [3, 1]]


def test_communicators_that_cannot_be_told_are_refused(tmp_path):
    ranks = [Rank(r, 4) for r in range(4)]
    for rank in ranks:
        rank.call("Barrier", rank.comm(7000, rank.rank % 2, 2))
    with pytest.raises(TraceError, match=r"trace-0.txt: communicator 7000, rank 0 of 2: its memb"):
        read(tmp_path, ranks)


def test_files_that_are_copies_of_rank_0_are_of_the_ranks_that_they_name(tmp_path):
    # As the samples of Schedgen are.
    ranks = [Rank(r, 3) for r in range(3)]
    for rank in ranks:
        rank.call("Bcast", 7, 12, "13,1,1", 0, rank.comm(rank=0))
    trace = read(tmp_path, ranks)
    assert collectives(trace, Collective.BCAST) == [(0, 36, 12), (0, 0, 12), (0, 0, 12)]
    assert list(trace.ignored.values()) == [2]
    ranks[2].send(1, 4, comm=ranks[2].comm(rank=0))
    with pytest.raises(TraceError, match=r"says that it is of rank 0, as trace-0.txt does"):
        read(tmp_path, ranks)

"""liballprof's text: every argument where gencode.py writes it, and what the text does not say."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from hopmap.simulator import lower
from hopmap.traces import Collective, Kind, TraceError, summarize, traffic_of
from hopmap.traces.sources import open_source
from support import about

from ..read_back import collectives, kinds, pairs
from .written import HEAD, INT, Rank, read, write


def test_messages_have_the_bytes_of_their_types(tmp_path):
    a, b = Rank(0, 2), Rank(1, 2)
    a.send(1, 10, tag=5).recv(1, 3)
    b.recv(0, 99, tag=5).send(0, 3)
    trace = read(tmp_path, [a, b])
    assert pairs(trace) == [(0, 1, 1, 40), (1, 0, 1, 12)]
    receives = trace.records.size[trace.ref[trace.kind == Kind.RECV]]
    assert receives.tolist() == [12, 40]  # what was sent, not the room for it
    assert not trace.ignored
    assert lower(trace).p2p_traffic().same_as(traffic_of(trace))


@pytest.mark.parametrize("width", [8, 4])
def test_requests_are_known_by_their_addresses(tmp_path, width):
    a, b = Rank(0, 2), Rank(1, 2)
    for round_ in range(2):
        a.send(1, 1 + round_, name="Isend", request=1000)
        a.recv(1, 5, name="Irecv", request=1000 + width)
        a.call("Waitall", 2, 1000, 0)
        b.recv(0, 5, name="Irecv", request=77).send(0, 2).call("Wait", 77, 0)
    trace = read(tmp_path, [a, b])
    program = lower(trace)
    assert program.omitted == ()
    assert pairs(trace) == [(0, 1, 2, 12), (1, 0, 2, 16)]
    round_ = ["MPI_Isend", "ISEND", "MPI_Irecv", "IRECV_REQUEST", "MPI_Waitall"]
    assert kinds(trace, 0)[2:-2] == [*round_, "ISEND_COMPLETE", "IRECV"] * 2


def test_the_last_test_before_a_request_is_used_again_completes_it(tmp_path):
    a, b = Rank(0, 2), Rank(1, 2)
    a.send(1, 1).send(1, 2)
    for _ in range(2):
        b.recv(0, 5, name="Irecv", request=77)
        b.call("Test", 77, 1, 0).call("Test", 77, 1, 0)
    trace = read(tmp_path, [a, b])
    kinds = trace.kind[trace.offsets[1] :]
    calls = [trace.regions[r] for r in trace.ref[trace.offsets[1] :][kinds == Kind.ENTER]]
    which = np.cumsum(kinds == Kind.ENTER)[kinds == Kind.IRECV] - 1
    assert calls == ["MPI_Init", *["MPI_Irecv", "MPI_Test", "MPI_Test"] * 2, "MPI_Finalize"]
    assert which.tolist() == [3, 6]


def test_a_wait_for_what_was_never_begun_completes_nothing(tmp_path):
    a, b = Rank(0, 2), Rank(1, 2)
    a.send(1, 4, name="Isend", request=500).call("Wait", 600, 0).call("Start", 700)
    b.recv(0, 4)
    trace = read(tmp_path, [a, b])
    assert kinds(trace, 0)[2:-2] == ["MPI_Isend", "ISEND", "MPI_Wait", "MPI_Start"]


def test_persistent_requests_start_again(tmp_path):
    a, b = Rank(0, 2), Rank(1, 2)
    a.send(1, 4, name="Send_init", request=500)
    for _ in range(3):
        a.call("Start", 500).call("Wait", 500, 0)
        b.recv(0, 4)
    assert pairs(read(tmp_path, [a, b])) == [(0, 1, 3, 48)]


def test_open_receives_take_what_nobody_else_takes(tmp_path):
    ranks = [Rank(r, 3) for r in range(3)]
    ranks[0].recv(-1, 9, tag=-1).recv(2, 9, tag=4).recv(-2, 9)
    ranks[1].send(0, 1, tag=3).send(-2, 1)
    ranks[2].send(0, 2, tag=4)
    trace = read(tmp_path, ranks)
    assert pairs(trace) == [(1, 0, 1, 4), (2, 0, 1, 8)]
    found = trace.kind == Kind.RECV
    assert trace.records.peer[trace.ref[found]].tolist() == [1, 2]
    assert list(trace.ignored.values()) == [1]


def test_open_receives_look_for_what_they_name_by_the_time_since_each_rank_began(tmp_path):
    ranks = [Rank(0, 3), Rank(1, 3, ahead=10**9), Rank(2, 3)]  # 1's clock is 1000 s ahead
    ranks[0].recv(-1, 9, tag=4).recv(2, 9, tag=-1).recv(-1, 9, tag=-1).recv(-1, 9, tag=-1)
    ranks[0].recv(2, 9, tag=8)
    ranks[1].call("Barrier", ranks[1].comm(8000, 0, 1))
    ranks[1].call("Barrier", ranks[1].comm(8000, 0, 1)).send(0, 1, tag=5)
    for tag in (8, 9, 4, 3):
        ranks[2].send(0, tag, tag=tag)
    trace = read(tmp_path, ranks)
    found = trace.ref[trace.kind == Kind.RECV]
    assert trace.records.tag[found].tolist() == [4, 9, 5, 3, 8]
    assert trace.records.peer[found].tolist() == [2, 2, 1, 2, 2]
    assert trace.records.size[found].tolist() == [16, 36, 4, 12, 32]


def test_sendrecv_has_two_partners_two_sizes_and_two_tags(tmp_path):
    ranks = [Rank(r, 3) for r in range(3)]
    own = ranks[0].comm()
    ranks[0].call("Sendrecv", 7, 10, INT, 1, 5, 8, 99, "13,1,1", 2, 6, own, 0)
    ranks[0].call("Sendrecv_replace", 7, 3, INT, 1, 5, 2, 8, own, 0)
    ranks[1].recv(0, 99, tag=5).recv(0, 99, tag=5)
    ranks[2].send(0, 2, tag=6).send(0, 3, tag=8)
    trace = read(tmp_path, ranks)
    assert pairs(trace) == [(0, 1, 2, 52), (2, 0, 2, 20)]
    kind = trace.kind[: trace.offsets[1]]
    mine = trace.ref[: trace.offsets[1]][(kind == Kind.SEND) | (kind == Kind.RECV)]
    assert trace.records.tag[mine].tolist() == [5, 6, 5, 8]
    assert trace.records.peer[mine].tolist() == [1, 2, 1, 2]


@pytest.mark.parametrize(
    ("end", "arguments", "last"),
    [
        ("Waitall", (2, 500, 0), False),
        ("Testall", (2, 500, 1, 0), True),
        ("Waitany", (2, 500, 77, 0), True),
        ("Testany", (2, 500, 77, 1, 0), True),
        ("Waitsome", (2, 500, 77, 78, 0), True),
        ("Testsome", (2, 500, 77, 78, 0), True),
    ],
)
def test_requests_of_an_array_are_over_where_they_surely_are(tmp_path, end, arguments, last):
    """With the first call that ends them all, or the last of those that end some."""
    a, b = Rank(0, 2), Rank(1, 2)
    for tag in (0, 1):
        a.send(1, 1, tag=tag, name="Ssend_init", request=500 + 8 * tag)
        b.recv(0, 9, tag=tag)
    a.call("Startall", 2, 500).call(end, *arguments).call(end, *arguments)
    trace = read(tmp_path, [a, b])
    ends, none = [f"MPI_{end}", "ISEND_COMPLETE", "ISEND_COMPLETE"], [f"MPI_{end}"]
    expected = ["MPI_Startall", "ISEND", "ISEND", *(none + ends if last else ends + none)]
    assert [word for word in kinds(trace, 0) if "_init" not in word][2:-2] == expected
    assert pairs(trace) == [(0, 1, 2, 8)]
    assert trace.records.tag[trace.ref[trace.kind == Kind.ISEND]].tolist() == [0, 1]


def test_calls_last_as_many_microseconds_as_they_say(tmp_path):
    trace = read(tmp_path, [Rank(0, 1).call("Barrier", "6000,0,1")])
    # MPI_Init has no begin and MPI_Finalize no end: they take no time.
    brackets = trace.time[trace.kind <= Kind.LEAVE]
    np.testing.assert_allclose(np.diff(brackets) * 1e6, [0, 1, 1, 1, 0], atol=0.3)


def test_wildcards_of_mpich_are_known_by_its_world(tmp_path):
    # MPI_ANY_SOURCE is -2 and MPI_PROC_NULL -1 there; in Open MPI it is the other way round.
    ranks = [Rank(r, 2) for r in range(2)]
    world = [rank.comm(handle=0x44000000) for rank in ranks]
    ranks[0].send(1, 4, tag=7, comm=world[0]).send(-1, 9, comm=world[0])
    ranks[1].recv(-2, 4, tag=-1, comm=world[1]).recv(-1, 9, comm=world[1])
    trace = read(tmp_path, ranks)
    assert pairs(trace) == [(0, 1, 1, 16)]
    assert np.count_nonzero(trace.kind == Kind.RECV) == 1


@pytest.mark.parametrize(
    ("counts", "width"),
    [("5,-6", 4), ("5,5", -1), ("5,9007199254740992", 4), (f"{2**62},{2**62}", 4)],
)
def test_blocks_of_no_size_are_named(tmp_path, counts, width):
    ranks = [Rank(r, 2) for r in range(2)]
    for rank in ranks:
        given = (1, 2, counts, 3, "0,1", f"1,{width}", 4, 5, "5,5", 6, "0,1", "1,4", rank.comm())
        rank.call("Alltoallv", *given)
    with pytest.raises(TraceError, match=r"trace-0.txt: line \d+ is 'MPI_Alltoallv.*expected"):
        read(tmp_path, ranks)


def test_what_is_not_read_is_told(tmp_path):
    ranks = [Rank(r, 2) for r in range(2)]
    for rank in ranks:
        rank.call("Iallreduce", 7, 8, 1, INT, 1, rank.comm(), 500).call("Wait", 500, 0)
    assert read(tmp_path, ranks).ignored == {"non-blocking collectives, left out, in": 2}
    ranks[0].lines.insert(1, "MPI_Comm_rank:1.00:0:0x7ffd34:2.00")
    with pytest.raises(TraceError, match=r"trace-0.txt: of liballprof2, which records no sizes"):
        read(tmp_path, ranks)


def test_collectives_are_counted_as_score_p_does(tmp_path):
    ranks = [Rank(r, 2) for r in range(2)]
    for rank in ranks:
        rank.call("Bcast", 7, 10, INT, 1, rank.comm())
        rank.call("Reduce", 7, 8, 3, INT, 1, 0, rank.comm())
        rank.call("Allreduce", 7, 8, 2, INT, 1, rank.comm())
        rank.call("Allgather", 7, 4, INT, 8, 4, INT, rank.comm())
        rank.call("Gatherv", 7, 1 + rank.rank, INT, 8, 9, "1,2", 9, "0,1", INT, 0, rank.comm())
        rank.call("Reduce_scatter", 7, 8, 9, "3,5", INT, 1, rank.comm())
        counts = "6,7" if rank.rank == 0 else "8,9"
        got = "6,8" if rank.rank == 0 else "7,9"
        rank.call("Alltoallv", 7, 9, counts, 9, "0,6", INT, 8, 9, got, 9, "0,8", INT, rank.comm())
    trace = read(tmp_path, ranks)
    assert collectives(trace, Collective.BCAST) == [(1, 0, 40), (1, 80, 40)]
    assert collectives(trace, Collective.REDUCE) == [(0, 12, 24), (0, 12, 0)]
    assert collectives(trace, Collective.ALLREDUCE) == [(-1, 16, 16)] * 2
    assert collectives(trace, Collective.ALLGATHER) == [(-1, 32, 32)] * 2
    assert collectives(trace, Collective.GATHERV) == [(0, 4, 12), (0, 8, 0)]
    assert collectives(trace, Collective.REDUCE_SCATTER) == [(-1, 32, 24), (-1, 32, 40)]
    assert collectives(trace, Collective.ALLTOALLV) == [(-1, 52, 56), (-1, 68, 64)]
    assert trace.counts.size.tolist() == [24, 28, 32, 36]
    assert lower(trace).traffic().messages.sum() > 0


def test_a_collective_with_a_root_has_its_bytes_where_they_stand(tmp_path):
    """In a communicator whose rank 0 is the world's 1; the root is the world's 2."""
    ranks = [Rank(r, 3) for r in range(3)]
    for rank in ranks[1:]:
        own = rank.rank - 1
        comm, counts = rank.comm(70, own, 2), "1,2"
        rank.call("Scatter", 7, 99, INT, 8, 6, "13,2,2", 1, comm)
        rank.call("Scatterv", 7, 9, counts, 9, "5,6", INT, 8, 1 + own, "13,2,2", 1, comm)
        rank.call("Gather", 7, 6, "13,2,2", 8, 99, INT, 1, comm)
        rank.call("Gatherv", 7, 1 + own, "13,2,2", 8, 9, counts, 9, "5,6", INT, 1, comm)
        rank.call("Reduce", 7, 8, 3, INT, 0, 1, comm)
        rank.call("Scan", 7, 8, 2, INT, 1, comm)
    trace = read(tmp_path, ranks)
    assert collectives(trace, Collective.SCATTER) == [(2, 0, 12), (2, 24, 12)]
    assert collectives(trace, Collective.SCATTERV) == [(2, 0, 2), (2, 12, 4)]
    assert collectives(trace, Collective.GATHER) == [(2, 12, 0), (2, 12, 24)]
    assert collectives(trace, Collective.GATHERV) == [(2, 2, 0), (2, 4, 12)]
    assert collectives(trace, Collective.REDUCE) == [(2, 12, 0), (2, 12, 24)]
    assert collectives(trace, Collective.SCAN) == [(-1, 16, 8), (-1, 8, 16)]


def test_alltoallv_and_alltoallw_have_a_size_for_each_way(tmp_path):
    ranks = [Rank(r, 2) for r in range(2)]
    for rank in ranks:
        comm = rank.comm()
        rank.call("Alltoallv", 7, 9, "1,2", 9, "0,1", INT, 8, 9, "4,5", 9, "0,4", "13,2,2", comm)
        rank.call("Alltoallw", 7, 9, "1,2", 9, "0,1", 6, 8, 9, "4,5", 9, "0,4", 6, comm)
    trace = read(tmp_path, ranks)
    assert collectives(trace, Collective.ALLTOALLV) == [(-1, 12, 18)] * 2
    assert collectives(trace, Collective.ALLTOALLW) == [(-1, 3, 9)] * 2
    assert trace.counts is None  # whose turns would be those of alltoallw, too
    assert trace.ignored == {"MPI_Alltoallw (types treated as bytes), in": 2}


def test_a_wrong_line_is_named(tmp_path):
    for line, said in [
        ("MPI_Barrier:1.0:6000,2,2:2.0", "MPI_Barrier with comm"),
        ("MPI_Send:1.0:7:10:1,4,4:1:0:6000,0,2", "MPI_Send with buf, count, type"),
        ("MPI_Send:1.0:7:x:1,4,4:1:0:6000,0,2:2.0", "whole number for count"),
        ("MPI_Send:1.0:7:-1:1,4,4:1:0:6000,0,2:2.0", "MPI_Send with buf"),
        ("MPI_Barrier:1.0:6000,5,2:2.0", "MPI_Barrier with comm"),
        ("MPI_Barrier:1.0:6000,0,9:2.0", "a communicator of 9 ranks, and 2 files"),
        ("MPI_Send:1.0:7:1:1,4,4:5:0:6000,0,2:2.0", "partner 5: expected a rank below 2"),
        ("nonsense", "a call like MPI_Send:begin:arguments:end"),
        ("MPI_Bcast:x:7:1:1,4,4:0:6000,0,2:2.0", "times in microseconds"),
        ("MPI_Bcast:1.0:7:1:1,4,4:3:6000,0,2:2.0", "MPI_Bcast with buf, count, type, root"),
    ]:
        with about(line, said):
            a, b = Rank(0, 2), Rank(1, 2)
            a.lines.append(line)
            with pytest.raises(TraceError) as error:
                read(tmp_path, [a, b])
            assert said in str(error.value)
            assert "\n" not in str(error.value)


def test_a_cut_file_is_refused_or_told(tmp_path):
    a, b = Rank(0, 2), Rank(1, 2)
    a.send(1, 10, tag=5).recv(1, 3)
    b.recv(0, 99, tag=5).send(0, 3)
    source = write(tmp_path, [a, b])
    file = tmp_path / "trace-1.txt"
    whole = file.read_bytes()
    for size in range(len(HEAD) + 12, len(whole)):
        file.write_bytes(whole[:size])
        try:
            assert source.trace().ignored
        except TraceError as error:
            assert "\n" not in str(error)


def test_shared_sweep3d_has_the_totals_of_its_lines(shared):
    folder = shared / "foreign" / "liballprof" / "sweep3d-2x2"
    if not folder.is_dir():
        pytest.skip("no ../shared/foreign")
    trace = open_source(folder).trace()
    sends = collected = 0
    for file in folder.glob("*.txt"):
        for line in file.read_text().splitlines():
            if line.startswith("MPI_Send:"):
                words = line.split(":")
                sends, collected = (
                    sends + 1,
                    collected + int(words[3]) * int(words[4].split(",")[1]),
                )
    summary = summarize(trace)
    assert (summary.messages, summary.bytes) == (sends, collected) == (5760, 207_360_000)
    assert summary.collectives["ALLREDUCE"] == 32
    assert lower(trace).omitted == ()
    words = Counter(
        line.split(":")[0]
        for file in folder.glob("*.txt")
        for line in file.read_text().splitlines()
        if line.startswith("MPI_")
    )
    entered = trace.ref[trace.kind == Kind.ENTER]
    assert Counter(trace.regions[ref] for ref in entered) == words
    for operation in ("BCAST", "BARRIER", "ALLREDUCE"):
        assert summary.collectives[operation] == words[f"MPI_{operation.capitalize()}"] / 4

"""liballprof's text: every argument where gencode.py writes it, and what the text does not say."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from hopmap.simulator import lower
from hopmap.traces import Collective, Kind, TraceError, summarize, traffic_of
from hopmap.traces.sources import open_source

from ..read_back import collectives, pairs

HEAD = "# htor's PMPI Tracer 1.0 Output File\n# clockdiff: 0.0 s (relative to rank 0)\n\n"
INT, WORLD = "1,4,4", 6000


class Rank:
    """Writes the calls of a rank, one a microsecond."""

    def __init__(self, rank, ranks):
        self.rank, self.ranks, self.time = rank, ranks, 1_237_666_046_950_106
        self.lines = [f"MPI_Init:-:1:2:{self.time}.000000"]

    def comm(self, handle=WORLD, rank=None, size=None):
        own = self.rank if rank is None else rank
        return f"{handle},{own},{self.ranks if size is None else size}"

    def call(self, name, *arguments):
        begin, self.time = self.time + 1, self.time + 2
        text = ":".join(map(str, arguments))
        self.lines.append(f"MPI_{name}:{begin}.000000:{text}:{self.time}.000000")
        return self

    def send(self, peer, count, tag=0, name="Send", comm=None, request=None):
        rest = [] if request is None else [request]
        return self.call(name, 7, count, INT, peer, tag, comm or self.comm(), *rest)

    def recv(self, peer, count, tag=0, name="Recv", comm=None, request=99):
        return self.call(name, 7, count, INT, peer, tag, comm or self.comm(), request)

    def text(self):
        return HEAD + "\n".join([*self.lines, f"MPI_Finalize:{self.time + 1}.000000:-"]) + "\n"


def write(folder, ranks):
    for rank in ranks:
        (folder / f"trace-{rank.rank}.txt").write_text(rank.text())
    return open_source(folder)


def read(folder, ranks):
    source = write(folder, ranks)
    assert source.kind == "recording"
    return source.trace()


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
    assert program.left_out == ()
    assert pairs(trace) == [(0, 1, 2, 12), (1, 0, 2, 16)]


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


def test_wildcards_of_mpich_are_known_by_its_world(tmp_path):
    # MPI_ANY_SOURCE is -2 and MPI_PROC_NULL -1 there; in Open MPI it is the other way round.
    ranks = [Rank(r, 2) for r in range(2)]
    world = [rank.comm(handle=0x44000000) for rank in ranks]
    ranks[0].send(1, 4, tag=7, comm=world[0]).send(-1, 9, comm=world[0])
    ranks[1].recv(-2, 4, tag=-1, comm=world[1]).recv(-1, 9, comm=world[1])
    trace = read(tmp_path, ranks)
    assert pairs(trace) == [(0, 1, 1, 16)]
    assert np.count_nonzero(trace.kind == Kind.RECV) == 1


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
    with pytest.raises(TraceError, match=r"trace-0.txt: of liballprof2, which tells no sizes"):
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


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("MPI_Send:1.0:7:10:1,4,4:1:0:6000,0,2", "MPI_Send with buf, count, type"),
        ("MPI_Send:1.0:7:x:1,4,4:1:0:6000,0,2:2.0", "whole number for count"),
        ("MPI_Send:1.0:7:-1:1,4,4:1:0:6000,0,2:2.0", "MPI_Send with buf"),
        ("MPI_Barrier:1.0:6000,5,2:2.0", "MPI_Barrier with comm"),
        ("MPI_Barrier:1.0:6000,0,9:2.0", "a communicator of 9 ranks, and 2 files"),
        ("MPI_Send:1.0:7:1:1,4,4:5:0:6000,0,2:2.0", "partner 5: expected a rank below 2"),
        ("nonsense", "a call like MPI_Send:begin:arguments:end"),
        ("MPI_Bcast:x:7:1:1,4,4:0:6000,0,2:2.0", "times in microseconds"),
        ("MPI_Bcast:1.0:7:1:1,4,4:3:6000,0,2:2.0", "MPI_Bcast with buf, count, type, root"),
    ],
)
def test_a_wrong_line_is_named(tmp_path, line, said):
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
    assert lower(trace).left_out == ()
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

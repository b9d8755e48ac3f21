"""Files as the library writes them, made by hand: no MPI is needed here."""

from __future__ import annotations

import numpy as np
import pytest

from hopmap.traces import Collective, Kind, TraceError
from hopmap.traces.recorder.build import prototypes, wrappers_text
from hopmap.traces.recorder.launch import collectives_of, finish
from hopmap.traces.recorder.merge import trace_of
from hopmap.traces.recorder.raw import (
    COUNTS,
    HEADER,
    PART,
    Extra,
    read_processes,
)
from support.recorded_runs import ALLTOALLV, RECV, SEND, WAITALL, one_message, row, told, written


def test_a_call_is_enter_what_it_did_and_leave(tmp_path):
    trace = trace_of(read_processes(one_message(tmp_path)), "run")
    assert trace.kind.tolist() == [Kind.ENTER, Kind.SEND, Kind.LEAVE, Kind.ENTER, Kind.RECV, 1]
    # sent as the call begins, received as it ends, from the first event of all
    np.testing.assert_allclose(trace.time * 1e9, [0, 0, 100, 50, 150, 150], atol=1e-6)
    assert told(trace, 0) == ["Send SEND>1 t7 40"]
    assert trace.records.comm.tolist() == [0, 0]


def test_parts_stand_before_the_call_that_they_belong_to(tmp_path):
    done = [
        row(9, 9, PART, Kind.ISEND_COMPLETE, request=1),
        row(9, 9, WAITALL, Kind.IRECV, peer=0, comm=0, tag=3, size=8, request=2),
    ]
    cut = row(20, 30, PART, Kind.ISEND_COMPLETE, request=4)  # its call never ended
    trace = trace_of(read_processes(written(tmp_path, [row(1, 2, SEND), *done, cut])), "run")
    assert told(trace, 0) == ["Send", "Waitall ISEND_COMPLETE IRECV>0 t3 8"]
    np.testing.assert_allclose(trace.time * 1e9, [0, 1, 8, 8, 8, 8], atol=1e-6)


def test_clocks_go_evenly_between_two_comparisons(tmp_path):
    """Rank 1 is 1000 ns ahead at its 1100 and 1010 at its 2100: 1005 in the middle."""
    calls = [row(t, t, SEND) for t in (1050, 1100, 1600, 2100, 2200)]
    clock = [(1100, 1000), (2100, 1010)]
    folder = written(
        tmp_path, [row(0, 1, SEND)], calls, host=[7, 8], clocks=2, clock=[[(0, 0), (1, 0)], clock]
    )
    trace = trace_of(read_processes(folder), "run")
    np.testing.assert_allclose(trace.time[2::2] * 1e9, [50, 100, 595, 1090, 1190], atol=1e-6)


def test_of_the_same_members_the_nth_communicators_are_one(tmp_path):
    """Both make A, then B; rank 1 makes one of its own in between."""
    own = "group o 1"
    names = [
        ["group p 1 0", "comm 2 p 0", "comm 3 p 0"],
        ["comm 2 p 0", own, "comm 3 o 0", "comm 4 p 0"],
    ]
    send = [row(1, 2, SEND, Kind.SEND, peer=0, comm=c, tag=0, size=1) for c in (2, 3)]
    receive = [row(1, 2, RECV, Kind.RECV, peer=1, comm=c, tag=0, size=1) for c in (2, 4)]
    trace = trace_of(read_processes(written(tmp_path, send, receive, names=names)), "run")
    assert [each.tolist() for each in trace.communicators] == [[0, 1], [], [1, 0], [1, 0], [1]]
    assert trace.records.comm.tolist() == [2, 3, 2, 3]
    assert trace.records.peer.tolist() == [1, 1, 0, 0]


def test_between_two_groups_partners_are_on_the_other_side(tmp_path):
    names = [["group a 0 2", "comm 2 a b"], ["group b 1", "comm 2 b a"], ["comm 2 a b"]]
    programs = [
        [row(1, 2, SEND, Kind.SEND, peer=0, comm=2, tag=0, size=1)],
        [row(1, 2, RECV, Kind.RECV, peer=1, comm=2, tag=0, size=1)],
        [],
    ]
    trace = trace_of(read_processes(written(tmp_path, *programs, names=names)), "run")
    assert trace.records.peer.tolist() == [1, 2]
    assert trace.communicators[2].tolist() == [0, 2, 1]


def test_pairs_are_told_by_the_call_that_they_belong_to(tmp_path):
    def call(*sizes):
        parts = [
            row(1, 2, PART, Extra.PAIR, peer=p, size=n, comm=0) for p, n in enumerate(sizes) if n
        ]
        end = row(1, 2, ALLTOALLV, Kind.COLLECTIVE_END, size=sum(sizes), received=0, comm=0)
        end["operation"] = Collective.ALLTOALLV
        return [*parts, end]

    folder = written(tmp_path, [*call(0, 0), *call(3, 4)], call(0, 5))
    counts = trace_of(read_processes(folder), "run").counts
    assert np.stack(counts[1:]).T.tolist() == [[0, 1, 0, 3], [0, 1, 1, 4], [1, 0, 1, 5]]


def test_pairs_are_not_told_where_some_were_not_counted_or_one_alone_calls(tmp_path):
    def call(comm, size):
        end = row(1, 2, ALLTOALLV, Kind.COLLECTIVE_END, size=size, received=0, comm=comm)
        end["operation"] = Collective.ALLTOALLV
        return [row(1, 2, PART, Extra.PAIR, peer=0, size=size, comm=comm)] * (comm == 0) + [end]

    # Of MPI_COMM_SELF it is no turn.
    folder = written(tmp_path, [*call(1, 9), *call(0, 3)], call(0, 5))
    counts = trace_of(read_processes(folder), "run").counts
    assert np.stack(counts[1:]).T.tolist() == [[0, 0, 0, 3], [1, 0, 0, 5]]
    missed = np.arange(len(COUNTS)) == COUNTS.index("uncounted_pairs")
    written(tmp_path, call(0, 3), call(0, 5), counts=[0 * missed, missed])
    assert trace_of(read_processes(tmp_path), "run").counts is None


def test_what_a_request_of_a_collective_is_for_is_told_as_it_ends(tmp_path):
    about = {"comm": 0, "peer": 0, "size": 8, "received": 9, "tag": -1, "request": 4}
    rows = [
        row(1, 2, SEND, Kind.COLLECTIVE_REQUEST, **about),
        row(3, 4, WAITALL, Kind.COLLECTIVE_COMPLETE, **about),
        row(5, 6, RECV, Kind.COLLECTIVE_END, **about),
    ]
    records = trace_of(read_processes(written(tmp_path, rows)), "run").records
    # Begun, over; the begin and end of one that blocks.
    assert records.request.tolist() == [4, 4, -1, 4]
    assert records.comm.tolist() == records.peer.tolist() == [-1, 0, -1, 0]
    assert records.size.tolist() == [-1, 8, -1, 8]
    assert records.received.tolist() == [-1, 9, -1, 9]


def test_what_was_not_recorded_goes_on_to_its_end_by_the_clock_of_rank_0(tmp_path):
    def times(*modes):
        kinds = (Extra.RECORDING_OFF, Extra.RECORDING_ON)
        rows = [row(t, t, PART, kinds[k % 2]) for k, t in enumerate(modes)]
        return [row(1000, 1010, SEND), *rows]

    ahead = [[(0, 0), (9999, 0)], [(0, 1000), (9999, 1000)]]
    programs = times(1020, 1030, 1040), times(2050, 2070)
    folder = written(tmp_path, *programs, host=[7, 8], clocks=2, clock=ahead)
    spans = trace_of(read_processes(folder), "run").spans
    assert spans.rank.tolist() == [0, 0, 1]
    # From the first event of all, which is rank 1's at 1000 of its clock.
    np.testing.assert_allclose(spans.begin * 1e9, [1020, 1040, 1050], atol=1e-6)
    np.testing.assert_allclose(spans.end * 1e9, [1030, 1040, 1070], atol=1e-6)


def test_a_line_of_names_that_was_cut_is_left_out(tmp_path):
    one_message(tmp_path)
    file = tmp_path / "1.names"
    file.write_text(file.read_text() + "region 9 MPI_Al")
    assert 9 not in read_processes(tmp_path)[1].names.regions


def test_a_profile_has_messages_of_no_bytes_and_the_bytes_that_collectives_sent(tmp_path):
    sums = np.zeros(len(Collective), HEADER["collectives"].base)
    sums[Collective.ALLREDUCE] = (2, 16, 99)
    written(tmp_path, [], [], profile=1, collectives=[sums, sums])
    for rank, counts in enumerate(([[0, 0], [3, 0]], [[1, 8], [0, 0]])):
        np.array(counts, dtype=np.uint64).tofile(tmp_path / f"{rank}.matrix")
    assert finish(tmp_path, tmp_path / "out.csv") == ()
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert lines[-2:] == ["0,1,3,0", "1,0,1,8"]
    assert collectives_of(tmp_path) == {"allreduce": (4, 32)}


def test_files_that_could_not_be_written_and_clocks_that_were_not_compared_are_said(tmp_path):
    (tmp_path / "raw").mkdir()
    folder = one_message(tmp_path / "raw", finished=[1, -1], clocks=[2, 1], host=[7, 8])
    assert finish(folder, tmp_path / "run.otf2") == (
        "recording ended early, as files could not be written: rank 1",
        "clocks were compared at the start only",
    )
    one_message(folder, clocks=[2, 1], host=7)
    assert finish(folder, tmp_path / "again.otf2") == ()


def test_what_is_missing_is_said(tmp_path):
    (tmp_path / "raw").mkdir()
    folder = one_message(tmp_path / "raw", finished=[0, 2], open=[RECV, -1], counts=list(range(14)))
    # counts are given by rank: 0 for rank 0, 1 for rank 1
    missed = finish(folder, tmp_path / "run.otf2")
    assert missed[0] == (
        "ended without MPI_Finalize: rank 0 in MPI_Recv; what was recorded until then is kept"
    )
    assert missed[1] == "ended by MPI_Abort: rank 1; what was recorded until then is kept"
    assert "1 requests freed before they were complete: their completion is not known" in missed
    assert (tmp_path / "run.otf2" / "traces.otf2").is_file()


@pytest.mark.parametrize(
    ("spoil", "line"),
    [
        (lambda f: (f / "1.events").unlink(), "no 1.events, 1 of 2 processes are missing"),
        (lambda f: [each.unlink() for each in f.glob("*.events")], "no recording in it"),
        (lambda f: (f / "1.events").write_bytes(b"x" * 9), "1.events: not begun by the recorder"),
        (lambda f: one_message(f, run=[5, 6]), "1.events: of another run than 0.events"),
        (lambda f: one_message(f, version=9), "0.events: version 9, expected 5"),
        (
            lambda f: (f / "0.names").write_text("comm 0 w 0\ncomm 2 z 0\n"),
            "rank 0, communicator 2",
        ),
    ],
)
def test_damaged_recordings_are_one_line(tmp_path, spoil, line):
    spoil(one_message(tmp_path))
    with pytest.raises(TraceError, match=line) as raised:
        trace_of(read_processes(tmp_path), "run")
    assert "\n" not in str(raised.value)


HEADER_TEXT = """
typedef int MPI_Datatype;
__attribute__((visibility("default"))) extern int MPI_Send(const void *buf, int count,
    MPI_Datatype datatype, int dest) __attribute__((nonnull));
int MPI_Comm_rank(MPI_Comm comm, int *rank);
int MPI_Win_shared_query_c(MPI_Win win, int rank, MPI_Aint *size, MPI_Aint *unit, void *base);
int MPI_Group_incl(MPI_Group group, int n, const int ranks[], MPI_Group *newgroup);
double MPI_Wtime(void);
int MPI_Newest_thing(char **argv[], int ranges[][3], MPI_Info);
int MPI_Waitall(int count, MPI_Request requests[], MPI_Status *statuses);
"""


def test_functions_that_may_communicate_are_found_in_mpi_h():
    assert prototypes(HEADER_TEXT) == {
        "Send": ["const void * p1", "int p2", "MPI_Datatype p3", "int p4"],
        "Newest_thing": ["char ** p1[]", "int p2[][3]", "MPI_Info"],
        "Waitall": ["int p1", "MPI_Request p2[]", "MPI_Status * p3"],
    }


def test_functions_that_are_not_known_are_put_through():
    functions, regions = wrappers_text(HEADER_TEXT.replace("MPI_Info)", "MPI_Info info)"))
    assert "int MPI_Newest_thing(char ** p1[], int p2[][3], MPI_Info p3) {" in functions
    assert "if (rc == MPI_SUCCESS) {  } else count(FAILED_CALLS, 1);" in functions
    assert "REGION_MPI_Newest_thing,\n" in regions


def test_windows_and_groups_have_one_number_for_all(tmp_path):
    """The second window on the world is number 5 of rank 0 and number 1 of rank 1."""
    about = {"comm": 0, "tag": 5}
    barrier = {"size": 0, "received": 0, "request": 3, "operation": 0}
    one = [
        row(1, 4, SEND, Kind.RMA_PUT, peer=1, size=8, request=4, **about),
        row(5, 9, PART, Kind.RMA_OP_COMPLETE_REMOTE, request=4, **about),
        row(5, 9, RECV, Kind.RMA_COLLECTIVE_END, **barrier, **about),
    ]
    other = [row(3, 9, RECV, Kind.RMA_GROUP_SYNC, size=-1, operation=1, comm=0, tag=1)]
    group = "group ffffffffffffffff 1"
    names = [["window 2 0", "window 5 0"], ["window 0 0", "window 1 0", group]]
    trace = trace_of(read_processes(written(tmp_path, one, other, names=names)), "run")
    assert trace.windows == (0, 0)
    assert [members.tolist() for members in trace.groups] == [[1]]
    assert told(trace, 0) == [
        "Send RMA_PUT>1 t1 8",
        "Recv RMA_OP_COMPLETE_REMOTE t1 RMA_COLLECTIVE_END t1 0/0",
    ]
    assert told(trace, 1) == ["Recv RMA_GROUP_SYNC t1 0"]
    # the fence begins before what it completes
    begins = trace.kind.tolist().index(Kind.RMA_COLLECTIVE_BEGIN)
    assert trace.kind[begins + 1] == Kind.RMA_OP_COMPLETE_REMOTE
    np.testing.assert_allclose(trace.time[begins] * 1e9, 4, atol=1e-6)


def test_a_group_that_nobody_wrote_down_is_one_line(tmp_path):
    sync = row(3, 9, RECV, Kind.RMA_GROUP_SYNC, size=7, operation=1, comm=0, tag=0)
    processes = read_processes(written(tmp_path, [sync], names=[["window 0 0"]]))
    with pytest.raises(TraceError, match="run: group 7: its members are missing"):
        trace_of(processes, "run")

"""SimGrid's time-independent traces: the actions of smpi_replay.cpp, and what hopmap writes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopmap.simulator import Parameters, lower, program_of, simulate
from hopmap.simulator.export.simgrid import write as write_tit
from hopmap.topologies import mesh
from hopmap.traces import Collective, Kind, TraceError
from hopmap.traces.foreign.recognition import recording_of
from hopmap.traces.nas.benchmarks import nas_folded
from hopmap.traces.sources import open_source
from support import about
from support.slow import examples

from ..read_back import collectives, kinds, pairs


def write(folder, *ranks):
    folder.mkdir(exist_ok=True)
    for rank, lines in enumerate(ranks):
        text = "".join(f"{rank} {line}\n" for line in ["init", *lines, "finalize"])
        (folder / f"r{rank}.tit").write_text(text)
    (folder / "index").write_text("".join(f"r{rank}.tit\n" for rank in range(len(ranks))))
    return open_source(folder)


def times(program, engine="compiled"):
    nodes = np.arange(program.ranks)
    network = mesh((program.ranks,))
    return simulate(program, network, nodes, parameters=Parameters(), engine=engine).finish


def test_messages_computation_and_requests(tmp_path):
    source = write(
        tmp_path,
        ["compute 1e6", "isend 1 5 100", "irecv 1 6 8", "wait 0 1 5", "waitall", "sleep 0.5"],
        ["recv 0 5 100", "compute 2500000.5", "send 0 6 8"],
    )
    trace = source.trace()
    assert pairs(trace) == [(0, 1, 1, 100), (1, 0, 1, 8)]
    assert trace.time[trace.offsets[1] - 1] == pytest.approx(0.501)
    assert trace.ignored == {}
    assert np.count_nonzero(trace.kind == Kind.IRECV) == 1  # by waitall
    assert lower(trace).omitted == ()


def test_sizes_are_numbers_of_a_type_that_init_or_the_action_says(tmp_path):
    source = write(tmp_path, ["send 1 0 3", "send 1 0 3 1"], ["recv 0 0 3", "recv 0 0 3 1"])
    assert pairs(source.trace()) == [(0, 1, 2, 15)]
    file = tmp_path / "r0.tit"
    file.write_text(file.read_text().replace("init", "init 1"))
    assert pairs(source.trace()) == [(0, 1, 2, 36)]


def test_collectives_are_counted_as_score_p_does(tmp_path):
    lines = ["bcast 10 1", "reduce 12 1000 1", "allreduce 8 0", "barrier", "alltoall 4 4"]
    lines += [
        "gather 5 5 0 6 6",
        "allgatherv 4 3 5",
        "reducescatter 3 5 0",
        "alltoallv 9 4 5 9 4 5",
    ]
    trace = write(tmp_path, lines, [*lines[:6], "allgatherv 4 3 5", *lines[7:]]).trace()
    assert collectives(trace, Collective.BCAST) == [(1, 0, 10), (1, 20, 10)]
    assert collectives(trace, Collective.REDUCE) == [(1, 12, 0), (1, 12, 24)]
    assert collectives(trace, Collective.ALLREDUCE) == [(-1, 16, 16)] * 2
    assert collectives(trace, Collective.GATHER) == [(0, 5, 10), (0, 5, 0)]
    assert collectives(trace, Collective.ALLGATHERV) == [(-1, 8, 8)] * 2
    assert collectives(trace, Collective.REDUCE_SCATTER) == [(-1, 8, 6), (-1, 8, 10)]
    assert collectives(trace, Collective.ALLTOALLV) == [(-1, 9, 9)] * 2
    assert lower(trace).traffic().messages.sum() > 0


# Types 0 to 3 are of 8, 4, 1 and 2 bytes; rank r has the r-th of the counts 1, 2 and 7.
COLLECTIVES = {
    "bcast 10 2 1": [(2, 0, 40), (2, 0, 40), (2, 120, 40)],
    "reduce 12 5 2 1": [(2, 48, 0), (2, 48, 0), (2, 48, 144)],
    "allreduce 8 5 1": [(-1, 96, 96)] * 3,
    "scan 4 9 0": [(-1, 96, 32), (-1, 64, 64), (-1, 32, 96)],
    "exscan 4 9 1": [(-1, 32, 0), (-1, 16, 16), (-1, 0, 32)],
    "alltoall 5 6 1 3": [(-1, 60, 60)] * 3,
    "allgather 5 6 1 3": [(-1, 60, 60)] * 3,
    "gather 5 6 2 1 3": [(2, 20, 0), (2, 20, 0), (2, 20, 60)],
    "scatter 5 6 2 1 3": [(2, 0, 12), (2, 0, 12), (2, 36, 12)],
    "gatherv MINE 1 2 7 2 1 3": [(2, 4, 0), (2, 8, 0), (2, 28, 20)],
    "scatterv 1 2 7 MINE 2 1 3": [(2, 0, 2), (2, 0, 4), (2, 40, 14)],
    "allgatherv MINE 1 2 7 1 3": [(-1, 12, 20), (-1, 24, 20), (-1, 84, 20)],
    "reduce_scatter 1 2 7 5 1": [(-1, 40, 12), (-1, 40, 24), (-1, 40, 84)],
    "alltoallv 30 1 2 7 30 7 2 2 1 3": [(-1, 40, 22)] * 3,
}


def test_every_collective_has_its_root_and_bytes_where_simgrid_writes_them(tmp_path):
    for line in COLLECTIVES:
        with about(line):
            written = line.replace("reduce_scatter", "reducescatter")
            ranks = [[written.replace("MINE", str(count))] for count in (1, 2, 7)]
            operation = Collective[line.split()[0].upper()]
            assert collectives(write(tmp_path, *ranks).trace(), operation) == COLLECTIVES[line]


def test_sendrecv_names_its_target_first_and_then_its_source(tmp_path):
    lines = ["sendrecv 10 1 30 2 1 3"], ["recv 0 0 10 1"], ["send 0 0 30 3"]
    trace = write(tmp_path, *lines).trace()
    assert pairs(trace) == [(0, 1, 1, 40), (2, 0, 1, 60)]
    assert kinds(trace, 0) == ["MPI_Init", "MPI_Sendrecv", "SEND", "RECV", "MPI_Finalize"]


def test_a_wait_is_for_the_oldest_of_its_requests_and_waitall_for_the_rest(tmp_path):
    isend, wait = "isend 1 5 100", "wait 0 1 5"
    lines = [isend, isend, wait, "isend 1 6 7", "waitall", isend, wait, "waitall"]
    trace = write(tmp_path, lines, ["recv 0 5 100"] * 3 + ["recv 0 6 7"]).trace()
    assert kinds(trace, 0)[1:-1] == [
        *("MPI_Isend", "ISEND", "MPI_Isend", "ISEND", "MPI_Wait", "ISEND_COMPLETE"),
        *("MPI_Isend", "ISEND", "MPI_Waitall", "ISEND_COMPLETE", "ISEND_COMPLETE"),
        *("MPI_Isend", "ISEND", "MPI_Wait", "ISEND_COMPLETE", "MPI_Waitall"),
    ]
    ends = trace.ref[trace.kind == Kind.ISEND_COMPLETE]
    assert trace.records.request[ends].tolist() == [1, 2, 3, 4]


def test_of_a_message_to_oneself_the_receive_is_waited_for_first(tmp_path):
    trace = write(tmp_path, ["irecv 0 3 8", "isend 0 3 8", "wait 0 0 3", "test 0 0 3"]).trace()
    assert kinds(trace, 0)[5:9] == ["MPI_Wait", "IRECV", "MPI_Test", "ISEND_COMPLETE"]
    assert pairs(trace) == [(0, 0, 1, 8)]


def test_what_nobody_waits_for_stays_under_way(tmp_path):
    trace = write(tmp_path, ["recv 1 0 8"], ["isend 0 0 8", "barrier"]).trace()
    assert kinds(trace, 0) == ["MPI_Init", "MPI_Recv", "RECV", "MPI_Finalize"]
    assert "ISEND_COMPLETE" not in kinds(trace, 1)


def test_nobody_is_no_partner_and_anybody_is_who_sends(tmp_path):
    lines = (
        ["send -2 0 8", "send -1 0 8", "recv -2 0 8", "recv -1 -1 8", "recv -1 4 8"],
        ["send 0 4 9"] * 2,
    )
    trace = write(tmp_path, *lines).trace()
    assert pairs(trace) == [(1, 0, 2, 18)]
    assert kinds(trace, 0)[1:-1] == [
        *("MPI_Send", "MPI_Send", "MPI_Recv", "MPI_Recv", "RECV", "MPI_Recv", "RECV")
    ]


def test_what_is_not_replayed_is_told(tmp_path):
    lines = ["# remark", "comm_size 2", "comm_split 0 1", "comm_dup", "location 1 a.c 3"]
    (tmp_path / "r.txt").write_text("".join(f"{'0 ' * (k > 0)}{x}\n" for k, x in enumerate(lines)))
    found = open_source(tmp_path / "r.txt").trace()
    assert found.ignored == {"comm_size, comm_split and comm_dup action": 3}


def test_lines_of_a_rank_keep_their_order_in_a_file_of_all(tmp_path):
    lines = ["1 recv 0 0 7", "0 send 1 0 7", "1 recv 0 1 8", "0 send 1 1 8"]
    (tmp_path / "all.txt").write_text("\n".join([*lines, ""]))
    assert open_source(tmp_path / "all.txt").trace().records.size.tolist() == [7, 8, 7, 8]


def test_one_file_of_all_ranks_is_the_same(tmp_path):
    lines = ["0 init", "1 init", "0 send 1 0 7", "1 recv 0 0 7", "0 finalize", "1 finalize", ""]
    (tmp_path / "all.txt").write_text("\n".join(lines))
    assert pairs(open_source(tmp_path / "all.txt").trace()) == [(0, 1, 1, 7)]


def test_old_spellings_are_the_same_actions(tmp_path):
    lines = ["allReduce 8 0", "allreduce 8 0", "allToAll 4 4"]
    trace = write(tmp_path, lines, lines).trace()
    assert collectives(trace, Collective.ALLREDUCE) == [(-1, 16, 16)] * 4
    assert collectives(trace, Collective.ALLTOALL) == [(-1, 8, 8)] * 2


def test_the_last_line_need_not_end_behind_finalize(tmp_path):
    # As SimGrid's own examples have it.
    source = write(tmp_path, ["send 1 0 7"], ["recv 0 0 7"])
    for rank in range(2):
        file = tmp_path / f"r{rank}.tit"
        file.write_text(file.read_text().rstrip())
    assert pairs(source.trace()) == [(0, 1, 1, 7)]


def test_an_index_may_name_files_from_where_the_program_ran(tmp_path):
    write(tmp_path, ["send 1 0 7"], ["recv 0 0 7"])
    (tmp_path / "index").write_text("replay/r0.tit\nreplay/r1.tit\n")
    assert pairs(open_source(tmp_path / "index").trace()) == [(0, 1, 1, 7)]


def test_a_text_of_long_words_is_no_index(tmp_path):
    (tmp_path / "x.txt").write_text("9x" * 2000 + "\n")
    assert recording_of(tmp_path / "x.txt") is None


@pytest.mark.parametrize("name", ["lu.S.4", "mg.S.4", "cg.S.4"])
def test_what_is_written_is_read_and_replays_as_before(tmp_path, name):
    program = lower(nas_folded(name, steps=2))
    write_tit(tmp_path / "t", program, Parameters(), None)
    for what in ("t", "t/traces.txt"):
        again = lower(open_source(tmp_path / what).trace())
        assert again.traffic().same_as(program.traffic())
    assert np.allclose(times(again), times(program), rtol=1e-9)


@st.composite
def programs(draw):
    """Operations in which all send first and receive then, and wait in the end, in any order."""
    ranks = draw(st.integers(2, 4))
    lists = [[] for _ in range(ranks)]
    receives = [[] for _ in range(ranks)]
    for _ in range(draw(st.integers(1, 8))):
        source, target = draw(st.permutations(range(ranks)))[:2]
        size, tag = draw(st.sampled_from((0, 8, 5000))), draw(st.integers(0, 2))
        lists[source].append(("isend", target, size, tag))
        receives[target].append(("irecv", source, size, tag))
        if draw(st.booleans()):
            lists[source].append(("compute", draw(st.integers(1, 9)) * 1e-6))
    for rank in range(ranks):
        lists[rank] += receives[rank]
        places = [k for k, row in enumerate(lists[rank]) if row[0] != "compute"]
        lists[rank] += [("wait", k) for k in draw(st.permutations(places))]
    return lists


@given(programs())
@examples(40)
def test_programs_come_back(tmp_path_factory, lists):
    program = program_of("p", lists)
    folder = tmp_path_factory.mktemp("t") / "x"
    write_tit(folder, program, Parameters(), None)
    again = lower(open_source(folder).trace())
    assert again.traffic().same_as(program.traffic())
    assert np.allclose(times(again, "simpy"), times(program, "simpy"), rtol=1e-9)


def test_a_wrong_line_is_named(tmp_path):
    for line, said in [
        ("jump 1", "one of init, finalize, send"),
        ("send 1 0", "send partner tag bytes"),
        ("send 7 0 1", "a partner below 2"),
        ("send 1 0 -5", "send partner tag bytes >= 0"),
        ("send 1 0 5 99", "a type below"),
        ("compute fast", "a number >= 0 behind compute"),
        ("wait 0 1", "source, target and tag"),
        ("bcast 5 9", "a root below 2"),
        ("gatherv 5 1", "gatherv with a number for each rank"),
    ]:
        with about(line, said):
            source = write(tmp_path, ["barrier"], ["barrier"])
            file = tmp_path / "r1.tit"
            file.write_text(file.read_text().replace("barrier", line))
            with pytest.raises(TraceError) as error:
                source.trace()
            assert said in str(error.value)
            assert "\n" not in str(error.value)


def test_ranks_that_are_missing_are_named(tmp_path):
    write(tmp_path, ["barrier"], ["barrier"])
    (tmp_path / "r1.tit").unlink()
    with pytest.raises(TraceError, match=r"index: line 2 is 'r1.tit': expected an existing file"):
        open_source(tmp_path)
    (tmp_path / "r0.tit").write_text("1 init\n1 finalize\n")
    with pytest.raises(TraceError, match="rank 0 has no actions"):
        open_source(tmp_path / "r0.tit").trace()


def test_a_cut_file_is_refused_or_told(tmp_path):
    source = write(tmp_path, ["compute 1e6", "send 1 5 100"], ["recv 0 5 100"])
    file = tmp_path / "r0.tit"
    whole = file.read_bytes()
    for size in range(8, len(whole) - 1):  # the last newline is not missed
        file.write_bytes(whole[:size])
        try:
            assert source.trace().ignored
        except TraceError as error:
            assert "\n" not in str(error)

"""SimGrid's time-independent traces: the actions of smpi_replay.cpp, and what hopmap writes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopmap.simulator import Parameters, lower, program_of, simulate
from hopmap.simulator.export.time_independent import write_tit
from hopmap.topologies import mesh
from hopmap.traces import Collective, Kind, TraceError
from hopmap.traces.nas.benchmarks import nas_folded
from hopmap.traces.sources import open_source
from support.slow import examples

from ..read_back import collectives, pairs


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
    assert lower(trace).left_out == ()


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
    assert open_source(tmp_path / "x.txt").kind == "traffic"


@pytest.mark.parametrize("name", ["lu.S.4", "mg.S.4", "cg.S.4"])
def test_what_is_written_is_read_and_replays_as_before(tmp_path, name):
    program = lower(nas_folded(name, steps=2))
    write_tit(tmp_path / "t", program)
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
    write_tit(folder, program)
    again = lower(open_source(folder).trace())
    assert again.traffic().same_as(program.traffic())
    assert np.allclose(times(again, "simpy"), times(program, "simpy"), rtol=1e-9)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("jump 1", "one of init, finalize, send"),
        ("send 1 0", "send partner tag bytes"),
        ("send 7 0 1", "a partner below 2"),
        ("send 1 0 -5", "send partner tag bytes >= 0"),
        ("send 1 0 5 99", "a type below"),
        ("compute fast", "a number >= 0 behind compute"),
        ("wait 0 1", "source, target and tag"),
        ("bcast 5 9", "a root below 2"),
        ("gatherv 5 1", "gatherv with a number for each rank"),
    ],
)
def test_a_wrong_line_is_named(tmp_path, line, said):
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
    with pytest.raises(TraceError, match=r"index: line 2 is 'r1.tit': expected a file"):
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

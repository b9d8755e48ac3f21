"""Traces of other tools are told by what is in them."""

from __future__ import annotations

import pytest

from hopmap.traces import TraceError
from hopmap.traces.foreign.recognition import recording_of
from hopmap.traces.sources import open_source

CALL = "MPI_Init:-:1:2:5.0\nMPI_Finalize:7.0:-\n"
GOAL = "num_ranks 1\nrank 0 {\n}\n"


def test_names_do_not_matter(tmp_path):
    for name, text, kind in (
        ("a.dat", GOAL, "schedule"),
        ("b.txt", "0 init\n0 finalize\n", "recording"),
        ("c", CALL, "recording"),
        ("d.anything", "#Paraver (x):1_ns:1(4):1:1(1:1),0\n", "recording"),
    ):
        (tmp_path / name).write_text(text)
        source = open_source(tmp_path / name)
        assert source.kind == kind
        assert source.digest()
        assert source.has_program


def test_what_is_none_of_them_is_no_trace(tmp_path):
    (tmp_path / "x.txt").write_text("hello\n")
    for path in (tmp_path / "x.txt", tmp_path):
        assert recording_of(path) is None
        with pytest.raises(TraceError, match="no trace by its name or its content"):
            open_source(path)


def test_kinds_are_not_mixed(tmp_path):
    (tmp_path / "x.goal").write_text(GOAL)
    (tmp_path / "r-0.txt").write_text(CALL)
    with pytest.raises(TraceError, match=r"2 kinds: x.goal \(goal\), r-0.txt \(liballprof\)"):
        open_source(tmp_path)
    (tmp_path / "r-0.txt").write_text(GOAL)
    with pytest.raises(TraceError, match=r"r-0.txt and x.goal: expected one trace"):
        open_source(tmp_path)


def test_files_of_other_ranks_are_found_beside_one(tmp_path):
    for rank in (0, 1, 2):
        (tmp_path / f"p-{rank:02}.txt").write_text(CALL)
    assert open_source(tmp_path / "p-01.txt").trace().ranks == 3
    (tmp_path / "p-01.txt").unlink()
    with pytest.raises(TraceError, match=r"p-1.txt is missing: expected files of ranks 0 to 2"):
        open_source(tmp_path / "p-00.txt")
    (tmp_path / "p-01.txt").write_text("hello\n")
    with pytest.raises(TraceError, match=r"p-01.txt: is not liballprof's text.*file of rank 1"):
        open_source(tmp_path / "p-00.txt")


def test_a_trace_is_called_as_its_file_and_several_files_without_their_rank(tmp_path):
    (tmp_path / "test-nbp2p_7+1.goal").write_text(GOAL)
    assert open_source(tmp_path / "test-nbp2p_7+1.goal").name == "test-nbp2p_7+1"
    for rank in (0, 1):
        (tmp_path / f"sweep3d-rank-{rank}.txt").write_text(CALL)
    assert open_source(tmp_path / "sweep3d-rank-1.txt").name == "sweep3d-rank"


def test_files_of_another_trace_beside_are_named(tmp_path):
    for name in ("a-0.txt", "a-1.txt", "b-0.txt"):
        (tmp_path / name).write_text(CALL)
    with pytest.raises(TraceError, match=r"a-0.txt and b-0.txt: expected one trace"):
        open_source(tmp_path)


def test_one_file_of_a_tit_may_end_in_any_number(tmp_path):
    (tmp_path / "lu.64").write_text("0 init\n1 init\n0 finalize\n1 finalize\n")
    assert open_source(tmp_path / "lu.64").trace().ranks == 2

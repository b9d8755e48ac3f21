"""Clocks, buffers and counts under each MPI."""

from __future__ import annotations

import numpy as np

from hopmap.traces import Kind, traffic_of
from hopmap.traces.formats.files import load_traffic
from hopmap.traces.recorder.build import build
from hopmap.traces.recorder.launch import collectives_of, finish, is_profile
from hopmap.traces.recorder.merge import hosts_of
from hopmap.traces.recorder.raw import read_processes
from support.recorded_runs import compiled


def test_clocks_that_differ_are_aligned(mpi, recorded):
    """Rank r's clock is 100 s r ahead and r us a second too fast, as if on a node of its own."""
    wrong = build(mpi.command("mpicc"), ["-DHOPMAP_RECORD_SKEW=100000000000ull"]).path
    run = recorded(4, "messages.c", LD_PRELOAD=wrong)
    assert len(set(hosts_of(run.processes).tolist())) == 4
    starts = [each.records["end"][0] / 1e9 for each in run.processes]
    assert np.allclose(np.diff(starts), 100, atol=3)
    trace = run.trace
    rank = trace.rank_of_event()
    sent, received = {}, {}
    for row in np.flatnonzero((trace.kind == Kind.SEND) | (trace.kind == Kind.RECV)):
        at, ref = int(rank[row]), trace.ref[row]
        peer, tag = int(trace.records.peer[ref]), int(trace.records.tag[ref])
        if trace.kind[row] == Kind.SEND:
            sent[at, peer, tag] = trace.time[row]
        else:
            received[peer, at, tag] = trace.time[row]
    assert sent.keys() == received.keys() and len(sent) == 14
    late = np.array([received[key] - sent[key] for key in sent])
    # far less than the clocks differ by; processes that share cores answer slowly
    assert (late > -0.5).all() and np.median(late) < 5


def test_processes_of_one_machine_have_one_clock(recorded):
    run = recorded(4, "messages.c")
    assert set(hosts_of(run.processes).tolist()) == {0}
    assert all((each.header["clock"]["ahead"] == 0).all() for each in run.processes)
    assert all(each.header["clocks"] == 2 for each in run.processes)


def test_a_small_buffer_is_written_out_and_loses_nothing(recorded):
    """28,672 bytes hold 512 records; each thread makes 200 calls of one record."""
    run = recorded(2, "threads.c", HOPMAP_RECORD_BUFFER="1")
    assert [len(each.records) for each in run.processes] == [402, 402]
    run = recorded(2, "long.c", HOPMAP_RECORD_BUFFER="1")
    assert [len(each.records) for each in run.processes] == [20_002, 20_002]
    assert [each.counts["flushes"] for each in run.processes] == [39, 39]
    tags = run.trace.records.tag[run.trace.records.tag >= 0]
    assert tags.tolist() == [*range(20_000)] * 2


def test_a_profile_has_the_counts_alone(mpi, recorded, library, tmp_path):
    run = recorded(4, "messages.c")
    folder = tmp_path / "raw"
    folder.mkdir()
    program = compiled(mpi, "messages.c", tmp_path)
    env = {"LD_PRELOAD": library, "HOPMAP_RECORD_DIR": folder, "HOPMAP_RECORD_PROFILE": "1"}
    done = mpi.run(4, *program, **env)
    assert done.returncode == 0, done.stderr
    assert is_profile(folder)
    assert finish(folder, tmp_path / "counts.csv") == ()
    assert load_traffic(tmp_path / "counts.csv").same_as(traffic_of(run.trace))
    assert collectives_of(folder) == {}


def test_a_second_run_into_the_same_folder_is_not_recorded(mpi, library, tmp_path):
    folder = tmp_path / "raw"
    folder.mkdir()
    program = compiled(mpi, "messages.c", tmp_path)
    env = {"LD_PRELOAD": library, "HOPMAP_RECORD_DIR": folder}
    assert mpi.run(2, *program, **env).returncode == 0
    before = [each.records.tobytes() for each in read_processes(folder)]
    again = mpi.run(2, *program, **env)
    assert again.returncode == 0
    assert f"rank 0: not recorded: a file in {folder}: File exists" in again.stderr
    assert [each.records.tobytes() for each in read_processes(folder)] == before


def test_a_folder_that_is_not_there_leaves_the_program_alone(mpi, library, tmp_path):
    program = compiled(mpi, "messages.c", tmp_path)
    done = mpi.run(2, *program, LD_PRELOAD=library, HOPMAP_RECORD_DIR=tmp_path / "none")
    assert done.returncode == 0
    assert "not recorded: a file in" in done.stderr

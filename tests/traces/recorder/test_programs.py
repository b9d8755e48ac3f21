"""Programs whose every message is known, recorded under each MPI."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hopmap.simulator import simulate
from hopmap.simulator.programs.from_trace import lower
from hopmap.topologies import mesh
from hopmap.traces import Kind, traffic_of
from hopmap.traces.otf2.read import read_trace
from hopmap.traces.otf2.write import write_trace
from hopmap.traces.recorder.merge import cores_of, hosts_of
from hopmap.traces.trace import THREAD_LEVELS, Role, Span
from support.recorded_runs import ALL, pairs

HERE = Path(__file__).parent / "programs"


def test_messages_of_every_form_are_recorded_as_they_were(recorded):
    run = recorded(4, "messages.c")
    assert run.told(0) == [
        f"Init {ALL}",
        "Send SEND>1 t1 40",
        "Recv RECV>3 t1 40",  # from any source, with any tag
        "Sendrecv SEND>1 t2 40 RECV>3 t2 40",
        "Sendrecv_replace SEND>1 t3 12",  # nobody before it
        "Bsend SEND>1 t4 4",
        "Ssend SEND>1 t5 0",
        "Send SEND>1 t6 32",  # twice four ints with gaps
        "Buffer_detach",
        f"Finalize {ALL}",
    ]
    assert run.told(1)[1:-1] == [
        "Recv RECV>0 t1 40",
        "Send SEND>2 t1 40",
        "Sendrecv SEND>2 t2 40 RECV>0 t2 40",
        "Sendrecv_replace SEND>2 t3 12 RECV>0 t3 12",
        "Recv RECV>0 t4 4",
        "Recv RECV>0 t5 0",
        "Probe PROBE>0 t6 0",
        "Recv RECV>0 t6 32",
    ]
    assert run.told(3)[4] == "Sendrecv_replace RECV>2 t3 12"
    assert pairs(traffic_of(run.trace)) == {
        (0, 1): (6, 40 + 40 + 12 + 4 + 0 + 32),
        (1, 2): (3, 92),
        (2, 3): (3, 92),
        (3, 0): (2, 80),
    }
    assert {name: n for name, n in run.processes[0].counts.items() if n} == {}


def test_the_cores_of_every_host_are_those_that_its_ranks_may_use(recorded):
    """Ranks that are bound to a core each have all of these together."""
    run = recorded(4, "messages.c")
    (cores,) = cores_of(run.processes)
    assert 1 <= cores <= len(os.sched_getaffinity(0))


def test_an_archive_of_it_is_read_and_replayed_as_it_was(recorded, tmp_path):
    run = recorded(4, "messages.c")
    write_trace(run.trace, tmp_path / "run.otf2", node_of=hosts_of(run.processes))
    read = read_trace(tmp_path / "run.otf2")
    np.testing.assert_array_equal(read.kind, run.trace.kind)
    np.testing.assert_allclose(read.time, run.trace.time, atol=2e-9)
    for one, other in zip(read.records, run.trace.records, strict=True):
        np.testing.assert_array_equal(one, other)
    assert (np.diff(run.trace.time)[np.diff(run.trace.rank_of_event()) == 0] >= 0).all()
    assert len(lower(run.trace).kind) == len(lower(read).kind) > 0


def test_persistent_requests_and_collectives_on_neighbours_are_messages(recorded):
    """2 x 2, periodic along the first dimension: two halos to the one neighbour there."""
    run = recorded(4, "stencil.c")
    told = run.told(0)
    step = (
        "IRECV_REQUEST IRECV_REQUEST ISEND>2 t0 64 ISEND>2 t0 64 IRECV_REQUEST ISEND>1 t1 64",
        "IRECV>2 t0 64 IRECV>2 t0 64 ISEND_COMPLETE ISEND_COMPLETE IRECV>1 t1 64 ISEND_COMPLETE",
    )
    assert told[1] == f"Cart_create {ALL}"
    assert told[2:10] == ["Recv_init", "Recv_init", "Send_init", "Send_init"] * 2
    assert told[10:16] == [f"Startall {step[0]}", f"Waitall {step[1]}"] * 3
    tag = "t2147418112"
    assert told[-6:-4] == [
        f"Dist_graph_create_adjacent {ALL}",
        f"Ineighbor_allgather ISEND>1 {tag} 40 ISEND>2 {tag} 40 ISEND>3 {tag} 40",
    ]
    assert run.told(1)[-5:-3] == ["Ineighbor_allgather IRECV_REQUEST", f"Wait IRECV>0 {tag} 40"]
    assert pairs(traffic_of(run.trace)) == {
        (0, 1): (5, 3 * 64 + 32 + 40),
        (0, 2): (9, 6 * 64 + 2 * 32 + 40),
        (0, 3): (1, 40),
        (1, 0): (4, 3 * 64 + 32),
        (1, 3): (8, 6 * 64 + 2 * 32),
        (2, 0): (8, 448),
        (2, 3): (4, 224),
        (3, 1): (8, 448),
        (3, 2): (4, 224),
    }
    lower(run.trace)


def test_requests_end_as_they_ended(recorded):
    run = recorded(2, "requests.c")
    told = run.told(0)
    assert told[1:5] == ["Irecv IRECV_REQUEST"] * 4
    polls = told[5 : told.index("Barrier COLLECTIVE_END 0/0")]
    assert polls == ["Testany REQUEST_TEST"] * 16
    assert run.total("merged_polls") >= 84
    after = told[told.index("Barrier COLLECTIVE_END 0/0") + 1 :]
    assert [line.split()[0] for line in after[:2]] == ["Waitany", "Waitall"]
    assert " ".join(after[:2]).count("IRECV") == 4
    assert all(f"IRECV>1 t{k} 4" in " ".join(after[:2]) for k in range(4))
    at = after.index("Cancel")
    assert after[at - 1 :] == [
        "Irecv IRECV_REQUEST",
        "Cancel",
        "Wait REQUEST_CANCELLED",
        "Isend ISEND>1 t5 8",
        "Request_free",
        "Mprobe PROBE>1 t6 0",
        "Mrecv MRECV 12",
        *[line for line in after if line == "Improbe"],
        "Improbe PROBE>1 t7 0",
        "Imrecv IMRECV_REQUEST/11",
        "Wait IMRECV 16",
        "Irecv",  # from MPI_PROC_NULL
        "Wait",
        f"Finalize {ALL}",
    ]
    assert run.total("freed_requests") == 1
    assert run.total("unknown_requests") == 0
    other = " ".join(run.told(1))
    assert other.count("ISEND_COMPLETE") == 7
    assert pairs(traffic_of(run.trace)) == {(0, 1): (1, 8), (1, 0): (9, 7 * 4 + 12 + 16)}
    lower(run.trace)


def test_what_mpi_4_added_is_recorded(mpi, recorded):
    try:
        run = recorded(2, "newest.c")
    except subprocess.CalledProcessError:
        pytest.skip("an MPI before MPI 4")
    assert run.told(0)[1:] == [
        "Psend_init",
        *[
            "Start",
            "Pready",
            "Pready_range",
            "Pready ISEND>1 t3 64",  # the last of four partitions
            "Wait ISEND_COMPLETE",
        ] * 2,
        "Request_free",
        "Allreduce_init",
        *["Start COLLECTIVE_REQUEST", "Wait COLLECTIVE_COMPLETE 128/128"] * 2,
        "Request_free",
        "Send_c SEND>1 t4 24",
        "Isendrecv IRECV_REQUEST ISEND>1 t5 8",
        "Wait IRECV>1 t5 8",
        f"Finalize {ALL}",
    ]  # fmt: skip
    assert run.told(1)[2:4] == ["Start IRECV_REQUEST", "Wait IRECV>0 t3 64"]
    assert pairs(traffic_of(run.trace)) == {(0, 1): (4, 64 + 64 + 24 + 8), (1, 0): (1, 8)}
    lower(run.trace)


HALO = [
    "Irecv",
    "Irecv IRECV_REQUEST",
    "Isend ISEND>1 t1 80",
    "Isend",
    "Waitall IRECV>1 t2 80 ISEND_COMPLETE",
] * 2


def expect_halo(run, first="Init"):
    # mpi4py takes the forms for large counts where there are any
    assert [line.replace("_c ", " ").removesuffix("_c") for line in run.told(0)] == [
        f"{first} {ALL}",
        *HALO,
        "Allreduce COLLECTIVE_END 16/16",
        f"Finalize {ALL}",
    ]
    assert pairs(traffic_of(run.trace)) == dict.fromkeys([(0, 1), (1, 0), (1, 2), (2, 1)], (2, 160))
    assert run.total("unknown_requests") == run.total("failed_calls") == 0


@pytest.mark.parametrize("source", ["halo.f90", "halo_mpif.f90"])
def test_fortran_is_recorded_as_c(recorded, source):
    """mpi_f08, and mpif.h."""
    expect_halo(recorded(3, source))


def test_the_module_mpi_is_recorded(recorded, tmp_path):
    text = (HERE / "halo_mpif.f90").read_text()
    text = text.replace("  implicit none\n  include 'mpif.h'\n", "  use mpi\n  implicit none\n")
    source = tmp_path / "halo_module.f90"
    source.write_text(text)
    expect_halo(recorded(3, source))


def test_python_is_recorded_as_c(recorded, library, tmp_path):
    """By mpi4py, which asks for MPI_THREAD_MULTIPLE."""
    found = subprocess.run(["ldd", library], capture_output=True, text=True).stdout
    # The wheel asks for MPICH by another name than Debian's.
    for line in found.splitlines():
        if "libmpich.so" in line:
            (tmp_path / "libmpi.so.12").symlink_to(line.split()[2])
    env = {"LD_LIBRARY_PATH": tmp_path} if any(tmp_path.iterdir()) else {}
    if subprocess.run([sys.executable, "-c", "import mpi4py"], capture_output=True).returncode:
        pytest.skip("no mpi4py")
    run = recorded(3, HERE / "halo.py", **env)
    expect_halo(run, "Init_thread")
    assert (run.processes[0].header["required"] == 3).all()


def test_threads_beside_each_other_are_recorded(recorded):
    run = recorded(2, "threads.c")
    assert pairs(traffic_of(run.trace)) == {(0, 1): (400, 1600)}
    for tag in (1, 2):
        assert run.told(1).count(f"Recv RECV>0 t{tag} 4") <= 200
    tags = run.trace.records.tag[run.trace.records.size == 4]
    assert np.bincount(tags)[1:].tolist() == [400, 400]


def test_collectives_of_threads_on_two_communicators_are_recorded_and_replayed(recorded, tmp_path):
    """Legal under MPI_THREAD_MULTIPLE; replays that took call after call ended in a deadlock."""
    run = recorded(4, "crossing.c")
    trace = run.trace
    assert THREAD_LEVELS[trace.thread_level] == "MULTIPLE"
    assert np.unique(trace.thread).tolist() == [0, 1]
    write_trace(trace, tmp_path / "run.otf2")
    read = read_trace(tmp_path / "run.otf2")
    assert (read.thread_level, np.unique(read.thread).tolist()) == (trace.thread_level, [0, 1])
    for kind in (Kind.COLLECTIVE_END, Kind.ENTER):
        assert (read.kind == kind).sum() == (trace.kind == kind).sum()
    for each in (trace, read):
        assert simulate(lower(each), mesh((4,)), range(4)).makespan > 0


def test_regions_and_pauses_come_from_pcontrol(recorded):
    run = recorded(2, "ending.c")
    trace = run.trace
    steps = trace.regions.index("steps")
    assert trace.roles[steps] == Role.USER
    brackets = (trace.kind <= Kind.LEAVE) & (trace.ref == steps)
    assert brackets.sum() == 4
    names = [trace.regions[trace.ref[row]] for row in np.flatnonzero(trace.kind == Kind.ENTER)]
    once = ["MPI_Init", "steps", *["MPI_Send"] * 5, "MPI_Allreduce", "MPI_Finalize"]
    assert names == once + [name.replace("Send", "Recv") for name in once]
    assert run.total("calls_while_off") == 2
    assert trace.spans.kind.tolist() == [Span.OFF, Span.OFF]
    assert (trace.spans.begin < trace.spans.end).all()


@pytest.mark.parametrize(("how", "finished"), [("kill", 0), ("abort", 2)])
def test_a_process_that_ends_early_leaves_what_it_did(recorded, how, finished):
    run = recorded(2, "ending.c", how, code=1)
    assert [each.header["finished"] for each in run.processes] == [0, finished]
    assert pairs(traffic_of(run.trace)) == {(0, 1): (5, 20)}
    last = run.processes[0]
    assert last.names.regions[int(last.header["open"])] == "MPI_Recv"
    names = [line.split()[0] for line in run.told(1)]
    assert names == ["Init", "steps", *["Recv"] * 5, *["Abort"] * (how == "abort")]
    assert run.told(1)[2] == "Recv RECV>0 t0 4"

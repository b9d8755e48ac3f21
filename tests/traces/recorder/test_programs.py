"""Programs whose every message is known, recorded under each MPI."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from hopmap.simulator import simulate
from hopmap.simulator.programs.from_trace import lower
from hopmap.topologies import mesh
from hopmap.traces import Collective, Kind, traffic_of
from hopmap.traces.otf2.read import read_trace
from hopmap.traces.otf2.write import write_trace
from hopmap.traces.recorder.merge import hosts_of
from hopmap.traces.regions import Role
from hopmap.traces.trace import Lock, Span
from hopmap.traces.traffic import one_sided_traffic_of
from support.recorded_runs import told

HERE = Path(__file__).parent
BEGIN, END = "COLLECTIVE_END 0/0", "COLLECTIVE_END 0/0"


def pairs(trace):
    """Messages and bytes by pair of ranks."""
    found = traffic_of(trace)
    columns = (found.src, found.dst, found.messages, found.bytes)
    return {(s, d): (n, b) for s, d, n, b in zip(*(c.tolist() for c in columns), strict=True)}


def test_messages_of_every_form_are_recorded_as_they_were(recorded):
    run = recorded(4, "messages.c")
    assert run.told(0) == [
        f"Init {BEGIN}",
        "Send SEND>1 t1 40",
        "Recv RECV>3 t1 40",  # from any source, with any tag
        "Sendrecv SEND>1 t2 40 RECV>3 t2 40",
        "Sendrecv_replace SEND>1 t3 12",  # nobody before it
        "Bsend SEND>1 t4 4",
        "Ssend SEND>1 t5 0",
        "Send SEND>1 t6 32",  # twice four ints with gaps
        "Buffer_detach",
        f"Finalize {END}",
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
    assert pairs(run.trace) == {
        (0, 1): (6, 40 + 40 + 12 + 4 + 0 + 32),
        (1, 2): (3, 92),
        (2, 3): (3, 92),
        (3, 0): (2, 80),
    }
    assert {name: n for name, n in run.processes[0].counts.items() if n} == {}


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
    assert told[1] == f"Cart_create {BEGIN}"
    assert told[2:10] == ["Recv_init", "Recv_init", "Send_init", "Send_init"] * 2
    assert told[10:16] == [f"Startall {step[0]}", f"Waitall {step[1]}"] * 3
    tag = "t2147418112"
    assert told[-6:-4] == [
        f"Dist_graph_create_adjacent {BEGIN}",
        f"Ineighbor_allgather ISEND>1 {tag} 40 ISEND>2 {tag} 40 ISEND>3 {tag} 40",
    ]
    assert run.told(1)[-5:-3] == [
        "Ineighbor_allgather IRECV_REQUEST",
        f"Wait IRECV>0 {tag} 40",
    ]
    assert pairs(run.trace) == {
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


# Sent and received by ranks 0 and 1 of 4, the root being 1, in bytes; see simulator's `volume`.
VOLUMES = {
    "barrier": ((0, 0), (0, 0)),
    "bcast": ((0, 12), (48, 12)),
    "reduce": ((12, 0), (12, 48)),
    "allreduce": ((48, 48), (48, 48)),  # in place: 16 bytes for each of the three others
    "gather": ((8, 0), (8, 32)),
    "scatter": ((0, 8), (32, 8)),
    "gatherv": ((0, 0), (4, 24)),
    "scatterv": ((0, 0), (24, 4)),
    "allgather": ((32, 32), (32, 32)),
    "allgatherv": ((0, 24), (16, 24)),
    "alltoall": ((32, 32), (32, 32)),
    "alltoallv": ((0, 24), (16, 24)),
    "reduce_scatter": ((24, 0), (24, 16)),
    "reduce_scatter_block": ((32, 32), (32, 32)),
    "scan": ((32, 8), (24, 16)),
    "exscan": ((24, 0), (16, 8)),
}
ROOTED = ("bcast", "reduce", "gather", "scatter", "gatherv", "scatterv")


@pytest.mark.parametrize("how", ["blocking", "i"])
def test_collectives_have_the_volumes_that_scorep_gives_them(recorded, how):
    run = recorded(4, "collectives.c", how)
    for rank in (0, 1):
        expected = []
        for name, volumes in VOLUMES.items():
            sent, received = volumes[rank]
            root = ">1" if name in ROOTED else ""
            if how == "i":
                expected.append(f"I{name} COLLECTIVE_REQUEST")
                expected.append(f"Wait COLLECTIVE_COMPLETE{root} {sent}/{received}")
            else:
                expected.append(f"{name.capitalize()} COLLECTIVE_END{root} {sent}/{received}")
        assert run.told(rank)[1 : 1 + len(expected)] == expected
    told = run.trace.records.operation[run.trace.records.operation < Collective.CREATE_HANDLE]
    assert set(told.tolist()) == {Collective[name.upper()] for name in VOLUMES}
    lower(run.trace)


def test_who_sends_how_much_to_whom_in_alltoallv_is_recorded(recorded):
    """Rank r sends r ints to each; OTF2 has only the sums."""
    for how in ("blocking", "i"):
        counts = recorded(4, "collectives.c", how).trace.counts
        rows = np.stack(counts[1:]).T.tolist()
        assert rows == [[r, 0, p, 4 * r] for r in (1, 2, 3) for p in range(4)]


def test_communicators_have_their_members_in_their_order(recorded):
    run = recorded(4, "collectives.c")
    members = [each.tolist() for each in run.trace.communicators]
    assert members[:2] == [[0, 1, 2, 3], []]
    # a half, its copy, and the copy's
    assert sorted(members[2:]) == [[2, 0]] * 3 + [[3, 1]] * 3
    told = run.told(1)
    at = told.index(f"Comm_split {BEGIN}")
    assert told[at + 1 :] == [
        "Bcast COLLECTIVE_END>3 0/8",
        "Recv RECV>3 t9 8",
        f"Comm_dup {BEGIN}",
        f"Comm_free {END}",
        "Barrier COLLECTIVE_END 0/0",
        "Comm_idup COLLECTIVE_REQUEST",
        "Wait COLLECTIVE_COMPLETE 0/0",
        "Barrier COLLECTIVE_END 0/0",
        "Barrier COLLECTIVE_END 0/0",
        f"Comm_free {END}",
        f"Comm_free {END}",
        f"Finalize {END}",
    ]
    # the same half is the same communicator for both of its members
    rank = run.trace.rank_of_event()[run.trace.kind > Kind.LEAVE]
    used = [set(run.trace.records.comm[rank == r].tolist()) - {-1, 0, 1} for r in range(4)]
    assert used[0] == used[2] and used[1] == used[3] and len(used[0]) == len(used[1]) == 3


def test_two_sides_groups_of_some_and_graphs_are_recorded(recorded):
    """Partners are those of the other side; the root names itself, its own side nobody."""
    run = recorded(4, "groups.c")
    members = [each.tolist() for each in run.trace.communicators]
    assert sorted(members[2:]) == sorted(
        [[0, 2], [1, 3], [1, 3, 0, 2], [0, 2, 1, 3], [3, 0, 1], [3, 0, 1], [0, 1, 2, 3]]
    )
    tag = "t2147418112"
    expected = {
        0: ["Send SEND>3 t5 4", "Bcast COLLECTIVE_END 0/0"],
        1: ["Bcast COLLECTIVE_END>2 0/4"],
        2: ["Bcast COLLECTIVE_END>2 8/0"],
        3: ["Recv RECV>0 t5 4", "Bcast COLLECTIVE_END>2 0/4"],
    }
    for rank, exchanged in expected.items():
        some = ["Comm_create_group COLLECTIVE_END 0/0", "Allreduce COLLECTIVE_END 8/8"]
        other = f"ISEND>{1 - rank} {tag} 4 ISEND_COMPLETE IRECV>{1 - rank} {tag} 4"
        assert run.told(rank)[1:-1] == [
            "Comm_split COLLECTIVE_END 0/0",
            "Intercomm_create COLLECTIVE_END 0/0",
            *exchanged,
            "Intercomm_merge COLLECTIVE_END 0/0",
            "Barrier COLLECTIVE_END 0/0",
            *(some if rank != 2 else []),
            "Comm_create COLLECTIVE_END 0/0",
            "Graph_create COLLECTIVE_END 0/0",
            "Neighbor_allgather" + f" IRECV_REQUEST {other}" * (rank < 2),
        ]
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
        f"Finalize {END}",
    ]
    assert run.total("freed_requests") == 1
    assert run.total("unknown_requests") == 0
    other = " ".join(run.told(1))
    assert other.count("ISEND_COMPLETE") == 7
    assert pairs(run.trace) == {(0, 1): (1, 8), (1, 0): (9, 7 * 4 + 12 + 16)}
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
        f"Finalize {END}",
    ]  # fmt: skip
    assert run.told(1)[2:4] == ["Start IRECV_REQUEST", "Wait IRECV>0 t3 64"]
    assert pairs(run.trace) == {(0, 1): (4, 64 + 64 + 24 + 8), (1, 0): (1, 8)}
    lower(run.trace)


HERE_AND_THERE = "RMA_OP_COMPLETE_BLOCKING t0 RMA_OP_COMPLETE_REMOTE t0"
FENCE = "RMA_COLLECTIVE_END t0 0/0"


def test_one_sided_operations_are_told_as_score_p_tells_them(recorded):
    """Each rank puts to the next, twice before a fence that completes both at once."""
    run = recorded(4, "windows.c")
    assert run.told(2)[1:-1] == [
        f"Win_allocate RMA_WIN_CREATE t0 {FENCE}",
        f"Win_fence {FENCE}",
        "Put RMA_PUT>3 t0 16",
        "Put RMA_PUT>3 t0 8",
        "Put",  # to nobody
        f"Win_fence {HERE_AND_THERE} {FENCE}",
        "Get RMA_GET>0 t0 8",
        f"Win_fence {HERE_AND_THERE} {FENCE}",
        "Win_lock RMA_REQUEST_LOCK>0 t0",
        "Accumulate RMA_ATOMIC>0 t0 24/0",
        f"Win_unlock {HERE_AND_THERE} RMA_RELEASE_LOCK>0 t0",
        "Win_lock_all RMA_REQUEST_LOCK t0",
        "Fetch_and_op RMA_ATOMIC>3 t0 8/8",
        "Win_flush_local RMA_OP_COMPLETE_BLOCKING t0",
        "Win_flush RMA_OP_COMPLETE_REMOTE t0",
        "Rput RMA_PUT>3 t0 16",
        "Wait RMA_OP_COMPLETE_NON_BLOCKING t0",
        "Win_flush_all RMA_OP_COMPLETE_REMOTE t0",
        "Win_unlock_all RMA_RELEASE_LOCK t0",
        f"Win_post RMA_GROUP_SYNC t0 {run.group(1)}",
        f"Win_start RMA_GROUP_SYNC t0 {run.group(3)}",
        "Put RMA_PUT>3 t0 32",
        f"Win_complete {HERE_AND_THERE} RMA_GROUP_SYNC t0 {run.group(3)}",
        f"Win_wait RMA_GROUP_SYNC t0 {run.group(1)}",
        f"Win_free RMA_WIN_DESTROY t0 {FENCE}",
    ]
    assert run.trace.windows == (0,)
    locks = run.trace.ref[run.trace.kind == Kind.RMA_REQUEST_LOCK]
    assert run.trace.records.operation[locks].tolist() == [Lock.EXCLUSIVE, Lock.SHARED] * 4
    assert pairs(run.trace) == {}
    moved = one_sided_traffic_of(run.trace)
    found = {
        (s, d): (n, b)
        for s, d, n, b in zip(
            *(column.tolist() for column in (moved.src, moved.dst, moved.messages, moved.bytes)),
            strict=True,
        )
    }
    expected = Counter()
    for rank in range(4):
        behind = (rank + 1) % 4
        for pair, size in (
            *(((rank, behind), size) for size in (16, 8, 8, 16, 32)),
            *(((behind, rank), 8), ((rank, 0), 24)),
            (((rank + 2) % 4, rank), 8),
        ):
            expected[pair, "messages"] += 1
            expected[pair, "bytes"] += size
    assert found == {
        pair: (expected[pair, "messages"], expected[pair, "bytes"]) for pair, _ in expected
    }


def test_one_sided_operations_are_replayed_from_their_archive(recorded, tmp_path):
    run = recorded(4, "windows.c")
    write_trace(run.trace, tmp_path / "run.otf2")
    read = read_trace(tmp_path / "run.otf2")
    assert told(read, 2) == run.told(2)
    program = lower(read)
    assert program.left_out == ()
    assert program.one_sided_traffic().bytes.sum() == one_sided_traffic_of(read).bytes.sum()
    assert simulate(program, mesh((4,)), range(4)).makespan > 0


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
        f"{first} {BEGIN}",
        *HALO,
        "Allreduce COLLECTIVE_END 16/16",
        f"Finalize {END}",
    ]
    assert pairs(run.trace) == dict.fromkeys([(0, 1), (1, 0), (1, 2), (2, 1)], (2, 160))
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
    assert pairs(run.trace) == {(0, 1): (400, 1600)}
    for tag in (1, 2):
        assert run.told(1).count(f"Recv RECV>0 t{tag} 4") <= 200
    tags = run.trace.records.tag[run.trace.records.size == 4]
    assert np.bincount(tags)[1:].tolist() == [400, 400]


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
    assert pairs(run.trace) == {(0, 1): (5, 20)}
    last = run.processes[0]
    assert last.names.regions[int(last.header["open"])] == "MPI_Recv"
    names = [line.split()[0] for line in run.told(1)]
    assert names == ["Init", "steps", *["Recv"] * 5, *["Abort"] * (how == "abort")]
    assert run.told(1)[2] == "Recv RECV>0 t0 4"

"""One-sided operations, recorded under each MPI."""

from __future__ import annotations

from collections import Counter

from hopmap.simulator import simulate
from hopmap.simulator.programs.from_trace import lower
from hopmap.topologies import mesh
from hopmap.traces import Kind, traffic_of
from hopmap.traces.otf2.read import read_trace
from hopmap.traces.otf2.totals import read_summary
from hopmap.traces.otf2.write import write_trace
from hopmap.traces.trace import Lock
from hopmap.traces.traffic import one_sided_traffic_of
from support.recorded_runs import pairs, told

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
    assert pairs(traffic_of(run.trace)) == {}
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
    assert pairs(one_sided_traffic_of(run.trace)) == {
        pair: (expected[pair, "messages"], expected[pair, "bytes"]) for pair, _ in expected
    }


def test_one_sided_operations_are_replayed_from_their_archive(recorded, tmp_path):
    run = recorded(4, "windows.c")
    write_trace(run.trace, tmp_path / "run.otf2")
    read = read_trace(tmp_path / "run.otf2")
    assert told(read, 2) == run.told(2)
    program = lower(read)
    assert program.omitted == ()
    assert program.one_sided_traffic().bytes.sum() == one_sided_traffic_of(read).bytes.sum()
    assert simulate(program, mesh((4,)), range(4)).makespan > 0


def test_what_atomic_operations_bring_back_is_recorded(recorded, tmp_path):
    """MPI_Get_accumulate moves data both ways; with MPI_NO_OP it is a get."""
    run = recorded(2, "atomics.c", OMPI_MCA_osc="pt2pt")  # the other of Open MPI 4.1.4 crashes
    told = run.told(0)
    assert told.count("Get_accumulate RMA_ATOMIC>1 t0 4000/4000") == 4
    assert "Rget_accumulate RMA_ATOMIC>1 t0 0/80" in told
    assert "Raccumulate RMA_ATOMIC>1 t0 24/0" in told
    assert "Rget RMA_GET>1 t0 16" in told
    assert "Compare_and_swap RMA_ATOMIC>1 t0 16/8" in told  # what is compared, and what is new
    there, back = 4 * 4000 + 24 + 16, 4 * 4000 + 80 + 16 + 8
    each = {(0, 1): (6 + 7, there + back), (1, 0): (6 + 7, there + back)}
    assert pairs(one_sided_traffic_of(run.trace)) == each
    write_trace(run.trace, tmp_path / "run.otf2")
    assert pairs(read_summary(tmp_path / "run.otf2").one_sided) == each
    assert pairs(lower(run.trace).one_sided_traffic()) == each

"""NAS SP and BT: recorded runs pair by pair and call by call, and what holds for any layout."""

import time
from collections import Counter

import numpy as np
import pytest

from hopmap.traces import (
    Kind,
    OutOfMemoryError,
    TraceError,
    load_traffic,
    nas_folded,
    nas_trace,
    nas_traffic,
    read_trace,
    summarize,
    traffic_of,
    write_trace,
)
from hopmap.traces.nas.sp_bt import BT, SP, multipartition, partners
from support import about

RECORDED = ["sp.S.9", "bt.S.9", "bt.S.16"]


@pytest.mark.parametrize("name", RECORDED)
def test_every_recorded_run(shared, events_of, name):
    path = shared / "nas" / name
    assert nas_traffic(name).same_as(load_traffic(f"{path}.p2p.csv"))
    ours, theirs = nas_trace(name), read_trace(path)
    assert summarize(ours).collectives == summarize(theirs).collectives
    for comm in range(4):  # the recording has MPI_COMM_SELF besides
        assert np.array_equal(ours.communicators[comm], theirs.communicators[comm])
    for rank in range(ours.ranks):
        assert events_of(ours, rank) == events_of(theirs, rank)


@pytest.mark.parametrize(
    ("name", "messages", "volume", "pairs", "both_ways"),
    [
        ("sp.S.9", 16416, 29_614_080, 54, 608),
        ("sp.S.16", 38880, None, 96, 810),
        ("bt.S.9", 9936, 31_628_880, 54, 368),
        ("bt.S.16", 23520, 52_208_640, 96, 490),
    ],
)
def test_totals_of_recorded_runs(name, messages, volume, pairs, both_ways):
    traffic = nas_traffic(name)
    assert traffic.messages.sum() == messages
    assert traffic.bytes.sum() == volume or volume is None
    assert traffic.pairs == pairs
    assert set(traffic.undirected().messages) == {both_ways}


@pytest.mark.parametrize(
    ("name", "calls", "messages", "collectives"),
    [
        ("sp.S.9", 44811, 16416, 126),
        ("sp.S.16", 108752, 38880, 224),
        ("bt.S.9", 33777, 9936, 144),
        ("bt.S.16", 83472, 23520, 256),
    ],
)
def test_events_of_recorded_runs_by_kind(name, calls, messages, collectives):
    counted = Counter(nas_trace(name).kind.tolist())
    assert counted == {
        **dict.fromkeys((Kind.ENTER, Kind.LEAVE), calls),
        **dict.fromkeys(
            (Kind.ISEND, Kind.ISEND_COMPLETE, Kind.IRECV_REQUEST, Kind.IRECV), messages
        ),
        **dict.fromkeys((Kind.COLLECTIVE_BEGIN, Kind.COLLECTIVE_END), collectives),
    }


def test_collectives_are_those_of_the_recorded_runs():
    common = {"ALLREDUCE": 2, "BARRIER": 2, "CREATE_HANDLE": 4, "DESTROY_HANDLE": 1, "REDUCE": 1}
    assert summarize(nas_trace("sp.S.9")).collectives == common | {"BCAST": 4}
    assert summarize(nas_trace("bt.S.16")).collectives == common | {"BCAST": 6}


def test_the_full_program_has_the_traffic_of_the_formula():
    for name in ["sp.W", "bt.W", "sp.A", "bt.B"]:
        for ranks in [1, 4, 9, 16, 25, 49, 64]:
            with about(name, ranks):
                solver = {"sp": SP, "bt": BT}[name[:2]]
                ranks = min(ranks, (solver.classes[name[3]][0] // 3) ** 2)
                trace = nas_trace(f"{name}.{ranks}", steps=2)
                assert traffic_of(trace).same_as(nas_traffic(f"{name}.{ranks}", steps=2))


@pytest.mark.parametrize("p", [2, 3, 5, 8])
def test_ranks_have_six_partners_or_three_where_they_coincide(p):
    for name in ("sp", "bt"):
        traffic = nas_traffic(f"{name}.A.{p * p}", steps=1)
        assert set(np.bincount(traffic.src)) == {6 if p > 2 else 3}
        expected = 3 + 2 * (p - 1)  # faces, and both time steps' sweeps
        assert set(traffic.messages) == {expected if p > 2 else 2 * expected}
    j, i = np.divmod(np.arange(p * p), p)
    for after, before in zip(*partners(p, i, j), strict=True):
        assert np.array_equal(before[after], np.arange(p * p))


def test_no_message_is_on_the_world_communicator():
    trace = nas_trace("bt.S.9", steps=1)
    comm, tag = (
        column[trace.records.tag >= 0] for column in (trace.records.comm, trace.records.tag)
    )
    assert set(comm) == {2, 3}
    assert set(comm[tag % 1000 > 0]) == {2}  # sweeps, tagged by cell
    assert set(tag[comm == 3]) == {2000, 3000, 4000, 5000, 6000, 7000}  # faces, by side


def test_cells_share_the_grid_out():
    for nas_class, (n, _) in SP.classes.items():
        layout = multipartition(SP, nas_class, 16)
        assert layout.points.sum() == n
        assert np.ptp(layout.points) <= 1
        assert layout.swept.sum() == n - 2  # the border stays at home
    assert set(multipartition(BT, "C", 64).swept) == {162 // 8 + 1}


def test_class_e_on_thousands_of_ranks_is_there_at_once():
    begin = time.process_time()
    traffic = nas_traffic("sp.E.65536")
    assert time.process_time() - begin < 2
    assert traffic.pairs == 6 * 65536
    assert traffic.messages.sum() == 6 * 65536 * (502 + 501 * 255)


@pytest.mark.parametrize(
    ("solver", "name", "n"), [(SP, "sp.S.4", 12), (BT, "bt.S.16", 12), (SP, "sp.S.1", 12)]
)
def test_the_compute_model_spends_the_benchmarks_operations_at_the_rate(solver, name, n):
    ranks = int(name.split(".")[2])
    slow, fast = (nas_trace(name, steps=3, flops=rate) for rate in (1e6, 1e9))
    spent = [np.add.reduce(t.time[t.offsets[1:] - 1]) for t in (slow, fast)]
    # 3 + 1 time steps of all ranks, and a right-hand side for the verification.
    once = np.polyval(solver.operations, n)
    expected = (4 + solver.work.rhs / solver.work.total()) * once / 1e6
    assert spent[0] == pytest.approx(expected, rel=1e-9)
    assert spent[1] == pytest.approx(expected / 1000, rel=1e-5)
    assert nas_trace(name, steps=3, flops=0).duration == 0
    # What was counted in the loops is what the benchmark says of large grids.
    assert solver.work.total() == pytest.approx(solver.operations[0], rel=0.03)
    assert slow.ranks == ranks


def test_the_generated_archive_reads_as_it_was_written(tmp_path, events_of):
    trace = nas_trace("sp.S.4", steps=2)
    write_trace(trace, tmp_path / "sp.otf2")
    again = read_trace(tmp_path / "sp.otf2")
    assert traffic_of(again).same_as(nas_traffic("sp.S.4", steps=2))
    for rank in range(4):
        assert events_of(again, rank) == events_of(trace, rank)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("sp.Q.4", "SP class 'Q': expected one of S, W, A, B, C, D, E"),
        ("bt.S.12", "BT on 12 ranks: expected a square number, like 9 or 16"),
        ("bt.S.0", "expected a square number, like 1 or 4"),
        ("sp.S.25", "cells of 2 of 12 points an edge: expected at least 3, so at most 16 ranks"),
    ],
)
def test_wrong_names_are_refused(name, message):
    for generate in (nas_traffic, nas_trace, nas_folded):
        with pytest.raises(TraceError, match=message):
            generate(name)


def test_wrong_rates_and_steps_are_refused():
    with pytest.raises(TraceError, match="SP at -1 flop/s: expected 0 or more"):
        nas_trace("sp.S.4", flops=-1)
    with pytest.raises(TraceError, match="BT with 0 time steps: expected 1 to 1,000,000"):
        nas_traffic("bt.S.4", steps=0)


def test_what_does_not_fit_is_refused_at_once():
    with pytest.raises(OutOfMemoryError, match=r"whole trace of 788,029,440 .* fewer steps"):
        nas_trace("sp.E.4096")

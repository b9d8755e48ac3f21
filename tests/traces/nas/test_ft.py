"""NAS FT: the recorded run call by call, rows and columns of ranks, and what no recording has."""

from collections import Counter
from math import log

import numpy as np
import pytest

from hopmap.traces import (
    Collective,
    Kind,
    TraceError,
    nas_folded,
    nas_trace,
    nas_traffic,
    read_trace,
    summarize,
    traffic_of,
    write_trace,
)
from hopmap.traces.nas.ft import benchmark_of, ft_problem


def test_the_recorded_run(shared, events_of):
    ours, theirs = nas_trace("ft.S.16"), read_trace(shared / "nas" / "ft.S.16")
    assert nas_traffic("ft.S.16").same_as(traffic_of(theirs))
    assert summarize(ours).collectives == summarize(theirs).collectives
    for comm in range(2):
        assert np.array_equal(ours.communicators[comm], theirs.communicators[comm])
    for rank in range(16):
        assert events_of(ours, rank) == events_of(theirs, rank)


def sums(trace, operation):
    """Records of an operation, and bytes that they say were sent and received."""
    r = trace.records
    of = r.operation == operation
    return of.sum(), r.size[of].sum(), r.received[of].sum()


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (Collective.ALLTOALL, (128, 33_554_432, 33_554_432)),
        (Collective.BARRIER, (16, 0, 0)),
        (Collective.BCAST, (80, 320, 320)),
        (Collective.CREATE_HANDLE, (48, 0, 0)),
        (Collective.DESTROY_HANDLE, (16, 0, 0)),
        (Collective.REDUCE, (96, 1536, 1536)),
    ],
)
def test_collectives_of_the_recorded_run(operation, expected):
    assert sums(nas_trace("ft.S.16"), operation) == expected


@pytest.mark.parametrize(("layout", "calls", "ends"), [((1, 16), 417, 384), ((4, 4), 545, 512)])
def test_events_of_runs_with_slabs_and_with_pencils(layout, calls, ends):
    counted = Counter(benchmark_of(layout).trace("S", 16).kind.tolist())
    assert counted == {
        **dict.fromkeys((Kind.ENTER, Kind.LEAVE), calls),
        **dict.fromkeys((Kind.COLLECTIVE_BEGIN, Kind.COLLECTIVE_END), ends),
    }


@pytest.mark.parametrize(
    ("name", "p1", "p2"), [("ft.S.64", 1, 64), ("ft.S.128", 64, 2), ("ft.W.64", 32, 2)]
)
def test_more_ranks_than_planes_exchange_in_rows_and_columns(name, p1, p2):
    _, nas_class, ranks = name.split(".")
    problem = ft_problem(nas_class, int(ranks))
    assert (problem.p1, problem.p2) == (p1, p2)
    trace = nas_trace(name, steps=1)
    rows = [list(range(k * p2, (k + 1) * p2)) for k in range(p1)]
    columns = [list(range(k, p1 * p2, p2)) for k in range(p2)] if p1 > 1 else []
    world = list(range(p1 * p2))
    assert [c.tolist() for c in trace.communicators] == [world, *rows, *columns]
    r = trace.records
    exchanges = np.flatnonzero(r.operation == Collective.ALLTOALL)
    for rank in (0, p1 * p2 - 1):
        mine = exchanges[rank * len(exchanges) // (p1 * p2) :][: len(exchanges) // (p1 * p2)]
        row, column = 1 + rank // p2, 1 + p1 + rank % p2
        # Forwards twice, then backwards.
        order = [column, row] * 2 + [row, column] if p1 > 1 else [row] * 3
        assert r.comm[mine].tolist() == order
        assert all(rank in trace.communicators[c] for c in order)
    # Every exchange moves the whole grid.
    grid = 16 * problem.nx * problem.ny * problem.nz
    assert r.size[exchanges].sum() == grid * 3 * (1 + (p1 > 1))


def test_there_is_no_point_to_point_traffic():
    traffic = nas_traffic("ft.E.4194304")
    assert (traffic.ranks, traffic.pairs) == (4194304, 0)
    assert traffic.metadata == {"benchmark": "ft", "class": "E"}


@pytest.mark.parametrize("name", ["ft.S.1", "ft.S.8", "ft.S.128"])
def test_the_compute_model_spends_the_benchmarks_operations_at_the_rate(name):
    trace = nas_trace(name, steps=5, flops=1e6)
    spent = np.add.reduce(trace.time[trace.offsets[1:] - 1])
    points = 64**3
    first = 14.8157 + 7.19641 * log(points)  # twice: before the clock starts, too
    assert spent == pytest.approx(
        points * (2 * first + 5 * (5.23518 + 7.21113 * log(points))) / 1e6, rel=1e-6
    )
    assert nas_trace(name, steps=5, flops=0).duration == 0


def test_the_generated_archive_reads_as_it_was_written(tmp_path, events_of):
    trace = benchmark_of((4, 2)).trace("S", 8, steps=2)
    write_trace(trace, tmp_path / "ft.otf2")
    again = read_trace(tmp_path / "ft.otf2")
    assert summarize(again).collectives == summarize(trace).collectives
    for rank in range(8):
        assert events_of(again, rank) == events_of(trace, rank)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ft.Q.4", "FT class 'Q': expected one of S, W, A, B, C, D, E"),
        ("ft.S.12", "FT on 12 ranks: expected a power of two"),
        ("ft.S.0", "expected a power of two"),
        ("ft.S.8192", "64 x 128 layout of 64 x 64 x 64 points: expected at most 64 x 64"),
    ],
)
def test_wrong_names_are_refused(name, message):
    for generate in (nas_traffic, nas_trace, nas_folded):
        with pytest.raises(TraceError, match=message):
            generate(name)


def test_wrong_layouts_rates_and_steps_are_refused():
    with pytest.raises(TraceError, match="layout 4 x 2: expected 16 ranks in it"):
        benchmark_of((4, 2)).trace("S", 16)
    with pytest.raises(TraceError, match="FT at inf flop/s: expected 0 or more"):
        nas_trace("ft.S.4", flops=float("inf"))
    with pytest.raises(TraceError, match="FT with 0 time steps: expected at least 1"):
        nas_traffic("ft.S.4", steps=0)

"""NAS EP, FT and IS: recorded runs, rows and columns of ranks, batches and sums, keys as drawn."""

from collections import Counter
from dataclasses import replace
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
from hopmap.traces.nas.ep_ft_is import (
    FT,
    MULTIPLIER,
    SEED,
    ft_problem,
    is_problem,
    keys_received,
)


def in_layout(p1, p2):
    """FT on columns of p1 and rows of p2 ranks, as the file inputft.data may say."""
    return replace(FT, problem=lambda *asked: ft_problem(*asked)._replace(p1=p1, p2=p2))


def test_ranks_share_out_batches_and_the_first_have_one_more():
    trace = nas_trace("ep.S.5", flops=1.0)  # seconds are random numbers: 256 batches of 2^17
    spent = trace.time[trace.offsets[1:] - 1]
    assert np.array_equal(spent / 2**17, [52, 51, 51, 51, 51])


def test_nobody_sends_messages_in_ep():
    for name in ("ep.S.1", "ep.E.4096"):
        assert nas_traffic(name).pairs == 0


def test_three_sums_and_the_largest_time_are_reduced():
    trace = nas_trace("ep.W.8")
    counts = summarize(trace).collectives
    assert counts["ALLREDUCE"] == 4
    assert counts["BCAST"] == counts["BARRIER"] == 1
    ends = trace.ref[trace.kind == Kind.COLLECTIVE_END]
    sizes = trace.records.size[ends[: len(ends) // 8]] // 8
    assert sizes.tolist() == [0, 4, 0, 8, 8, 80, 8, 0]


def test_ep_has_no_time_steps():
    with pytest.raises(TraceError, match="EP with 3 time steps: it has none"):
        nas_traffic("ep.S.4", steps=3)


def test_the_recorded_run_of_ft(shared, events_of):
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
    counted = Counter(in_layout(*layout).trace("S", 16).kind.tolist())
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


def test_ft_has_no_point_to_point_traffic():
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
    trace = in_layout(4, 2).trace("S", 8, steps=2)
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


def test_wrong_rates_and_steps_are_refused():
    with pytest.raises(TraceError, match="FT at inf flop/s: expected 0 or more"):
        nas_trace("ft.S.4", flops=float("inf"))
    with pytest.raises(TraceError, match="FT with 0 time steps: expected 1 to 1,000,000"):
        nas_traffic("ft.S.4", steps=0)


def drawn(keys: int, largest: int) -> list[int]:
    """Keys as NPB defines them: a quarter of the range times the sum of four numbers in (0, 1)."""
    x, values = SEED, []
    for _ in range(keys):
        total = 0.0
        for _ in range(4):
            x = MULTIPLIER * x % 2**46
            total += x / 2**46
        values.append(int(largest // 4 * total))
    return values


@pytest.mark.parametrize("ranks", [1, 2, 16, 128])
def test_ranks_get_the_keys_of_whole_buckets(ranks):
    p = is_problem("S", ranks)
    keys = drawn(p.keys, p.largest)
    keys[1], keys[1 + p.steps] = 1, p.largest - 1  # what the first ranking changes
    counts = np.bincount(np.array(keys) * p.buckets // p.largest, minlength=p.buckets)
    got, mine, so_far = [], 0, 0
    for count in counts.tolist():
        so_far, mine = so_far + count, mine + count
        if so_far >= (len(got) + 1) * p.own:
            got.append(mine)
            mine = 0
    got += [0] * (ranks - len(got))
    assert keys_received(p, ranks)[:2].tolist() == [got, got]


@pytest.mark.parametrize(("name", "ranks"), [("S", 1), ("S", 64), ("W", 1024), ("A", 32)])
def test_all_keys_arrive_in_every_ranking(name, ranks):
    p = is_problem(name, ranks)
    received = keys_received(p, ranks)
    assert received.shape == (p.steps + 1, ranks)
    assert (received.sum(axis=1) == p.keys).all()


def test_what_is_sent_is_what_is_received():
    trace = nas_trace("is.S.32", steps=3)
    rows = trace.ref[trace.kind == Kind.COLLECTIVE_END]
    moved = rows[trace.records.operation[rows] == Collective.ALLTOALLV]
    assert trace.records.size[moved].sum() == trace.records.received[moved].sum() == 4 * 4 * 2**16


def test_every_rank_tells_the_next_one_its_largest_key():
    traffic = nas_traffic("is.C.256")
    assert np.array_equal(traffic.dst, traffic.src + 1)
    assert set(traffic.bytes.tolist()) == {4}
    assert traffic.messages.sum() == 255


def test_more_rankings_than_keys_to_change_are_refused():
    assert is_problem("S", 128, 255).steps == 255
    with pytest.raises(TraceError, match="with 256 rankings: expected at most 255"):
        is_problem("S", 128, 256)

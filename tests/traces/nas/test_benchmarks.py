"""What every NAS generator promises: the recorded runs call by call, and a program that adds up."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from hopmap.traces import (
    Kind,
    Trace,
    TraceError,
    load_traffic,
    nas_folded,
    nas_trace,
    nas_traffic,
    open_source,
    read_trace,
    summarize,
    traffic_of,
    write_trace,
)
from hopmap.traces.nas.benchmarks import BENCHMARKS
from support import DATA, about

MINE = ("cg", "mg", "is", "ep")
SMALL = [
    *(f"{benchmark}.S.{ranks}" for benchmark in MINE for ranks in (1, 2, 4, 8, 32)),
    "mg.S.128",  # more ranks than points on all but two levels
    "cg.W.128",  # rows that do not divide
    "ep.S.5",
]


def steps_for(name: str) -> int | None:
    return None if name.startswith("ep") else 2


def recorded(folder: Path) -> list[str]:
    """Archives of generated benchmarks in a folder, whole runs of a class."""
    names = [path.name.removesuffix(".p2p.csv") for path in sorted(folder.glob("*.p2p.csv"))]
    kept = [name for name in names if name.split(".")[0] in MINE]
    return [name for name in kept if (folder / name).is_dir()]


def calls_of(trace: Trace, rank: int) -> list[tuple[object, ...]]:
    """All calls of a rank, messages and collectives, in order."""
    mine = slice(trace.offsets[rank], trace.offsets[rank + 1])
    kinds, ref, r = trace.kind[mine], trace.ref[mine], trace.records
    columns = (r.peer, r.comm, r.tag, r.operation, r.size, r.received, r.request)
    return [
        (trace.regions[at],) if kind == Kind.ENTER else (kind, *(int(c[at]) for c in columns))
        for kind, at in zip(kinds.tolist(), ref.tolist(), strict=True)
        if kind != Kind.LEAVE
    ]


def assert_equals_recording(folder: Path, name: str) -> None:
    assert nas_traffic(name).same_as(load_traffic(folder / f"{name}.p2p.csv"))
    ours, theirs = nas_trace(name), read_trace(folder / name)
    assert summarize(ours).collectives == summarize(theirs).collectives
    for rank in range(theirs.ranks):
        assert calls_of(ours, rank) == calls_of(theirs, rank)


@pytest.mark.parametrize("name", ["mg.S.16", "is.S.16"])
def test_the_recorded_runs_that_ship_with_the_project(name):
    assert_equals_recording(DATA, name)


@pytest.mark.slow
def test_every_recorded_run(shared):
    names = recorded(shared / "nas")
    assert names == ["cg.S.16", "cg.S.8", "is.S.16", "mg.S.16"]
    for name in names:
        assert_equals_recording(shared / "nas", name)


def test_lu_makes_every_recorded_call_too():
    ours, theirs = nas_trace("lu.S.4"), read_trace(DATA / "lu.S.4")
    for rank in range(4):
        assert calls_of(ours, rank) == calls_of(theirs, rank)


def test_the_full_program_has_the_traffic_of_the_formula():
    for name in SMALL:
        with about(name):
            steps = steps_for(name)
            assert traffic_of(nas_trace(name, steps=steps)).same_as(nas_traffic(name, steps=steps))


def test_every_message_is_received_as_it_was_sent():
    for name in SMALL:
        with about(name):
            trace = nas_trace(name, steps=steps_for(name))
            rank, r = trace.rank_of_event(), trace.records
            ends = []
            for kind in (Kind.SEND, Kind.IRECV):
                events = np.flatnonzero(trace.kind == kind)
                rows, me = trace.ref[events], rank[events]
                pair = (me, r.peer[rows]) if kind == Kind.SEND else (r.peer[rows], me)
                ends.append(Counter(zip(*pair, r.tag[rows], r.size[rows], strict=True)))
            assert ends[0] == ends[1]
            posted = trace.kind == Kind.IRECV_REQUEST
            assert posted.sum() == sum(ends[1].values())


def test_one_more_step_adds_the_same_again():
    def sent(name: str, steps: int) -> tuple[int, int]:
        traffic = nas_traffic(name, steps=steps)
        return int(traffic.messages.sum()), int(traffic.bytes.sum())

    for name in SMALL:
        if not name.startswith("ep"):
            (m1, b1), (m2, b2), (m4, b4) = (sent(name, steps) for steps in (1, 2, 4))
            assert (m4 - m2, b4 - b2) == (2 * (m2 - m1), 2 * (b2 - b1)), name


@pytest.mark.parametrize("name", ["cg.S.8", "mg.S.8"])
def test_folded_programs_do_not_grow_with_steps(name):
    few, many = (nas_folded(name, steps=steps).trace.events for steps in (1, 400))
    assert few == many


def test_the_compute_model_spends_the_benchmarks_own_count_of_operations():
    for ranks in [1, 2, 16]:
        for name, operations in [
            # As programs print their Mop/s: operations of all timed steps, and of one before.
            ("cg.S", 16 * 2 * 1400 * (3 + 56 + 25 * (5 + 56) + 3)),
            ("mg.S", 5 * 58 * 32**3),
            ("is.S", 11 * 2**16),
            ("ep.S", 2**25),
            # And three right-hand sides besides, a fifth of a step each.
            ("lu.S", 51.6 * (1984.77 * 12**3 - 10923.3 * 12**2 + 27770.9 * 12 - 144010)),
        ]:
            with about(ranks, name, operations):
                rate = 1e6
                trace = nas_trace(f"{name}.{ranks}", flops=rate)
                spent = trace.time[trace.offsets[1:] - 1].sum() * rate
                if name == "mg.S":  # two residuals, of 15 operations a point, before the V-cycles
                    points = 8 ** np.arange(1, 6)
                    cycle = 31 * points.sum() - 15 * 8 + 15 * points[-1] + 44 * points[:-1].sum()
                    operations *= 1 + 2 / 5 * 15 * points[-1] / cycle
                assert spent == pytest.approx(operations, rel=2e-3)
                assert nas_trace(f"{name}.{ranks}", flops=0).duration == 0


@pytest.mark.parametrize("name", ["cg.S.4", "is.S.4"])
def test_generated_archives_read_back_as_they_were(name, tmp_path):
    trace = nas_trace(name, steps=2)
    write_trace(trace, tmp_path / "run.otf2")
    again = read_trace(tmp_path / "run.otf2")
    for rank in range(trace.ranks):
        assert calls_of(again, rank) == calls_of(trace, rank)


@pytest.mark.parametrize(
    ("name", "pairs_a_rank"), [("cg.E.16384", 8), ("mg.E.16384", 10), ("is.D.1024", 1)]
)
def test_traffic_of_many_ranks_has_few_pairs_for_each(name, pairs_a_rank):
    traffic = nas_traffic(name)
    assert traffic.ranks - 1 <= traffic.pairs <= pairs_a_rank * traffic.ranks


def test_wrong_classes_and_rank_counts_are_refused():
    for name, message in [
        ("cg.Q.4", "CG class 'Q': expected one of S, W, A, B, C, D, E"),
        ("cg.S.12", "CG on 12 ranks: expected a power of two"),
        ("cg.S.0", "CG on 0 ranks: expected a power of two"),
        ("mg.Z.4", "MG class 'Z': expected one of"),
        ("mg.S.24", "MG on 24 ranks: expected a power of two"),
        ("mg.S.65536", "a 32 x 32 x 64 layout of 32.3 points: expected at least one point a rank"),
        ("mg.E.262144", "MG on 262144 ranks: expected at most 131072"),
        ("cg.E.2097152", "CG on 2097152 ranks: expected at most 1048576"),
        ("is.E.4", "IS class 'E': expected one of S, W, A, B, C, D$"),
        ("is.S.6", "IS on 6 ranks: expected a power of two"),
        ("is.S.256", "IS class S on 256 ranks: expected 1 to 128"),
        ("is.D.2", "IS class D on 2 ranks: expected 4 to 1024"),
        ("ep.S.257", "EP class S on 257 ranks: expected 1 to 256"),
        ("ep.F.4", "EP class 'F': expected one of"),
    ]:
        with about(name, message):
            for generate in (open_source, nas_traffic, nas_trace, nas_folded):
                with pytest.raises(TraceError, match=message):
                    generate(name)


@pytest.mark.parametrize("name", ["cg.S.4", "mg.S.4", "is.S.4", "lu.S.4"])
def test_wrong_steps_and_rates_are_refused(name):
    with pytest.raises(TraceError, match="with 0 time steps: expected 1 to 1,000,000"):
        nas_traffic(name, steps=0)
    for rate in (-1.0, float("inf"), float("nan")):
        with pytest.raises(TraceError, match=f"at {rate} flop/s: expected 0 or more"):
            nas_folded(name, flops=rate)


def test_every_benchmark_says_what_it_is():
    assert set(MINE) | {"lu"} <= BENCHMARKS.keys()
    for name, benchmark in BENCHMARKS.items():
        assert (benchmark.about or "").startswith(f"NAS {name.upper()} (NPB 3.3-MPI)")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "lu.C.62",
            "LU on 62 ranks: a 31 x 2 layout: expected sides of at most 2 to 1, "
            "as on 60 or 63 ranks",
        ),
        ("lu.C.3", "LU on 3 ranks: a 3 x 1 layout: .*, as on 2 or 4 ranks"),
        ("bt.C.63", "BT on 63 ranks: expected a square number, like 49 or 64"),
        ("sp.C.3", "SP on 3 ranks: expected a square number, like 1 or 4"),
        ("cg.C.63", "CG on 63 ranks: expected a power of two, like 32 or 64"),
        ("is.C.65", "IS on 65 ranks: expected a power of two, like 64 or 128"),
        ("mg.C.3", "MG on 3 ranks: expected a power of two, like 2 or 4"),
        ("ft.C.12", "FT on 12 ranks: expected a power of two, like 8 or 16"),
    ],
)
def test_a_number_of_ranks_that_npb_refuses_is_refused_with_the_nearest_valid_ones(name, message):
    """NPB 3.3.1 and later, sys/setparams.c; LU 3.4: get_active_nprocs."""
    with pytest.raises(TraceError, match=f"^{message}$"):
        open_source(name)


@pytest.mark.parametrize("name", ["lu.C.63", "lu.S.6", "ep.S.63", "bt.S.9", "is.S.64"])
def test_numbers_of_ranks_that_npb_allows_are_opened(name):
    """LU runs on 63 ranks, 9 x 7, since NPB 3.3.1."""
    assert open_source(name).name == name

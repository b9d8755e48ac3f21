"""NAS LU: published totals, and recorded runs pair by pair and call by call."""

from pathlib import Path

import numpy as np
import pytest

from hopmap.traces import (
    Kind,
    Trace,
    TraceError,
    load_traffic,
    nas_trace,
    nas_traffic,
    read_trace,
    traffic_of,
    write_trace,
)
from hopmap.traces.nas.lu import CLASSES, lu_problem
from support import DATA, about


@pytest.mark.parametrize(
    ("nas_class", "ranks", "messages", "volume", "low", "high", "perimeter"),
    [
        ("C", 64, 9_052_876, 22_128_532_608, 80829, 80830, 28),
        ("D", 512, 239_140_588, 555_039_369_088, 245021, 245022, 92),
        ("D", 4096, 1_975_849_596, 1_520_325_313_920, 245021, 245022, 252),
    ],
)
def test_published_totals(nas_class, ranks, messages, volume, low, high, perimeter):
    traffic = nas_traffic(f"lu.{nas_class}.{ranks}")
    assert traffic.messages.sum() == messages
    assert traffic.bytes.sum() == volume
    both = traffic.undirected()
    assert (both.messages.min(), both.messages.max()) == (low, high)
    assert (both.messages == high).sum() == perimeter


def test_the_full_program_has_the_traffic_of_the_formula():
    for nas_class in ["S", "W"]:
        for ranks in [1, 2, 4, 6, 9, 12, 16]:
            with about(nas_class, ranks):
                trace = nas_trace(f"lu.{nas_class}.{ranks}", steps=3)
                assert traffic_of(trace).same_as(nas_traffic(f"lu.{nas_class}.{ranks}", steps=3))


def recorded(folder: Path) -> list[tuple[str, str, int, int | None]]:
    """Archives of LU below a folder as (path, class, ranks, steps)."""
    found = []
    for path in sorted(folder.glob("lu.*.p2p.csv")):
        name = path.name.removesuffix(".p2p.csv")
        _, what, ranks = name.split(".")
        nas_class, _, steps = what.partition("-it")
        found.append((str(folder / name), nas_class, int(ranks), int(steps) if steps else None))
    return found


def assert_equals_recording(path: str, nas_class: str, ranks: int, steps: int | None) -> None:
    traffic = nas_traffic(f"lu.{nas_class}.{ranks}", steps=steps)
    assert traffic.same_as(load_traffic(f"{path}.p2p.csv"))
    if not Path(path).is_dir():
        return  # only the matrix is unpacked
    ours, theirs = nas_trace(f"lu.{nas_class}.{ranks}", steps=steps), read_trace(path)
    for rank in range(ranks):
        assert calls_of(ours, rank) == calls_of(theirs, rank)


def calls_of(trace: Trace, rank: int) -> list[tuple[int, ...]]:
    """Messages and collectives of a rank, in order."""
    mine = slice(trace.offsets[rank], trace.offsets[rank + 1])
    kinds, ref = trace.kind[mine], trace.ref[mine]
    kept = (kinds > Kind.LEAVE) & (kinds != Kind.COLLECTIVE_BEGIN)
    rows = ref[kept]
    r = trace.records
    columns = [kinds[kept], r.peer[rows], r.tag[rows], r.operation[rows], r.size[rows],
               r.received[rows], r.request[rows]]  # fmt: skip
    return list(zip(*(np.asarray(c).tolist() for c in columns), strict=True))


def test_the_recorded_run_that_ships_with_the_project():
    (case,) = recorded(DATA)
    assert_equals_recording(*case)


@pytest.mark.slow
def test_every_recorded_run(shared):
    cases = recorded(shared / "nas")
    assert len(cases) == 6
    for case in cases:
        assert_equals_recording(*case)


def test_the_generated_archive_reduces_to_the_same_matrix(tmp_path):
    write_trace(nas_trace("lu.S.4"), tmp_path / "lu.otf2")
    again = read_trace(tmp_path / "lu.otf2")
    assert traffic_of(again).same_as(load_traffic(DATA / "lu.S.4.p2p.csv"))
    for rank in range(4):
        assert calls_of(again, rank) == calls_of(nas_trace("lu.S.4"), rank)


def test_layouts():
    shapes = {ranks: lu_problem("D", ranks)[2:4] for ranks in (2, 8, 12, 64, 512, 4096)}
    assert shapes == {2: (2, 1), 8: (4, 2), 12: (4, 3), 64: (8, 8), 512: (32, 16), 4096: (64, 64)}
    for nas_class, (n, _) in CLASSES.items():
        problem = lu_problem(nas_class, 12)
        assert problem.nx.sum() == problem.ny.sum() == n
        assert np.ptp(problem.nx) <= 1


def test_the_compute_model_spends_the_benchmarks_operations_at_the_rate():
    slow, fast = (nas_trace("lu.S.4", steps=2, flops=rate) for rate in (1e6, 1e9))
    spent = [trace.time.max() for trace in (slow, fast)]
    assert spent[0] == pytest.approx(1000 * spent[1], rel=1e-3)
    # 2 + 1 time steps of a quarter of the points, and three right-hand sides besides.
    step = 1984.77 * 12**3 - 10923.3 * 12**2 + 27770.9 * 12 - 144010
    assert spent[0] == pytest.approx((3 + 3 * 0.2) * step / 4 / 1e6, rel=1e-6)
    assert nas_trace("lu.S.4", steps=2, flops=0).duration == 0


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("lu.Q.4", "class 'Q': expected one of S, W, A, B, C, D, E"),
        ("lu.S.64", "1 points a rank: expected at least 3"),
        ("lu.S.0", "at least 1"),
        ("dt.S.4", "dt.S.4: dt cannot be generated: expected one of"),
        ("lu.S", "name.class.ranks"),
    ],
)
def test_wrong_names_are_refused(name, message):
    for generate in (nas_traffic, nas_trace):
        with pytest.raises(TraceError, match=message):
            generate(name)


def test_names_are_not_case_sensitive():
    assert nas_traffic("LU.s.4").same_as(nas_traffic("lu.S.4"))

"""Whatever a source is, all commands take it for the same program and the same traffic."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopmap.scenarios.results.store import load_results
from hopmap.traces import Traffic, save_traffic
from support import DATA
from support.commands import invoke
from support.slow import examples, slow

# Everything costs time, so that no order or size goes unnoticed.
SETTINGS = {"link.bandwidth": "1 GB/s", "eager_limit": "4 kB", "compute.scale": "0"}
SET = [word for key, value in SETTINGS.items() for word in ("--set", f"{key}={value}")]


def answer(*words: object) -> dict:
    done = invoke([*words, "--json"])
    assert done.exit_code == 0, (words, done.stderr)
    return json.loads(done.stdout)


def sent_in_goal(path: Path) -> tuple[int, int]:
    """Messages and bytes; GOAL's messages have one byte at least."""
    lines = path.read_text(encoding="ascii").splitlines()
    sizes = [int(line.split("send ")[1].split("b")[0]) for line in lines if "send " in line]
    return len(sizes), sum(sizes)


def swept(folder: Path, source: str, topology: str, mapper: str, rounds: int | None) -> dict:
    (folder / "scenario.toml").write_text(
        f'name = "agreement"\ntraces = ["{source}"]\ntopologies = ["{topology}"]\n'
        f'mappers = ["{mapper}"]\n[replay]\nengine = "compiled"\n'
        + (f"rounds = {rounds}\n" if rounds else "")
        + "[parameters]\n"
        + "".join(f'"{key}" = "{value}"\n' for key, value in SETTINGS.items())
    )
    words = ["run", str(folder / "scenario.toml"), "--out", str(folder / "out"), "--no-report"]
    done = invoke(words)
    assert done.exit_code == 0, done.stderr
    (row,) = load_results(folder / "out").to_dict("records")
    return row


def all_agree(folder: Path, source: str, topology: str, rounds: int | None = None) -> float:
    """Ask every command, and return the makespan that all of them give."""
    on, times = ["-t", topology], ["--rounds", rounds] if rounds else []
    mapping, goal = folder / "m.csv", folder / "run.goal"
    placed = answer("map", source, *on, "-m", "sweep", "--out", mapping, "--force")
    measured = answer("evaluate", source, mapping, *on)
    replayed = answer("simulate", source, mapping, *on, *SET, *times)
    reference = answer("simulate", source, mapping, *on, *SET, *times, "--engine", "simpy")
    why = answer("explain", source, mapping, *on, *SET, *times, "--no-sensitivity")
    valued = answer(
        "map", source, *on, "-m", "descend(evaluations=1)", "--objective", "makespan", *SET, *times
    )
    answer("convert", source, "--to", "goal", "--out", goal, "--force", *SET, *times)
    row = swept(folder, source, topology, "sweep", rounds)

    hops = measured["bytes"]["dilation"]["sum"]
    assert placed["hop_bytes"] == row["hop_bytes"] == hops
    times_found = {
        "simulate": replayed["makespan"],
        "simpy": reference["makespan"],
        "explain": why["makespan"],
        "map": valued["objective"]["before"],
        "run": row["makespan"],
    }
    assert len(set(times_found.values())) == 1, times_found
    messages, size = sent_in_goal(goal)
    assert messages == replayed["messages"]
    assert 0 <= size - replayed["bytes"] <= messages
    return replayed["makespan"]


def test_the_stencil_that_was_two_programs(tmp_path):
    """45.2 us by `simulate` and 30.6 us by `run`, once."""
    source = "stencil:2x4,5pt,periodic=xy,bytes=100000"
    (tmp_path / "m.csv").write_text("rank,node\n" + "".join(f"{r},{r}\n" for r in range(8)))
    alone = answer("simulate", source, tmp_path / "m.csv", "-t", "torus:4x2")
    assert alone["makespan"] == pytest.approx(30.6e-6, abs=0.05e-6)
    all_agree(tmp_path, source, "torus:4x2")


@examples(6, 2)
@given(
    dims=st.tuples(st.integers(1, 4), st.integers(2, 3)),
    periodic=st.sampled_from(["none", "x", "xy"]),
    size=st.sampled_from([1, 3000, 100_000]),
    rounds=st.sampled_from([None, 1, 2]),
)
def test_stencils(tmp_path_factory, dims, periodic, size, rounds):
    source = f"stencil:{dims[0]}x{dims[1]},5pt,periodic={periodic},bytes={size}"
    all_agree(tmp_path_factory.mktemp("stencil"), source, "torus:3x4", rounds)


@examples(6, 2)
@given(seed=st.integers(0, 99), rounds=st.sampled_from([1, 2, 5]))
def test_files_of_traffic(tmp_path_factory, seed, rounds):
    folder = tmp_path_factory.mktemp("traffic")
    rng = np.random.default_rng(seed)
    pairs = [(s, d) for s in range(6) for d in range(6) if s != d and rng.random() < 0.4] or [
        (0, 1)
    ]
    src, dst = zip(*pairs, strict=True)
    messages = rng.integers(1, 5, len(pairs))
    traffic = Traffic.from_pairs(
        6, src, dst, messages, messages * rng.integers(1, 9000, len(pairs))
    )
    save_traffic(folder / "t.npz", traffic)
    all_agree(folder, str(folder / "t.npz"), "mesh:3x2", rounds)


def test_counts_of_open_mpi(tmp_path):
    file = tmp_path / "ring.0.prof"
    rows = [f"E\t{r}\t{(r + 1) % 6}\t{5000 * r} bytes\t{r + 1} msgs sent\t0\n" for r in range(6)]
    file.write_text("# POINT TO POINT\n" + "".join(rows))
    all_agree(tmp_path, str(file), "mesh:3x2", 2)


@pytest.mark.parametrize(
    "source", [str(DATA / "lu.S.4"), "is.S.4", *slow("lu.S.4", str(DATA / "mg.S.16"))]
)
def test_archives_and_benchmarks(tmp_path, source):
    all_agree(tmp_path, str(source), "torus:4x4")

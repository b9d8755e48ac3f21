"""``--json`` of a command is the `to_dict` of what the front door returns: one implementation."""

import json

import numpy as np
import pytest

import hopmap as hm
from support import DATA, ROOT, about
from support.archives import archives_read_here
from support.commands import LITTLE, as_json, hopmap

MG, TORUS = str(DATA / "mg.S.16"), "torus:4x4"
LU, RING = "lu.S.4", "torus:8"
TIMES = {"seconds", "wall_seconds", "compile_seconds"}
LINK = {"link.bandwidth": "1 GB/s"}
SET = ("--set", "link.bandwidth=1 GB/s")
PINGPONG = "bytes,time_s\n" + "".join(f"{8 * 2**k},{1e-6 + 8 * 2**k / 1e9}\n" for k in range(12))


def untimed(value):
    """Return JSON values without what differs from run to run."""
    if isinstance(value, dict):
        return {key: untimed(each) for key, each in value.items() if key not in TIMES}
    return [untimed(each) for each in value] if isinstance(value, list) else value


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("door")
    with archives_read_here():
        hm.write_mapping(folder / "m.csv", hm.map_ranks(MG, TORUS, "minmd"))
        hm.write_mapping(folder / "lu.csv", hm.map_ranks(LU, RING, "identity"))
    (folder / "pingpong.csv").write_text(PINGPONG)
    (folder / "little.toml").write_text(LITTLE)
    return folder


@pytest.mark.usefixtures("folder")
def test_twenty_commands_print_what_the_door_returns(folder, monkeypatch):
    monkeypatch.chdir(folder)
    lu, few = hm.Workload(LU, steps=2), hm.Sampling(samples=2, max_simulations=4)
    slow, counted = hm.Machine(TORUS, LINK), hm.Workload("cg.S.16", collectives="expand")
    jobs = [hm.Job(LU, "lu.csv"), hm.Job("cg.S.4", "contiguous")]
    asked = "SELECT mapper, hop_bytes FROM runs ORDER BY ALL"
    cases = [
        ([*("map", MG, "-t", TORUS, "-m", "minmd")], lambda: hm.map_ranks(MG, TORUS, "minmd")),
        (
            [*("map", "cg.S.16", "-t", TORUS, "-m", "rcm", "--collectives", "expand")],
            lambda: hm.map_ranks(counted, TORUS, "rcm"),
        ),
        (
            [*("map", LU, "-t", "mesh:8", "-m", "auto(moves=50)", "--objective", "hop_bytes")],
            lambda: hm.map_ranks(LU, "mesh:8", "auto(moves=50)", objective="hop_bytes"),
        ),
        (
            [
                *("map", LU, "-t", RING, "-m", "descend(evaluations=9)", "--steps", "2", *SET),
                *("--objective", "makespan", "--engine", "analytic"),
            ],
            lambda: hm.map_ranks(
                *(lu, hm.Machine(RING, LINK), "descend(evaluations=9)"),
                objective=hm.Replayed("makespan", "analytic"),
            ),
        ),
        (["evaluate", MG, "m.csv"], lambda: hm.evaluate(MG, "m.csv")),
        (
            ["evaluate", MG, "m.csv", "--convention", "maplib", "-t", "mesh:4x4"],
            lambda: hm.evaluate(MG, "mesh:4x4", "m.csv", convention="maplib"),
        ),
        (
            ["evaluate", MG, "m.csv", "--failures", "links=2", "--seeds", "2"],
            lambda: hm.evaluate(MG, hm.Machine(failures="links=2"), "m.csv", draws=2),
        ),
        (["simulate", MG, "m.csv", *SET], lambda: hm.simulate(MG, slow, "m.csv")),
        (
            ["simulate", LU, "lu.csv", "--engine", "simpy", "--steps", "2", "--repeat", "6"],
            lambda: hm.simulate(lu, None, "lu.csv", engine="simpy", repeat=6),
        ),
        (
            ["simulate", "--job", f"{LU},lu.csv", "--job", "cg.S.4,contiguous", "-t", RING],
            lambda: hm.simulate_jobs(jobs, RING),
        ),
        (
            ["explain", MG, "m.csv", "--no-sensitivity", *SET],
            lambda: hm.explain(MG, slow, "m.csv", sensitivity=False),
        ),
        (
            ["advise", LU, "-t", RING, "-m", "rcm", "--samples", "6"],
            lambda: hm.advise(LU, RING, ["rcm"], sampling=hm.Sampling(6)),
        ),
        (
            [
                "robust",
                LU,
                "-t",
                RING,
                "-c",
                "identity,rcm",
                "--samples",
                "2",
                "--max-simulations",
                "4",
            ],
            lambda: hm.robust(LU, RING, ["identity", "rcm"], sampling=few),
        ),
        (["export", "m.csv", "--to", "slurm"], lambda: hm.export_mapping("m.csv", "slurm")),
        (
            ["export", "m.csv", "--to", "openmpi", "--out", "ranks"],
            lambda: hm.export_mapping("m.csv", "openmpi", out="ranks"),
        ),
        (
            ["convert", LU, "--to", "goal", "--out", "lu.goal"],
            lambda: hm.convert(LU, "goal", "lu.goal"),
        ),
        (
            ["convert", LU, "--to", "simgrid", "--mapping", "lu.csv", "--out", "tit"],
            lambda: hm.convert(LU, "simgrid", "tit", mapping="lu.csv"),
        ),
        (["calibrate", "pingpong.csv"], lambda: hm.calibrate("pingpong.csv")),
        (["run", "little.toml", "--no-report"], lambda: hm.run_scenario("little.toml")),
        (["query", "results/little", asked], lambda: hm.query("results/little", asked)),
    ]
    assert len(cases) == 20
    missing: set[str] = set()
    described = (ROOT / "docs" / "reference" / "json.md").read_text("utf-8")
    for words, ask in cases:
        with about(words):
            said = as_json(*words)
            if words[0] == "run":  # the same runs: done by the command, found by the door
                assert said.pop("report") is None
                said |= {"done": 0, "skipped": said["done"]}
            plain = json.loads(json.dumps(ask().to_dict(), default=np.ndarray.tolist))
            assert untimed(plain) == untimed(said)
            if isinstance(said, dict):
                missing.update(key for key in said if f"`{key}`" not in described)
    assert not missing, ", ".join(sorted(missing))


def test_print_shows_the_table_that_the_command_prints(folder, monkeypatch):
    """But for the title, where the command knows files by name, and seconds of the clock."""
    monkeypatch.chdir(folder)
    jobs = [hm.Job(LU, "lu.csv"), hm.Job("cg.S.4", "contiguous")]
    few = hm.Sampling(samples=2, max_simulations=4)
    for words, ask in [
        (["map", MG, "-t", TORUS, "-m", "minmd"], lambda: hm.map_ranks(MG, TORUS, "minmd")),
        (["evaluate", MG, "m.csv"], lambda: hm.evaluate(MG, "m.csv")),
        (["simulate", LU, "lu.csv"], lambda: hm.simulate(LU, "lu.csv")),
        (
            ["simulate", "--job", f"{LU},lu.csv", "--job", "cg.S.4,contiguous", "-t", RING],
            lambda: hm.simulate_jobs(jobs, RING),
        ),
        (["explain", LU, "lu.csv"], lambda: hm.explain(LU, "lu.csv")),
        (
            ["advise", LU, "-t", RING, "-m", "rcm", "--samples", "6"],
            lambda: hm.advise(LU, RING, ["rcm"], sampling=hm.Sampling(6)),
        ),
        (
            ["robust", LU, "-t", RING, "-c", "identity,rcm", "--samples=2", "--max-simulations=4"],
            lambda: hm.robust(LU, RING, ["identity", "rcm"], sampling=few),
        ),
    ]:
        with about(words):
            value = ask()
            printed = str(value).splitlines()
            others = set(printed) - set(hopmap(*words).splitlines())
            assert len(printed) > 5
            titles = {line for line in others if TORUS in line or RING in line}
            assert len(titles) <= 1
            assert all("replayed in" in line for line in others - titles), others
            assert "\n" not in repr(value)
            assert len(repr(value)) < 300

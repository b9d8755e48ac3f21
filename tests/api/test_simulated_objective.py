"""``map --objective``: named, or a simulated time or energy that a replay then confirms."""

import json
import re
from types import SimpleNamespace

import numpy as np
import pytest

from hopmap.api.simulated_objective import Replayed, Simulated
from support import DATA, about
from support.commands import invoke

MG = str(DATA / "mg.S.16")
ON = ("-t", "torus:4x2x2")
LEAST = ("--objective", "hop_bytes")
FAST = ("--set", "compute.scale=0", "--set", "link.bandwidth=1 GB/s")
DRAWS = ("--set", "energy.link.per_byte=1 nJ/byte", "--set", "energy.node.idle=10 W")


def hopmap(*words):
    result = invoke(words)
    assert result.exit_code == 0, result.output
    return result.stdout


def as_json(*words):
    return json.loads(hopmap(*words, "--json"))


@pytest.fixture
def shuffled(tmp_path):
    file = tmp_path / "shuffled.csv"
    hopmap("map", MG, *ON, "-m", "random", "--seed", 3, "--out", file)
    return file


@pytest.mark.parametrize(
    ("mapper", "engine"),
    [("auto(evaluations=40)", None), ("descend(evaluations=40)", "compiled"),
     ("descend(evaluations=40)", "analytic")],
)  # fmt: skip
def test_a_shuffled_order_gets_a_shorter_run_and_the_replay_says_the_same(
    tmp_path, shuffled, mapper, engine
):
    out = tmp_path / "out.csv"
    given = () if engine is None else ("--engine", engine)
    placed = as_json(
        "map", MG, *ON, "-m", mapper, "--objective", "makespan", "--initial", shuffled, *FAST,
        *given, "--out", out,
    )  # fmt: skip
    before, after = (
        as_json("simulate", MG, file, *ON, "--engine", engine or "compiled", *FAST)["makespan"]
        for file in (shuffled, out)
    )
    expected = {"name": "makespan", "before": before, "after": after}
    assert expected.items() <= placed["objective"].items()
    assert after < before


@pytest.mark.parametrize("mapper", ["auto(evaluations=40, moves=2000)", "descend(evaluations=40)"])
def test_the_bound_of_the_makespan_is_an_objective_that_no_replay_undercuts(
    tmp_path, shuffled, mapper
):
    out = tmp_path / "out.csv"
    placed = as_json(
        "map", MG, *ON, "-m", mapper, "--objective", "makespan_bound", "--initial", shuffled, *FAST,
        "--out", out,
    )  # fmt: skip
    objective = placed["objective"]
    assert objective["name"] == "makespan_bound"
    assert objective["after"] < objective["before"]
    for file, bound in ((shuffled, objective["before"]), (out, objective["after"])):
        assert bound <= as_json("simulate", MG, file, *ON, *FAST)["makespan"] < 1.2 * bound


def test_energy_is_an_objective_where_something_draws_it(tmp_path, shuffled):
    out = tmp_path / "out.csv"
    placed = as_json(
        "map", MG, *ON, "-m", "descend(evaluations=30)", "--objective", "energy", *DRAWS, *FAST,
        "--initial", shuffled, "--out", out,
    )  # fmt: skip
    summary = as_json("simulate", MG, out, *ON, *DRAWS, *FAST)
    assert summary["energy"]["total"] == placed["objective"]["after"]
    assert placed["objective"]["after"] < placed["objective"]["before"]


def test_the_busiest_link_is_an_objective(tmp_path, shuffled):
    out = tmp_path / "out.csv"
    placed = as_json(
        "map", MG, *ON, "-m", "relieve", "--objective", "max_link_load", "--initial", shuffled,
        "--out", out,
    )  # fmt: skip
    before, after = (
        as_json("evaluate", MG, file, *ON)["bytes"]["congestion"]["max"] for file in (shuffled, out)
    )
    assert placed["objective"] == {"name": "max_link_load", "before": before, "after": after}
    assert after < before


def test_traffic_is_replayed_in_rounds(tmp_path):
    traffic, out = tmp_path / "mg.npz", tmp_path / "out.csv"
    hopmap("matrix", MG, "--out", traffic)
    times = []
    for rounds in (1, 4):
        placed = as_json(
            "map", traffic, *ON, "-m", "descend(evaluations=5)", "--objective", "makespan",
            "--rounds", rounds, "--out", out, "--force", "--set", "link.latency=1 ms",
        )  # fmt: skip
        replayed = as_json(
            "simulate", traffic, out, *ON, "--rounds", rounds, "--set", "link.latency=1 ms"
        )["makespan"]
        assert placed["objective"]["after"] == replayed
        times.append(replayed)
    assert times[1] > 3 * times[0]


def test_a_table_says_what_the_objective_was_and_is(shuffled):
    stage = ("-m", "descend(evaluations=5)", "--objective", "makespan")
    text = hopmap("map", MG, *ON, *stage, "--initial", shuffled, *FAST)
    head, _, row, basis = text.rstrip().splitlines()[-4:]
    assert re.match(r"\d+ replays by engine compiled \(DEFAULT: link", basis)
    assert head.split() == ["objective", str(shuffled), "this", "mapping"]
    assert row.split()[0] == "makespan"
    assert [word for word in row.split() if word.endswith("s")] == ["ms", "us"]
    assert "nodes in order" in hopmap("map", MG, *ON, "-m", "auto(moves=10)", *LEAST)


def test_what_makes_no_sense_is_one_line():
    for words, line in [
        ("--objective makespam", "'makespam' (did you mean makespan?): expected one of card"),
        (
            "--objective energy",
            "energy requires energy parameters, like --set energy.link.per_byte=",
        ),
        ("--objective makespan -m minmd", "minmd: does not work for a function as objective"),
        (
            "--objective makespan --rounds 2",
            "rounds 2 requires traffic: mg.S.16 has an order of messages",
        ),
        ("--objective makespan --engine flaw", "unknown engine 'flaw' (did you mean flow?)"),
        ("--objective makespan --set link.speed=1", "unknown parameter 'link.speed'"),
        ("--objective max_link_load --engine flow", "--engine flow requires --objective makespan"),
        ("--steps 2", "steps 2: mg.S.16 is no benchmark"),
        (
            "--objective makespan_bound --engine flow",
            "--engine flow requires --objective makespan",
        ),
    ]:
        with about(words, line):
            mapper = () if "-m" in words else ("-m", "descend(evaluations=2)")
            result = invoke(["map", MG, *ON, *mapper, *words.split()])
            assert result.exit_code == 2
            assert result.stderr.count("\n") == 1
            assert line in result.stderr


def test_a_budget_that_one_replay_uses_up_is_said(shuffled):
    """Nothing better is found because nothing was tried, which looks like a perfect start."""
    words = ["map", MG, *ON, "-m", "auto", "--objective", "makespan", *FAST]
    result = invoke([*words, "--seconds", "0"])
    assert "--seconds 0 was over after no replay, so that no other mapping" in result.stderr
    assert invoke([*words, "--seconds", "1"]).stderr == ""


def test_the_first_mapping_and_the_best_are_replayed_once(monkeypatch):
    asked = []

    def replayed(self, node_of):
        asked.append(node_of.tolist())
        return float(node_of[0]), node_of

    monkeypatch.setattr(Simulated, "_replay", replayed)
    workload = SimpleNamespace(program=lambda _: None)
    machine = SimpleNamespace(parameters=SimpleNamespace(algorithms={}))
    value = Simulated(Replayed(), workload, machine)
    first, worse, best, equal = (np.array(m) for m in ([3, 0], [5, 0], [1, 0], [1, 2]))
    assert [value(m) for m in (first, worse, best, equal, first, best)] == [3, 5, 1, 1, 3, 1]
    assert [value(m) for m in (worse, equal)] == [5, 1]  # not kept: there may be millions of them
    assert asked == [[3, 0], [5, 0], [1, 0], [1, 2], [5, 0], [1, 2]]
    assert value.replays == 6
    assert value.best.tolist() == [1, 0]  # of the result, the same holds

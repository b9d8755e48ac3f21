"""A time of traffic alone says that its rounds are assumed; times name engine and assumptions."""

from pathlib import Path

import pytest

import hopmap as hm
from hopmap.report.report import write_report
from hopmap.scenarios.results.store import load_results
from hopmap.simulator.programs.from_traffic import ASSUMED_ROUNDS
from support import DATA
from support.commands import as_json, hopmap, invoke

TRACE, ON = str(DATA / "lu.S.4"), ("-t", "mesh:2x2")
FEW = ("--samples", 6, "--seconds", 0)
SCENARIO = """
traces = ["alone.npz"]
topologies = ["mesh:2x2"]
mappers = ["sweep"]
[replay]
engine = "simpy"
rounds = 3
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with the traffic of a trace, and a mapping of it."""
    monkeypatch.chdir(tmp_path)
    hopmap("matrix", TRACE, "--out", "alone.npz")
    hopmap("map", TRACE, *ON, "-m", "sweep", "--out", "m.csv")
    return tmp_path


def test_every_time_of_traffic_alone_says_its_rounds_and_no_time_of_a_trace_does(here):
    """A pair's messages go one by one, so that there are as many rounds as the most of a pair."""
    rounds = int(hm.Workload("alone.npz").traffic().messages.max())
    said = f"traffic alone, in {rounds:,} assumed rounds, without computation and collectives"
    search = ("-m", "descend(evaluations=1)", "--objective", "makespan")
    for command, *words in (
        ("simulate", "m.csv"),
        ("explain", "m.csv", "--no-sensitivity"),
        ("advise", *ON, *FEW),
        ("robust", *ON, *FEW),
        ("map", *ON, *search),
    ):
        assert said in hopmap(command, "alone.npz", *words), command
        assert "assumed round" not in hopmap(command, TRACE, *words), command
        for source, number in (("alone.npz", rounds), (TRACE, None)):
            facts = as_json(command, source, *words)
            if command in ("simulate", "explain"):
                facts = facts.get("result", facts)
                assert facts["notes"].get(ASSUMED_ROUNDS) == number, command
            else:
                facts = facts.get("objective", facts)
                assert facts["assumed_rounds"] == number, command
                assert facts["engine"] == "compiled"


def test_rounds_that_are_set_are_those_and_a_stencil_is_its_own_round(here):
    assert hm.Workload("alone.npz", rounds=1).assumed_rounds == 1
    assert "in 1 assumed round, without" in hopmap("simulate", "alone.npz", "m.csv", "--rounds", 1)
    assert hm.Workload("stencil:2x2,5pt").assumed_rounds is None


def test_jobs_of_which_one_is_traffic_alone_say_so(here):
    hopmap("map", TRACE, "-t", "mesh:4x2", "-m", "identity", "--out", "wide.csv")
    words = (
        "--job",
        f"{TRACE},wide.csv",
        "--job",
        "alone.npz,contiguous,rounds=2",
        "-t",
        "mesh:4x2",
    )
    said = "some or all jobs are traffic alone, in 2 assumed rounds, without"
    assert said in hopmap("simulate", *words)
    assert said in hopmap("explain", *words, "--no-sensitivity")
    assert "assumed round" not in hopmap("simulate", *words[:2], "-t", "mesh:4x2")


def test_a_sweep_and_its_report_say_it(here):
    Path("s.toml").write_text(f'name = "s"\n{SCENARIO}')
    done = invoke(["run", "s.toml", "--out", "out"])
    assert "alone: replayed: traffic alone, in 3 assumed rounds, without" in done.stderr
    assert ASSUMED_ROUNDS in load_results(Path("out")).loc[0, "omitted"]
    assert ASSUMED_ROUNDS in write_report(Path("out")).read_text()


def test_a_choice_and_an_objective_that_is_replayed_name_engine_and_assumptions(here):
    said = hopmap("robust", TRACE, *ON, *FEW, "--engine", "flow")
    assert "replayed by engine flow; 0 replays extrapolated\nmodels differ in " in said
    assert as_json("robust", TRACE, *ON, *FEW)["extrapolated"] == 0
    search = ("-m", "descend(evaluations=1)", "--objective", "makespan", "--engine", "flow")
    assert "by engine flow (DEFAULT: link.*" in hopmap("map", TRACE, *ON, *search)
    facts = as_json("map", TRACE, *ON, *search)["objective"]
    assert (facts["engine"], facts["replays"]) == ("flow", 1)
    assert facts["assumed"] == ["link.bandwidth", "link.latency"]

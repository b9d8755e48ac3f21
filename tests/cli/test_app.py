"""The command line: help, lists, and sweeps that are run."""

import html
import json
import re
import shlex

import numpy as np
import pytest

from hopmap.cli.listing import SHORT, Listed
from hopmap.mappers import MAPPERS
from hopmap.scenarios.sweep import run as sweep_run
from hopmap.scenarios.sweep.measure import measure
from hopmap.traces import load_traffic
from hopmap.units import show_seconds
from support import about
from support.commands import COMPILING, LU, as_json, failed, hopmap, invoke, noted


def test_without_a_command_there_is_help():
    assert "hopmap [OPTIONS] COMMAND" in re.sub(r"\s+", " ", hopmap())
    assert re.fullmatch(r"hopmap \d+\.\d+\S*\n", hopmap("--version"))


@pytest.mark.parametrize(
    ("command", "table"),
    [("simulate", "[[jobs]]"), ("simulate", "[[background]]"), ("robust", "[ranges]")],
)
def test_help_shows_names_in_brackets(command, table):
    assert table in hopmap(command, "--help")


def test_lists_have_name_summary_source_and_parameters():
    for what, name in [
        ("mappers", "bokhari"),
        ("topologies", "haec"),
        ("engines", "simpy"),
        ("formats", "openmpi"),
        ("formats", ".mtx"),
        ("formats", "mapping CSV"),
        ("parameters", "link.bandwidth"),
        ("parameters", "energy.link.KIND.static"),
        ("presets", "haec-box-4x4x4"),
        ("algorithms", "allreduce=rabenseifner"),
        ("scenarios", "first"),
        ("benchmarks", "sp"),
    ]:
        with about(what, name):
            entries = as_json("list", what)
            keys = {"name", "summary", "source", "parameters"}
            keys |= {"capabilities"} if what == "mappers" else set()
            assert all(entry.keys() == keys for entry in entries)
            assert name in [entry["name"] for entry in entries]
            assert all(entry["summary"] for entry in entries)
            assert f"{name}: " in hopmap("list", what)


def test_list_alone_names_some_of_every_kind():
    every = as_json("list")
    assert list(every) == [what.value for what in Listed]
    assert every["mappers"] == [entry["name"] for entry in as_json("list", "mappers")]
    text = hopmap("list")
    assert "engines: simpy, compiled, flow, analytic\n" in text
    assert f", and {len(every['mappers']) - SHORT} more\n" in text


def test_generate_takes_a_benchmark_by_its_whole_name(tmp_path):
    one, other, out = (tmp_path / name for name in ("one.npz", "other.npz", "no.npz"))
    hopmap("generate", "lu.S.4", "--out", one)
    hopmap("generate", "lu", "--class", "S", "--ranks", "4", "--out", other)
    assert np.array_equal(load_traffic(one).bytes, load_traffic(other).bytes)
    said = failed("generate", "lu.S.4", "--ranks", "8", "--out", out)
    assert "--ranks and lu.S.4 are mutually exclusive" in said
    assert not out.exists()


def test_every_mapper_is_listed_with_its_source():
    entries = as_json("list", "mappers")
    assert [entry["name"] for entry in entries] == ["auto", *sorted(set(MAPPERS) - {"auto"})]
    assert all(entry["source"] for entry in entries)


def test_every_field_of_a_preset_is_sourced_or_assumed():
    for entry in as_json("list", "presets"):
        fields = {field["name"]: field["type"] for field in entry["parameters"]}
        assert "topology" in fields
        assert all("assumed" in source or len(source) > 12 for source in fields.values())
    text = hopmap("list", "presets")
    assert "link.optical.bandwidth = 31250000000.0  (assumed: 250 Gbit/s)" in text
    assert "link.bandwidth = 5000000000.0  (https://en.wikipedia.org/wiki/Torus_fusion)" in text


def test_run_prints_a_table_and_writes_the_report(tmp_path):
    file = tmp_path / "study.toml"
    file.write_text(
        f'name = "small"\ntraces = ["{LU}"]\ntopologies = ["mesh:2x2"]\n'
        'mappers = ["sweep", "scan"]\n[parameters]\n"compute.scale" = 0\n'
    )
    out = tmp_path / "results"
    dry = as_json("run", file, "--out", out, "--dry-run")
    assert len(dry["missing"]) == 2
    assert not out.exists()
    text = hopmap("run", file, "--out", out)
    assert "lu.S.4 on mesh:2x2" in text
    above = (
        "mapper scan on lu.S.4, mesh:2x2: 4,957,696 hop-bytes are 50 % above the default order's "
        "3,305,152"
    )
    assert f"\n{above}\n2 runs: 2 done now, 0 before" in text
    assert (out / "report.html").stat().st_size > 1000
    again = as_json("run", file, "--out", out, "--no-report")
    assert again == {
        "out": str(out),
        "runs": 2,
        "done": 0,
        "skipped": 2,
        "failed": {},
        "infeasible": {},
        "earlier": 0,
        "warnings": [above],
        "report": None,
    }
    assert hopmap("run", file, "--out", out, "--dry-run").startswith("0 runs missing")
    assert hopmap("report", out) == f"report: {out / 'report.html'}\n"
    assert "query: 2 statements: expected one" in failed("query", out, "SELECT 1; SELECT 2")
    (part,) = (out / "runs").glob("*.parquet")
    whole = part.read_bytes()
    part.write_bytes(whole[:100])
    assert f"{part}: cannot be read" in failed("report", out)
    part.write_bytes(whole)
    file.write_text(file.read_text().replace("sweep", "random"))
    other = hopmap("run", file, "--out", out, "--no-report")
    assert f"1 run that the scenario no longer has: in {out / 'earlier'}\n" in other


def test_run_says_what_figures_of_several_seeds_are(tmp_path):
    said = "of runs: hops and link of the best in hop-bytes, least runtime, mean mapping time"
    file = tmp_path / "study.toml"
    file.write_text(
        f'name = "small"\ntraces = ["{LU}"]\ntopologies = ["mesh:2x2"]\n'
        'mappers = ["sweep", "random"]\nseeds = [0, 1]\n[replay]\nengine = false\n'
    )
    words = ("run", file, "--no-report", "--out")
    assert said in hopmap(*words, tmp_path / "two").splitlines()
    assert said not in hopmap(*words, tmp_path / "one", "--set", "seeds=[0]").splitlines()


def test_a_sweep_of_which_runs_fail_exits_3_and_says_which(tmp_path):
    file = tmp_path / "study.toml"
    file.write_text(
        f'name = "small"\ntraces = ["{LU}"]\ntopologies = ["fattree:4x4", "mesh:4"]\n'
        'mappers = ["bokhari(jumps=side)"]\n[replay]\nengine = false\n'
    )
    result = invoke(["run", str(file), "--out", str(tmp_path / "out")])
    assert result.exit_code == 3
    assert "lu.S.4 on mesh:4" in result.stdout
    which, how_many = (line for line in result.stderr.splitlines() if line != COMPILING)
    assert which.startswith("hopmap: lu.S.4 on fattree:4x4 by bokhari(jumps=side), seed 0: mapper")
    assert how_many == "hopmap: 1 of 2 runs have failed: --retry-failed repeats them"


def interrupted_at(monkeypatch, runs):
    """Have Ctrl-C come once so many runs are done."""
    measured = []

    def pressed(*asked):
        if len(measured) == runs:
            raise KeyboardInterrupt
        measured.append(asked)
        measure(*asked)

    monkeypatch.setattr(sweep_run, "measure", pressed)


@pytest.fixture
def study(tmp_path):
    file = tmp_path / "study.toml"
    file.write_text(
        f'name = "small"\ntraces = ["{LU}"]\ntopologies = ["mesh:2x2", "mesh:4"]\n'
        'mappers = ["sweep", "scan"]\n[parameters]\n"compute.scale" = 0\n'
    )
    return file


def test_the_best_mapping_of_results_is_exported(study, tmp_path):
    out = tmp_path / "results"
    hopmap("run", study, "--out", out, "--no-report")
    asked = "SELECT mapper, makespan FROM runs WHERE topology = 'mesh:2x2'"
    csv = hopmap("query", out, asked, "--csv")
    header, *rows = csv.splitlines()
    assert header == "mapper,makespan"
    times = {mapper: float(seconds) for mapper, seconds in (row.split(",") for row in rows)}
    best = min(times, key=times.get)
    words = ["export", out, "--best", "-t", "mesh:2x2", "--to"]
    said, _ = noted(*words, "slurm")
    assert said.startswith(f"hopmap: best of lu.S.4 on mesh:2x2: {best}, seed 0, makespan ")
    placed = as_json("map", LU, "-t", "mesh:2x2", "-m", best)["node_of"]
    text = invoke([*words, "csv"]).stdout
    assert text.splitlines()[2:] == [f"{rank},{node}" for rank, node in enumerate(placed)]
    for refused, message in {
        ("--best",): "2 cases (lu.S.4 on mesh:2x2; lu.S.4 on mesh:4): expected one: select it by",
        ("--best", "-t", "mesh:3"): "no such run has finished: expected one of lu.S.4 on mesh:2x2",
        (): "a folder of results requires --best",
        ("--trace", "x"): "--trace requires --best",
        ("--variant", "x"): "--variant requires --best",
    }.items():
        assert message in failed("export", out, "--to", "slurm", *refused)


@pytest.mark.parametrize("several", [False, True])
def test_the_commands_that_a_report_prints_export_the_fastest_mapping(study, tmp_path, several):
    """Of each trace, on the network and with the value of what varies that it runs fastest on."""
    out = tmp_path / "results of it"
    words = ["--set", "topologies=mesh:2x2", "--set", 'mappers=["scan","sweep"]']
    if several:
        study.write_text(
            study.read_text().replace('"]', '", "mg.S.4"]', 1)
            + '[[vary]]\nparameters."link.latency" = ["1 us", "100 ns"]\n'
        )
        words = []
    hopmap("run", study, "--out", out, *words)
    page = html.unescape((out / "report.html").read_text())
    commands = re.findall(r"<code>(hopmap export .*?)</code>", page)
    assert len(commands) == (2 if several else 1)
    for trace, command in zip(("lu.S.4", "mg.S.4"), commands, strict=False):
        said, *_ = noted(*shlex.split(command)[1:])
        assert said.startswith(f"hopmap: best of {trace} on mesh:")
        asked = f"SELECT min(makespan) AS least FROM runs WHERE trace = '{trace}'"
        (row,) = as_json("query", out, asked)
        assert said.endswith(f", seed 0, makespan {show_seconds(row['least'])}")


def test_an_interrupted_run_says_what_is_kept(study, tmp_path, monkeypatch):
    """Of the runs that are planned now; one of another mapper was there before."""
    out = tmp_path / "results"
    hopmap("run", study, "--out", out, "--no-report", "--set", "mappers=identity")
    interrupted_at(monkeypatch, 3)
    result = invoke(["run", str(study), "--out", str(out)])
    assert result.exit_code == 130
    kept = f"interrupted: 3 of 4 runs are kept in {out}: the same command does the others"
    assert result.stderr == f"hopmap: {kept}\n"
    interrupted_at(monkeypatch, 0)
    result = invoke(["run", str(study), "--out", str(out), "--json"])
    assert result.exit_code == 130
    assert json.loads(result.stdout) == {"error": "interrupted", "out": str(out), "kept": 3}
    monkeypatch.undo()
    assert "4 runs: 1 done now, 3 before" in hopmap("run", study, "--out", out, "--no-report")


def test_a_run_that_is_interrupted_before_its_plan_is_made_keeps_nothing(
    study, tmp_path, monkeypatch
):
    def pressed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(sweep_run, "plan", pressed)
    result = invoke(["run", str(study), "--out", str(tmp_path / "results")])
    assert (result.exit_code, result.stderr) == (130, "hopmap: interrupted\n")
    assert not (tmp_path / "results").exists()

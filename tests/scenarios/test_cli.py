"""The command line: what each command prints, with and without --json."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from hopmap.mappers import MAPPERS
from hopmap.scenarios.cli import app
from hopmap.traces import load_traffic

DATA = Path(__file__).parent.parent / "data"
LU = str(DATA / "lu.S.4")


def hopmap(*words):
    """Run a command that works; return what it prints."""
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    return result.stdout


def as_json(*words):
    return json.loads(hopmap(*words, "--json"))


@pytest.fixture
def mapping(tmp_path):
    file = tmp_path / "mapping.csv"
    hopmap("map", LU, "--topology", "mesh:2x2", "--mapper", "scan", "--out", file)
    return file


def test_without_a_command_there_is_help():
    assert "hopmap [OPTIONS] COMMAND" in re.sub(r"\s+", " ", hopmap())
    assert re.fullmatch(r"hopmap \d+\.\d+\.\d+\n", hopmap("--version"))


def test_info_of_a_recorded_trace():
    facts = as_json("info", LU)
    assert {key: facts[key] for key in ("ranks", "events", "messages", "bytes", "pairs")} == {
        "ranks": 4,
        "events": 28866,
        "messages": 4520,
        "bytes": 3305152,
        "pairs": 8,
    }
    assert facts["collectives"]["BCAST"] > 0
    assert facts["duration"] == pytest.approx(0.36, abs=0.005)
    assert facts["wall_seconds"] > 0
    text = hopmap("info", LU)
    assert "4,520" in text
    assert "BCAST" in text


@pytest.mark.parametrize("suffix", [".npz", ".csv", ".mtx", ".graph"])
def test_matrix_equals_the_recorded_pairs(tmp_path, suffix):
    out = tmp_path / f"lu{suffix}"
    facts = as_json("matrix", LU, "--out", out)
    assert facts["out"] == str(out)
    assert facts["messages"] == 4520
    recorded = load_traffic(DATA / "lu.S.4.p2p.csv")
    if suffix in (".npz", ".csv"):
        assert load_traffic(out).same_as(recorded)
    assert load_traffic(out).bytes.sum() == recorded.bytes.sum()


def test_matrix_with_collectives_is_what_a_replay_sends(tmp_path, mapping):
    recorded = load_traffic(DATA / "lu.S.4.p2p.csv")
    plain, full = tmp_path / "plain.csv", tmp_path / "full.csv"
    ignored = as_json("matrix", LU, "--out", plain, "--collectives", "ignore")
    assert load_traffic(plain).same_as(recorded)
    assert "algorithms" not in ignored
    facts = as_json("matrix", LU, "--out", full, "--collectives", "expand")
    replayed = as_json("simulate", LU, mapping, "-t", "mesh:2x2", "--set", "compute.scale=0")
    assert (facts["messages"], facts["bytes"]) == (replayed["messages"], replayed["bytes"])
    assert facts["algorithms"] == replayed["algorithms"]
    assert facts.keys() == ignored.keys() | {"algorithms"}
    expanded = load_traffic(full)
    assert facts["messages"] == expanded.messages.sum() > recorded.messages.sum()
    assert set(zip(recorded.src, recorded.dst, strict=True)) <= set(
        zip(expanded.src, expanded.dst, strict=True)
    )


def test_expanded_collectives_take_the_algorithms_that_are_named(tmp_path):
    words = ["--collectives", "expand", "--set", "collective.bcast=linear"]
    facts = as_json("matrix", LU, *words)
    calls = facts["collectives"]["BCAST"]
    assert facts["algorithms"]["bcast"] == {"linear": calls}
    assert re.search(
        rf"bcast calls by linear +{calls}\n",
        hopmap("matrix", LU, "--out", tmp_path / "m.npz", *words),
    )
    out = tmp_path / "map.csv"
    placed = as_json("map", LU, "-t", "mesh:4", "-m", "sweep", "--out", out, *words)
    metrics = as_json("evaluate", LU, out, "-t", "mesh:4", *words)
    assert metrics["bytes"]["ieplc"]["total"] == facts["bytes"]
    assert metrics["bytes"]["dilation"]["sum"] == placed["hop_bytes"]
    assert placed["hop_bytes"] > as_json("map", LU, "-t", "mesh:4", "-m", "sweep")["hop_bytes"]
    # A benchmark's steps stand in loops.
    assert as_json("matrix", "lu.S.4", *words)["messages"] == facts["messages"]


def test_matrix_draws_the_spy_plot(tmp_path):
    assert "written" in hopmap("matrix", LU, "--plot", tmp_path / "spy.png")
    assert (tmp_path / "spy.png").read_bytes().startswith(b"\x89PNG")


def test_generate_traffic_and_trace(tmp_path):
    facts = as_json("generate", "lu", "--class", "C", "--ranks", 64, "--out", tmp_path / "lu.npz")
    assert facts["messages"] == 9_052_876
    assert load_traffic(tmp_path / "lu.npz").ranks == 64
    hopmap("generate", "lu", "--class", "S", "--ranks", 4, "--out", tmp_path / "lu.S.4.otf2")
    assert as_json("info", tmp_path / "lu.S.4.otf2")["messages"] == 4520


def test_a_benchmark_goes_wherever_traffic_does(tmp_path):
    assert as_json("info", "lu.C.64")["messages"] == 9_052_876
    placed = as_json("map", "LU.c.64", "-t", "torus:4x4x4", "-m", "scan")
    assert placed["hop_messages"] == 168 * 80829 + 42
    out = tmp_path / "m.csv"
    hopmap("map", "lu.S.4", "-t", "mesh:4", "-m", "sweep", "--out", out)
    assert as_json("simulate", "lu.S.4", out, "-t", "mesh:4", "--steps", 1)["ranks"] == 4


def test_map_prints_what_the_metrics_say(tmp_path):
    out = tmp_path / "m.csv"
    placed = as_json("map", LU, "-t", "mesh:4", "-m", "random|bokhari", "--seed", 3, "--out", out)
    assert placed.keys() == {
        "mapper",
        "topology",
        "ranks",
        "seconds",
        "hop_bytes",
        "hop_messages",
        "node_of",
    }
    assert placed["mapper"] == "random | bokhari"
    assert sorted(placed["node_of"]) == [0, 1, 2, 3]
    rows = np.loadtxt(out, delimiter=",", skiprows=2, dtype=int)
    assert rows[:, 1].tolist() == placed["node_of"]
    metrics = as_json("evaluate", LU, out, "-t", "mesh:4")
    assert metrics["bytes"]["dilation"]["sum"] == placed["hop_bytes"]
    again = as_json("map", LU, "-t", "mesh:4", "-m", "random|bokhari", "--seed", 3)
    assert again["node_of"] == placed["node_of"]
    assert "mean hops" in hopmap("map", LU, "-t", "mesh:4", "-m", "sweep")


def test_map_can_start_from_a_mapping(mapping):
    placed = as_json("map", LU, "-t", "mesh:2x2", "-m", "bokhari(jumps=0)", "--initial", mapping)
    scanned = as_json("map", LU, "-t", "mesh:2x2", "-m", "scan")
    assert placed["hop_messages"] <= scanned["hop_messages"]


def test_evaluate_has_designs_keys_and_whole_numbers(mapping):
    metrics = as_json("evaluate", LU, mapping, "-t", "mesh:2x2")
    keys = {"convention", "ranks", "nodes", "messages", "bytes"}
    assert metrics.keys() == keys | {"hot_links"}
    assert metrics["hot_links"][0]["messages"] > 0
    assert metrics["messages"].keys() == {
        "ieplc",
        "ianlc",
        "ienlc",
        "ienpc",
        "dilation",
        "congestion",
        "off_node",
    }
    assert metrics["messages"]["ieplc"]["total"] == 4520
    assert isinstance(metrics["messages"]["congestion"]["max"], int)
    published = as_json("evaluate", LU, mapping, "-t", "mesh:2x2", "--convention", "maplib")
    assert published["convention"] == "maplib"


def test_evaluate_for_people_names_the_hot_links_and_their_ranks(mapping):
    text = hopmap("evaluate", LU, mapping, "-t", "mesh:2x2", "--top", 3)
    for word in ("IePLC", "IaNLC", "IeNLC", "IeNPC", "dilation", "congestion", "off-node"):
        assert word in text
    hot = text[text.index("busiest links") :].splitlines()[2:]
    assert len(hot) == 3
    assert all(re.match(r"\d -> \d +link +\d>\d", line) for line in hot)


def test_simulate_has_designs_keys(mapping):
    summary = as_json("simulate", LU, mapping, "-t", "mesh:2x2", "--set", "compute.scale=0")
    assert summary.keys() == {
        "engine",
        "makespan",
        "ranks",
        "messages",
        "bytes",
        "events",
        "wall_seconds",
        "links",
        "energy",
        "algorithms",
    }
    assert summary["links"].keys() == {"max_busy", "max_messages", "max_bytes"}
    slow = as_json(
        "simulate",
        *(LU, mapping, "-t", "mesh:2x2", "--set", "compute.scale=0"),
        *("--set", "link.bandwidth=1 MB/s"),
    )
    assert slow["makespan"] > summary["makespan"]
    assert "makespan" in hopmap("simulate", LU, mapping, "-t", "mesh:2x2")


@pytest.mark.parametrize("engine", ["flow", "analytic"])
def test_simulate_with_every_engine(mapping, engine):
    assert engine in [entry["name"] for entry in as_json("list", "engines")]
    settings = ("--set", "compute.scale=0")
    summary = as_json("simulate", LU, mapping, "-t", "mesh:2x2", "--engine", engine, *settings)
    packets = as_json("simulate", LU, mapping, "-t", "mesh:2x2", *settings)
    assert summary["engine"] == engine
    assert (summary["messages"], summary["bytes"]) == (packets["messages"], packets["bytes"])
    assert summary["links"]["max_bytes"] == packets["links"]["max_bytes"]


def test_simulate_says_what_energy_a_run_takes(mapping):
    figures = ("--set", "energy.link.per_byte=5 pJ/bit", "--set", "energy.node.idle=100 W")
    summary = as_json("simulate", LU, mapping, "-t", "mesh:2x2", *figures)
    energy = summary["energy"]
    assert energy.keys() == {"total", "delay_product", "links", "nodes"}
    assert energy["links"]["link"]["transfer"] > 0
    assert energy["delay_product"] == energy["total"] * summary["makespan"]
    assert "energy" in hopmap("simulate", LU, mapping, "-t", "mesh:2x2", *figures)


def test_simulate_sends_traffic_in_rounds(mapping, tmp_path):
    traffic = tmp_path / "traffic.npz"
    hopmap("matrix", LU, "--out", traffic)
    words = ("simulate", traffic, mapping, "-t", "mesh:2x2", "--engine", "analytic")
    rounds, at_once = as_json(*words), as_json(*words, "--rounds", 1)
    for summary in (rounds, at_once):
        assert (summary["messages"], summary["bytes"]) == (4520, 3305152)
    assert rounds["makespan"] > at_once["makespan"]


def test_export_knows_the_topology_from_the_file(mapping, tmp_path):
    assert hopmap("export", mapping, "--to", "openmpi").splitlines()[2] == "rank 2=node3 slot=0"
    out = tmp_path / "rankfile"
    said = hopmap("export", mapping, "--to", "openmpi", "--out", out)
    assert f"mpirun --map-by rankfile:file={out}" in said
    assert out.read_text().count("\n") == 4
    (tmp_path / "hosts").write_text("a\nb\nc\nd\n")
    shown = as_json("export", mapping, "--to", "slurm", "--hosts", tmp_path / "hosts")
    assert shown["text"] == "a\nb\nd\nc\n"


@pytest.mark.parametrize(
    ("what", "name"),
    [
        ("mappers", "bokhari"),
        ("topologies", "haec"),
        ("engines", "simpy"),
        ("formats", "openmpi"),
        ("formats", ".mtx"),
        ("parameters", "link.bandwidth"),
        ("parameters", "energy.link.KIND.static"),
        ("presets", "haec-box-4x4x4"),
        ("algorithms", "allreduce=rabenseifner"),
        ("scenarios", "first"),
    ],
)
def test_lists_have_name_summary_source_and_parameters(what, name):
    entries = as_json("list", what)
    assert all(entry.keys() == {"name", "summary", "source", "parameters"} for entry in entries)
    assert name in [entry["name"] for entry in entries]
    assert all(entry["summary"] for entry in entries)
    assert f"{name}: " in hopmap("list", what)


def test_every_mapper_is_listed_with_its_source():
    entries = as_json("list", "mappers")
    assert [entry["name"] for entry in entries] == list(MAPPERS)
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
    assert "2 runs: 2 done now, 0 before" in text
    assert (out / "report.html").stat().st_size > 1000
    again = as_json("run", file, "--out", out, "--no-report")
    assert again == {
        "out": str(out),
        "runs": 2,
        "done": 0,
        "skipped": 2,
        "failed": {},
        "report": None,
    }
    assert hopmap("run", file, "--out", out, "--dry-run").startswith("0 runs are missing")
    assert hopmap("report", out) == f"report: {out / 'report.html'}\n"


def test_a_sweep_of_which_runs_fail_exits_3_and_says_which(tmp_path):
    file = tmp_path / "study.toml"
    file.write_text(
        f'name = "small"\ntraces = ["{LU}"]\ntopologies = ["mesh:3", "mesh:4"]\n'
        'mappers = ["sweep"]\n[replay]\nengine = false\n'
    )
    result = CliRunner().invoke(app, ["run", str(file), "--out", str(tmp_path / "out")])
    assert result.exit_code == 3
    assert "lu.S.4 on mesh:4" in result.stdout
    (line,) = result.stderr.splitlines()
    assert line.startswith("hopmap: lu.S.4 on mesh:3 by sweep, seed 0: 4 ranks do not fit")

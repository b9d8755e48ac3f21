"""Runs that are simulated, what is written of them, and why they take so long."""

import json
import re
from functools import partial

import pyarrow.parquet as pq
import pytest

import hopmap as hm
from hopmap.simulator import Steady
from hopmap.traces import nas_trace, summarize
from support.commands import LU, as_json, failed, hopmap, noted
from support.slow import slow


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
        "compile_seconds",
        "links",
        "energy",
        "extrapolated",
        "ensemble",
        "assumed",
        "algorithms",
        "omitted",
        "notes",
        "link_kinds",
    }
    assert summary["links"].keys() == {"max_busy", "max_messages", "max_bytes"}
    slow = as_json(
        "simulate",
        *(LU, mapping, "-t", "mesh:2x2", "--set", "compute.scale=0"),
        *("--set", "link.bandwidth=1 MB/s"),
    )
    assert slow["makespan"] > summary["makespan"]
    assert "makespan" in hopmap("simulate", LU, mapping, "-t", "mesh:2x2")


@pytest.mark.parametrize("command", [["simulate", "--engine", "simpy"], *slow(["explain"])])
def test_what_is_of_finite_buffers_is_said_to_do_nothing_where_there_are_none(command, mapping):
    """Explanations are of the compiled engine, which takes a minute to compile with buffers."""
    words = (*command, LU, mapping, "-t", "mesh:2x2", "--set", "network.flit=64B")
    words += ("--set", "network.credit_delay=1us")
    (said,) = noted(*words)
    assert "network.flit, network.credit_delay: without effect where network.buffer is 0" in said
    assert noted(*words, "--set", "network.buffer=2") == []


def test_what_is_of_another_engine_is_said_to_do_nothing(mapping):
    words = ("simulate", LU, mapping, "-t", "mesh:2x2", "--set", "flow.latency_factor=2")
    (said,) = noted(*words, "--engine", "simpy")
    assert said == "hopmap: flow.latency_factor: without effect on the engine simpy"
    assert noted(*words, "--engine", "flow") == []


def test_an_explanation_says_so_too(mapping):
    words = (
        "explain",
        LU,
        mapping,
        "-t",
        "mesh:2x2",
        "--no-sensitivity",
        "--set",
        "network.flit=64B",
    )
    (said,) = noted(*words)
    assert "network.flit: without effect where network.buffer is 0" in said


def test_simulate_repeats_with_noise_and_says_how_sure_it_is(mapping):
    words = ("simulate", LU, mapping, "-t", "mesh:2x2", "--set", "compute.scale=0")
    once = as_json(*words)
    assert once["ensemble"] is None
    found = as_json(*words, "--repeat", 20)
    assert found["makespan"] == once["makespan"]
    ensemble = found["ensemble"]
    assert len(ensemble["makespans"]) == 20
    assert ensemble["low"] <= ensemble["median"] <= ensemble["high"]
    assert ensemble["noise"] == {"noise.compute": 0.01, "noise.overhead": 0.1, "noise.start": 1e-6}
    later = as_json(*words, "--repeat", 6, "--set", "noise.seed=2")["ensemble"]
    assert later["makespans"] == ensemble["makespans"][2:8]
    own = as_json(*words, "--repeat", 6, "--set", "noise.start=1ms")
    assert own["ensemble"]["noise"] == {
        "noise.compute": 0.0,
        "noise.overhead": 0.0,
        "noise.start": 1e-3,
    }
    assert own["makespan"] == once["makespan"] < own["ensemble"]["low"]
    line = hopmap(*words, "--repeat", 20).splitlines()[1]
    assert re.fullmatch(
        r"makespan \S+ us, median of 20 with noise \S+ us, 95 % interval \S+ to \S+ us "
        r"\(DEFAULT: link.\*, noise.\*\)",
        line,
    )


def test_one_replay_with_noise_has_no_lower_bounds_and_says_which_it_is(mapping):
    words = ("simulate", LU, mapping, "-t", "mesh:2x2", "--set", "compute.scale=0")
    text = hopmap(*words, "--set", "noise.overhead=0.5", "--set", "noise.seed=3")
    assert re.search(r"makespan \S+ \S+, one with noise, of seed 3 \(DEFAULT: link", text)
    assert "lower bound" not in text
    assert "lower bound" in hopmap(*words, "--set", "noise.overhead=0.5", "--repeat", 6)


def test_what_is_assumed_stands_beside_the_makespan(mapping, tmp_path):
    def assumed(*words):
        text = hopmap("simulate", LU, mapping, "-t", *words)
        return re.search(r"\nmakespan .*\((.*)\)\n", text)[1]

    assert assumed("mesh:2x2") == "DEFAULT: link.*"
    given = ("--set", "link.bandwidth=1GB/s", "--set", "link.latency=1us")
    assert assumed("mesh:2x2", *given) == "no defaults"
    rendezvous = ("--set", "eager_limit=0")
    assert assumed("mesh:2x2", *given, *rendezvous) == "DEFAULT: control_bytes"
    assert assumed("mesh:2x2", *given, *rendezvous, "--set", "control_bytes=8B") == "no defaults"
    together = tmp_path / "together.csv"
    hopmap("map", LU, "-t", "mesh:2*2", "-m", "sweep", "--out", together)
    words = ("simulate", LU, together, "-t", "mesh:2*2", *given)
    assert as_json(*words)["assumed"] == ["memory.bandwidth", "memory.latency"]
    (empty := tmp_path / "empty.csv").write_text("src,dst,messages,bytes\n0,3,1,0\n")
    assert as_json("simulate", empty, mapping, "-t", "mesh:2x2")["assumed"] == [
        "link.bandwidth",
        "link.latency",
    ]
    # A machine's figures have sources of their own; a benchmark by name computes at any rate.
    (plain := tmp_path / "plain.csv").write_text("rank,node\n0,0\n1,1\n2,2\n3,3\n")
    words = ("simulate", "lu.S.4", plain, "--steps", "1", "-t", "preset:cray-gemini-hopper*1")
    assert as_json(*words)["assumed"] == ["compute.scale", "ejection.latency"]


def test_simulate_says_which_link_speeds_it_used_and_where_they_are_from(mapping, tmp_path):
    words = ("simulate", LU, mapping, "-t")
    assert "\nlinks: 10 GB/s, 100 ns, DEFAULT\n" in hopmap(*words, "mesh:2x2")
    same = hopmap(*words, "mesh:2x2", "--set", "link.bandwidth=10GB/s")
    assert "\nlinks: 10 GB/s, 100 ns, bandwidth: set by the user; latency: DEFAULT\n" in same
    place = hopmap("map", LU, "-t", "fattree:2x2", "-m", "sweep", "--out", tmp_path / "fat.csv")
    assert place
    words = ("simulate", LU, tmp_path / "fat.csv", "-t", "fattree:2x2")
    assert "\nlinks: 10 GB/s, 100 ns, DEFAULT\n" in hopmap(*words)
    slow = ("--set", "link.level2.latency=1us", "--set", "link.level2.bandwidth=1GB/s")
    lines = hopmap(*words, *slow).splitlines()
    assert "links level1: 10 GB/s, 100 ns, DEFAULT" in lines
    assert "links level2: 1 GB/s, 1 us, set by the user" in lines
    assert as_json(*words, *slow)["link_kinds"][1] == {
        "name": "level2",
        "bandwidth": 1e9,
        "latency": 1e-6,
        "sources": ["set by the user", "set by the user"],
    }


def test_every_parameter_is_listed_with_what_it_is_when_nobody_sets_it():
    values = {e["name"]: e["parameters"][0]["default"] for e in as_json("list", "parameters")}
    assert [name for name, value in values.items() if value is None] == []
    assert (values["link.bandwidth"], values["link.latency"]) == (10e9, 100e-9)
    assert "link.bandwidth" in (text := hopmap("list", "parameters"))
    assert "value = 10 GB/s  (bytes/s)" in text
    assert "optical 31.2 GB/s, wireless 12.5 GB/s" in text


def test_long_runs_are_extrapolated_and_say_so_unless_exact_is_asked_for(monkeypatch, tmp_path):
    monkeypatch.setattr("hopmap.simulator.Steady", partial(Steady, hops=0))
    words = ("simulate", "lu.S.4", tmp_path / "m.csv", "-t", "mesh:2x2")
    hopmap("map", "lu.S.4", "-t", "mesh:2x2", "-m", "sweep", "--out", tmp_path / "m.csv")
    whole, told = as_json(*words, "--no-extrapolation"), as_json(*words)
    assert whole["extrapolated"] is None
    assert told["extrapolated"].keys() == {"steps", "of", "period", "seconds", "error"}
    assert (told["extrapolated"]["steps"], told["extrapolated"]["of"]) == (10, 49)
    error = told["extrapolated"]["error"]
    assert abs(told["makespan"] - whole["makespan"]) <= error * told["makespan"] < 1e-4
    assert (told["messages"], told["bytes"]) == (whole["messages"], whole["bytes"])
    row = r"steps 11 to 49 extrapolated\W+which repeat up to rounding"
    assert re.search(row, hopmap(*words))
    assert "steps" not in hopmap(*words, "--no-extrapolation")
    assert "steps 11 to 49 extrapolated" in repr(hm.simulate(*words[1:2], "mesh:2x2", words[2]))
    flow = hopmap(*words, "--engine", "flow")
    assert re.search(r"all steps replayed\W+engine flow writes loops out", flow)


def test_recordings_are_extrapolated_within_a_tolerance(mapping):
    words = ("simulate", LU, mapping, "-t", "mesh:2x2")
    whole, told = as_json(*words), as_json(*words, "--tolerance", "0.2")
    assert whole["extrapolated"] is None
    assert told["extrapolated"]["steps"] < told["extrapolated"]["of"] / 2
    assert abs(told["makespan"] - whole["makespan"]) <= 0.2 * told["makespan"]
    assert (told["messages"], told["bytes"]) == (whole["messages"], whole["bytes"])
    assert re.search(
        r"steps \d+ to 49 extrapolated\W+estimated error at most [0-9.]+ %",
        hopmap(*words, "--tolerance", "0.2"),
    )
    assert "steps do not settle to 0.10%" in hopmap(*words, "--tolerance", "0.001")
    both = failed(*words, "--tolerance", "0.1", "--no-extrapolation")
    assert "--tolerance and --no-extrapolation are mutually exclusive" in both
    with pytest.raises(ValueError, match="extrapolate 2: expected 0 to 1"):
        hm.simulate(LU, "mesh:2x2", mapping, extrapolate=2)


def test_short_runs_are_replayed_whole(mapping):
    summary = as_json("simulate", "lu.S.4", mapping, "-t", "mesh:2x2")
    assert summary["extrapolated"] is None


@pytest.mark.parametrize("engine", ["flow", "analytic"])
def test_simulate_with_every_engine(mapping, engine):
    assert engine in [entry["name"] for entry in as_json("list", "engines")]
    settings = ("--set", "compute.scale=0")
    summary = as_json("simulate", LU, mapping, "-t", "mesh:2x2", "--engine", engine, *settings)
    packets = as_json("simulate", LU, mapping, "-t", "mesh:2x2", *settings)
    assert summary["engine"] == engine
    assert (summary["messages"], summary["bytes"]) == (packets["messages"], packets["bytes"])
    assert summary["links"]["max_bytes"] == packets["links"]["max_bytes"]


def test_simulate_prints_lower_bounds_beside_the_makespan(mapping):
    words = ("simulate", LU, mapping, "-t", "mesh:2x2", "--set", "compute.scale=0")
    slow = hopmap(*words, "--set", "link.bandwidth=1MB/s")
    assert re.search(r"lower bound, link \d -> \d +\S+ m?s\nlower bound, rank", slow)
    flows = hopmap(*words, "--set", "link.bandwidth=1MB/s", "--engine", "flow")
    assert re.search("lower bound, link.*", flows)[0] == re.search("lower bound, link.*", slow)[0]
    faster = hopmap(*words, "--engine", "flow", "--set", "flow.bandwidth_factor=2")
    assert "lower bound, link" not in faster
    # Without contention a link takes any number of messages at once.
    alone = hopmap(*words, "--engine", "analytic")
    assert "lower bound, rank" in alone
    assert "lower bound, link" not in alone
    # Only packets are served hop by hop.
    assert "packet hops served" in slow
    assert "packet hops" not in flows + alone


def test_explain_says_why(mapping):
    words = ("explain", LU, mapping, "-t", "mesh:2x2", "--set", "link.bandwidth=1MB/s")
    found = as_json(*words)
    makespan = found["makespan"]
    assert sum(found["critical_path"]["seconds"].values()) == pytest.approx(makespan, rel=1e-12)
    assert found["critical_path"]["servers"][0]["kind"] == "link"
    assert found["loaded"][0]["place"] == found["bounds"]["link"]["place"]
    assert all(bound["seconds"] <= makespan * (1 + 1e-12) for bound in found["bounds"].values())
    changes = {row["key"]: row["change"] for row in found["sensitivity"]}
    assert changes["link.bandwidth"] < 0 < changes["overhead.send"]
    assert next(iter(changes)) == "link.bandwidth"
    text = hopmap(*words)
    for part in ("lower bound, no contention", "critical path", "queues", "most queued", "doubled"):
        assert part in text
    assert re.search(r"link.bandwidth +1 MB/s .* -\d", text)
    assert text.endswith("\nlinks: 1 MB/s, 100 ns, bandwidth: set by the user; latency: DEFAULT\n")


def test_explain_without_servers_and_doubling(mapping):
    words = ("explain", LU, mapping, "-t", "mesh:2x2", "--top", 0, "--no-sensitivity")
    found = as_json(*words)
    assert found["sensitivity"] == found["loaded"] == found["critical_path"]["servers"] == []
    text = hopmap(*words)
    assert "critical path" in text
    assert "doubled" not in text


def test_explain_sends_traffic_in_rounds(mapping, tmp_path):
    traffic = tmp_path / "lu.npz"
    hopmap("matrix", LU, "--out", traffic)
    found = as_json(
        "explain", traffic, mapping, "-t", "mesh:2x2", "--rounds", 1, "--no-sensitivity"
    )
    assert found["messages"] == 4520
    assert found["critical_path"]["seconds"]["compute"] == 0


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


@pytest.mark.usefixtures("drawn")
def test_simulate_writes_the_run(mapping, tmp_path):
    files = [tmp_path / name for name in ("run.otf2", "run.json", "use.parquet", "use.svg")]
    archive, timeline, table, figure = files
    said = hopmap(
        *("simulate", LU, mapping, "-t", "mesh:2x2", "--engine", "compiled"),
        *("--otf2", archive, "--perfetto", timeline),
        *("--links", table, "--links", figure, "--bins", 32),
    )
    assert said.splitlines()[-4:] == [f"written: {path}" for path in files]
    before, after = as_json("info", LU), as_json("info", archive)
    for key in ("ranks", "messages", "bytes", "pairs", "collectives"):
        assert after[key] == before[key]
    events = json.loads(timeline.read_text())["traceEvents"]
    assert {event["pid"] for event in events} == set(range(5))  # ranks and links
    assert 16 < pq.read_table(table).num_rows / 8 <= 32
    assert figure.read_text().count("<svg") == 1


def test_simulate_writes_benchmarks_and_traffic_as_archives(mapping, tmp_path):
    run = ("simulate", "lu.S.4", mapping, "-t", "mesh:2x2", "--engine", "flow", "--steps", 2)
    summary = as_json(*run, "--otf2", tmp_path / "run")
    counted, made = as_json("info", tmp_path / "run"), summarize(nas_trace("lu.S.4", steps=2))
    assert counted["collectives"] == made.collectives
    assert (counted["messages"], counted["bytes"]) == (made.messages, made.bytes)
    assert counted["duration"] <= summary["makespan"] + 1e-9  # a tick of the archive's clock
    hopmap("matrix", LU, "--out", tmp_path / "t.npz")
    words = ("simulate", tmp_path / "t.npz", mapping, "-t", "mesh:2x2", "--engine", "analytic")
    hopmap(*words, "--rounds", 4, "--otf2", tmp_path / "rounds")
    rounds = as_json("info", tmp_path / "rounds")
    assert (rounds["messages"], rounds["bytes"]) == (4520, 3305152)

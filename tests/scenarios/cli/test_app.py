"""The command line: what each command prints, with and without --json."""

import json
import re

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from hopmap.mappers import MAPPERS
from hopmap.scenarios.cli.app import app
from hopmap.traces import (
    Traffic,
    load_traffic,
    nas_trace,
    nas_traffic,
    save_traffic,
    stencil_traffic,
    summarize,
    synthetic_traffic,
)
from support import DATA

LU = str(DATA / "lu.S.4")


def hopmap(*words):
    """Run a command that works; return what it prints."""
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    return result.stdout


def noted(*words):
    """Run a command that works; return what it says beside its result."""
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return result.stderr.splitlines()


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


def test_traffic_of_collectives_only_is_said_to_be_so(tmp_path):
    said = (
        "hopmap: ft.S.8: no point-to-point messages: count collectives with --collectives expand\n"
    )
    out = tmp_path / "map.csv"
    for words in (
        ["matrix", "ft.S.8"],
        ["map", "ft.S.8", "-t", "mesh:8", "-m", "sweep", "--out", out],
        ["evaluate", "ft.S.8", out, "-t", "mesh:8"],
    ):
        result = CliRunner().invoke(app, list(map(str, [*words, "--json"])))
        assert (result.exit_code, result.stderr) == (0, said)
        as_json(*words, "--collectives", "expand")


def test_traffic_of_collectives_mostly_is_said_to_be_so(data, tmp_path):
    """IS sorts by ALLTOALLV; its point-to-point messages are 4 bytes each."""
    recorded = "60 B in messages and 8.72 MB in collectives"
    generated = "15 point-to-point messages of 60 B in all"
    out = tmp_path / "map.csv"
    for source, said in ((data / "is.S.16", recorded), ("is.S.16", generated)):
        for words in (
            ["matrix", source],
            ["map", source, "-t", "mesh:4x4", "-m", "sweep", "--out", out],
            ["map", source, "-t", "mesh:4x4", "-m", "descend", "--objective", "makespan"],
            ["evaluate", source, out, "-t", "mesh:4x4"],
        ):
            result = CliRunner().invoke(app, list(map(str, [*words, "--json"])))
            assert result.exit_code == 0
            how = "count collectives with --collectives expand"
            assert result.stderr.splitlines()[-1] == f"hopmap: is.S.16: {said}: {how}"


def test_a_program_of_messages_mostly_has_no_hint(data, tmp_path):
    for source in (data / "mg.S.16", data / "lu.S.4", "cg.S.16", "lu.S.1"):
        assert CliRunner().invoke(app, ["matrix", str(source), "--json"]).stderr == ""


def test_a_file_of_traffic_has_no_collectives_to_count(tmp_path):
    save_traffic(tmp_path / "silent.npz", Traffic.from_pairs(2, [], [], [], []))
    assert as_json("matrix", tmp_path / "silent.npz")["messages"] == 0


def test_an_error_comes_without_the_hints_of_a_result(tmp_path):
    (tmp_path / "short.csv").write_text("rank,node\n0,0\n")
    words = ["evaluate", "ft.S.8", str(tmp_path / "short.csv"), "-t", "mesh:8"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 2
    assert re.fullmatch(r"hopmap: .*: expected 8.*\n", result.stderr)
    words = ["generate", "ft", "--ranks", "8", "--out", str(tmp_path / "ft.npz")]
    assert "hopmap matrix ft.S.8 --collectives expand" in CliRunner().invoke(app, words).stderr


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


@pytest.mark.parametrize("name", ["cg", "mg", "is"])
def test_generate_every_benchmark(tmp_path, name):
    facts = as_json("generate", name, "--class", "C", "--ranks", 64, "--out", tmp_path / "t.npz")
    assert load_traffic(tmp_path / "t.npz").same_as(nas_traffic(f"{name}.C.64"))
    hopmap("generate", name, "--ranks", 8, "--out", tmp_path / "t.otf2")
    assert as_json("info", tmp_path / "t.otf2")["ranks"] == 8
    assert f"{name}: NAS {name.upper()}" in hopmap("list", "benchmarks")
    assert facts["ranks"] == 64


def test_generate_at_the_rate_of_a_recorded_run(tmp_path):
    slow, again = tmp_path / "slow.otf2", tmp_path / "again.otf2"
    hopmap("generate", "cg", "--ranks", 4, "--flops", "3 Mflop/s", "--out", slow)
    fitted = as_json("generate", "cg", "--ranks", 8, "--rate-from", slow, "--out", again)["rate"]
    assert fitted["of"] == "cg.S.4"
    assert fitted["flops"] == pytest.approx(3e6, rel=1e-5)
    assert fitted["deviation"] < 1e-5
    seconds = [as_json("info", path)["duration"] for path in (slow, again)]
    assert seconds[0] == pytest.approx(2 * seconds[1], rel=1e-4)  # on half as many ranks
    text = hopmap("generate", "mg", "--rate-from", DATA / "mg.S.16", "--out", tmp_path / "mg.otf2")
    assert "operations/s, from mg.S.16" in text
    assert "by rank" in text


def test_generate_a_textbook_pattern(tmp_path):
    out = tmp_path / "shuffle.npz"
    facts = as_json("generate", "shuffle", "--dims", "4x4", "--bytes", 8192, "--out", out)
    assert (facts["ranks"], facts["messages"], facts["bytes"]) == (16, 16, 16 * 8192)
    assert load_traffic(out).same_as(synthetic_traffic("shuffle", (4, 4), size=8192))


def test_generate_a_stencil_and_map_it(tmp_path):
    out, placed = tmp_path / "t.npz", tmp_path / "m.csv"
    words = ("--dims", "12x11x8", "--stencil", "7pt", "--bytes", 1000)
    facts = as_json("generate", "stencil", *words, "--periodic", "y", "--out", out)
    assert (facts["ranks"], facts["bytes"]) == (1056, 1000 * facts["messages"])
    periodic = stencil_traffic((12, 11, 8), "7pt", periodic=(False, True, False), size=1000)
    assert load_traffic(out).same_as(periodic)
    hopmap("map", out, "-t", "cluster:33*32", "-m", "kd_tree", "--out", placed)
    measured = as_json("evaluate", "stencil:12x11x8,7pt", placed, "-t", "cluster:33*32")
    assert measured["messages"]["off_node"] == {"total": 1928, "max": 71}


def test_generate_a_sparse_matrix_vector_product(tmp_path):
    pytest.importorskip("mtkahypar", reason="the extra sparse is not installed")
    ring = tmp_path / "ring.mtx"
    entries = "".join(f"{i + 1} {(i + 1) % 32 + 1} 1\n" for i in range(32))
    ring.write_text(f"%%MatrixMarket matrix coordinate real general\n32 32 32\n{entries}")
    words = ("--matrix", ring, "--ranks", 4, "--model", "row-net")
    facts = as_json("generate", "spmv", *words, "--out", tmp_path / "ring.npz")
    traffic = load_traffic(tmp_path / "ring.npz")
    assert (facts["ranks"], facts["bytes"]) == (4, traffic.bytes.sum())
    assert traffic.metadata["model"] == "row-net"
    # Each of the four arcs that a ring falls into at best needs one word of the next.
    assert facts["bytes"] >= 4 * 8


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
        "compile_seconds",
        "links",
        "energy",
        "algorithms",
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


def test_simulate_says_which_link_speeds_it_used_and_where_they_are_from(mapping, tmp_path):
    words = ("simulate", LU, mapping, "-t")
    assert "\nlinks: 10 GB/s, 100 ns, assumed\n" in hopmap(*words, "mesh:2x2")
    same = hopmap(*words, "mesh:2x2", "--set", "link.bandwidth=10GB/s")
    assert "\nlinks: 10 GB/s, 100 ns, bandwidth: set by the user; latency: assumed\n" in same
    place = hopmap("map", LU, "-t", "fattree:2x2", "-m", "sweep", "--out", tmp_path / "fat.csv")
    assert place
    words = ("simulate", LU, tmp_path / "fat.csv", "-t", "fattree:2x2")
    assert "\nlinks: 10 GB/s, 100 ns, assumed\n" in hopmap(*words)
    slow = ("--set", "link.level2.latency=1us", "--set", "link.level2.bandwidth=1GB/s")
    lines = hopmap(*words, *slow).splitlines()
    assert "links level1: 10 GB/s, 100 ns, assumed" in lines
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
    assert "value = 10000000000.0  (bytes/s)" in text
    assert "optical 31250000000.0, wireless 12500000000.0" in text


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
    assert re.search(
        r"makespan +\S+ m?s\n  at least, link \d -> \d +\S+ m?s\n  at least, rank", slow
    )
    flows = hopmap(*words, "--set", "link.bandwidth=1MB/s", "--engine", "flow")
    assert re.search("at least, link.*", flows)[0] == re.search("at least, link.*", slow)[0]
    faster = hopmap(*words, "--engine", "flow", "--set", "flow.bandwidth_factor=2")
    assert "at least, link" not in faster
    # Without contention a link takes any number of messages at once.
    alone = hopmap(*words, "--engine", "analytic")
    assert "at least, rank" in alone
    assert "at least, link" not in alone
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
    changes = {row["key"]: row["change"] for row in found["doubled"]}
    assert changes["link.bandwidth"] < 0 < changes["overhead.send"]
    assert next(iter(changes)) == "link.bandwidth"
    text = hopmap(*words)
    for part in ("at least, no contention", "critical path", "queues", "most queued", "doubled"):
        assert part in text
    assert re.search(r"link.bandwidth +1 MB/s .* -\d", text)
    assert text.endswith("\nlinks: 1 MB/s, 100 ns, bandwidth: set by the user; latency: assumed\n")


def test_explain_without_servers_and_doubling(mapping):
    words = ("explain", LU, mapping, "-t", "mesh:2x2", "--top", 0, "--no-doubled")
    found = as_json(*words)
    assert found["doubled"] == found["loaded"] == found["critical_path"]["servers"] == []
    text = hopmap(*words)
    assert "critical path" in text
    assert "doubled" not in text


def test_explain_sends_traffic_in_rounds(mapping, tmp_path):
    traffic = tmp_path / "lu.npz"
    hopmap("matrix", LU, "--out", traffic)
    found = as_json("explain", traffic, mapping, "-t", "mesh:2x2", "--rounds", 1, "--no-doubled")
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


def test_the_header_for_mpi_programs_is_printed_or_written(tmp_path):
    out = tmp_path / "hopmap_cart.h"
    assert hopmap("header", "--out", out) == f"written: {out}\n"
    assert "int hopmap_cart_create(" in out.read_text()
    assert hopmap("header") == out.read_text()
    assert as_json("header") == {"text": out.read_text()}
    assert as_json("header", "--out", out) == {"out": str(out)}


def test_export_knows_the_topology_from_the_file(mapping, tmp_path):
    assert "rank 2=node3 slot=0" in hopmap("export", mapping, "--to", "openmpi").splitlines()
    out = tmp_path / "rankfile"
    said = hopmap("export", mapping, "--to", "openmpi", "--out", out)
    assert f"mpirun --map-by rankfile:file={out}" in said
    assert out.read_text().count("\nrank ") == 4
    (tmp_path / "hosts").write_text("a\nb\nc\nd\n")
    words = ["export", mapping, "--to", "slurm", "--hosts", tmp_path / "hosts"]
    assert as_json(*words)["text"].endswith("\na\nb\nd\nc\n")


def test_ranks_are_placed_on_the_nodes_of_the_job_only(tmp_path):
    machine = ["--topology", "torus:4x4"]
    job = ["--nodelist", "node[3,12-13,6]"]
    placed = as_json("map", LU, *machine, "--mapper", "auto(moves=100)", *job)["node_of"]
    assert sorted(placed) == [3, 6, 12, 13]
    (tmp_path / "hosts").write_text("node3 slots=1\nnode6\nnode12\nnode13\n")
    job = ["--hosts", tmp_path / "hosts"]
    said = hopmap("map", LU, *machine, "--mapper", "identity", *job)
    assert "4 ranks on 4 of the 16 nodes of torus:4x4 by identity" in said


def test_a_grid_is_coloured_by_node_only_where_ranks_share_nodes(tmp_path):
    for machine, drawn in (("torus:4x2", "share of the bytes"), ("torus:2x2*2", "off node")):
        words = ["map", "stencil:4x2,5pt", "-t", machine, "-m", "sweep"]
        hopmap(*words, "--plot", tmp_path / "plot.svg")
        assert drawn in (tmp_path / "plot.svg").read_text()


def test_any_command_takes_the_file_of_a_launcher_for_a_mapping(mapping, tmp_path):
    """With names of its own: the comments say which node each stands for."""
    rankfile = tmp_path / "rankfile"
    names = ["--nodelist", "node[08-10],gpu7"]
    hopmap("export", mapping, "--to", "openmpi", *names, "--out", rankfile)
    machine = ["--topology", "mesh:2x2"]
    for command in ("evaluate", "simulate"):
        by_csv, by_rankfile = (as_json(command, LU, m, *machine) for m in (mapping, rankfile))
        assert {**by_csv, "wall_seconds": 0} == {**by_rankfile, "wall_seconds": 0}
    assert hopmap("export", rankfile, "--to", "csv") == mapping.read_text()


def test_a_mapping_that_is_taken_to_another_network_is_noted_once(mapping, tmp_path):
    """With the result, not with an error; slots and options make no other network."""
    said = (
        f"hopmap: {mapping}: a mapping on mesh:2x2, taken for one on mesh:4: "
        "node numbers may mean other nodes"
    )
    bound = ["map", LU, "-m", "bokhari(jumps=0)", "--initial", mapping]
    convert = ["convert", LU, "--to", "simgrid", "--out", tmp_path / "sg", "--mapping", mapping]
    for words in (
        ["export", mapping, "--to", "openmpi"],
        ["export", mapping, "--to", "csv", "--json"],
        ["evaluate", LU, mapping],
        ["simulate", LU, mapping, "--engine", "compiled"],
        ["explain", LU, mapping, "--no-doubled"],
        bound,
        convert,
    ):
        assert noted(*words, "-t", "mesh:4") == [said]
        assert noted(*words, "-t", "mesh:2x2*2") == []
    words = map(str, ["simulate", LU, mapping, "-t", "mesh:4", "--engine", "x"])
    assert "mapping on" not in CliRunner().invoke(app, list(words)).stderr


def test_a_file_that_does_not_show_its_format_or_names_is_told_them(mapping, tmp_path):
    order = tmp_path / "MPICH_RANK_ORDER"
    order.write_text("0,1,3,2\n")
    told = ["--topology", "mesh:2x2", "--to", "csv"]
    assert hopmap("export", order, "--from", "cray", *told) == mapping.read_text()
    hosts = tmp_path / "hosts"
    hosts.write_text("a\nb\nd\nc\n")
    assert hopmap("export", hosts, "--nodelist", "a,b,c,d", *told) == mapping.read_text()


def test_export_writes_what_belongs_beside_the_file(mapping, tmp_path):
    said = hopmap("export", mapping, "--to", "simgrid", "--out", tmp_path / "hosts.txt")
    assert f"-platform {tmp_path}/hosts_platform.xml" in said
    assert 'host id="node3"' in (tmp_path / "hosts_platform.xml").read_text()
    facts = as_json("export", mapping, "--to", "json", "--out", tmp_path / "plan.json")
    assert facts["beside"] == [str(tmp_path / "plan_mpi4py.py")]
    assert "with_name('plan.json')" in (tmp_path / "plan_mpi4py.py").read_text()


def test_a_text_without_comments_has_its_command_beside_it(mapping, tmp_path):
    """And what --out writes beside the file; text that has comments says it all itself."""
    box = tmp_path / "box.csv"
    hopmap("map", LU, "-t", "mesh:2x2x1", "-m", "sweep", "--out", box)
    use = "hopmap: use it: "
    more = "hopmap: --out FILE writes FILE_{} as well, which is needed beside it"
    for to, said in {
        "fugaku": [f"{use}mpiexec -n 4 --vcoordfile FILE ./a.out"],
        "bluegene": [f"{use}runjob --np 4 --ranks-per-node 1 --mapping FILE : ./a.out"],
        "simgrid": [
            more.format("platform.xml"),
            f"{use}smpirun -hostfile FILE -platform FILE_platform.xml ./a.out",
        ],
        "openmpi": [],
        "csv": [],
    }.items():
        assert noted("export", box, "--to", to) == said
        assert noted("export", box, "--to", to, "--json") == said[:-1]
        assert noted("export", box, "--to", to, "--out", tmp_path / "written") == []
    beside, command = noted("export", box, "--to", "json")
    assert beside == more.format("mpi4py.py")
    assert command.startswith(f"{use}from FILE_mpi4py import comm ")


def test_convert_writes_a_schedule_of_goal(tmp_path):
    out = tmp_path / "lu.goal"
    said = hopmap("convert", LU, "--to", "goal", "--out", out, "--set", "gap_per_byte=2ns/B")
    assert "LogGOPSim -f" in said
    assert "--LogGOPS_L=400 --LogGOPS_o=200 --LogGOPS_g=0 --LogGOPS_G=2" in " ".join(said.split())
    assert out.read_text().startswith("num_ranks 4\n")


def test_convert_writes_what_smpirun_needs(mapping, tmp_path):
    out = tmp_path / "simgrid"
    said = hopmap("convert", LU, "--to", "simgrid", "--out", out, "--mapping", mapping)
    assert "smpirun -replay traces.txt -platform platform.xml -hostfile hosts.txt" in said
    names = [f"rank{rank}.tit" for rank in range(4)]
    assert {file.name for file in out.iterdir()} == {
        *("traces.txt", "platform.xml", "hosts.txt"),
        *names,
    }
    assert (out / "traces.txt").read_text().split() == names
    # The traffic of the trace, and the messages of its collectives.
    sends = [
        line
        for name in names
        for line in (out / name).read_text().splitlines()
        if line.split()[1] in ("send", "isend")
    ]
    assert len(sends) >= as_json("info", LU)["messages"]
    assert (out / "hosts.txt").read_text().split() == ["node0", "node1", "node3", "node2"]
    # Again, and with a parameter of the model: replaced as a whole.
    facts = as_json(
        *("convert", "lu.S.4", "--steps", 2, "--to", "simgrid", "--out", out),
        *("--set", "eager_limit=1kB", "--set", "compute.scale=0"),
    )
    assert "--cfg=smpi/async-small-thresh:1000" in facts["command"].split()
    assert {file.name for file in out.iterdir()} == {"traces.txt", *names}
    assert "compute" not in (out / names[0]).read_text()


def test_convert_places_ranks_on_hosts_of_its_platform_whatever_their_names(tmp_path):
    network, mapping, out = tmp_path / "t.conf", tmp_path / "mapping.csv", tmp_path / "simgrid"
    network.write_text("SwitchName=s Nodes=größe[7-9],login\n", encoding="utf-8")
    mapping.write_text("rank,node\n0,3\n1,0\n2,1\n3,2\n")
    words = ("--mapping", mapping, "--topology", f"file:{network}", "--out", out)
    hopmap("convert", LU, "--to", "simgrid", *words)
    platform = re.findall(r'<host id="(.*?)"', (out / "platform.xml").read_text())
    assert (out / "hosts.txt").read_text().split() == [platform[node] for node in (3, 0, 1, 2)]


@pytest.mark.parametrize(
    ("what", "name"),
    [
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
    assert hopmap("run", file, "--out", out, "--dry-run").startswith("0 runs missing")
    assert hopmap("report", out) == f"report: {out / 'report.html'}\n"


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
        f'name = "small"\ntraces = ["{LU}"]\ntopologies = ["mesh:3", "mesh:4"]\n'
        'mappers = ["sweep"]\n[replay]\nengine = false\n'
    )
    result = CliRunner().invoke(app, ["run", str(file), "--out", str(tmp_path / "out")])
    assert result.exit_code == 3
    assert "lu.S.4 on mesh:4" in result.stdout
    which, how_many = result.stderr.splitlines()
    assert which.startswith("hopmap: lu.S.4 on mesh:3 by sweep, seed 0: 4 ranks do not fit")
    assert how_many == "hopmap: 1 of 2 runs have failed: --failed tries again"


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

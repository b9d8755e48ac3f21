"""Mappings that are made and measured, on a whole machine and on a job's nodes."""

import json
import re
from contextlib import contextmanager

import numpy as np
import pytest

from hopmap.cli import mappings
from support import DATA
from support.commands import LU, as_json, hopmap, invoke, noted


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
        "nodes",
        "messages",
        "bytes",
        "baseline",
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


def test_map_shows_the_order_as_launched_below_the_result_and_json_has_the_same():
    """Figures as `evaluate` has them, of `identity`; auto is the mapper that is taken."""
    words = ["map", LU, "-t", "mesh:4"]
    lines = hopmap(*words).splitlines()
    assert " by auto, in " in lines[0]
    assert [line.split("  ")[0] for line in lines[3:7:2]] == ["messages, mapped", "bytes, mapped"]
    assert all(line.startswith("  default order") for line in lines[4:8:2])
    placed, launched = as_json(*words), as_json(*words, "-m", "identity")
    for side in ("messages", "bytes"):
        assert placed["baseline"][side] == launched[side]
        assert placed[side]["dilation"]["sum"] <= launched[side]["dilation"]["sum"]
    scattered = as_json(*words, "-m", "random", "--seed", 1)
    assert (
        scattered["baseline"]
        == placed["baseline"]
        != {s: scattered[s] for s in ("messages", "bytes")}
    )
    shown = lines[4].split()[2:]
    figures = launched["messages"]
    hops, link = figures["dilation"]["sum"], figures["congestion"]["max"]
    assert (shown[0], shown[-1]) == (f"{hops:,}", f"{link:,}")


def test_map_says_why_the_search_ended():
    """LU on four ranks is a square, which a square of nodes takes as it is."""
    words = ("map", LU, "-t", "mesh:2x2")
    assert as_json(*words)["stop_reason"] == "optimal"
    line = as_json("map", LU, "-t", "mesh:4", "-m", "auto(moves=100)")
    assert line["stop_reason"] == "budget"
    assert "stop_reason" not in as_json(*words, "-m", "scan")
    assert "stopped: optimal, no mapping is better" in hopmap(*words)


def test_map_says_what_more_time_would_gain(monkeypatch):
    """Only where time was spent, not where nothing is better, nor of a number of moves."""
    hopmap("map", LU, "-t", "mesh:4", "-m", "auto(moves=1000)")  # compiles
    words = ("map", LU, "-t", "mesh:4", "-m", "auto(seconds=0.3, clock=cpu)")
    gain = as_json(*words)["expected_gain"]
    assert 0 < gain < 1
    shown = hopmap(*words)
    (line,) = (line for line in shown.splitlines() if line.startswith("5 times the time"))
    assert f"5 times the time would lower hop-bytes by about {100 * gain:.2g} %" in line
    for other in (("-t", "mesh:2x2"), ("-t", "mesh:4", "-m", "auto(moves=1000)")):
        assert "expected_gain" not in as_json("map", LU, *other)
        assert "5 times" not in hopmap("map", LU, *other)
    monkeypatch.setattr("hopmap.mappers.more_time.GAINS", ((1, 0.0, 0.0),))
    assert "would lower hop-bytes by less than 0.1 % (median" in hopmap(*words)


def test_what_changes_nothing_is_said():
    """A time budget where nothing searches, and an imbalance where every rank has a slot."""
    words = ("map", LU, "-t", "mesh:4")
    (said,) = noted(*words, "-m", "scan", "--seconds", "5")
    assert said == "hopmap: --seconds 5: without effect, scan searches nothing"
    assert noted(*words, "-m", "scan | annealing", "--seconds", "0.1") == []
    (said,) = noted(*words, "-m", "scan", "--imbalance", "0.5")
    assert said == "hopmap: --imbalance 0.5: without effect, there is a slot for every rank"
    assert noted("map", LU, "-t", "mesh:2", "-m", "scan", "--imbalance", "0.5") == []


def test_the_network_is_that_of_the_mapping_where_none_is_given(mapping):
    for command in ("evaluate", "simulate"):
        with_it = as_json(command, LU, mapping, "-t", "mesh:2x2")
        clocks = dict.fromkeys(["wall_seconds", "compile_seconds"])
        assert as_json(command, LU, mapping) | clocks == with_it | clocks


def test_ctrl_c_in_map_writes_the_best_mapping_so_far(tmp_path, monkeypatch):
    """A bar that is told of progress stands for the key."""
    reports = []

    @contextmanager
    def pressed(_label):
        def show(done, total, text="", /):
            reports.append((done, total))
            if text.startswith("hop_bytes") and len(reports) > 8:
                raise KeyboardInterrupt

        yield show

    monkeypatch.setattr(mappings, "working", pressed)
    out = tmp_path / "m.csv"
    words = ["map", LU, "-t", "mesh:4", "--seconds", "60", "--out", str(out), "--json"]
    result = invoke(words)
    assert result.exit_code == 130
    assert result.stderr == "hopmap: interrupted: this is the best mapping so far\n"
    placed = json.loads(result.stdout)
    assert placed["interrupted"]
    rows = np.loadtxt(out, delimiter=",", skiprows=2, dtype=int)
    assert rows[:, 1].tolist() == placed["node_of"]
    measured = [(done, total) for done, total in reports if total is not None]
    assert len({done for done, _ in measured}) > 4  # the bar moves
    assert all(0 <= done <= total == 60_000 for done, total in measured)


def test_map_can_start_from_a_mapping(mapping):
    placed = as_json("map", LU, "-t", "mesh:2x2", "-m", "bokhari(jumps=0)", "--initial", mapping)
    scanned = as_json("map", LU, "-t", "mesh:2x2", "-m", "scan")
    assert placed["hop_messages"] <= scanned["hop_messages"]


def test_evaluate_has_designs_keys_and_whole_numbers(mapping):
    metrics = as_json("evaluate", LU, mapping, "-t", "mesh:2x2")
    keys = {"convention", "ranks", "nodes", "cardinality", "pairs", "messages", "bytes"}
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


def test_ranks_are_placed_on_the_nodes_of_the_job_only(tmp_path):
    machine = ["--topology", "torus:4x4"]
    job = ["--nodelist", "node[3,12-13,6]"]
    placed = as_json("map", LU, *machine, "--mapper", "auto(moves=100)", *job)["node_of"]
    assert sorted(placed) == [3, 6, 12, 13]
    (tmp_path / "hosts").write_text("node3 slots=1\nnode6\nnode12\nnode13\n")
    job = ["--hosts", tmp_path / "hosts"]
    said = hopmap("map", LU, *machine, "--mapper", "identity", *job)
    assert "4 ranks on 4 of the 16 nodes of torus:4x4 by identity" in said


@pytest.mark.usefixtures("drawn")
def test_a_grid_is_coloured_by_node_only_where_ranks_share_nodes(tmp_path):
    for machine, drawn in (("torus:4x2", "share of the bytes"), ("torus:2x2*2", "off node")):
        words = ["map", "stencil:4x2,5pt", "-t", machine, "-m", "sweep"]
        hopmap(*words, "--plot", tmp_path / "plot.svg", "--force")
        assert drawn in (tmp_path / "plot.svg").read_text()


def test_a_mapping_above_the_default_order_says_so_once():
    """In the first line, in JSON, or on stderr where a mapping file is all that is printed."""
    for mapper, above in (("greedy", True), ("identity", False), ("random", False)):
        words = ("map", str(DATA / "mg.S.16"), "-t", "torus:4x4", "-m", mapper)
        facts, first = as_json(*words), hopmap(*words).splitlines()[0]
        warning = facts.get("warning", "")
        assert (f"{facts['hop_bytes']:,} hop-bytes are " in warning) == above
        assert (first == warning) == above
        alone = invoke([*words, "--out", "-"])
        assert alone.stdout.startswith("# hopmap mapping")
        assert alone.stderr == f"hopmap: {warning}\n" * above

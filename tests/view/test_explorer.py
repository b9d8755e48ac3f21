"""The page of a mapping: its figures are those of the replay."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

import hopmap as hm
from hopmap.errors import HopmapError
from hopmap.traces import Traffic
from hopmap.traces.summary import Omission
from hopmap.view import explorer, replays
from hopmap.view.explorer import explore
from hopmap.view.replays import heaviest_pairs
from hopmap.view.units import levels_of
from support.commands import as_json, hopmap

from .conftest import STRANGE
from .test_packing import unpack

GRID = "stencil:4x2,5pt,bytes=1000"


def data_of(found):
    return unpack(re.search(r'id="data">([^<]+)<', found.page)[1])


def test_parts_of_the_critical_path_add_up_to_the_makespan(case):
    for run in case[3].runs:
        assert sum(run.content["parts"].values()) == pytest.approx(run.result.makespan)


def test_both_runs_are_what_simulate_says(case):
    kind, machine, mapping, found = case
    default, random = found.runs
    assert (default.name, random.name) == ("default order", "random")
    program = random.result.program
    for run, node_of in ((default, np.arange(16)), (random, np.asarray(mapping.node_of))):
        assert run.result.makespan == hm.simulate(program, machine, node_of).makespan
        assert (run.node_of == node_of).all()
    saved = 1 - random.result.makespan / default.result.makespan
    word = "shorter" if saved > 0 else "longer"
    assert f"{round(100 * abs(saved))}" in found.verdict or abs(saved) < 0.1, kind
    assert word in found.verdict


def test_bytes_that_leave_their_unit_are_counted_over_all_pairs(case):
    _, machine, _, found = case
    traffic = found.runs[0].result.program.traffic()
    for run in found.runs:
        assert list(run.content["leaving"]) == [each.name for each in levels_of(machine.network)]
        for level in levels_of(machine.network):
            total = sum(
                size
                for src, dst, size in zip(traffic.src, traffic.dst, traffic.bytes, strict=True)
                if level.of_node[run.node_of[src]] != level.of_node[run.node_of[dst]]
            )
            assert run.content["leaving"][level.name] == total


def test_the_page_holds_routes_use_and_bytes_of_links(case):
    _, machine, _, found = case
    data = data_of(found)
    network = machine.network
    for run, shown in zip(found.runs, data["runs"], strict=True):
        assert shown["linkBytes"].tolist() == run.result.link_bytes.tolist()
        # what crosses a link on the routes is what the replay sent over it
        sizes = np.repeat(data["bytes"], np.diff(shown["routeStart"]))
        crossed = np.bincount(shown["route"], sizes, network.links)
        assert crossed.tolist() == run.result.link_bytes.tolist()
        busy = np.asarray(shown["busy"]).reshape(network.links, shown["bins"]) / 255
        exact = run.result.link_use.fraction
        assert ((busy >= exact - 1e-9) & (busy < exact + 1 / 255)).all()  # rounded up


def test_the_page_asks_nothing_of_the_network(case):
    assert re.findall(r"(?:src|href|url\()\s*=?\s*[\"']?https?:", case[3].page) == []


def test_the_default_order_is_shown_alone():
    found = explore(GRID, "torus:8", np.arange(8))
    assert [run.name for run in found.runs] == ["default order"]
    assert found.verdict == "The mapping is the default order."


def test_the_default_order_of_named_nodes_reminds_of_the_hosts_of_a_job():
    named = hm.Machine("torus:8", names="n[0-7]")
    assert explore(GRID, named, np.arange(8)).verdict.endswith("with --hosts or --nodelist.")
    listed = hm.Machine("torus:8", names="n[0-7]", nodelist="n[0-7]")
    assert explore(GRID, listed, np.arange(8)).verdict == "The mapping is the default order."


@pytest.mark.parametrize(
    ("share", "words"), [(0.000034, "0.0034 %"), (0.0, "0 %"), (0.0123, "1.2 %"), (1.0, "100 %")]
)
def test_a_small_share_keeps_two_digits(share, words):
    assert replays.percent_of(share).replace("\u00a0", " ") == words


@pytest.mark.parametrize("name", STRANGE)
def test_runs_without_messages_time_or_bytes_have_a_page(name):
    workload, machine, mapping = STRANGE[name]
    found = explore(workload, machine, np.asarray(mapping))
    data = data_of(found)
    for run, shown in zip(found.runs, data["runs"], strict=True):
        assert sum(run.content["parts"].values()) == pytest.approx(run.result.makespan)
        assert len(shown["state"]) == run.result.ranks * shown["steps"]
        assert max(shown["state"], default=0) < len(shown["states"])


def test_a_page_that_leaves_pairs_out_says_so_and_counts_all_in_totals(monkeypatch):
    monkeypatch.setattr(replays, "PAIRS", 10)
    found = explore(GRID, "torus:8", np.arange(8)[::-1])
    assert "10 heaviest of 20 rank pairs" in found.page
    assert len(data_of(found)["src"]) == 10
    assert found.runs[0].content["leaving"]["node"] == 20 * 1000


def test_the_heaviest_pairs_are_kept_as_far_as_their_routes_fit(monkeypatch):
    monkeypatch.setattr(replays, "HOPS", 5)
    traffic = Traffic.from_pairs(8, [0, 1, 2, 3], [2, 3, 4, 5], [1] * 4, [5, 40, 30, 20])
    pairs = heaviest_pairs(traffic, hm.topology("torus:8"), [np.arange(8)])
    assert traffic.bytes[pairs.kept].tolist() == [40, 30]  # two hops each
    assert pairs.of == 4
    assert pairs.share == pytest.approx(70 / 95)


def test_what_a_replay_leaves_out_and_how_many_steps_it_has_stand_on_the_page(monkeypatch):
    found = explore(hm.Workload("lu.S.4", 2), "torus:4", [3, 2, 1, 0])
    assert "Time steps replayed: 2." in found.page
    left = [Omission("sleeping", 3, 1.0, 0.5), Omission("naps", 1)]
    monkeypatch.setattr(explorer, "with_assumed", lambda run, *_, **__: replace(run, omitted=left))
    page = explore("lu.S.4", "torus:4", [3, 2, 1, 0]).page
    assert '<p class="warning">sleeping: 3, 1 s (50.00% of the run)</p>' in page
    assert "<li>Left out: naps: 1.</li>" in page
    assert page.count("naps") == 1


def test_of_a_large_network_the_links_in_use_are_shown(monkeypatch):
    whole = data_of(explore(GRID, "torus:4x4", np.arange(8)))
    monkeypatch.setattr(replays, "LINKS", 10)
    found = explore(GRID, "torus:4x4", np.arange(8))
    data, used = data_of(found), np.flatnonzero(found.runs[0].result.link_busy > 0)
    assert f"Shown are the {len(data['from'])} links" in found.page
    ends = set(zip(data["from"].tolist(), data["to"].tolist(), strict=True))
    network = found.runs[0].result.network
    assert ends >= {(network.link_from[link], network.link_to[link]) for link in used}
    assert len(ends) < len(whole["from"])
    (small,), (large,) = data["runs"], whole["runs"]
    assert data["from"][small["route"]].tolist() == whole["from"][large["route"]].tolist()
    assert small["linkBytes"].sum() == large["linkBytes"].sum()


@pytest.mark.parametrize(
    ("key", "value"),
    [("network.routing", "adaptive"), ("noise.compute", 0.1), ("progress", "in_mpi_calls")],
)
def test_runs_without_a_critical_path_are_refused(key, value):
    machine = hm.Machine("torus:8", {key: value})
    with pytest.raises(HopmapError, match=re.escape(key.partition(".")[0])):
        explore(GRID, machine, np.arange(8))


def test_a_page_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    found = explore(GRID, "torus:8", np.arange(8))
    found.write(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == found.page
    monkeypatch.chdir(tmp_path)
    hm.write_mapping("m.csv", hm.map_ranks(GRID, "torus:8", "random"))
    said = as_json("view", GRID, "m.csv", "--out", "new.html")
    assert said["out"] == "new.html"
    assert [run["name"] for run in said["runs"]] == ["default order", "m.csv"]
    assert json.loads(json.dumps(said)) == said
    text = hopmap("view", GRID, "m.csv", "--out", "again.html")
    assert text.splitlines()[0].startswith(f"{GRID} on torus:8: The ")
    assert (tmp_path / "again.html").read_text() == (tmp_path / "new.html").read_text()

"""The best mapping of a folder of results, of one case."""

import networkx as nx
import pytest

import hopmap as hm
from hopmap.scenarios.results.ranking import best_run
from hopmap.scenarios.results.tables import StoreError


def test_without_a_replay_it_is_the_one_of_least_hop_bytes(tmp_path):
    runs = hm.sweep("lu.S.4", "mesh:4", ["random"], seeds=6, replay=False, out=tmp_path)
    least = runs.loc[runs["hop_bytes"].idxmin()]
    best = best_run(tmp_path)
    assert best.node_of.tolist() == least["node_of"].tolist()
    assert best.about == f"lu.S.4 on mesh:4: random, seed {least['seed']}, " + (
        f"hop bytes {least['hop_bytes']:,.4g}"
    )


def test_of_several_traces_one_is_chosen(tmp_path):
    grid = "stencil:2x2,5pt"
    hm.sweep(["lu.S.4", grid], "mesh:4", "sweep", replay=False, out=tmp_path)
    for trace in ("lu.S.4", grid):
        assert best_run(tmp_path, trace).about.startswith(f"{trace} on mesh:4: sweep")
    with pytest.raises(StoreError, match=r"2 cases .*expected one: select it by --trace"):
        best_run(tmp_path)


def test_runs_that_have_failed_are_no_case(tmp_path):
    networks = ["fattree:4x4", "mesh:4"]  # the first has no sides
    hm.sweep("lu.S.4", networks, "bokhari(jumps=side)", replay=False, out=tmp_path)
    assert best_run(tmp_path).topology.spec == "mesh:4"


def test_a_network_in_a_file_is_found_from_anywhere(tmp_path, monkeypatch):
    """Results call it by its place beside the scenario."""
    monkeypatch.chdir(tmp_path)
    nx.write_graphml(nx.cycle_graph(4), "ring.graphml")
    (tmp_path / "study.toml").write_text(
        'name = "s"\ntraces = ["lu.S.4"]\ntopologies = ["file:ring.graphml"]\n'
        'mappers = ["sweep"]\n[replay]\nengine = false\n'
    )
    hm.run_scenario(tmp_path / "study.toml", tmp_path / "results")
    monkeypatch.chdir("/")
    best = best_run(tmp_path / "results")
    assert best.topology.nodes == 4
    assert best.about.startswith("lu.S.4 on file:ring.graphml: ")

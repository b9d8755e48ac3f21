"""Pages of results: which case, with what it was run; runtimes and regrets."""

import json
import shutil

import numpy as np
import pytest

from hopmap.errors import HopmapError
from hopmap.scenarios.sweep.run import run_scenario
from hopmap.scenarios.sweep.scenario_files import load_scenario
from hopmap.view.studies import (
    ViewError,
    explore_results,
    read_regrets,
    regret_section,
)
from support.commands import as_json, failed

SCENARIO = """
name = "s"
traces = ["stencil:4x4,5pt,bytes=100000"]
topologies = ["torus:4x4", "mesh:4x4"]
mappers = ["sweep", "random"]
seeds = [1]
[replay]
models = 8
[[vary]]
name = "bandwidth"
labels = ["slow", "fast"]
parameters."link.bandwidth" = ["1 GB/s", "10 GB/s"]
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    (folder / "s.toml").write_text(SCENARIO)
    run_scenario(folder / "s.toml", load_scenario(folder / "s.toml"), folder / "results")
    return folder / "results"


def test_of_several_cases_the_one_that_is_named_is_replayed(results):
    found = explore_results(results, (None, "mesh:4x4", "bandwidth fast"))
    assert found.title.endswith(" on mesh:4x4")
    network = found.runs[-1].result.network
    assert {kind.bandwidth for kind in network.kinds} == {10e9}


def test_the_best_mapping_and_the_default_order_are_those_of_the_results(results):
    found = explore_results(results, (None, "torus:4x4", "bandwidth slow"))
    assert [run.name for run in found.runs] == ["sweep"]  # which is the best here
    assert (found.runs[0].node_of == np.arange(16)).all()


def test_fewer_steps_may_be_replayed_than_the_scenario_did(results):
    with pytest.raises(HopmapError, match=r"steps 2: .* is no benchmark"):
        explore_results(results, steps=2)


def test_runtimes_over_the_parameter_and_regrets_over_models_are_on_the_page(results):
    page = explore_results(results).page
    assert "Runtime over what varies" in page
    assert "over link.bandwidth on 16 nodes" in page
    assert "Regret, candidates by models" in page
    assert "random, model 7: " in page


def test_a_case_that_was_not_run_is_an_error_that_names_cases(results):
    with pytest.raises(ViewError, match="no such case was replayed: expected one of stencil:4x4"):
        explore_results(results, (None, "torus:8x8", None))


def test_results_without_their_lock_are_refused(results, tmp_path):
    shutil.copytree(results, tmp_path / "copy")
    (tmp_path / "copy" / "scenario.lock.toml").unlink()
    with pytest.raises(ViewError, match="expected the table traces with stencil:4x4"):
        explore_results(tmp_path / "copy")


def test_a_trace_that_changed_since_is_refused(results, tmp_path):
    shutil.copytree(results, tmp_path / "copy")
    lock = tmp_path / "copy" / "scenario.lock.toml"
    lock.write_text(lock.read_text().replace('digest = "', 'digest = "0', 1))
    with pytest.raises(ViewError, match="changed since"):
        explore_results(tmp_path / "copy")


def test_regrets_are_against_the_best_of_each_model():
    section = regret_section(["a", "b"], np.array([[0.0, 0.5], [0.1, np.nan]]))
    a, b = section.regrets
    assert (a["worst"], b["worst"]) == ("50\N{NO-BREAK SPACE}%", "10\N{NO-BREAK SPACE}%")
    assert [cell["tint"] for cell in a["cells"]] == [0, 100]
    assert [cell["words"] for cell in b["cells"]] == [
        "b, model 0: 10\N{NO-BREAK SPACE}% behind the best",
        "b, model 1: not replayed",
    ]


def test_what_robust_prints_is_read(tmp_path):
    said = as_json(
        *("robust", "stencil:4x4,5pt", "-t", "torus:4x4", "--candidates", "identity,random"),
        *("--samples", "4"),
    )
    file = tmp_path / "robust.json"
    file.write_text(json.dumps(said))
    section = read_regrets(file)
    assert {row["name"] for row in section.regrets} == {"identity", "random"}
    assert all(len(row["cells"]) == 4 for row in section.regrets)
    assert "link.bandwidth" in section.regrets[0]["cells"][0]["words"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"candidates": [], "models": []}'])
def test_a_file_without_regrets_is_one_line(text, tmp_path):
    (tmp_path / "wrong.json").write_text(text)
    with pytest.raises(ViewError, match=r"wrong.json: expected the JSON of hopmap robust"):
        read_regrets(tmp_path / "wrong.json")


def test_results_take_no_mapping_and_no_parameters(results, tmp_path):
    out = ("--out", tmp_path / "page.html")
    assert "results have their own mappings" in failed("view", results, "map.csv", *out)
    assert "--set" in failed("view", results, "--set", "link.latency=1us", *out)
    assert not (tmp_path / "page.html").exists()

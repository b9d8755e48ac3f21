"""Reports say on which networks parameters were held against measured times."""

from __future__ import annotations

import pytest

from hopmap.scenarios.sweep import ScenarioError
from hopmap.scenarios.sweep.scenario_files import load_scenario
from support.commands import hopmap

SCENARIO = """
name = "two networks"
traces = ["stencil:2x2,5pt"]
topologies = ["torus:2x2", "mesh:2x2"]
mappers = ["identity"]
"""
FIT = """
[parameters]
"link.bandwidth" = 6.3e9
[validated]
topologies = ["torus:2x2"]
error = 0.0594
"""


@pytest.fixture
def files(tmp_path):
    (tmp_path / "two.toml").write_text(SCENARIO)
    (tmp_path / "fit.toml").write_text(FIT)
    return tmp_path


def reported(files, *words):
    hopmap("run", files / "two.toml", "--out", files / "results", *words)
    return (files / "results" / "report.html").read_text()


def test_parameters_of_no_file_were_held_against_nothing(files):
    page = reported(files)
    assert "<dt>Validated</dt><dd>by no measurement</dd>" in page
    assert "<dt>DEFAULT</dt><dd>control_bytes, memory.*</dd>" in page


def test_those_of_a_fit_were_on_its_networks(files):
    page = reported(files, "--set", str(files / "fit.toml"), "--set", "control_bytes=8B")
    expected = "on torus:2x2: error 5.9 % (median); not on mesh:2x2"
    assert f"<dt>Validated</dt><dd>{expected}</dd>" in page
    assert "<dt>DEFAULT</dt><dd>memory.*</dd>" in page


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("topologies = ['torus:2x2']", "key 'validated.error' is missing"),
        ("topologies = []\nerror = 0.1", r"validated.topologies: \[\]: expected at least one"),
        ("topologies = ['torus:2x2']\nerror = -1", "validated.error: -1: expected greater"),
        ("topologie = ['torus:2x2']\nerror = 1", "unknown key 'validated.topologie' .did you mean"),
    ],
)
def test_a_wrong_table_is_one_line(files, table, message):
    with (files / "two.toml").open("a") as stream:
        stream.write(f"[validated]\n{table}\n")
    with pytest.raises(ScenarioError, match=message):
        load_scenario(files / "two.toml")

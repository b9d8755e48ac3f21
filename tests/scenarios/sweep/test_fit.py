"""Scenarios: ranks that are spread, and ranks that find no slot, said before anything runs."""

import pytest
from typer.testing import CliRunner

import hopmap as hm
from hopmap.scenarios.cli.app import app
from support import DATA
from support.commands import as_json

LU = DATA / "lu.S.4"


@pytest.fixture
def study(tmp_path):
    file = tmp_path / "study.toml"
    file.write_text(
        f'name = "small"\ntraces = ["{LU}"]\ntopologies = ["mesh:3", "mesh:4*4"]\n'
        'mappers = ["sweep"]\nseeds = [0, 1]\n[replay]\nengine = false\n'
    )
    return file


def test_a_dry_run_refuses_more_ranks_than_slots(study, tmp_path):
    result = CliRunner().invoke(app, ["run", str(study), "--out", str(tmp_path / "o"), "--dry-run"])
    assert result.exit_code == 2
    assert "lu.S.4 on mesh:4*4 by sweep, seed 1" in result.stdout
    (line,) = result.stderr.splitlines()
    assert "lu.S.4 on mesh:3: 4 ranks do not fit on mesh:3, which has 3 slots" in line
    assert line.endswith("(2 of 4 runs cannot be done)")


def test_a_dry_run_of_what_fits_is_a_list(study, tmp_path):
    told = as_json("run", study, "--out", tmp_path / "o", "--dry-run", "--set", "topologies=mesh:4")
    assert len(told["missing"]) == 2


def test_ranks_of_a_scenario_are_spread_where_it_says_so():
    packed, spread = (
        hm.sweep("lu.S.8", "mesh:2x2x2*4", "sweep", engine=False, spread=each)
        for each in (False, True)
    )
    assert packed["node_of"][0].tolist() == [0] * 4 + [1] * 4
    assert spread["node_of"][0].tolist() == list(range(8))
    assert packed["run_id"][0] != spread["run_id"][0]

"""Scenarios: ranks that are spread, and ranks that find no slot, said before anything runs."""

import re

import pytest

import hopmap as hm
from hopmap.mappers.mapper import MAPPERS
from hopmap.scenarios.results.store import load_results
from hopmap.scenarios.results.study import load_study
from hopmap.scenarios.sweep import ScenarioError, prepare
from hopmap.scenarios.sweep.plan import plan
from hopmap.scenarios.sweep.prepare import new_traffic
from hopmap.scenarios.sweep.scenario_files import load_scenario
from support import DATA
from support.commands import as_json, invoke

LU = DATA / "lu.S.4"


@pytest.fixture
def study(tmp_path):
    file = tmp_path / "study.toml"
    file.write_text(
        f'name = "small"\ntraces = ["{LU}"]\ntopologies = ["mesh:3", "mesh:4*4"]\n'
        'mappers = ["sweep"]\nseeds = [0, 1]\n[replay]\nengine = false\n'
    )
    return file


def test_ranks_that_do_not_fit_are_left_out_and_said_to_be(study, tmp_path):
    result = invoke(["run", str(study), "--out", str(tmp_path / "o"), "--dry-run"])
    assert result.exit_code == 0
    assert "lu.S.4 on mesh:4*4 by sweep, seed 0" in result.stdout
    (line,) = result.stderr.splitlines()
    reason = "lu.S.4: 4 ranks do not fit on mesh:3, which has 3 slots"
    assert f"left out, 1 run: {reason}" in line
    done = as_json("run", study, "--out", tmp_path / "o", "--no-report")
    assert (done["runs"], done["done"], done["failed"]) == (1, 1, {})
    (said,) = done["infeasible"]
    assert said.startswith(reason)


def test_a_sweep_of_nothing_that_can_be_is_refused(study, tmp_path):
    words = ["run", str(study), "--out", str(tmp_path / "o"), "--set", "topologies=mesh:3"]
    for more in ([], ["--dry-run"]):
        result = invoke([*words, *more])
        assert result.exit_code == 2
        assert result.stderr.splitlines()[-1].endswith("(none of 1 runs can be done)")
    assert not (tmp_path / "o" / "plan.json").exists()


def test_what_an_engine_knows_nothing_of_is_left_out_with_the_variants_that_set_it(tmp_path):
    file = tmp_path / "models.toml"
    file.write_text(
        f'name = "models"\ntraces = ["{LU}"]\ntopologies = ["mesh:4"]\nmappers = ["sweep"]\n'
        '[replay]\nengine = "flow"\n[[vary]]\nname = "places"\n'
        'parameters."network.buffer" = [0, 4]\n'
    )
    done = as_json("run", file, "--out", tmp_path / "o", "--no-report")
    assert (done["runs"], done["done"], done["failed"]) == (1, 1, {})
    (said,) = done["infeasible"]
    assert said.startswith("network.buffer 4: engine flow has no packets that wait for room")


def test_mappers_that_are_not_made_for_a_network_or_traffic_are_left_out(study, tmp_path):
    changes = ['mappers=["topdown", "gray", "kd_tree", "sweep"]', "seeds=[0, 1, 2]"]
    sets = [word for change in changes for word in ("--set", change)]
    sets += ["--set", 'topologies=["mesh:2x2", "tree:2:2"]']
    done = as_json("run", study, "--out", tmp_path / "o", "--no-report", *sets)
    assert done["failed"] == {}
    assert sorted(reason.partition(":")[0] for reason in done["infeasible"]) == [
        "mapper gray",
        "mapper topdown",
    ]
    # of 4 mappers on 2 networks: topdown draws, the others find the same with every seed
    assert sorted(done["infeasible"].values()) == [1, 3]
    assert done["runs"] == 3 + 1 + 2 * 2


def test_a_dry_run_of_what_fits_is_a_list(study, tmp_path):
    told = as_json("run", study, "--out", tmp_path / "o", "--dry-run", "--set", "topologies=mesh:4")
    assert len(told["missing"]) == 1


def test_ranks_of_a_scenario_are_spread_where_it_says_so():
    packed, spread = (
        hm.sweep("lu.S.8", hm.Machine("mesh:2x2x2*4", balanced=each), "sweep", replay=False)
        for each in (False, True)
    )
    assert packed["node_of"][0].tolist() == [0] * 4 + [1] * 4
    assert spread["node_of"][0].tolist() == list(range(8))
    assert packed["run_id"][0] != spread["run_id"][0]


def test_a_mapper_that_draws_no_random_numbers_runs_once(tmp_path):
    found = hm.sweep("lu.S.4", "mesh:2x2", ["sweep", "random", "sweep | kl"], seeds=[5, 6])
    seeds = found.groupby("mapper")["seed"].apply(list).to_dict()
    assert seeds == {"sweep": [5], "random": [5, 6], "sweep | kl": [5, 6]}


@pytest.fixture
def today(study):
    (study.parent / "today.csv").write_text("rank,node\n0,3\n1,2\n2,1\n3,0\n")
    text = study.read_text().replace('["sweep"]', '["file:today.csv", "file:today.csv | kl"]')
    study.write_text(text.replace('"mesh:3", "mesh:4*4"', '"mesh:4", "mesh:2"'))
    return study


def test_a_mapping_in_a_file_is_a_mapper(today, tmp_path):
    done = as_json("run", today, "--out", tmp_path / "o", "--no-report")
    assert (done["done"], done["failed"]) == (3, {})  # with kl two, it draws
    assert list(done["infeasible"].values()) == [3]  # of mesh:2
    runs = load_results(tmp_path / "o")
    assert runs["mapper"].unique().tolist() == ["file:today.csv", "file:today.csv | kl"]
    assert runs["node_of"][0].tolist() == [3, 2, 1, 0]
    again = as_json("run", today, "--out", tmp_path / "o", "--no-report")
    assert again["done"] == 0
    (today.parent / "today.csv").write_text("rank,node\n0,1\n1,0\n2,2\n3,3\n")
    changed = as_json("run", today, "--out", tmp_path / "o", "--no-report")
    assert changed["done"] == 3
    case = load_study(tmp_path / "o").cases[0]
    assert case.order == "file:today.csv"


def test_a_mapping_in_a_file_of_other_ranks_or_nodes_is_left_out(today, tmp_path):
    for text, why in (("0,3\n1,2\n", "2 ranks"), ("0,7\n1,2\n2,1\n3,0\n", "node 7")):
        (today.parent / "today.csv").write_text(f"rank,node\n{text}")
        asked = [
            "--dry-run",
            "--set",
            "topologies=mesh:4",
            "--set",
            'mappers=["file:today.csv", "scan"]',
        ]
        done = as_json("run", today, "--out", tmp_path / "o", *asked)
        (reason,) = done["infeasible"]
        assert why in reason
        assert [run["run"] for run in done["missing"]] == ["lu.S.4 on mesh:4 by scan, seed 0"]


def test_a_mapping_in_a_file_stays_as_it_is_where_others_are_spread(today, tmp_path):
    (today.parent / "today.csv").write_text("rank,node\n0,0\n1,0\n2,1\n3,1\n")
    today.write_text(
        "balanced = true\n" + today.read_text().replace('"mesh:4", "mesh:2"', '"mesh:4*2"')
    )
    done = as_json("run", today, "--out", tmp_path / "o", "--no-report")
    assert (done["done"], done["failed"]) == (1, {})
    assert load_results(tmp_path / "o")["node_of"][0].tolist() == [0, 0, 1, 1]
    (reason,) = done["infeasible"]  # kl would have to begin with two ranks on a node of one slot
    assert "today.csv" in reason


@pytest.mark.parametrize(("topology", "can"), [("mesh:2*3", True), ("mesh:4*2", False)])
def test_what_can_be_is_asked_of_the_slots_that_are_left_where_ranks_are_spread(
    study, tmp_path, topology, can
):
    """gropp wants nodes of one size: 4 ranks fill 3 and 1 slots, or 2 and 2; 6 ranks 2, 2, 1, 1."""
    trace = "stencil:2x2,5pt" if can else "stencil:3x2,5pt"
    text = study.read_text().replace(f'"{LU}"', f'"{trace}"').replace('"sweep"', '"gropp", "scan"')
    study.write_text("balanced = true\n" + text.replace('"mesh:3", "mesh:4*4"', f'"{topology}"'))
    done = as_json("run", study, "--out", tmp_path / "o", "--no-report")
    assert (done["done"], done["failed"], len(done["infeasible"])) == (1 + can, {}, not can)


def test_what_has_gone_well_is_possible_and_what_has_failed_is_looked_at_again(
    study, tmp_path, monkeypatch
):
    runs = plan(load_scenario(study), study.parent)
    traffic = new_traffic(runs, tmp_path)
    for error, left in ((None, 2), ("no memory", 1)):
        monkeypatch.setattr(
            prepare, "read_errors", lambda _, error=error: {r.run_id: error for r in runs}
        )
        assert len(prepare.select_runs(runs, tmp_path, traffic)[0]) == left


def test_a_mapping_file_that_is_not_there_is_named(today, tmp_path):
    (today.parent / "today.csv").unlink()
    result = invoke(["run", str(today), "--out", str(tmp_path / "o")])
    assert result.exit_code == 2
    assert "today.csv: no such file: expected a mapping" in result.stderr


@pytest.mark.usefixtures("forgetting")
def test_a_scenario_names_plugins_beside_it(study, tmp_path):
    (study.parent / "mine.py").write_text(
        "from hopmap.mappers import mapper\nimport numpy as np\n"
        '@mapper("backwards_of_mine")\ndef backwards(traffic, topology):\n'
        "    return np.arange(traffic.ranks)[::-1]\n"
    )
    text = study.read_text().replace('["sweep"]', '["backwards_of_mine"]')
    study.write_text('plugins = ["mine.py"]\n' + text.replace("mesh:4*4", "mesh:4"))
    try:
        as_json("run", study, "--out", tmp_path / "o", "--no-report")
    finally:
        MAPPERS.pop("backwards_of_mine", None)
    assert load_results(tmp_path / "o")["node_of"][0].tolist() == [3, 2, 1, 0]


def test_applicable_are_all_mappers_but_those_that_need_a_mapping(study):
    mappers = load_scenario(study, ["mappers=applicable"]).mappers
    assert {"sweep", "auto", "topdown", "kd_tree"} <= set(mappers)
    assert not {"local_search", "relieve", "timer"} & set(mappers)


def test_another_word_for_them_is_told_the_right_one(study):
    study.write_text(re.sub("mappers = .*", 'mappers = "aplicable"', study.read_text()))
    with pytest.raises(ScenarioError, match=r"'aplicable' \(did you mean applicable\?\): expected"):
        load_scenario(study)


@pytest.mark.parametrize("nodes", ["hosts", "nodelist"])
def test_a_scenario_runs_on_the_nodes_of_a_job(study, tmp_path, nodes):
    (study.parent / "hosts").write_text("node6\nnode7\nnode2\nnode3\n")
    given = {"hosts": "hosts", "nodelist": "node[6-7,2-3]"}[nodes]
    text = study.read_text().replace('"mesh:3", "mesh:4*4"', '"mesh:8"')
    study.write_text(f'{nodes} = "{given}"\n' + text.replace('"sweep"', '"sweep", "identity"'))
    as_json("run", study, "--out", tmp_path / "o", "--no-report")
    runs = load_results(tmp_path / "o").set_index("mapper")["node_of"]
    assert runs["sweep"].tolist() == [2, 3, 6, 7]
    assert runs["identity"].tolist() == [6, 7, 2, 3]


def test_hosts_and_a_nodelist_are_not_both_taken(study):
    study.write_text('hosts = "a"\nnodelist = "b"\n' + study.read_text())
    with pytest.raises(ScenarioError, match="nodelist and hosts are mutually exclusive"):
        load_scenario(study)

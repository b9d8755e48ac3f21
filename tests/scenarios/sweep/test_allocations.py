"""Jobs of a scenario: which count, what they run, and by what their runs are known."""

import pytest

from hopmap.scenarios.sweep import ScenarioError
from hopmap.scenarios.sweep.plan import plan
from hopmap.scenarios.sweep.scenario_files import box, fill_trace, load_scenario

MACHINE = "".join(f"SwitchName=s{k} Nodes=n[{4 * k}-{4 * k + 3}]\n" for k in range(4))
MACHINE += "SwitchName=top Switches=s[0-3]\n"


@pytest.fixture
def study(tmp_path):
    (tmp_path / "topology.conf").write_text(MACHINE)
    lists = {"1": "n[0]", "2": "n0 n5 n1 n9", "3": "n8 n3 n2 n1 n0 n4 n5 n6 n7", "4": "x1 x2 x3 x4"}
    (tmp_path / "jobs").mkdir()
    for name, hosts in lists.items():
        (tmp_path / "jobs" / f"{name}.txt").write_text(hosts.replace(" ", "\n").replace("[0]", "0"))

    def load(more="min_nodes = 4\non_unknown = 'skip'", traces='["lu.S.{power}"]', changes=()):
        file = tmp_path / "study.toml"
        file.write_text(
            f"name = 'jobs'\nmappers = ['identity', 'sweep']\n[[jobs]]\nhosts = 'jobs'\n"
            f"topology = 'file:topology.conf'\ntraces = {traces}\n{more}\n"
        )
        return load_scenario(file, changes)

    load.folder = tmp_path
    return load


def test_a_run_for_every_job_of_a_size(study):
    runs = plan(study(), study.folder)
    assert [str(run) for run in runs] == [
        f"lu.S.{ranks} on job:jobs/{name}.txt@file:topology.conf by {mapper}, seed 0"
        for name, ranks in (("2", 4), ("3", 8))
        for mapper in ("identity", "sweep")
    ]


def test_a_list_of_hosts_is_part_of_what_its_runs_are_known_by(study):
    def ids():
        return [run.run_id for run in plan(study(), study.folder)]

    before = ids()
    assert ids() == before
    (study.folder / "jobs" / "2.txt").write_text("n0\nn1\nn5\nn9\n")
    changed = [one != other for one, other in zip(before, ids(), strict=True)]
    assert changed == [True, True, False, False]
    machine = study.folder / "topology.conf"
    machine.write_text(machine.read_text() + "# another\n")
    assert not set(ids()) & set(before)


def test_jobs_that_are_left_out_are_said(study):
    description = study().description
    assert "1 jobs of jobs are left out" in description
    assert "topology.conf does not have" in description


def test_files_lie_where_the_folder_says(study):
    (study.folder / "below").mkdir()
    text = (study.folder / "study.toml") if study() else None
    moved = study.folder / "below" / "study.toml"
    moved.write_text(text.read_text())
    with pytest.raises(ScenarioError, match=r"jobs\[0\]: file:.*below/topology.conf: cannot be"):
        load_scenario(moved)
    assert len(plan(load_scenario(moved, ["folder=.."]), moved.parent)) == 4


@pytest.mark.parametrize(
    ("more", "traces", "message"),
    [
        ("min_nodes = 4", '["lu.S.4"]', r"jobs\[0\]: .*4.txt: host x1: expected nodes of file:"),
        ("min_nodes = 99", '["lu.S.4"]', "no job of 99 or more nodes in jobs"),
        ("min_nodes = 5\nmax_nodes = 6", '["lu.S.4"]', "no job of 5 to 6 nodes in jobs"),
        ("max_nodes = 1", '["lu.S.{ranks}"]', "expected no fields but {nodes}, {power}"),
        ("sizes = 1", '["lu.S.4"]', r"unknown key 'jobs\[0\].sizes'.*one of hosts, topology"),
        ("on_unknown = 'keep'", '["lu.S.4"]', "expected 'error' or 'skip'"),
    ],
)
def test_jobs_that_make_no_sense_are_refused_in_one_line(study, more, traces, message):
    with pytest.raises(ScenarioError, match=message) as caught:
        study(more, traces)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        (1, (1, 1, 1)),
        (2, (1, 1, 2)),
        (64, (4, 4, 4)),
        (65, (4, 4, 4)),
        (72, (3, 4, 6)),
        (81, (4, 4, 5)),
    ],
)
def test_a_box_is_near_a_cube_and_leaves_few_over(nodes, expected):
    assert box(nodes) == expected


def test_every_number_of_nodes_has_a_box_that_leaves_an_eighth_over_at_most():
    for nodes in range(64, 3000):
        x, y, z = box(nodes)
        assert x <= y <= z <= 2 * x
        assert 7 / 8 * nodes <= x * y * z <= nodes


def test_fields_are_filled():
    assert fill_trace("a.{nodes}.{power}.{square}.{box}", 100) == "a.100.64.100.4x5x5"

"""Other jobs beside every run of a sweep."""

from dataclasses import replace

import numpy as np
import pytest

import hopmap as hm
from hopmap.api.job import Job, JobsError, jobs_digest, read_jobs
from hopmap.api.jobs import place_jobs, simulate_jobs
from hopmap.report.report import write_report
from hopmap.scenarios.results import store
from hopmap.scenarios.sweep import ScenarioError
from hopmap.scenarios.sweep.plan import plan
from hopmap.scenarios.sweep.scenario_files import load_scenario
from support.commands import failed

from .studies import LU, sweep

SCENARIO = f"""
name = "beside"
co_running_jobs = "others.toml"
traces = ["{LU}"]
topologies = ["mesh:9"]
mappers = ["sweep", "minmd"]
replay.engine = "simpy"
parameters."link.bandwidth" = "1 GB/s"
parameters."compute.scale" = 0
"""
OTHERS = """
[[jobs]]
trace = "collective:alltoall=pairwise,4,1MiB"
mapping = "others.csv"
repeat = 20
"""


@pytest.fixture
def file(tmp_path):
    (tmp_path / "others.toml").write_text(OTHERS)
    (tmp_path / "others.csv").write_text("rank,node\n0,0\n1,1\n2,7\n3,8\n")
    scenario = tmp_path / "beside.toml"
    scenario.write_text(SCENARIO)
    return scenario


def test_runs_are_on_free_nodes_and_take_what_all_at_once_take(file):
    results = file.parent / "out"
    sweep(file, results)
    runs = store.load_results(results)
    assert len(runs) == 2
    others, _ = read_jobs(file.parent / "others.toml")
    settings = {"link.bandwidth": "1 GB/s", "compute.scale": 0}
    for row in runs.itertuples():
        assert not set(row.node_of) & {0, 1, 7, 8}
        jobs = [Job(str(LU), mapping=np.array(row.node_of)), *others]
        run = simulate_jobs(jobs, hm.Machine("mesh:9", settings=settings), engine="simpy")
        assert row.makespan == run.jobs[0].makespan
        assert row.slowdown == run.slowdowns[0] > 1.01
        assert row.wait == pytest.approx(run.jobs[0].wait)
        ranks = store.load_rows(results, "ranks", row.run_id)
        assert len(ranks) == 4
        assert ranks["finish"].max() == row.makespan
    write_report(results)
    page = (results / "report.html").read_text()
    said = "The jobs of others.toml ran at the same time in all runs, which take 2.91 to 3.3 times"
    assert said in page
    assert "below 1 % may be chance" in page
    assert "replay.repeat" not in page  # which is refused


@pytest.mark.slow
def test_random_places_are_the_same_for_mapping_and_replay(file):
    (file.parent / "others.toml").write_text(
        OTHERS.replace('mapping = "others.csv"', 'policy = "random nodes"')
    )
    sweep(file, file.parent / "out")
    settings = {"link.bandwidth": "1 GB/s", "compute.scale": 0}
    (other,), _ = read_jobs(file.parent / "others.toml")
    there = place_jobs([other], hm.Machine("mesh:9", settings)).node_of
    for row in store.load_results(file.parent / "out").itertuples():
        assert not set(row.node_of) & set(there)
        jobs = [Job(str(LU), mapping=row.node_of), replace(other, mapping=there)]
        run = simulate_jobs(jobs, hm.Machine("mesh:9", settings=settings), engine="simpy")
        assert row.slowdown == run.slowdowns[0] > 1.001


@pytest.mark.slow
def test_what_others_send_at_a_rate_is_beside_every_run_too(file):
    load = '[[background]]\npattern = "uniform"\nrate = "300 MB/s"\nhosts = "hosts"\n'
    (file.parent / "hosts").write_text("node9\nnode10\nnode6\n")
    (file.parent / "others.toml").write_text(OTHERS + load)
    study = SCENARIO.replace("mesh:9", "mesh:11").replace('"sweep", "minmd"', '"sweep"')
    file.write_text(study.replace('scale" = 0', 'scale" = 0.01'))
    sweep(file, file.parent / "out")
    (row,) = store.load_results(file.parent / "out").itertuples()
    jobs, background = read_jobs(file.parent / "others.toml")
    settings = {"link.bandwidth": "1 GB/s", "compute.scale": 0.01}
    ours = [Job(str(LU), mapping=np.array(row.node_of)), *jobs]
    with_it, without = (
        simulate_jobs(
            *(ours, hm.Machine("mesh:11", settings)),
            background=loads,
            engine="simpy",
            baseline=False,
        )
        for loads in (background, [])
    )
    assert row.makespan == with_it.jobs[0].makespan != without.jobs[0].makespan
    before = jobs_digest(str(file.parent / "others.toml"))
    (file.parent / "hosts").write_text("node9\nnode10\n")
    assert jobs_digest(str(file.parent / "others.toml")) != before


def test_runs_are_known_by_the_others_too(file):
    def ids():
        return [run.run_id for run in plan(load_scenario(file), file.parent)]

    first = ids()
    (file.parent / "others.csv").write_text("rank,node\n0,0\n1,1\n2,6\n3,8\n")
    moved = ids()
    (file.parent / "others.toml").write_text(OTHERS.replace("20", "21"))
    assert len({*first, *moved, *ids()}) == 6
    assert load_scenario(file, ['co_running_jobs=""']).co_running_jobs == ""


def test_what_finds_no_room_beside_others_is_left_out(file):
    (file.parent / "others.toml").write_text(
        '[[jobs]]\ntrace = "collective:allreduce=ring,6,1MiB"\n'
    )
    said = failed("run", str(file), "--out", str(file.parent / "out"))
    assert "lu.S.4: 4 ranks do not fit on 3 of the 9 nodes of mesh:9" in said


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("co_running_jobs=missing.toml", "missing.toml: cannot be read as a file of jobs"),
        ("replay.repeat=10", "replay.repeat and co_running_jobs are mutually exclusive"),
        ("replay.messages=true", "replay.messages and co_running_jobs are mutually exclusive"),
    ],
)
def test_what_cannot_be_is_refused(file, change, said):
    with pytest.raises((ScenarioError, JobsError), match=said):
        load_scenario(file, [change])

"""A run reads what its id was made from, or fails; whatever it reads is part of its id."""

import importlib
import json
import shutil
import subprocess
import sys

import networkx as nx
import pytest

from hopmap import source_files
from hopmap.api.workload import COLLECTIVES, Workload
from hopmap.mappers import MAPPERS
from hopmap.scenarios.results import store
from hopmap.scenarios.results.plan_file import read_plan
from hopmap.scenarios.sweep import ScenarioError, inputs
from hopmap.scenarios.sweep import measure as measure_module
from hopmap.scenarios.sweep.plan import code_of, plan
from hopmap.scenarios.sweep.prepare import new_traffic, save_inputs
from hopmap.scenarios.sweep.run import run_scenario
from hopmap.scenarios.sweep.scenario_files import load_scenario
from hopmap.scenarios.sweep.workers import LIST, shard_of
from hopmap.simulator import program_of_traffic, simulate
from hopmap.topologies import mesh
from hopmap.traces import Traffic, load_traffic, save_traffic
from hopmap.traces.sources import open_source
from support import DATA, ROOT

PROGRAM = """
import json, sys
from pathlib import Path
from hopmap.scenarios.sweep import plan
from hopmap.scenarios.sweep.run import run_scenario
from hopmap.scenarios.sweep.scenario_files import load_scenario

files = []
digest_of = plan.digest_of
plan.digest_of = lambda known, *start: (files.extend(known), digest_of(known, *start))[1]
file = Path(sys.argv[1])
assert not run_scenario(file, load_scenario(file), file.parent / "out").failed
paths = [getattr(each, "__file__", None) for each in sys.modules.values()]
loaded = [path for path in paths if path]
print(json.dumps([[str(Path(path).resolve()) for path in each] for each in (files, loaded)]))
"""


def write(folder, trace, topology="mesh:2x2", more="", mappers='["sweep"]'):
    file = folder / "study.toml"
    file.write_text(
        f'name="s"\ntraces=["{trace}"]\ntopologies=["{topology}"]\nmappers={mappers}\n{more}'
    )
    return file


def sweep(file, out="out", **keywords):
    return run_scenario(file, load_scenario(file), file.parent / out, **keywords)


def network(folder, bandwidth):
    graph = nx.cycle_graph(4)
    nx.set_edge_attributes(graph, bandwidth, "bandwidth")
    nx.write_graphml(graph, folder / "net.graphml")


def test_both_files_of_maplib_count(tmp_path):
    for name, cells in (("count", "0,1\n1,0\n"), ("size", "0,100\n100,0\n")):
        (tmp_path / f"a.{name}.csv").write_text(cells)
    for trace in ("a.count.csv", "a.size.csv"):
        file = write(tmp_path, trace, "mesh:2")
        sweep(file, trace[2])
        (tmp_path / "a.size.csv").write_text("0,70\n70,0\n")
        (tmp_path / "a.count.csv").write_text("0,2\n2,0\n")
        assert sweep(file, trace[2]).done == 1
        assert store.load_results(tmp_path / trace[2])["hop_bytes"].tolist() == [140]
        (tmp_path / "a.size.csv").write_text("0,100\n100,0\n")


def test_results_inside_an_experiment_folder_are_no_part_of_its_trace(tmp_path):
    shutil.copytree(DATA / "lu.S.4", tmp_path / "experiment")
    file = write(tmp_path / "experiment", "traces.otf2")
    assert [sweep(file).done for _ in range(2)] == [1, 0]
    events = tmp_path / "experiment" / "traces" / "0.evt"
    before = open_source(tmp_path / "experiment").digest()
    events.write_bytes(events.read_bytes() + b"\0")
    assert open_source(tmp_path / "experiment").digest() != before


CACHES = (measure_module._traffic, inputs._messages)


@pytest.fixture
def cleared():
    """Clear what this process has read of a benchmark that a test replaces."""
    yield
    for each in (*CACHES, inputs.counts_collectives):
        each.cache_clear()


@pytest.mark.usefixtures("cleared")
def test_other_code_reads_the_traces_anew(tmp_path, monkeypatch):
    file = write(tmp_path, "lu.S.4")
    sweep(file)
    (first,) = store.load_results(tmp_path / "out")["hop_bytes"]
    pair = Traffic.from_pairs(4, [0], [1], [1], [7])
    monkeypatch.setattr("hopmap.traces.nas.benchmarks.nas_traffic", lambda _: pair)
    assert sweep(file).done == 0
    monkeypatch.setattr("hopmap.scenarios.sweep.plan.code_of", lambda *_: "other")
    monkeypatch.setattr("hopmap.scenarios.sweep.plan.reading_code", lambda *_: "other")
    for each in CACHES:
        each.cache_clear()  # a process has one version
    assert sweep(file).done == 1
    assert store.load_results(tmp_path / "out")["hop_bytes"].tolist() == [7] != [first]


def test_runs_of_an_edited_mapper_are_run_again_and_no_others(tmp_path, monkeypatch):
    """Ids hashed the version, which was the same for 438 commits."""
    file = write(tmp_path, "lu.S.4", mappers='["sweep", "snake_of_mine"]')
    source = tmp_path / "snake_of_mine.py"
    beside = tmp_path / "snake_numbers.py"
    beside.write_text("first = 0\n")
    source.write_text(
        "import numpy as np\nimport snake_numbers\nfrom hopmap.mappers import mapper\n\n"
        '@mapper("snake_of_mine")\ndef snake(traffic, topology, *, rng, initial=None):\n'
        '    """Ranks in order."""\n    return np.arange(traffic.ranks)\n'
    )
    monkeypatch.syspath_prepend(tmp_path)
    try:
        importlib.import_module("snake_of_mine")
        assert [sweep(file).done for _ in range(2)] == [2, 0]
        edited = source.read_text().replace("np.arange(traffic.ranks)", "np.arange(4)")
        for each, text in ((source, edited), (beside, "first = 1\n")):
            each.write_text(text)
            for known in (code_of, source_files._read, source_files._find_imports):
                known.cache_clear()  # as in a new process
            assert sweep(file).done == 1
    finally:
        MAPPERS.pop("snake_of_mine", None)
        for name in ("snake_of_mine", "snake_numbers"):
            sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("mapper", "engine"),
    [
        ("auto(seconds=0.1)", "compiled"),
        pytest.param("sweep | tabu(steps=9)", "flow", marks=pytest.mark.slow),
    ],
)
def test_whatever_a_run_loads_is_part_of_its_id(tmp_path, mapper, engine):
    """Mappers, algorithms and engines are imported by names in tables."""
    more = (
        f'collectives="expand"\nreplay={{engine="{engine}", repeat=6}}\n'
        'parameters={"collective.alltoallv"="bruck", "noise.compute"=0.01}\n'
    )
    file = write(tmp_path, DATA / "is.S.16", "torus:4x4", more, f'["{mapper}"]')
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(file)], capture_output=True, text=True, check=True
    )
    known, loaded = map(set, json.loads(done.stdout))
    parts = ("mappers", "simulator", "topologies", "traces")
    mine = {each for each in loaded if any(each.startswith(str(ROOT / part)) for part in parts)}
    assert len(mine) > 100
    assert {each for each in mine - known if not each.endswith("__init__.py")} == set()


def test_a_network_that_changes_is_replayed_anew_in_the_same_process(tmp_path):
    file = write(tmp_path, "lu.S.4", "file:net.graphml")
    makespans = []
    for bandwidth in (1e9, 1e6):
        network(tmp_path, bandwidth)
        assert sweep(file).done == 1
        makespans += store.load_results(tmp_path / "out")["makespan"].tolist()
    assert makespans[1] > 2 * makespans[0]


@pytest.mark.parametrize("changed", ["net.graphml", "lu.S.4"])
def test_what_changes_between_plan_and_run_fails_the_run(tmp_path, changed):
    network(tmp_path, 1e9)
    shutil.copytree(DATA / "lu.S.4", tmp_path / "lu.S.4")
    file = write(tmp_path, "lu.S.4", "file:net.graphml")
    scenario = load_scenario(file)
    runs = plan(scenario, tmp_path)
    if changed == "net.graphml":
        network(tmp_path, 1e6)
        with pytest.raises(ScenarioError, match=r"net\.graphml: changed since the runs were"):
            measure_first(runs, tmp_path / "out", file, scenario)
    else:
        events = tmp_path / "lu.S.4" / "traces" / "0.evt"
        events.write_bytes(events.read_bytes() + b"\0" * 8)
        with pytest.raises(ScenarioError, match=r"lu\.S\.4: changed since the runs were planned"):
            new_traffic(runs, tmp_path / "out")


def measure_first(runs, results, file, scenario):
    results.mkdir()
    save_inputs(file, scenario, runs, results, (), new_traffic(runs, results), {})
    measure_module.measure(runs[0], results, {})


def test_stored_traffic_of_another_trace_is_not_measured(tmp_path):
    save_traffic(tmp_path / "a.npz", Traffic.from_pairs(2, [0], [1], [1], [5]))
    digest = open_source(tmp_path / "a.npz").digest()
    store.save_traffic(tmp_path, "a", Traffic.from_pairs(2, [0], [1], [1], [5]), digest)
    assert store.has_traffic(tmp_path, "a", digest)
    assert store.load_traffic(tmp_path, "a", digest).bytes.tolist() == [5]
    assert not store.has_traffic(tmp_path, "a", "another")
    with pytest.raises(store.StoreError, match="plan the runs again"):
        store.load_traffic(tmp_path, "a", "another")


def test_a_shard_of_runs_that_are_no_longer_planned_is_an_error(tmp_path):
    file = write(tmp_path, "lu.S.4")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / LIST).write_text("0123456789abcdef\n")
    with pytest.raises(ScenarioError, match="1 of 1 runs of its list are not in the scenario"):
        sweep(file, only=shard_of(tmp_path / "out", "0/1"))


def test_published_numbers_that_are_dropped_are_gone(tmp_path):
    (tmp_path / "paper.csv").write_text(
        "trace,topology,mapper,ienpc_total,ienpc_avg,ienpc_min,ienpc_max\nlu.S.4,mesh,sweep,1,1,1,1"
    )
    sweep(write(tmp_path, "lu.S.4", more='published.file = "paper.csv"\n'))
    assert (tmp_path / "out" / "published.csv").exists()
    sweep(write(tmp_path, "lu.S.4"))
    assert not (tmp_path / "out" / "published.csv").exists()


def test_expanded_collectives_are_mapped_and_measured(tmp_path):
    """IS sends next to nothing from point to point, and nearly all in collectives."""
    ids = {}
    for how in COLLECTIVES:
        sweep(write(tmp_path, "is.S.4", more=f'collectives = "{how}"\n'), how)
        traffic = Workload("is.S.4", collectives=how).sent().traffic
        assert store.load_traffic(tmp_path / how, "is.S.4").same_as(traffic)
        ids[how] = store.load_results(tmp_path / how)["run_id"][0]
        assert read_plan(tmp_path / how).expanded == ([] if how == "ignore" else ["is.S.4"])
    assert ids["auto"] == ids["expand"] != ids["ignore"]
    assert sweep(write(tmp_path, "is.S.4"), "auto").skipped == 1
    more = 'collectives = "expand"\nparameters."collective.alltoallv" = "linear"\n'
    assert sweep(write(tmp_path, "is.S.4", more=more), "expand").done == 1


def test_a_trace_is_asked_once_whether_its_collectives_outweigh_its_messages(tmp_path, monkeypatch):
    sweep(write(tmp_path, "is.S.4", more='collectives = "ignore"\n'))
    assert sweep(write(tmp_path, "is.S.4")).done == 1  # the answer to "ignore" is none to "auto"
    inputs.counts_collectives.cache_clear()  # as in a new process
    with monkeypatch.context() as patch:
        patch.setattr(inputs, "Workload", None)
        assert sweep(write(tmp_path, "is.S.4")).skipped == 1
    assert read_plan(tmp_path / "out").expanded == ["is.S.4"]
    shutil.copytree(DATA / "lu.S.4", tmp_path / "lu.S.4")
    sweep(write(tmp_path, "lu.S.4"))
    assert read_plan(tmp_path / "out").expanded == []


def test_where_algorithms_vary_messages_are_mapped(tmp_path):
    """What is mapped must not vary with what is replayed."""
    more = '[[vary]]\nparameters."collective.alltoallv" = ["linear", "pairwise"]\n'
    assert sweep(write(tmp_path, "is.S.4", more=more)).done == 2
    plain = Workload("is.S.4", collectives="ignore").sent().traffic
    assert store.load_traffic(tmp_path / "out", "is.S.4").same_as(plain)


def test_files_of_traffic_are_replayed_in_as_many_rounds_as_are_asked_for(tmp_path):
    save_traffic(tmp_path / "ring.npz", Traffic.from_pairs(4, [0, 1], [1, 2], [6, 4], [60, 40]))
    sweep(write(tmp_path, "ring.npz"))
    assert store.load_results(tmp_path / "out")["makespan"].isna().all()
    found = []
    for rounds in (1, 3):
        sweep(write(tmp_path, "ring.npz", more=f"replay.rounds = {rounds}\n"))
        (row,) = store.load_results(tmp_path / "out").to_dict("records")
        program = program_of_traffic(load_traffic(tmp_path / "ring.npz"), rounds=rounds)
        assert row["makespan"] == simulate(program, mesh((2, 2)), range(4)).makespan
        assert row["replayed_hop_bytes"] == row["hop_bytes"]
        found.append(row["makespan"])
    assert found[0] < found[1]

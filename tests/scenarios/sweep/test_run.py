"""The sweep: every run once, and what a run depends on."""

import json
from functools import partial

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from fingerprint import fingerprint

import hopmap as hm
from hopmap.api.robust.ranges import draw_models, read_ranges
from hopmap.mappers import map_ranks
from hopmap.report.report import write_report
from hopmap.scenarios.results import store, tables
from hopmap.scenarios.results.plan_file import read_plan
from hopmap.scenarios.results.ranking import matters
from hopmap.scenarios.results.stored_runs import part_files
from hopmap.scenarios.results.study import load_study
from hopmap.scenarios.sweep import ScenarioError
from hopmap.scenarios.sweep import measure as measure_module
from hopmap.scenarios.sweep.plan import plan
from hopmap.scenarios.sweep.run import run_scenario
from hopmap.scenarios.sweep.scenario_files import load_scenario
from hopmap.scenarios.sweep.workers import Workers
from hopmap.simulator import Parameters, Steady, evaluate, lower, simulate
from hopmap.topologies import topology_from_spec
from hopmap.traces import parse_stencil, save_traffic, traffic_of_stencil
from hopmap.traces.otf2.read import read_trace
from hopmap.traces.otf2.totals import read_traffic
from support.commands import invoke

from .studies import LU, files_of, sweep, write

TIMES = list(tables.TIMES)


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    folder = tmp_path_factory.mktemp("done")
    file = write(folder, more='[replay]\nengine = "simpy"\n[parameters]\n"compute.scale" = 0\n')
    outcome = sweep(file, folder / "out")
    return file, folder / "out", outcome


def test_every_cell_of_the_sweep_is_run(done):
    _, results, outcome = done
    assert outcome.done == outcome.runs
    assert not outcome.failed
    cells = store.load_results(results)[["topology", "mapper", "seed"]].to_records(index=False)
    assert {("mesh:2x2", "sweep", 0), ("torus:3x2", "random", 1)} <= set(map(tuple, cells))
    assert list(dict.fromkeys(cells["mapper"])) == ["sweep", "random"]


def test_a_row_holds_what_the_library_says(done):
    _, results, _ = done
    runs = store.load_results(results)
    row = runs[(runs["topology"] == "torus:3x2") & (runs["mapper"] == "random")].iloc[-1]
    topology, traffic = topology_from_spec("torus:3x2"), read_traffic(LU)
    node_of = map_ranks(traffic, topology, "random", seed=int(row["seed"]))
    assert row["node_of"].tolist() == node_of.tolist()
    metrics = evaluate(traffic, topology, node_of)
    assert row["hop_bytes"] == metrics.bytes.dilation.sum
    assert row["messages_ienpc_total"] == metrics.messages.ienpc.total == row["hop_messages"]
    assert row["bytes_congestion_max"] == metrics.bytes.congestion.max
    assert row["messages_ianlc_total"] == metrics.messages.ianlc.total
    assert row.filter(regex="^maplib_").isna().all()  # nothing is published of these runs
    from hopmap.simulator import parameters_from

    result = simulate(
        read_trace(LU), topology, node_of, parameters=parameters_from({"compute.scale": 0.0})
    )
    assert row["makespan"] == result.makespan
    assert row["wait"] == result.wait.mean()
    assert row["events"] == result.events


def test_links_hold_the_loads_and_the_traffic_is_the_traces(done):
    _, results, _ = done
    for row in store.load_results(results).itertuples():
        links = store.load_rows(results, "links", row.run_id)
        assert links["messages"].sum() == row.messages_ienpc_total
        assert links["bytes"].sum() == row.hop_bytes
        assert links["busy"].notna().all()
        assert links["replayed_bytes"].sum() == row.replayed_hop_bytes > row.hop_bytes
    assert store.load_traffic(results, "lu.S.4").same_as(read_traffic(LU))


def test_a_second_call_does_nothing_and_says_so(done):
    file, results, first = done
    before = {name: time for name, time in files_of(results).items() if "/" in name}
    again = sweep(file, results)
    assert (again.done, again.skipped) == (0, first.runs)
    after = {name: time for name, time in files_of(results).items() if "/" in name}
    assert after == before


def test_lost_runs_are_done_again_with_the_same_result(done):
    file, results, _ = done
    before = store.load_results(results)
    (lost,) = part_files(results, "runs")
    lost.unlink()
    assert sweep(file, results).done == len(before)
    after = store.load_results(results)
    pd.testing.assert_frame_equal(after.drop(columns=TIMES), before.drop(columns=TIMES))


def test_a_new_mapper_adds_its_runs_only_and_a_dropped_one_leaves_the_report(tmp_path):
    more = "[replay]\nengine = false\n"
    first = sweep(write(tmp_path, ["sweep", "scan"], more), tmp_path / "out")
    second = sweep(write(tmp_path, ["scan", "gray"], more), tmp_path / "out")
    assert second.skipped == second.done == first.done / 2
    assert list(store.load_results(tmp_path / "out")["mapper"].unique()) == ["scan", "gray"]


def test_included_excluded_and_varied_runs_and_no_others(tmp_path):
    more = """
        [replay]
        engine = "analytic"
        [[include]]
        traces = ["lu.S.2"]
        topologies = ["haec:1x1x2"]
        seeds = [5]
        [[exclude]]
        mappers = ["random"]
        topologies = ["torus:3x2", "haec:1x1x2"]
        [[vary]]
        name = "radio"
        labels = ["fast", "slow"]
        parameters."link.wireless.bandwidth" = [8e9, 1e6]
    """
    file = write(tmp_path, more=more)
    assert not sweep(file, tmp_path / "out").failed
    runs = store.load_results(tmp_path / "out")
    columns = ["trace", "topology", "variant", "mapper", "seed"]
    assert list(runs[columns].itertuples(index=False, name=None)) == [
        ("lu.S.4", "mesh:2x2", "", "sweep", 0),  # which draws nothing, so that once is enough
        *(("lu.S.4", "mesh:2x2", "", "random", s) for s in (0, 1)),
        ("lu.S.4", "torus:3x2", "", "sweep", 0),
        ("lu.S.2", "haec:1x1x2", "radio fast", "sweep", 5),
        ("lu.S.2", "haec:1x1x2", "radio slow", "sweep", 5),
    ]
    fast, slow = runs["makespan"][4:]
    assert fast < slow
    planned = read_plan(tmp_path / "out")
    assert set(planned.variant_of) == {"", "radio fast", "radio slow"}
    assert planned.variants["radio slow"]["link.wireless.bandwidth"] == 1e6


def test_long_runs_are_extrapolated_unless_the_scenario_says_exact(tmp_path, monkeypatch):
    monkeypatch.setattr(measure_module, "Steady", partial(Steady, hops=0))
    measure_module._replay.cache_clear()  # another test may have replayed the same run
    file = tmp_path / "study.toml"
    head = 'name = "a study"\ntraces = ["lu.S.4"]\ntopologies = ["mesh:2x2"]\n'
    rows = []
    for name, exact in (("told", ""), ("whole", "[replay]\nextrapolate = false\n")):
        file.write_text(f'{head}mappers = ["sweep"]\n{exact}')
        assert not sweep(file, tmp_path / name).failed
        rows += store.load_results(tmp_path / name).to_dict("records")
    told, whole = rows
    assert told["run_id"] != whole["run_id"]
    assert np.isnan(whole["replay_error"])
    assert 0 < told["replay_error"] < 1e-3
    assert abs(told["makespan"] / whole["makespan"] - 1) <= told["replay_error"]
    assert told["events"] == whole["events"]
    error = f"estimated error at most {100 * told['replay_error']:.2g} %"
    page = write_report(tmp_path / "told").read_text()
    assert f"1 runs extrapolated from their first steps, {error}" in page
    assert "extrapolated" not in write_report(tmp_path / "whole").read_text()


def test_recordings_are_extrapolated_within_the_tolerance_of_a_scenario(tmp_path):
    file, rows = tmp_path / "study.toml", []
    head = f'name = "a study"\ntraces = ["{LU}"]\ntopologies = ["mesh:2x2"]\nmappers = ["sweep"]\n'
    for name, more in (("whole", ""), ("told", "tolerance = 0.2\n")):
        file.write_text(f"{head}[replay]\n{more}")
        assert not sweep(file, tmp_path / name).failed
        rows += store.load_results(tmp_path / name).to_dict("records")
    whole, told = rows
    assert told["run_id"] != whole["run_id"]
    assert np.isnan(whole["replay_error"])
    assert 0.01 < told["replay_error"] < 0.21
    assert 0 < abs(told["makespan"] / whole["makespan"] - 1) <= told["replay_error"]
    file.write_text(f"{head}[replay]\ntolerance = 0.1\nextrapolate = false\n")
    with pytest.raises(ScenarioError, match="tolerance requires replay"):
        load_scenario(file)


def test_a_label_is_no_part_of_a_run(tmp_path):
    def ids(label):
        more = f"[[vary]]\nlabels = ['{label}']\nparameters.gap = [1e-6]\n"
        file = write(tmp_path, more=more)
        return [run.run_id for run in plan(load_scenario(file), file.parent)]

    plain = write(tmp_path, more="[parameters]\ngap = 1e-6\n")
    same = [run.run_id for run in plan(load_scenario(plain), plain.parent)]
    assert ids("a") == ids("b") == same


def test_time_on_links_and_what_collectives_send_are_kept(done):
    """LU's reductions cross links as well; links of the mesh have one speed."""
    _, results, _ = done
    runs = store.load_results(results)
    speed = topology_from_spec("mesh:2x2").kinds[0].bandwidth
    np.testing.assert_allclose(runs["link_seconds_total"], runs["hop_bytes"] / speed)
    np.testing.assert_allclose(runs["link_seconds_max"], runs["bytes_congestion_max"] / speed)
    assert (runs["replayed_hop_bytes"] > runs["hop_bytes"]).all()
    assert (runs["replayed_congestion_max"] >= runs["bytes_congestion_max"]).all()


@pytest.mark.slow
def test_two_workers_find_the_same(done, tmp_path):
    file, results, _ = done
    outcome = sweep(file, tmp_path / "out", workers=Workers(2))
    assert not outcome.failed
    pd.testing.assert_frame_equal(
        store.load_results(tmp_path / "out").drop(columns=TIMES),
        store.load_results(results).drop(columns=TIMES),
    )
    assert fingerprint(tmp_path / "out") == fingerprint(results)


def test_what_a_run_depends_on_changes_its_id(tmp_path):
    def ids(more="", **keywords):
        file = write(tmp_path, more=more, **keywords)
        return {run.run_id for run in plan(load_scenario(file), tmp_path)}

    (tmp_path / "paper.csv").write_text("trace,topology,mapper,ienpc_total\nlu.S.4,mesh,sweep,1")
    base = ids()
    assert base == ids()
    for more in (
        '[published]\nfile = "paper.csv"',
        "[replay]\nengine = false",
        "[replay]\nextrapolate = false",
        '[parameters]\n"link.bandwidth" = "1 GB/s"',
        "[parameters]\neager_limit = 1",
        "[replay]\nrepeat = 20",
    ):
        assert not base & ids(more)
    assert base & ids(mappers=["sweep", "scan"])
    assert base == ids(mappers=[" sweep", "random "])


def test_repeats_are_kept_by_seed_of_their_noise_which_is_the_same_for_all(tmp_path):
    more = '[replay]\nrepeat = 6\n[parameters]\n"compute.scale" = 0\n"noise.start" = "1 ms"\n'
    sweep(write(tmp_path, more=more), tmp_path / "out")
    runs = store.load_results(tmp_path / "out")
    for _, run in runs.iterrows():
        times = np.array(run["makespans"])
        assert len(times) == 6
        assert run["makespan_low"] == times.min() <= run["makespan_median"] <= times.max()
        assert run["makespan"] < run["makespan_low"]
        result = simulate(
            lower(read_trace(LU)),
            topology_from_spec(run["topology"]),
            run["node_of"],
            parameters=Parameters(compute_scale=0, noise_start=1e-3),
            repeat=6,
        )
        assert result.ensemble.makespans.tolist() == times.tolist()
    # Late starts are all that there is, so that all take as long with the same seed.
    assert np.ptp(np.stack(runs["makespans"]), axis=0).max() < 1e-3


def test_models_of_the_network_are_those_of_advise(tmp_path):
    """The same makespans, model by model, and so the same answer."""
    more = '[replay]\nmodels = 6\n[parameters]\n"compute.scale" = 0\n'
    sweep(write(tmp_path, mappers=["identity", "rcm"], more=more), tmp_path / "out")
    runs = store.load_results(tmp_path / "out")
    assert runs["models"].tolist() == [6] * 4
    runs = runs[runs["topology"] == "torus:3x2"].set_index("mapper")
    times = {name: np.array(runs["makespans"][name]) for name in ("identity", "rcm")}
    settings = {"compute.scale": 0}
    network = topology_from_spec("torus:3x2")
    for place, model in enumerate(draw_models(read_ranges(None), network, settings, 6, 0)):
        own = hm.Machine("torus:3x2", {**settings, **model})
        for name, makespans in times.items():
            result = hm.simulate(str(LU), own, runs["node_of"][name], extrapolate=False)
            assert makespans[place] == pytest.approx(result.makespan, rel=1e-9)
    alone = hm.Machine("torus:3x2", settings)
    advice = hm.advise(str(LU), alone, ["rcm"], sampling=hm.Sampling(6))
    assert runs["makespan_low"]["rcm"] == times["rcm"].min()
    assert runs["makespan_high"]["rcm"] == times["rcm"].max()
    case = load_study(tmp_path / "out").cases[1]
    assert case.by_models
    assert matters(case) == advice.worth_it
    both = write(tmp_path, more="[replay]\nmodels = 6\nrepeat = 6\n")
    with pytest.raises(ScenarioError, match=r"repeat and replay\.models are mutually exclusive"):
        load_scenario(both)
    with pytest.raises(ScenarioError, match=r"replay.models: 5: expected greater .* 6"):
        load_scenario(write(tmp_path, more="[replay]\nmodels = 5\n"))


def test_fewer_than_six_repeats_are_refused(tmp_path):
    with pytest.raises(ScenarioError, match=r"replay.repeat: 5: expected greater .* 6"):
        load_scenario(write(tmp_path, more="[replay]\nrepeat = 5\n"))


def test_too_few_repeats_for_all_mappers_are_refused_before_the_sweep(tmp_path):
    """Of 4 mappers are 6 pairs: 6 / 2^(n - 1) is at most 5 % from n = 8 on."""
    four = ["sweep", "scan", "minmd", "rcm"]
    for mappers, repeat, least in ((four, 6, 8), (four, 8, None), (four[:3], 6, 7)):
        more = f"[replay]\nrepeat = {repeat}\n"
        scenario = load_scenario(write(tmp_path, mappers=mappers, more=more))
        if least is None:
            assert plan(scenario, tmp_path)
            continue
        message = f"repeat: {repeat} for {len(mappers)} mappers: expected at least {least};"
        with pytest.raises(ScenarioError, match=message):
            plan(scenario, tmp_path)


def test_a_changed_trace_is_run_again(tmp_path):
    (tmp_path / "pairs.csv").write_text("src,dst,messages,bytes\n0,1,1,10\n")
    file = tmp_path / "study.toml"
    file.write_text('name="s"\ntraces=["pairs.csv"]\ntopologies=["mesh:2"]\nmappers=["sweep"]\n')
    sweep(file, tmp_path / "out")
    (tmp_path / "pairs.csv").write_text("src,dst,messages,bytes\n0,1,1,20\n")
    assert sweep(file, tmp_path / "out").done == 1
    assert store.load_results(tmp_path / "out")["hop_bytes"].tolist() == [20]


def test_a_topology_in_a_file_lies_beside_the_scenario_and_counts_when_it_changes(tmp_path):
    graph = nx.star_graph(4)
    graph.add_node(0, host=False)
    nx.write_graphml(graph, tmp_path / "net.graphml")
    file = tmp_path / "study.toml"
    file.write_text(
        f'name="s"\ntraces=["{LU}"]\ntopologies=["file:net.graphml"]\nmappers=["sweep"]\n'
    )
    assert sweep(file, tmp_path / "out").done == 1
    assert sweep(file, tmp_path / "out").done == 0
    first = store.load_results(tmp_path / "out").iloc[0]
    graph.add_edge(1, 2)
    nx.write_graphml(graph, tmp_path / "net.graphml")
    assert sweep(file, tmp_path / "out").done == 1
    second = store.load_results(tmp_path / "out").iloc[0]
    assert second["hop_bytes"] < first["hop_bytes"]


@pytest.mark.slow
def test_every_family_is_swept_and_reported(tmp_path):
    specs = ["hypercube:2", "fattree:2x2", "dragonfly:1x2x1", "cluster:2*2", "preset:hgx-h100"]
    paper = "trace,topology,mapper,ienpc_total\nlu.S.4,hypercube,sweep,1"
    (tmp_path / "paper.csv").write_text(paper)
    file = tmp_path / "study.toml"
    file.write_text(
        f'name="s"\ntraces=["{LU}"]\ntopologies={json.dumps(specs)}\nmappers=["sweep", "random"]\n'
        '[published]\nfile="paper.csv"\n'
    )
    assert not sweep(file, tmp_path / "out").failed
    runs = store.load_results(tmp_path / "out")
    assert (runs["bytes_ienpc_total"] == runs["hop_bytes"]).all()
    assert (runs["makespan"] > 0).all()
    boxes = runs["topology"] == "hypercube:2"
    assert (runs["maplib_bytes_ienpc_total"].notna() == boxes).all()
    for row in runs[boxes].itertuples():
        counted = evaluate(
            read_traffic(LU), topology_from_spec(row.topology), row.node_of, "maplib"
        )
        assert row.maplib_messages_ienpc_max == counted.messages.ienpc.max
    page = write_report(tmp_path / "out").read_text()
    assert all(spec in page for spec in specs)


def test_traffic_alone_is_measured_and_not_replayed(tmp_path):
    (tmp_path / "pairs.csv").write_text("src,dst,messages,bytes\n0,1,1,10\n")
    file = tmp_path / "study.toml"
    file.write_text('name="s"\ntraces=["pairs.csv"]\ntopologies=["mesh:2"]\nmappers=["sweep"]\n')
    assert not sweep(file, tmp_path / "out").failed
    row = store.load_results(tmp_path / "out").iloc[0]
    assert pd.isna(row["engine"])
    assert np.isnan(row["makespan"])
    assert store.load_rows(tmp_path / "out", "links", row["run_id"])["busy"].isna().all()


def test_energy_is_in_the_row_if_a_figure_of_it_is_set(done, tmp_path):
    _, results, _ = done
    assert store.load_results(results)["energy"].isna().all()
    more = '[replay]\nengine = "flow"\n[parameters.energy]\nlink.static = "2 W"\nnode.idle = 3\n'
    file = write(tmp_path, mappers=["sweep"], more=more)
    assert not sweep(file, tmp_path / "out").failed
    runs = store.load_results(tmp_path / "out")
    row = runs[runs["topology"] == "mesh:2x2"].iloc[0]
    # 8 links and 4 nodes, of which what they compute is for free here
    idle = 4 * row["makespan"] - 4 * row["compute"]
    assert row["energy"] == pytest.approx(2 * 8 * row["makespan"] + 3 * idle, rel=1e-12)


def test_equal_parameters_in_other_units_are_the_same_run(tmp_path):
    def ids(value):
        file = write(tmp_path, more=f'[parameters]\n"link.bandwidth" = {value}\n')
        return [run.run_id for run in plan(load_scenario(file), tmp_path)]

    assert ids('"10 GB/s"') == ids('"80 Gbit/s"') == ids("1e10") == ids("10_000_000_000")
    assert ids('"10 GB/s"') != ids('"11 GB/s"')


def test_a_moved_study_is_not_run_again_and_knows_where_its_network_lies(tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    nx.write_graphml(nx.cycle_graph(4), here / "net.graphml")
    file = here / "study.toml"
    file.write_text(
        f'name="s"\ntraces=["{LU}"]\ntopologies=["file:net.graphml"]\nmappers=["sweep"]\n'
        "[replay]\nengine = false\n"
    )
    assert sweep(file, here / "out").done == 1
    here.rename(there)
    assert sweep(there / "study.toml", there / "out").done == 0
    assert store.load_results(there / "out")["topology"].tolist() == ["file:net.graphml"]
    assert read_plan(there / "out").networks == {
        "file:net.graphml": f"file:{there / 'net.graphml'}"
    }
    assert "file:net.graphml" in write_report(there / "out").read_text()


def test_what_was_set_over_the_file_is_in_the_copy_of_it(tmp_path):
    file = write(tmp_path, ["sweep"], "[replay]\nengine = false\n")
    changes = ["link.bandwidth=10 GB/s", "seeds=[5]"]
    scenario = load_scenario(file, changes)
    run_scenario(file, scenario, tmp_path / "out", changes=changes)
    assert load_scenario(tmp_path / "out/scenario.toml") == scenario
    assert store.load_results(tmp_path / "out")["seed"].tolist() == [5, 5]


def test_a_report_says_that_its_traffic_has_collectives(tmp_path):
    for how, said in (("ignore", False), ("auto", True), ("expand", True)):
        file = tmp_path / "study.toml"
        file.write_text(
            'name="s"\ntraces=["is.S.4"]\ntopologies=["mesh:4"]\nmappers=["sweep", "random"]\n'
            + f'collectives = "{how}"\n'
        )
        sweep(file, tmp_path / "out")
        page = write_report(tmp_path / "out").read_text()
        assert ("with what collectives send" in page) == said


@pytest.mark.slow
def test_a_study_of_traffic_that_is_mostly_collectives_says_so(tmp_path):
    """IS sorts by ALLTOALLV, MG sends to its neighbours; files of traffic are sent five times."""
    save_traffic(tmp_path / "grid.npz", traffic_of_stencil(parse_stencil("2x2,5pt")))
    file = tmp_path / "study.toml"
    file.write_text(
        'name="s"\ntraces=["is.S.4", "mg.S.4", "grid.npz"]\ntopologies=["mesh:4"]\n'
        'mappers=["sweep"]\n[replay]\nrounds = 5\n'
    )
    hint = "is.S.4: collectives send more than the messages that were mapped: "
    done = "is.S.4: mapped and measured with what collectives send"
    for how, hinted, told in (("ignore", 1, 0), ("expand", 0, 0), ("auto", 0, 1)):
        out = tmp_path / how
        words = ["run", str(file), "--out", str(out), "--set", f"collectives={how}"]
        result = invoke(words)
        assert result.exit_code == 0, result.stderr
        assert (f"hopmap: {hint}" in result.stderr) == hinted
        assert (f"hopmap: {done}" in result.stderr) == told
        page = (out / "report.html").read_text()
        assert ("Collectives of is.S.4 send more" in page) == hinted
        if how == "auto":
            assert "with what collectives of is.S.4 send" in page


def test_mappers_see_the_links_as_the_scenario_sets_them(tmp_path):
    file = write(tmp_path, more='[parameters]\n"link.bandwidth" = "1 GB/s"\n')
    for run in plan(load_scenario(file), tmp_path):
        assert {kind.bandwidth for kind in measure_module.usable_network(run).kinds} == {1e9}


def test_an_ideal_network_is_replayed_once_for_all_networks_and_links(tmp_path, monkeypatch):
    calls, real = [], measure_module.free_makespan
    monkeypatch.setattr(measure_module, "_IDEAL", {})
    monkeypatch.setattr(measure_module, "free_makespan", lambda *a: calls.append(a) or real(*a))
    more = 'replay.engine = "simpy"\n[[vary]]\nparameters."link.bandwidth" = ["1 GB/s", "2 GB/s"]\n'
    sweep(write(tmp_path, more=more), tmp_path / "out")
    runs = store.load_results(tmp_path / "out")
    assert len(calls) == runs["makespan_ideal_network"].nunique() == 1
    assert runs["topology"].nunique() == runs["variant"].nunique() == 2

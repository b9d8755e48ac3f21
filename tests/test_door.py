"""The front door: `import hopmap as hm`."""

import json
import re
import warnings

import networkx as nx
import numpy as np
import pytest

import hopmap as hm
from hopmap.simulator import lower
from support import DATA, ROOT, about
from support.archives import archives_read_here
from support.commands import as_json as command

MG, TORUS = str(DATA / "mg.S.16"), "torus:4x4"


@pytest.fixture(scope="module", autouse=True)
def unguarded():
    """Read archives in this process."""
    with archives_read_here():
        yield


@pytest.fixture(scope="module")
def placed():
    return hm.map_ranks(MG, TORUS, "minmd", seed=3)


def test_every_name_is_there_with_a_docstring_and_in_the_reference():
    page = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    for name in hm.__all__:
        try:
            value = getattr(hm, name)
        except ModuleNotFoundError:  # taken out, see test_wings.py
            continue
        assert re.search(rf"(::: |`)hopmap\.{name}\b|members: \[.*\b{name}\b", page), name
        assert name == "__version__" or value.__doc__, name


def test_questions_answer_what_commands_print(tmp_path, placed):
    settings = {"link.bandwidth": "1 GB/s", "compute.scale": 0}
    words = [w for key, value in settings.items() for w in ("--set", f"{key}={value}")]
    said = command("map", MG, "-t", TORUS, "-m", "minmd", "--seed", 3, "--out", tmp_path / "m.csv")
    found = placed.to_dict()
    assert {k: v for k, v in found.items() if k != "seconds"} == {
        k: v for k, v in said.items() if k != "seconds"
    }
    where = (MG, tmp_path / "m.csv", "-t", TORUS)
    metrics = command("evaluate", *where)
    assert json.loads(json.dumps(hm.evaluate(MG, TORUS, placed).to_dict())) == metrics
    run = hm.simulate(MG, hm.Machine(TORUS, settings=settings), placed)
    assert run.makespan == command("simulate", *where, *words)["makespan"]
    why = hm.explain(MG, hm.Machine(TORUS, settings=settings), placed, sensitivity=False)
    said = command("explain", *where, *words, "--no-sensitivity")
    assert json.loads(json.dumps(why.to_dict()))["critical_path"] == said["critical_path"]


def test_a_trace_a_topology_and_a_mapping_may_be_words_files_or_objects(tmp_path, placed):
    torus = hm.topology(TORUS)
    hm.write_mapping(tmp_path / "m.csv", placed)
    hm.write_trace(hm.read_trace(MG), tmp_path / "copy.otf2")
    traces = (MG, DATA / "mg.S.16", hm.open(MG), hm.read_trace(MG), tmp_path / "copy.otf2")
    mappings = (placed, placed.node_of, placed.node_of.tolist(), tmp_path / "m.csv")
    assert {hm.evaluate(each, torus, placed).bytes.dilation.sum for each in traces} == {
        hm.evaluate(hm.open(MG).traffic(), TORUS, each).bytes.dilation.sum for each in mappings
    }
    assert len({hm.simulate(each, torus, placed).makespan for each in traces}) == 1
    assert (hm.read_mapping(tmp_path / "m.csv") == np.asarray(placed)).all()


def test_settings_of_a_network_stay_with_it(placed):
    slow = hm.topology(TORUS, {"link.bandwidth": "1 MB/s"})
    in_run = hm.simulate(MG, hm.Machine(TORUS, settings={"link.bandwidth": "1 MB/s"}), placed)
    assert hm.simulate(MG, slow, placed).makespan == in_run.makespan
    with pytest.raises(hm.HopmapError, match="eager_limit: a parameter of replays"):
        hm.topology(TORUS, {"eager_limit": "1 kB"})


def test_a_sweep_is_a_table_with_the_numbers_of_single_questions(placed):
    runs = hm.sweep([MG, "lu.S.16"], TORUS, ["minmd", "sweep"], seeds=3)
    assert len(runs) == 4
    (row,) = runs[(runs.trace == "mg.S.16") & (runs.mapper == "minmd")].to_dict("records")
    assert row["makespan"] == hm.simulate(MG, TORUS, placed).makespan
    assert row["hop_bytes"] == hm.evaluate(MG, TORUS, placed).bytes.dilation.sum
    figure = hm.plot.bars(runs[runs.trace == "lu.S.16"])
    assert next(text.get_text() for text in figure.texts).startswith("lu.S.16 on torus:4x4")
    with pytest.raises(hm.HopmapError, match="2 cases"):
        hm.plot.bars(runs)


def test_a_sweep_takes_networks_from_files_and_none_that_were_changed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    nx.write_graphml(nx.cycle_graph(4), "ring.graphml")
    runs = hm.sweep("lu.S.4", ["file:ring.graphml", hm.topology("mesh:2x2")], "sweep", replay=False)
    assert runs["topology"].str.endswith(("ring.graphml", "mesh:2x2")).all()
    assert runs["error"].isna().all()
    slow, part = (
        hm.topology("mesh:2x2", {"link.bandwidth": 1.0}),
        hm.topology("mesh:4x2").only(range(4)),
    )
    for network, said in ((slow, "its links were set"), (part, "some of its nodes only")):
        with pytest.raises(hm.HopmapError, match=said):
            hm.sweep("lu.S.4", network, "sweep", replay=False)


def test_collectives_of_objects_are_counted_or_refused_as_those_of_names():
    trace = hm.read_trace(DATA / "is.S.16")
    program = lower(trace)
    for how in ("ignore", "expand", "auto"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", hm.HopmapWarning)
            found = [
                hm.map_ranks(hm.Workload(each, collectives=how), TORUS, "sweep")
                for each in (trace, program)
            ]
        assert len({placed.traffic.bytes.sum() for placed in found}) == 1
    settings = {"collective.alltoallv": "linear"}
    for each in (trace, program, found[0].traffic):
        with pytest.raises(hm.HopmapError, match="expand"):
            hm.map_ranks(
                hm.Workload(each, collectives="ignore"),
                hm.Machine(TORUS, settings=settings),
                "sweep",
            )
        with pytest.raises(hm.HopmapError, match="expected one of auto, ignore, expand"):
            hm.map_ranks(hm.Workload(each, collectives="expnd"), TORUS, "sweep")
    for each, said in ((program, "expected the same"), (found[0].traffic, "separate collectives")):
        with pytest.raises(hm.HopmapError, match=said):
            hm.map_ranks(each, hm.Machine(TORUS, settings=settings), "sweep")
    assert found[0].traffic.same_as(lower(trace).traffic())


def test_what_a_calibration_finds_are_settings(tmp_path, placed):
    file = tmp_path / "pingpong.csv"
    file.write_text("size,time\n0,2 us\n1 kB,2.2 us\n8 kB,3.6 us\n64 kB,14.8 us\n1 MB,202 us\n")
    fit = hm.calibrate(file)
    assert fit.parameters["link.bandwidth"] == pytest.approx(5e9)
    assert hm.simulate(MG, hm.Machine(TORUS, settings=fit.parameters), placed).makespan > 0


def test_what_is_wrong_in_a_sweep_is_not_said_of_a_file_that_nobody_sees():
    with pytest.raises(hm.HopmapError) as caught:
        hm.sweep("lu.S.4", "mesh:2x2", "swep")
    assert str(caught.value).startswith("sweep: mappers: unknown mapper 'swep' (did you mean")


def test_a_sweep_of_traffic_from_memory_resumes_in_its_folder(tmp_path):
    ring = hm.Traffic.from_pairs(4, [0, 1, 2, 3], [1, 2, 3, 0], [1] * 4, [100] * 4)
    once, out = hm.Workload(ring, rounds=1), tmp_path / "results"
    first, again = (hm.sweep(once, "mesh:2x2", "sweep", out=out) for _ in range(2))
    assert first.equals(again)
    assert hm.load_results(tmp_path / "results").equals(first)
    (row,) = hm.query(tmp_path / "results", "SELECT makespan FROM runs").rows
    assert row == (first["makespan"][0],)


@pytest.mark.parametrize("what", ["placement", "metrics", "result", "explanation"])
def test_results_show_themselves(placed, what):
    value = {
        "placement": lambda: placed,
        "metrics": lambda: hm.evaluate(MG, TORUS, placed),
        "result": lambda: hm.simulate(MG, TORUS, placed),
        "explanation": lambda: hm.explain(MG, TORUS, placed, sensitivity=False),
    }[what]()
    assert len(repr(value)) < 200
    assert "\n" not in repr(value)
    html = value._repr_html_()
    assert html.startswith("<table>")
    assert html.rstrip().endswith("</svg>")
    assert "torus:4x4" in html
    assert len(value.to_frame())
    json.dumps(value.to_dict())


def test_plots_are_all_that_the_module_of_plots_offers():
    assert dir(hm.plot) == ["bars", "links", "mapping", "spy"]


def test_arguments_in_each_others_place_are_named(placed):
    for ask, said in [
        (lambda: hm.map_ranks(TORUS, MG), "torus:4x4: a network, where a trace or traffic"),
        (lambda: hm.advise(TORUS, MG), "torus:4x4: a network, where a trace or traffic"),
        (lambda: hm.simulate(placed, MG), "Placement: a mapping, where a trace or traffic"),
        (lambda: hm.evaluate(MG, placed, TORUS), "Placement: a mapping, where a network"),
        (lambda: hm.plot.mapping(MG, placed, TORUS), "Placement: a mapping, where a network"),
        (
            lambda: hm.export_mapping("slurm", placed),
            "Placement: a mapping, where a launcher",
        ),
        (
            lambda: hm.query("SELECT 1", str(ROOT)),
            "SELECT 1: no folder, but .* is: expected",
        ),
    ]:
        with about(said), pytest.raises(hm.HopmapError, match=said):
            ask()


def test_whatever_is_wrong_is_one_error_that_says_so():
    for ask, said in [
        (lambda: hm.open("lu.Z.4"), "class 'Z'"),
        (lambda: hm.topology("taurus:4"), "torus"),
        (lambda: hm.map_ranks(MG, TORUS, "minmdd"), "minmd"),
        (lambda: hm.map_ranks(MG, TORUS, "minmd", objective=hm.Replayed("time")), "makespan"),
        (lambda: hm.map_ranks(MG, TORUS, "auto", objective="makespann"), "makespan"),
        (lambda: hm.evaluate(MG, TORUS, [0, 1, 2]), "16"),
        (
            lambda: hm.simulate(MG, hm.Machine(TORUS, settings={"link.bandwith": 1}), range(16)),
            "bandwidth",
        ),
        (lambda: hm.simulate(hm.Workload(MG, steps=2), TORUS, range(16)), "steps 2"),
        (lambda: hm.simulate(MG, TORUS, range(16), engine="ns3"), "simpy"),
        (lambda: hm.export_mapping([0, 1], "slurm"), "topology"),
        (lambda: hm.convert(MG, "gaol", "x"), "goal"),
        (lambda: hm.run_scenario("no_such"), "no_such"),
        (lambda: hm.load_results("/nowhere"), "nowhere"),
    ]:
        with about(ask, said):
            with pytest.raises(hm.HopmapError, match=said) as caught:
                ask()
            assert "\n" not in str(caught.value)


def test_what_a_user_should_know_is_a_warning(placed):
    for how, said in (
        ("auto", "what collectives send is counted"),
        ("ignore", "count collectives"),
    ):
        with pytest.warns(hm.HopmapWarning, match=rf"is\.S\.16: .* in collectives: {said}"):
            hm.map_ranks(hm.Workload(DATA / "is.S.16", collectives=how), TORUS, "sweep")


def test_arguments_in_another_order_are_recognised(placed, tmp_path):
    network = hm.topology(TORUS)
    for ask, said in {
        lambda: hm.simulate(network, placed): "torus:4x4: a network, where a trace or traffic",
        lambda: hm.evaluate(placed, TORUS, MG): "a mapping, where a trace or traffic is expected",
        lambda: hm.simulate(MG, placed, TORUS): "a mapping, where a network is expected",
        lambda: hm.explain(MG, TORUS, hm.read_trace(MG)): "where a mapping is expected",
        lambda: hm.map_ranks(None, TORUS): "NoneType: where a trace or traffic is expected",
        lambda: hm.map_ranks(MG, None): "NoneType: where a network is expected, like torus:4x4x4",
        lambda: hm.map_ranks(TORUS, MG): "a network, where a trace or traffic is expected",
        lambda: hm.advise(None, TORUS): "where a trace or traffic is expected",
        lambda: hm.simulate(MG, TORUS): "mapping: expected one, after the network",
        lambda: hm.simulate(MG, None, [0, 1]): "an array does not name its own",
    }.items():
        with pytest.raises(hm.HopmapError, match=re.escape(said)):
            ask()


def test_a_placement_and_a_file_bring_their_network(placed, tmp_path):
    hm.write_mapping(tmp_path / "m.csv", placed)
    asked = hm.evaluate(MG, TORUS, placed).to_dict()
    for mapping in (placed, tmp_path / "m.csv"):
        assert hm.evaluate(MG, mapping).to_dict() == asked
        assert hm.evaluate(MG, None, mapping).to_dict() == asked

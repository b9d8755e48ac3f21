"""Scenario files: what is accepted, and one line for everything else."""

import json
from pathlib import Path

import pytest

from hopmap.cli.listing import CATALOGUE
from hopmap.scenarios.sweep import ScenarioError
from hopmap.scenarios.sweep.plan import plan
from hopmap.scenarios.sweep.scenario_files import load_scenario, scenario_path
from hopmap.simulator import Parameters
from hopmap.simulator.parameters.settings import configure
from hopmap.topologies import topology_from_spec
from support import DATA, about

GOOD = {
    "name": '"a study"',
    "traces": f'["{DATA / "lu.S.4"}", "lu.S.16"]',
    "topologies": '["mesh:4x4", "haec:2x2x4"]',
    "mappers": '["sweep", "random | bokhari(jumps=3)"]',
}


def write(folder, more="", **changes):
    """Write a scenario that is right but for the changes; None leaves a key out."""
    keys = {key: value for key, value in (GOOD | changes).items() if value is not None}
    file = folder / "study.toml"
    file.write_text("\n".join(f"{key} = {value}" for key, value in keys.items()) + "\n" + more)
    return file


def test_what_is_left_out_has_defaults(tmp_path):
    scenario = load_scenario(write(tmp_path))
    assert scenario.seeds == [0]
    assert scenario.replay.engine == "compiled"
    assert [source.kind for source in scenario.sources(tmp_path).values()] == [
        "archive",
        "benchmark",
    ]


def test_a_scenario_needs_no_name(tmp_path):
    assert load_scenario(write(tmp_path, name=None)).name == "study"


def test_traffic_of_stencils_needs_no_file(tmp_path):
    name = "stencil:4x4,5pt,periodic=y"
    (source,) = load_scenario(write(tmp_path, traces=f'["{name}"]')).sources(tmp_path).values()
    assert (source.name, source.kind, source.has_program) == (name, "stencil", False)
    assert source.traffic().metadata["periodic"] == [False, True]
    with pytest.raises(ScenarioError, match="stencil 7pt has 3 dimensions: 4x4 has 2"):
        load_scenario(write(tmp_path, traces='["stencil:4x4,7pt"]'))


def test_sections_are_read(tmp_path):
    (tmp_path / "paper.csv").write_text("trace,topology,mapper,ienpc_total\nLU.S.4,Mesh,scan,1\n")
    more = """
        seeds = [3, 1]
        [replay]
        engine = false
        [parameters]
        "link.bandwidth" = "10 GB/s"
        link.wireless.latency = "1 us"
        eager_limit = 1000
        [published]
        file = "paper.csv"
    """
    scenario = load_scenario(write(tmp_path, more))
    assert scenario.seeds == [3, 1]
    assert scenario.replay.engine is False
    assert scenario.parameters == {
        "link.bandwidth": "10 GB/s",
        "link.wireless.latency": "1 us",
        "eager_limit": 1000,
    }


def lists_of_hosts(name):
    """Those of real allocations are not in the repository."""
    return [pytest.mark.slow] if name == "allocations" else []


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param(entry, id=entry["name"], marks=lists_of_hosts(entry["name"]))
        for entry in CATALOGUE["scenarios"]()
    ],
)
def test_every_shipped_scenario_is_right(entry, request):
    path, changes = scenario_path(entry["name"]), []
    if entry["name"] == "allocations":
        changes = [f"folder={request.getfixturevalue('shared') / 'measured' / 'jobs'}"]
    assert load_scenario(path, changes).name == entry["summary"]


def test_anything_wrong_is_one_line_with_file_key_and_value(tmp_path):
    for changes, more, message in [
        (
            {"mappers": None},
            'mapers = ["sweep"]',
            r"unknown key 'mapers' \(did you mean mappers\?\)",
        ),
        ({"name": "3"}, "", "name: 3: expected a valid string"),
        ({"name": '""'}, "", "name: '': expected"),
        ({"traces": "[]"}, "", r"traces: \[\]: expected|traces: .* at least 1"),
        ({"traces": '"lu.S.4"'}, "", "traces: 'lu.S.4': expected a valid list"),
        ({"traces": '["lu.S.4", 5]'}, "", r"traces\[1\]: 5: expected a valid string"),
        ({"traces": '["gone"]'}, "", "traces: .*gone: no such file"),
        ({"traces": '["dt.C.64"]'}, "", "traces: dt.C.64: dt cannot be generated"),
        ({"traces": '["sp.C.60"]'}, "", "traces: SP on 60 ranks: expected a square number"),
        ({"traces": '["lu.S.4", "LU.S.4"]'}, "", "two are called 'lu.S.4'"),
        ({"topologies": '["torus:0x4"]'}, "", "topologies: topology 'torus:0x4'"),
        ({"topologies": '["mesh:4", "mesh:4"]'}, "", "topologies: 'mesh:4' is listed twice"),
        (
            {"mappers": '["a|b", "a | b"]'.replace("a", "random").replace("b", "bokhari")},
            "",
            "twice",
        ),
        ({"mappers": '["swep"]'}, "", r"mappers: unknown mapper 'swep' \(did you mean sweep\?\)$"),
        ({"mappers": '["bokhari(x=1)"]'}, "", "mappers: mapper bokhari: unknown parameter 'x'"),
        ({"seeds": "[-1]"}, "", r"seeds\[0\]: -1: expected greater than or equal to 0"),
        ({"seeds": "[1.5]"}, "", r"seeds\[0\]: 1.5: expected a valid integer"),
        ({"seeds": "[true]"}, "", r"seeds\[0\]: True: expected a valid integer"),
        ({"seeds": "[1, 1]"}, "", "seeds: 1 is listed twice"),
        ({"topologys": '["mesh:4"]'}, "", r"unknown key 'topologys' \(did you mean topologies\?\)"),
        ({}, "[prices]\nswich = 3", r"prices: unknown key 'swich' \(did you mean switch\?\): exp"),
        ({}, "[prices]\n'link.optic' = 3", r"unknown key 'link.optic' \(did you mean link.optical"),
        ({}, "[prices]\nnode = -1", r"prices.node: -1: expected greater than or equal to 0"),
        ({}, "[replay]\nengin = 'simpy'", r"unknown key 'replay.engin' \(did you mean engine\?\)"),
        ({}, "[replay]\nengine = 'simpi'", "replay.engine: 'simpi' .did you mean simpy"),
        ({}, "[replay]\nengine = true", "replay.engine: True: expected"),
        ({}, "[replay]\nsteps = 0", "replay.steps: 0: expected greater"),
        ({}, "[parameters]\n'link.bandwith' = 1", "parameters: unknown parameter 'link.bandwith'"),
        ({}, "[parameters]\n'eager_limt' = 1", "did you mean eager_limit"),
        ({}, "[parameters]\n'link.copper.latency' = 1", "unknown parameter 'link.copper.latency'"),
        ({}, "[parameters]\n'link.bandwidth' = '10 GB'", "link.bandwidth: '10 GB': unknown unit"),
        ({}, "[parameters]\n'link.bandwidth' = 0", "bandwidth 0: expected more than 0"),
        ({}, "[parameters]\n'switching' = 'fast'", "switching 'fast': expected one of"),
        ({}, "[parameters]\n'eager_limit' = [1]", r"parameters.eager_limit: \[1\]: expected"),
        ({}, "[published]\nfile = 'none.csv'", "none.csv: cannot be read as CSV .No such file"),
        ({}, "[published", "cannot be read as a scenario"),
        ({}, "[[include]]\ntraces = ['lu.S.4']", r"key 'include\[0\].topologies' is missing"),
        (
            {},
            "[[include]]\ntrace = ['lu.S.4']",
            r"unknown key 'include\[0\].trace' .did you mean t",
        ),
        (
            {},
            "[[include]]\ntraces = ['lu.S.4']\ntopologies = ['mesh:2x2']",
            r"include\[0\].traces: two are called 'lu.S.4'",
        ),
        (
            {},
            "[[include]]\ntraces = ['lu.A.4']\ntopologies = ['mush:2x2']",
            r"include\[0\].topologies: .*mush",
        ),
        (
            {},
            "[[include]]\ntraces = ['lu.A.4']\ntopologies = ['mesh:2x2']\nmappers = ['swep']",
            r"include\[0\].mappers: unknown mapper 'swep'",
        ),
        ({}, "[[exclude]]", r"exclude\[0\]: empty: expected something that the scenario runs"),
        (
            {},
            "[[exclude]]\nmappers = ['scan']",
            r"exclude\[0\].mappers: 'scan': expected something",
        ),
        ({}, "[[exclude]]\ntraces = ['lu.S.2']", r"exclude\[0\].traces: 'lu.S.2': expected some"),
        ({}, "[[exclude]]\ntopologies = ['mesh:9']", r"exclude\[0\].topologies: 'mesh:9': expect"),
        ({}, "[[vary]]\nname = 'x'", r"key 'vary\[0\].parameters' is missing"),
        ({}, "[[vary]]\n[vary.parameters]", r"vary\[0\].parameters: {}: expected|should have"),
        ({}, "[[vary]]\nparameters.gap = []", r"vary\[0\].parameters.gap: \[\]: expected"),
        ({}, "[[vary]]\nparameters.gap = [[1]]", r"parameters.gap\[0\]: \[1\]: expected a number"),
        ({}, "[[vary]]\nparameters.gap = [-1]", "vary: gap -1: expected at least 0"),
        ({}, "[[vary]]\nparameters.gpa = [1]", "vary: unknown parameter 'gpa'"),
        ({}, "[[vary]]\nlabels = ['a']\nparameters.gap = [1, 2]", r"vary\[0\]: labels: 1 of them"),
    ]:
        with about(changes, more, message):
            file = write(tmp_path, more, **changes)
            with pytest.raises(ScenarioError, match=message) as error:
                load_scenario(file)
            assert str(error.value).startswith(f"{file}: ")
            assert "\n" not in str(error.value)


def test_more_runs_and_parameters_of_several_values_are_read(tmp_path):
    more = """
        [[include]]
        traces = ["lu.A.4"]
        topologies = ["mesh:2x2"]
        seeds = [7]
        [[exclude]]
        topologies = ["mesh:4x4"]
        mappers = ["random|bokhari(jumps=3)"]
        [[vary]]
        name = "radio"
        parameters.link.wireless.bandwidth = ["1 GB/s", 2e9]
    """
    scenario = load_scenario(write(tmp_path, more))
    first, second = scenario.groups
    assert (first.seeds, second.seeds) == ([0], [7])
    assert first.mappers == second.mappers == scenario.mappers
    assert list(scenario.crossed["traces"])[-1] == "lu.A.4"
    points = scenario.vary[0].points(topology_from_spec("haec:2x2x4"))
    assert [label for label, _ in points] == ["radio 1 GB/s", "radio 2000000000.0"]


def test_the_study_of_models_runs_every_mapping_under_all_of_them_or_none():
    path = scenario_path("models")
    models, of = {}, {}
    for run in plan(load_scenario(path), path.parent):
        models[run.variant] = run.settings
        of.setdefault((run.trace, run.topology, run.mapper), set()).add(run.variant)
    assert len({case[:2] for case in of}) == 24
    assert all(variants == set(models) for variants in of.values())
    square = topology_from_spec("torus:8x8")
    _, default = configure(square, models.pop("model default"))
    assert default == Parameters(compute_scale=0)
    for variant, settings in models.items():
        _, here = configure(square, settings)
        assert (here.network_buffer > 0) == ("buffers" in variant)
        assert (here.nic == "round_robin") == ("turns" in variant)
        fixed = ("buffers" in variant and "adaptive" not in variant) or "turns" in variant
        assert (here.network_routing == "deterministic") == fixed


def test_the_study_of_ienpc_and_time_halves_the_wireless_links_and_nothing_else():
    """Four speeds on the HAEC Box; meshes and tori have no wireless links and run once."""
    path = scenario_path("ienpc_time_energy")
    scenario = load_scenario(path)
    assert set(scenario.mappers) >= {
        *("sweep", "scan", "peano", "gray", "hilbert"),
        *("bokhari", "minmd", "genetic", "random_sampling"),
    }
    runs = plan(scenario, path.parent)
    variants = {}
    for run in {(run.trace, run.topology, run.variant): run for run in runs}.values():
        topology, parameters = configure(topology_from_spec(run.topology), run.settings)
        assert parameters.compute_scale == 0
        assert topology.nodes == int(run.trace.name.rpartition(".")[2])
        speeds = tuple(kind.bandwidth for kind in topology.kinds)
        variants.setdefault(run.topology.partition(":")[0], {})[run.variant] = speeds
    optical = 31.25e9
    assert variants["mesh"] == variants["torus"] == {"": (optical,)}
    assert variants["haec"] == {
        f"optical:wireless {ratio}:1": (optical, optical / ratio) for ratio in (1, 2, 5, 10)
    }
    cells = {(run.trace.name, run.topology, run.variant, run.mapper, run.seed) for run in runs}
    assert len(cells) == len(runs) == len({run.run_id for run in runs})


def test_a_link_kind_needs_to_be_on_one_topology_only(tmp_path):
    """A sweep over a mesh and a HAEC Box may set the speed of wireless links."""
    file = write(tmp_path, "[parameters]\n'link.wireless.bandwidth' = '100 Gbit/s'")
    assert load_scenario(file).parameters


def test_a_shipped_scenario_goes_by_its_name_unless_a_file_has_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert scenario_path("first").name == "first.toml"
    assert scenario_path("first").is_file()
    (tmp_path / "first").write_text("")
    assert scenario_path("first") == Path("first")
    assert scenario_path("none.toml") == Path("none.toml")


def test_keys_and_parameters_are_set_over_the_file(tmp_path):
    file = write(tmp_path, more='[parameters]\ngap = 1e-6\nlink.latency = "1 us"\n')
    changes = ["seeds=[3, 4]", "mappers=sweep", "replay.engine=flow", "replay.steps=2"]
    scenario = load_scenario(file, [*changes, "gap=2 us", "link.bandwidth = 10 GB/s"])
    assert (scenario.seeds, scenario.mappers) == ([3, 4], ["sweep"])
    assert (scenario.replay.engine, scenario.replay.steps) == ("flow", 2)
    expected = {"gap": "2 us", "link.latency": "1 us", "link.bandwidth": "10 GB/s"}
    assert scenario.parameters == expected
    assert load_scenario(file, ["replay.engine=false"]).replay.engine is False
    fit = tmp_path / "fit.toml"
    fit.write_text('[parameters]\n"link.latency" = 2e-6\n"overhead.send" = "1 us"\n')
    fitted = load_scenario(file, ["overhead.send=3 us", str(fit)]).parameters
    assert fitted == {"gap": 1e-6, "link.latency": 2e-6, "overhead.send": "3 us"}


def test_what_cannot_be_set_is_named(tmp_path):
    for change, said in [
        ("seeds", "--set 'seeds': expected key=value"),
        ("mappers=[sweep]", "--set 'mappers=[sweep]': expected a list as TOML writes it"),
        ("seeds=x", "seeds[0]: 'x': expected"),
        ("replay.engin=flow", "unknown key 'replay.engin' (did you mean engine?)"),
        ("link.bandwith=1", "unknown parameter 'link.bandwith' (did you mean link.bandwidth?)"),
        ("gap=3", "--set gap: "),
        ("link.bandwidth=10", "link.bandwidth=10: expected a unit, like 10GB/s"),
        ("parameters.link.latency=2", "link.latency=2: expected a unit, like 1us"),
        ("nowhere.toml", "nowhere.toml: cannot be read"),
        ("name.x=3", "--set name.x: 'name' has no keys"),
        ("mapper=sweep", "--set mapper: unknown key (did you mean mappers?)"),
        ("seeds=[]", "seeds: []: expected at least one"),
        ("replay=false", "replay: False: expected a table [replay]"),
    ]:
        with about(change, said):
            file = write(tmp_path, more="[[vary]]\nparameters.gap = [1, 2]\n")
            with pytest.raises(ScenarioError) as caught:
                load_scenario(file, [change])
            assert said in str(caught.value)
            assert str(caught.value).startswith(("--set", "nowhere.toml"))


@pytest.mark.parametrize("wrong", ["vary = 3", "vary = [3]", "[[vary]]\nparameters = 4"])
def test_what_is_wrong_in_the_file_is_named_when_something_is_set_too(tmp_path, wrong):
    with pytest.raises(ScenarioError, match="vary"):
        load_scenario(write(tmp_path, more=wrong), ["link.bandwidth=1GB/s"])


def test_parameters_that_are_no_table_are_named_when_a_file_of_some_is_set(tmp_path):
    (tmp_path / "fit.toml").write_text("[parameters]\ngap = 1e-6\n")
    with pytest.raises(ScenarioError, match="parameters"):
        load_scenario(write(tmp_path, more="parameters = 3"), [str(tmp_path / "fit.toml")])


def test_what_is_set_away_may_still_be_excluded_and_have_parameters(tmp_path):
    more = (
        '[parameters]\n"link.wireless.bandwidth" = "1 GB/s"\n"link.bandwidth" = "2 GB/s"\n'
        '[[exclude]]\nmappers = ["random"]\ntopologies = ["haec:2x2x2"]\n'
    )
    lists = {"traces": ["lu.S.4"], "topologies": ["mesh:2x2", "haec:2x2x2"]}
    lists["mappers"] = ["sweep", "random"]
    file = write(tmp_path, more, **{key: json.dumps(value) for key, value in lists.items()})
    assert len(plan(load_scenario(file), tmp_path)) == 3
    for change in ("mappers=sweep", "topologies=mesh:2x2"):
        scenario = load_scenario(file, [change])
        assert len(plan(scenario, tmp_path)) == 2
    assert scenario.parameters == {"link.bandwidth": "2 GB/s"}
    with pytest.raises(ScenarioError, match=r"unknown parameter 'link\.wireless\.latency'"):
        load_scenario(file, ["topologies=mesh:2x2", "link.wireless.latency=1us"])
    with pytest.raises(ScenarioError, match=r"exclude\[0\]\..*: expected something"):
        file.write_text(file.read_text().replace('"random"]\nt', '"gray"]\nt'))
        load_scenario(file, ["topologies=mesh:2x2"])


def test_a_scenario_without_a_run_is_refused(tmp_path):
    file = write(tmp_path, more='[[exclude]]\nmappers = ["sweep"]\n', mappers='["sweep"]')
    with pytest.raises(ScenarioError, match="exclude leaves nothing to run"):
        plan(load_scenario(file), tmp_path)


def test_algorithms_do_not_vary_where_collectives_are_expanded(tmp_path):
    more = '[[vary]]\nparameters."collective.allreduce" = ["ring", "linear"]\n'
    with pytest.raises(ScenarioError, match=r"vary: collective\.allreduce: expected no algorithms"):
        load_scenario(write(tmp_path, more='collectives = "expand"\n' + more))


def test_published_numbers_are_looked_at_before_anything_runs(tmp_path):
    for text, said in [
        ("topology,mapper,ienpc_total\nmesh,sweep,1\n", "no column 'trace': expected the header"),
        ("", "cannot be read as CSV"),
        ("trace,topology,mapper\nlu.S.4,torus:2x2,sweep\n", "first about lu.S.4 on torus:2x2"),
        ("trace,topology,mapper\nlu.S.4\n7,8,9\n", "2 rows, the first about lu.S.4 on : expected"),
    ]:
        with about(text, said):
            (tmp_path / "paper.csv").write_text(text)
            with pytest.raises(ScenarioError, match=said):
                load_scenario(write(tmp_path, more='published.file = "paper.csv"\n'))

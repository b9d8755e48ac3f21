"""Scenario files: what is accepted, and one line for everything else."""

from pathlib import Path

import pytest

from hopmap.scenarios.catalogue import CATALOGUE
from hopmap.scenarios.scenario import ScenarioError, load_scenario, scenario_path

DATA = Path(__file__).parent.parent / "data"
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
    assert scenario.replay.engine == "simpy"
    assert [source.kind for source in scenario.sources(tmp_path)] == ["archive", "benchmark"]


def test_sections_are_read(tmp_path):
    (tmp_path / "paper.csv").write_text("trace,topology,mapper,ienpc_total\n")
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


@pytest.mark.parametrize("entry", CATALOGUE["scenarios"](), ids=lambda entry: entry["name"])
def test_every_shipped_scenario_is_right(entry):
    path = scenario_path(entry["name"])
    assert load_scenario(path).name == entry["summary"]


@pytest.mark.parametrize(
    ("changes", "more", "message"),
    [
        ({"name": None}, "", "key 'name' is missing"),
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
        ({"traces": '["cg.C.64"]'}, "", "traces: cg.C.64: cg cannot be generated"),
        ({"traces": '["lu.S.4", "LU.S.4"]'}, "", "two are called 'lu.S.4'"),
        ({"topologies": '["torus:0x4"]'}, "", "topologies: topology 'torus:0x4'"),
        ({"topologies": '["mesh:4", "mesh:4"]'}, "", "topologies: 'mesh:4' is listed twice"),
        (
            {"mappers": '["a|b", "a | b"]'.replace("a", "random").replace("b", "bokhari")},
            "",
            "twice",
        ),
        ({"mappers": '["swep"]'}, "", r"mappers: unknown mapper 'swep' \(did you mean sweep\?\)"),
        ({"mappers": '["bokhari(x=1)"]'}, "", "mappers: mapper bokhari: unknown parameter 'x'"),
        ({"seeds": "[-1]"}, "", r"seeds\[0\]: -1: expected greater than or equal to 0"),
        ({"seeds": "[1.5]"}, "", r"seeds\[0\]: 1.5: expected a valid integer"),
        ({"seeds": "[true]"}, "", r"seeds\[0\]: True: expected a valid integer"),
        ({"seeds": "[1, 1]"}, "", "seeds: 1 is listed twice"),
        ({"topologys": '["mesh:4"]'}, "", r"unknown key 'topologys' \(did you mean topologies\?\)"),
        ({}, "[replay]\nengin = 'simpy'", r"unknown key 'replay.engin' \(did you mean engine\?\)"),
        ({}, "[replay]\nengine = 'simpi'", "replay.engine: 'simpi' .did you mean simpy"),
        ({}, "[replay]\nengine = true", "replay.engine: True: expected"),
        ({}, "[replay]\nsteps = 0", "replay.steps: 0: expected greater"),
        ({}, "[parameters]\n'link.bandwith' = 1", "parameters: unknown parameter 'link.bandwith'"),
        ({}, "[parameters]\n'eager_limt' = 1", "did you mean eager_limit"),
        ({}, "[parameters]\n'link.copper.latency' = 1", "unknown parameter 'link.copper.latency'"),
        ({}, "[parameters]\n'link.bandwidth' = '10 GB'", "link.bandwidth: '10 GB': unknown unit"),
        ({}, "[parameters]\n'link.bandwidth' = 0", "bandwidth 0.0: expected > 0"),
        ({}, "[parameters]\n'switching' = 'fast'", "switching 'fast': expected one of"),
        ({}, "[parameters]\n'eager_limit' = [1]", r"parameters.eager_limit: \[1\]: expected"),
        ({}, "[published]\nfile = 'none.csv'", "published.file: 'none.csv': expected a CSV file"),
        ({}, "[published", "cannot be read as a scenario"),
    ],
)
def test_anything_wrong_is_one_line_with_file_key_and_value(tmp_path, changes, more, message):
    file = write(tmp_path, more, **changes)
    with pytest.raises(ScenarioError, match=message) as error:
        load_scenario(file)
    assert str(error.value).startswith(f"{file}: ")
    assert "\n" not in str(error.value)


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

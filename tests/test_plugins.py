"""Mappers and topologies of one's own, from files, modules and installed packages."""

import json
import os

import pytest

from hopmap.mappers import MAPPERS, get_mapper, mapper_source
from hopmap.plugins import VARIABLE, NotInstalledError, Table, load_entry_points
from hopmap.scenarios.sweep.workers import write_slurm_array
from hopmap.topologies import MappingError, topology_from_spec
from support.commands import as_json, failed, hopmap, invoke

pytestmark = pytest.mark.usefixtures("forgetting")

OWN = """
import networkx as nx
import own_numbers
from hopmap.mappers import mapper
from hopmap.topologies import from_networkx, topology_family

@mapper("{name}")
def backwards(traffic, topology, first=3):
    return own_numbers.down(first)

@topology_family("wheel-{name}")
def wheel(words):
    return from_networkx(nx.wheel_graph(int(words)))
"""
NUMBERS = "def down(first):\n    return range(first, -1, -1)\n"


@pytest.fixture
def plugin(tmp_path):
    file = tmp_path / "own.py"
    file.write_text(OWN.format(name="mine"))
    (tmp_path / "own_numbers.py").write_text(NUMBERS)
    return file


def test_a_file_brings_a_mapper_and_a_topology(plugin, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "map.csv"
    words = ["-t", "wheel-mine:4", "--mapper", "mine(first=3)", "--out", out]
    assert "mine(first=3)" in hopmap("--plugin", "own.py", "map", "stencil:2x2,5pt", *words)
    assert out.read_text().endswith("0,3\n1,2\n2,1\n3,0\n")
    assert "wheel-mine:4" in out.read_text()
    assert mapper_source("mine") == str(plugin)
    assert "mine" in hopmap("list", "mappers")
    assert "wheel-mine" in hopmap("list", "topologies")


def test_a_plugin_may_stand_behind_the_command(plugin, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["map", "stencil:2x2,5pt", "-t", "wheel-mine:4", "--mapper", "mine(first=3)"]
    assert "mine(first=3)" in hopmap(*words, "--plugin", "own.py")
    assert "wheel-mine" in hopmap("list", "topologies", f"--plugin={plugin}")
    assert "gone.py: no such file: expected a Python file" in failed("list", "--plugin", "gone.py")


def test_a_mistake_in_a_mapper_of_ones_own_is_not_hopmaps(plugin, tmp_path):
    (tmp_path / "own_numbers.py").write_text("def down(first):\n    return first / 0\n")
    words = ["map", "stencil:2x2,5pt", "-t", "torus:4", "--mapper", "mine"]
    result = invoke(["--plugin", str(plugin), *words])
    assert result.exit_code == 2
    said = f"mapper mine, {plugin}, line 9: ZeroDivisionError: division by zero"
    assert said in result.stderr


def test_the_variable_alone_names_plugins(plugin, monkeypatch):
    with pytest.raises(MappingError, match="unknown mapper 'mine'"):
        get_mapper("mine")
    monkeypatch.setenv(VARIABLE, os.pathsep.join(["json", str(plugin)]))
    assert get_mapper("mine").parameters[0].default == 3
    assert topology_from_spec("wheel-mine:5").spec == "wheel-mine:5"
    assert mapper_source("sweep").endswith("node_orders.py")


def test_a_module_is_a_plugin(plugin, monkeypatch):
    monkeypatch.syspath_prepend(plugin.parent)
    assert "mine" in hopmap("--plugin", "own", "list", "mappers")


@pytest.mark.slow
def test_workers_of_a_scenario_have_the_plugin(plugin, tmp_path):
    scenario = tmp_path / "s.toml"
    scenario.write_text(
        'name = "own"\ntraces = ["lu.S.4"]\ntopologies = ["mesh:2x2"]\nmappers = ["mine"]\n'
        "seeds = [1, 2]\n[replay]\nengine = false\n"
    )
    words = ["--plugin", plugin, "run", scenario, "--out", tmp_path / "out", "--workers", 2]
    hopmap(*words)
    rows = hopmap("query", tmp_path / "out", "select mapper, node_of from runs", "--json")
    assert json.loads(rows) == [{"mapper": "mine", "node_of": [3, 2, 1, 0]}]  # it draws nothing


def test_tasks_of_a_job_array_load_the_plugin(plugin, tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(plugin))
    script = write_slurm_array(tmp_path, ["a"], ["s.toml"])
    assert f"hopmap --plugin {plugin} run s.toml" in script.read_text()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "no such file"),
        ("x = 1\ny = z\n", "line 2: NameError: name 'z' is not defined"),
        ("def f(:\n", "SyntaxError: invalid syntax (broken.py, line 1)"),
        (OWN.format(name="sweep"), "two mappers are called 'sweep'"),
        (OWN.replace("first=3", "first").format(name="mine"), "mapper mine: parameter first: "),
    ],
)
def test_a_plugin_that_cannot_be_loaded_is_one_line(text, said, tmp_path):
    file = tmp_path / "broken.py"
    (tmp_path / "own_numbers.py").write_text(NUMBERS)
    if text is not None:
        file.write_text(text)
    result = invoke(["--plugin", str(file), "list", "mappers"])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"hopmap: plugin {file}")
    assert result.stderr.count("\n") == 1
    assert said in result.stderr
    file.write_text(OWN.format(name="mended"))
    assert "mended" in hopmap("--plugin", file, "list", "mappers")
    missing = invoke(["--plugin", "own_nowhere", "list", "mappers"])
    assert "No module named 'own_nowhere'" in missing.stderr
    assert missing.exit_code == 2


def install(folder, points):
    """Write what says of a package that it has entry points."""
    info = folder / "own-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(points)


def test_installed_packages_offer_mappers_and_topologies(tmp_path, monkeypatch):
    load_entry_points.cache_clear()
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own.py").write_text(OWN.format(name="mine"))
    (tmp_path / "own_numbers.py").write_text(
        "import networkx as nx\nfrom hopmap.topologies import from_networkx\n" + NUMBERS + "\n"
        "def plain(traffic, topology):\n    return range(traffic.ranks)\n\n"
        "def star(words):\n    return from_networkx(nx.star_graph(int(words) - 1))\n"
    )
    install(
        tmp_path,
        "[hopmap.mappers]\nmine = own\nplain = own_numbers:plain\nlost = own_nowhere:it\n"
        "[hopmap.topologies]\nstar = own_numbers:star\n",
    )
    with pytest.warns(UserWarning, match=r"hopmap.mappers: lost .* is left out: ModuleNotFound"):
        assert get_mapper("plain").initial == "ignored"
    assert get_mapper("mine").parameters[0].name == "first"
    star = topology_from_spec("star:5")
    assert (star.nodes, star.spec) == (5, "star:5")
    with pytest.raises(ValueError, match=r"topology 'star:five': invalid literal"):
        topology_from_spec("star:five")
    with pytest.raises(ValueError, match=r"topology 'star:': '': expected words for star"):
        topology_from_spec("star:")
    assert "star" in hopmap("list", "topologies")


@pytest.mark.parametrize("module", ["gone", "gone.far", "greedy.gone"])
def test_a_name_whose_module_was_taken_out_is_said_in_one_line_and_not_listed(module, monkeypatch):
    table = Table("hopmap.mappers", {"here": "orders.node_orders:scan", "there": f"{module}:scan"})
    assert list(table) == ["here"]
    assert table["here"].__name__ == "scan"
    monkeypatch.setitem(MAPPERS.data, "there", module)
    assert "there" not in [entry["name"] for entry in as_json("list", "mappers")]
    for ask in (lambda: table["there"], lambda: get_mapper("there")):
        with pytest.raises(
            NotInstalledError,
            match=rf"^hopmap\.mappers\.{module} is not part of this installation$",
        ):
            ask()
    said = invoke(["map", "lu.S.4", "-t", "mesh:2x2", "-m", "there"])
    assert said.output == f"hopmap: hopmap.mappers.{module} is not part of this installation\n"

"""The lock file says what the results were made from."""

import tomllib
from importlib.metadata import version

from hopmap.scenarios.results import store
from hopmap.scenarios.sweep.run import run_scenario
from hopmap.scenarios.sweep.scenario_files import load_scenario
from hopmap.traces.sources import open_source
from support import DATA

LU = DATA / "lu.S.4"


def test_versions_digests_defaults_and_every_run_are_in_it(tmp_path):
    file = tmp_path / "study.toml"
    file.write_text(
        f'name="s"\ntraces=["{LU}", "cg.S.4"]\ntopologies=["mesh:2x2"]\n'
        'mappers=[" random"]\nseeds=[4, 7]\n'
        '[replay]\nengine = "analytic"\n[parameters]\n"link.bandwidth" = "8 Gbit/s"\n'
    )
    run_scenario(file, load_scenario(file), tmp_path / "out")
    lock = tomllib.loads((tmp_path / "out/scenario.lock.toml").read_text())
    assert lock["hopmap"] == version("hopmap")
    assert lock["packages"]["numpy"] == version("numpy")
    assert lock["traces"]["lu.S.4"]["digest"] == open_source(LU).digest()
    assert lock["scenario"]["replay"] == {
        "engine": "analytic",
        "messages": False,
        "extrapolate": True,
    }
    assert lock["traces"]["cg.S.4"].keys() == {"kind", "digest"}  # generated: nowhere on a disk
    runs = store.load_results(tmp_path / "out")
    assert list(lock["runs"]) == runs["run_id"].tolist()
    assert [run["seed"] for run in lock["runs"].values()] == [4, 7, 4, 7]
    first = next(iter(lock["runs"].values()))
    assert (first["mapper"], first["parameters"]) == ("random", {"link.bandwidth": 1e9})

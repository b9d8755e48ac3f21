"""Commands load no more than they need."""

import json
import subprocess
import sys

import pytest

from hopmap.cli.listing import CATALOGUE
from hopmap.plugins import is_installed
from hopmap.traces import load_traffic, save_traffic

MEASURED = is_installed("hopmap.simulator.measured", "known_names")

RUN = """
import json, sys
from typer.testing import CliRunner
from hopmap.cli.app import app
for words in json.loads(sys.argv[1]):
    assert CliRunner().invoke(app, words).exit_code == 0, words
heavy = "numba", "scipy", "pandas", "matplotlib", "pyarrow", "networkx", "simpy"
print(sorted({name.partition(".")[0] for name in sys.modules} & {*heavy}))
"""


@pytest.fixture
def files(tmp_path):
    (tmp_path / "pairs.csv").write_text("src,dst,messages,bytes\n0,1,1,8\n1,2,1,8\n")
    (tmp_path / "map.csv").write_text("# hopmap mapping on torus:4\nrank,node\n0,0\n1,1\n2,2\n")
    return tmp_path


def loaded_by(*commands):
    done = subprocess.run(
        [sys.executable, "-c", RUN, json.dumps([[str(word) for word in c] for c in commands])],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_commands_that_compute_nothing_load_no_compiler(files):
    save_traffic(files / "pairs.npz", load_traffic(files / "pairs.csv"))
    assert (
        loaded_by(
            *(["list", noun] for noun in CATALOGUE if noun != "measured-names" or MEASURED),
            *(["info", files / f"pairs.{suffix}"] for suffix in ("npz", "csv")),
            *(["export", files / "map.csv", "--to", form] for form in ("openmpi", "slurm", "csv")),
        )
        == "[]"
    )


def test_a_replay_loads_what_its_engine_needs(files):
    traffic, mapping = files / "pairs.csv", files / "map.csv"
    assert loaded_by(["simulate", traffic, mapping]) == "['numba', 'scipy']"

"""First calls compile few functions, and few of them for several kinds of arguments."""

import json
import subprocess
import sys

import pytest

from support import DATA, ROOT

MG = str(DATA / "mg.S.16")
COMMANDS = {
    f"map {MG} -t torus:4x2x2 -m auto": 50,
    f"simulate {MG} m.csv -t torus:4x2x2": 120,
    f"explain {MG} m.csv -t torus:4x2x2": 170,
    "run first --out results": 70,
}


@pytest.mark.slow
@pytest.mark.usefixtures("compiled")
def test_first_calls_compile_no_more_than_they_did(tmp_path):
    (tmp_path / "m.csv").write_text("rank,node\n" + "".join(f"{r},{r}\n" for r in range(16)))
    script = ROOT / "benchmarks" / "cold_start" / "kernels.py"
    for command, most in COMMANDS.items():
        done = subprocess.run(
            [sys.executable, script, "--json", *command.split()],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        assert json.loads(done.stdout.splitlines()[-1])["compilations"] <= most, command

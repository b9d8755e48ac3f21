"""What the first call of each command costs: ``python benchmarks/cold_start/commands.py``.

Processor seconds of a command, its start included, with an empty folder of compiled code and again
with what the first call left there. The aim is that no first call takes more than 5 s more.
An installation has compiled what most of them need; with ``HOPMAP_CARRIED=0`` they compile it.
``--only map`` measures rows with that word. Quarter of an hour of one core.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
MG, LU = str(DATA / "mg.S.16"), str(DATA / "lu.S.4")
COMMAND = [sys.executable, "-c", "from hopmap.scenarios.cli.app import main; main()"]
AIM = 5.0
PLACED = "rank,node\n" + "".join(f"{rank},{rank}\n" for rank in range(16))
TWO_RUNS = f"""
name = "two"
traces = ["{MG}"]
topologies = ["torus:4x2x2"]
mappers = ["sweep", "minmd"]
"""
WORDS = {
    "map auto, torus": f"map {MG} -t torus:4x2x2 -m auto --seconds 1",
    "map auto, fat tree": f"map {MG} -t fattree:4x4 -m auto --seconds 1",
    "map auto, dragonfly": f"map {MG} -t dragonfly:2x4x2 -m auto --seconds 1",
    "map auto, makespan": f"map {MG} -t torus:4x2x2 -m auto --seconds 1 --objective makespan",
    "map annealing": f"map {MG} -t torus:4x2x2 -m annealing --seconds 1",
    "simulate, simpy": f"simulate {MG} m.csv -t torus:4x2x2 --engine simpy",
    "simulate, compiled": f"simulate {MG} m.csv -t torus:4x2x2",
    "simulate, flow": f"simulate {MG} m.csv -t torus:4x2x2 --engine flow",
    "simulate, finite buffers": f"simulate {MG} m.csv -t torus:4x2x2 --set network.buffer=4 "
    "--set network.virtual_channels=2",
    "simulate, adaptive routes": f"simulate {MG} m.csv -t torus:4x2x2 "
    "--set network.routing=adaptive",
    "simulate --perfetto --otf2": f"simulate {MG} m.csv -t torus:4x2x2 --perfetto p.json --otf2 o",
    "explain": f"explain {MG} m.csv -t torus:4x2x2",
    "convert": f"convert {MG} --to simgrid --out converted",
    "run of two runs": "run two.toml --out results",
    "run of the main job": f"run {ROOT / 'scenarios' / 'first.toml'} --out results",
    "info": f"info {MG}",
    "matrix --collectives expand": f"matrix {MG} --collectives expand --out m.npz",
}


def spent(words: str, cache: Path) -> float:
    """Processor seconds of a command, its own process's start included."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "two.toml").write_text(TWO_RUNS)
        Path(folder, "m.csv").write_text(PLACED)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [*COMMAND, *words.split()],
            check=True,
            capture_output=True,
            cwd=folder,
            env=os.environ | {"NUMBA_CACHE_DIR": str(cache)},
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", metavar="WORD")
    only = parser.parse_args().only
    print("| command | first | second | more | |\n|---|---:|---:|---:|---|")
    late = 0
    for name, words in WORDS.items():
        if only in name:
            with tempfile.TemporaryDirectory() as cache:
                first, second = (spent(words, Path(cache)) for _ in range(2))
            mark = "" if first - second <= AIM else "**beyond**"
            late += bool(mark)
            row = f"| {name} | {first:.1f} s | {second:.1f} s | {first - second:.1f} s | {mark} |"
            print(row, flush=True)
    return int(late > 0)


if __name__ == "__main__":
    sys.exit(main())

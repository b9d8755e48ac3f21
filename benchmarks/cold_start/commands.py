"""What a command costs before it works: ``python benchmarks/cold_start/commands.py``.

Prints processor seconds of whole processes, the median of three: with an empty cache of compiled
code, and again with the cache that the first call left. ``--only simulate`` measures the rows with
that word, ``--times 1`` measures once. Ten minutes of one core.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
MG = ROOT / "tests" / "data" / "mg.S.16"
PLACED = "rank,node\n" + "".join(f"{rank},{rank}\n" for rank in range(16))
# What is typed, and the aims in processor seconds: with an empty cache, and with a full one.
COMMANDS: dict[str, tuple[float | None, float | None]] = {
    "--version": (None, 0.25),
    "--help": (None, 0.25),
    "list mappers": (None, 0.45),
    "info mg.npz": (None, 0.45),
    "export m.csv --to slurm -t torus:4x2x2 --out x": (None, 0.45),
    "info MG": (None, 1.0),
    "evaluate mg.npz m.csv -t torus:4x2x2": (None, 1.1),
    "map mg.npz -t torus:4x2x2 -m hilbert": (None, 1.1),
    "simulate MG m.csv -t torus:4x2x2": (11, 1.2),
    "explain MG m.csv -t torus:4x2x2": (16, 1.2),
    "map MG -t torus:4x2x2 -m auto": (25, None),
    "map lu.C.64 -t torus:4x4x4 -m auto --seconds 1": (None, None),
    "map lu.C.64 -t fattree:8x8 -m auto --seconds 1": (None, None),
    "map lu.C.64 -t torus:4x4x4 -m auto --objective max_link_load --seconds 1": (None, None),
    "simulate MG m.csv -t torus:4x2x2 --engine flow": (None, None),
    "simulate MG m.csv -t torus:4x2x2 --set network.buffer=4 --set network.virtual_channels=2": (
        None,
        None,
    ),
    "simulate MG m.csv -t torus:4x2x2 --set network.routing=adaptive": (None, None),
    "run first --out results": (15, None),
}


def spend(command: str, cache: str) -> float:
    """Run a command in a new folder; return processor seconds of its processes."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "m.csv").write_text(PLACED)
        if "mg.npz" in command:
            run(f"matrix {MG} --out mg.npz", folder, cache)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run(command.replace("MG", str(MG)), folder, cache)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def run(command: str, folder: str, cache: str) -> None:
    subprocess.run(
        [
            sys.executable,
            "-c",
            "from hopmap.cli.app import main; main()",
            *command.split(),
        ],
        check=True,
        capture_output=True,
        cwd=folder,
        env=os.environ | {"NUMBA_CACHE_DIR": cache},
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", metavar="WORD")
    parser.add_argument("--times", type=int, default=3, metavar="N")
    options = parser.parse_args()
    print("| command | first call | aim | later calls | aim |\n|---|---:|---:|---:|---:|")
    for command, (first_aim, later_aim) in COMMANDS.items():
        if options.only not in command:
            continue
        first, later = [], []
        for _ in range(options.times):
            with tempfile.TemporaryDirectory() as cache:
                first.append(spend(command, cache))
                later.append(spend(command, cache))
        cells = [statistics.median(first), first_aim, statistics.median(later), later_aim]
        shown = " | ".join("" if cell is None else f"{cell:.2f} s" for cell in cells)
        print(f"| `{command}` | {shown} |", flush=True)


if __name__ == "__main__":
    main()

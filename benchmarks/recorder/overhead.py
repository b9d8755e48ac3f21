"""What recording costs: loops bare, with counts only, and recorded, under an MPI.

    python benchmarks/recorder/overhead.py [--mpicc mpicc.mpich] [--mpirun mpirun.mpich]

Runs take turns; each prints the least time a step of 40 times many, and the least of all rounds is
shown. The ping-pong needs two cores that nothing else uses; the other loop counts its CPU time.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from pathlib import Path

from hopmap.traces.recorder.build import build
from hopmap.traces.recorder.launch import launcher_of, with_library

HERE = Path(__file__).parent
LOOPS = (("pingpong", "0"), ("pingpong", "8192"), ("pingpong", "1048576"), ("halo", "8192"))
PROCESSES = {"pingpong": "2", "halo": "1"}
HOW = ("bare", "profile", "recorded")
ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mpicc", default="mpicc")
    parser.add_argument("--mpirun", default="mpirun")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="one of the loops, pingpong or halo")
    options = parser.parse_args()
    built = build(options.mpicc)
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "loops"
        words = [options.mpicc, "-O2", str(HERE / "loops.c"), "-o", str(program)]
        subprocess.run(words, check=True)
        print(f"{'':18}{'bare':>10}{'profile':>10}{'recorded':>10}{'profile':>9}{'recorded':>9}")
        for loop, size in LOOPS:
            if options.only not in ("", loop):
                continue
            times: dict[str, list[float]] = {how: [] for how in HOW}
            for turn in range(options.rounds):
                for how in HOW:
                    raw = Path(folder) / f"{loop}-{size}-{how}-{turn}"
                    raw.mkdir()
                    command = [options.mpirun, "-np", PROCESSES[loop], str(program), loop, size]
                    times[how].append(seconds(command, how, built, raw))
            bare, profile, recorded = (min(times[how]) for how in HOW)
            print(
                f"{loop:9}{int(size):>9,}{bare * 1e6:>7.2f} us{profile * 1e6:>7.2f} us"
                f"{recorded * 1e6:>7.2f} us{profile / bare:>9.3f}{recorded / bare:>9.3f}"
            )


def seconds(command: list[str], how: str, built, raw: Path) -> float:
    """Run a loop, and return what it prints."""
    new: dict[str, str] = {}
    if launcher_of(command) == "openmpi":
        command = [command[0], "--oversubscribe", "--bind-to", "none", *command[1:]]
    if how != "bare":
        settings = {"HOPMAP_RECORD_DIR": str(raw)}
        if how == "profile":
            settings["HOPMAP_RECORD_PROFILE"] = "1"
        command, new = with_library(command, built, settings, {})
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, env=os.environ | ROOT | new
    )
    return float(done.stdout)


if __name__ == "__main__":
    main()

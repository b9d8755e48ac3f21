"""Compare the recorder with Score-P: what both record of the same programs.

    python benchmarks/recorder/scorep.py [PROGRAM ...]     needs scorep, mpicc and mpirun

Programs of tests/traces/recorder, each run twice. A row a program: ranks; ranks whose calls of MPI
have the same names in the same order in both; pairs, messages and bytes between ranks, of the
recorder and of Score-P; members of collective operations, likewise. Where calls differ, the first
that do.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from hopmap.traces import Kind, Trace, read_trace, traffic_of
from hopmap.traces.recorder.build import HOOKS

PROGRAMS = Path(__file__).parents[2] / "tests" / "traces" / "recorder" / "programs"
RANKS = {
    "messages.c": 4,
    "stencil.c": 4,
    "collectives.c": 4,
    "requests.c": 2,
    "groups.c": 4,
    "windows.c": 4,
    "threads.c": 2,
    "halo.f90": 3,
    "halo_mpif.f90": 3,
}
RECORDED = {name.lower().removeprefix("mpi_") for name in HOOKS}
ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", nargs="*", default=list(RANKS))
    print("program         ranks  equal calls       pairs    messages        bytes  collectives")
    for name in parser.parse_args().programs:
        with tempfile.TemporaryDirectory() as folder:
            try:
                ours, theirs = both(PROGRAMS / name, RANKS[name], Path(folder))
            except subprocess.CalledProcessError as error:
                print(f"{name:<15} {error.stderr.decode(errors='replace').strip()[:300]}")
                continue
        equal = [calls(ours, r) == calls(theirs, r) for r in range(ours.ranks)]
        figures = [
            f"{a:,}" if a == b else f"{a:,}/{b:,}"
            for a, b in zip(sums(ours), sums(theirs), strict=True)
        ]
        print(
            f"{name:<15} {ours.ranks:>5}  {sum(equal):>11}  {figures[0]:>10}  {figures[1]:>10}  "
            f"{figures[2]:>11}  {figures[3]:>11}",
            flush=True,
        )
        if False in equal:
            rank = equal.index(False)
            print(f"    rank {rank}: {first_difference(calls(ours, rank), calls(theirs, rank))}")


def both(program: Path, ranks: int, folder: Path) -> tuple[Trace, Trace]:
    """Record a program, and run it under Score-P."""
    compiler = ["mpicc"] if program.suffix == ".c" else ["mpif90"]
    bare, measured = folder / "bare", folder / "measured"
    subprocess.run([*compiler, program, "-o", bare, "-lm", "-pthread"], check=True, cwd=folder)
    wrapped = ["scorep", "--nocompiler", "--thread=none", *compiler]
    subprocess.run([*wrapped, program, "-o", measured, "-lm", "-pthread"], check=True, cwd=folder)
    start = ["mpirun", "--oversubscribe", "-np", str(ranks)]
    quiet = {"cwd": folder, "capture_output": True, "check": True}
    out = folder / "ours.otf2"
    record = ["hopmap", "record", "--out", out, "--", *start, bare]
    subprocess.run(record, env=os.environ | ROOT, **quiet)
    tracing = {"SCOREP_ENABLE_TRACING": "1", "SCOREP_ENABLE_PROFILING": "0"}
    tracing |= {"SCOREP_EXPERIMENT_DIRECTORY": "theirs", "SCOREP_MPI_ENABLE_GROUPS": "all"}
    subprocess.run([*start, measured], env=os.environ | ROOT | tracing, **quiet)
    return read_trace(out), read_trace(folder / "theirs" / "traces.otf2")


def calls(trace: Trace, rank: int) -> list[str]:
    """Names of the MPI functions that a rank enters, in order, of those that the recorder knows."""
    rows = slice(trace.offsets[rank], trace.offsets[rank + 1])
    entered = trace.ref[rows][trace.kind[rows] == Kind.ENTER]
    names = [trace.regions[ref].lower() for ref in entered]
    return [name for name in names if name.removeprefix("mpi_") in RECORDED]


def sums(trace: Trace) -> tuple[int, int, int, int]:
    """Pairs, messages, bytes between ranks, and calls of collectives over all ranks."""
    traffic = traffic_of(trace)
    ends = int(np.count_nonzero(trace.kind == Kind.COLLECTIVE_END))
    return len(traffic.src), int(traffic.messages.sum()), int(traffic.bytes.sum()), ends


def first_difference(ours: list[str], theirs: list[str]) -> str:
    """Say where two lists part."""
    for place, (one, other) in enumerate(zip(ours, theirs, strict=False)):
        if one != other:
            return f"call {place}: {one}, Score-P {other}"
    return f"{len(ours)} calls, Score-P {len(theirs)}"


if __name__ == "__main__":
    main()

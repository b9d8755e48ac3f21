"""Packet-hops of the compiled engine, from sparse to dense: ``python benchmarks/replay/dense.py``.

LU and CG, and all-to-alls of 64 KiB in rounds (pairwise) or all posted at once, on 64 to 4,096
ranks. They are at random on tori and a fat tree, without computation. Beyond 512 ranks, of an
all-to-all each rank has 128 partners, evenly spaced. Nanoseconds are processor time of the engine
alone, compilation apart. "Peak" is memory of the whole process, MiB.

``--before FOLDER`` measures another checkout in turn with this one, in processes of their own, and
checks that makespans are equal. Columns are the best of both, and the median ratio.
``--only once`` measures the cases with that word; ``--times 1`` once each, instead of three times.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from hopmap.simulator import ENGINES, Parameters, Program, lower
from hopmap.simulator.operations import NOTHING
from hopmap.simulator.programs.program import Op, with_finishes
from hopmap.simulator.run_plan import plan_run
from hopmap.topologies import topology_from_spec
from hopmap.traces import nas_folded

ROOT = Path(__file__).resolve().parents[2]
SIZE = 1 << 16
ALL, PARTNERS = 512, 128  # ranks up to which all are partners, and partners beyond
TORI = {64: "4x4x4", 128: "8x4x4", 256: "8x8x4", 512: "8x8x8"} | {
    1024: "16x8x8",
    2048: "16x16x8",
    4096: "16x16x16",
}
STEPS = {"lu.B.64": 20, "lu.B.256": 8, "lu.B.1024": 2, "lu.D.4096": 1} | {
    "cg.B.64": 4,
    "cg.B.256": 2,
    "cg.B.1024": 1,
    "cg.B.4096": 1,
}
NAMES = [*STEPS, *(f"{way}.{ranks}" for way in ("pairwise", "once") for ranks in TORI)]
CASES = [(name, f"torus:{TORI[int(name.rpartition('.')[2])]}") for name in NAMES]
CASES.append(("once.256", "fattree:16x16:1x16"))


def alltoall(rounds: bool, ranks: int) -> Program:
    """Every rank sends to its partners: of each round it waits for both, or in the end for all."""
    partners = ranks - 1 if ranks <= ALL else PARTNERS
    shift = 1 + np.arange(partners) * (ranks - 1) // partners
    steps = np.arange(partners)
    first, width = (4 * steps, 1) if rounds else (steps, partners)
    own = np.arange(ranks)[:, None]
    shape = (ranks, 4 * partners)
    kind, peer = np.empty(shape, dtype=np.uint8), np.full(shape, -1, dtype=np.int32)
    size, target = np.zeros(shape, dtype=np.int64), np.full(shape, -1, dtype=np.int64)
    for part, (word, way) in enumerate(((Op.IRECV, -1), (Op.ISEND, 1))):
        begun, waited = first + part * width, first + (2 + part) * width
        kind[:, begun], size[:, begun] = word, SIZE
        peer[:, begun] = (own + way * shift) % ranks
        kind[:, waited], target[:, waited] = Op.WAIT, own * shape[1] + begun
    columns = {"kind": kind, "peer": peer, "size": size, "target": target}
    columns |= {"tag": np.where(peer < 0, -1, 0), "context": np.where(peer < 0, -1, 0)}
    return with_finishes(
        "all-to-all",
        ranks,
        np.repeat(np.arange(ranks), shape[1]),
        {name: column.ravel() for name, column in columns.items()},
    )


def program_of_case(name: str) -> Program:
    kind, _, ranks = name.rpartition(".")
    if kind in ("pairwise", "once"):
        return alltoall(kind == "pairwise", int(ranks))
    return lower(nas_folded(name, steps=STEPS[name]))


def measure(name: str, spec: str) -> dict[str, float]:
    """Replay a case, its kernels compiled; processor seconds of the engine, hops, makespan."""
    parameters = Parameters(compute_scale=0)
    topology = topology_from_spec("torus:2x2")
    run = ENGINES["compiled"].run
    run(plan_run(alltoall(True, 4), topology, np.arange(4), parameters), NOTHING, None)
    program, topology = program_of_case(name), topology_from_spec(spec)
    node_of = np.random.default_rng(0).permutation(topology.nodes)[: program.ranks]
    plan = plan_run(program, topology, node_of, parameters)
    seconds: list[float] = []
    while len(seconds) < 5 and sum(seconds) < 1:
        begin = time.process_time()
        outcome = run(plan, NOTHING, None)
        seconds.append(time.process_time() - begin)
    return {
        "seconds": min(seconds),
        "hops": outcome.events,
        "messages": plan.messages,
        "makespan": float(outcome.finish.max()),
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def measure_in(folder: Path, name: str, spec: str) -> dict[str, float]:
    """Likewise in a process of a checkout, which keeps its compiled code apart."""
    shown = subprocess.run(
        [sys.executable, __file__, "--case", name, spec],
        check=True,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(folder)},
    ).stdout
    found: dict[str, float] = json.loads(shown)
    return found


def table(folders: list[Path], only: str, times: int) -> None:
    print(
        f"{'traffic':<15}{'network':<19}{'messages':>9}{'packet-hops':>13}"
        f"{'before':>8}{'ns/hop':>8}{'ratio':>7}{'peak':>7}{'peak':>7}"
    )
    for name, spec in CASES:
        if only not in f"{name} {spec}":
            continue
        found = [[measure_in(folder, name, spec) for folder in folders] for _ in range(times)]
        assert len({(each["hops"], each["makespan"]) for turn in found for each in turn}) == 1
        one, hops = found[0][-1], found[0][-1]["hops"]
        least = [min(turn[k]["seconds"] for turn in found) for k in range(len(folders))]
        ratio = float(np.median([turn[-1]["seconds"] / turn[0]["seconds"] for turn in found]))
        print(
            f"{name:<15}{spec:<19}{one['messages']:>9}{hops:>13}"
            f"{least[0] / hops * 1e9:>8.1f}{least[-1] / hops * 1e9:>8.1f}{ratio:>7.2f}"
            f"{found[0][0]['peak']:>7.0f}{one['peak']:>7.0f}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, metavar="FOLDER")
    parser.add_argument("--only", default="", metavar="WORD")
    parser.add_argument("--times", type=int, default=3, metavar="N")
    parser.add_argument("--case", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        print(json.dumps(measure(*options.case)))
        return
    folders = [options.before or ROOT, ROOT]
    table(folders if options.before else folders[1:], options.only, options.times)


if __name__ == "__main__":
    main()

"""Compare flows with packets on dense and on sparse traffic: ``python benchmarks/replay/flows.py``.

All-to-alls of 64 KiB from every rank to every other, in p - 1 rounds (pairwise) or all sent at once
(linear), and generated benchmarks without their computation, at random on tori and fat trees.
Seconds are processor time of the engine alone, the least of a few runs, compilation apart; about
two minutes in all.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from hopmap.simulator import ENGINES, Parameters, Program, lower, program_of
from hopmap.simulator.operations import NOTHING
from hopmap.simulator.run_plan import plan_run
from hopmap.topologies import topology_from_spec
from hopmap.traces import nas_folded

SIZE = 1 << 16
DENSE = (
    ("pairwise", 64, "torus:4x4x4"),
    ("pairwise", 128, "torus:8x4x4"),
    ("pairwise", 256, "torus:8x8x4"),
    ("pairwise", 512, "torus:8x8x8"),
    ("pairwise", 256, "fattree:16x16:1x16"),
    ("linear", 64, "torus:4x4x4"),
    ("linear", 128, "torus:8x4x4"),
    ("linear", 256, "torus:8x8x4"),
)
SPARSE = (("cg.B.64", None), ("lu.B.64", 20), ("mg.C.64", None))  # time steps


def alltoall(algorithm: str, ranks: int) -> Program:
    """MPI_Alltoall as the algorithms of `hopmap list algorithms` have it."""
    steps = range(1, ranks)
    lists: list[list[tuple[Any, ...]]] = []
    for rank in range(ranks):
        receives = [("irecv", (rank - k) % ranks, SIZE) for k in steps]
        sends = [("isend", (rank + k) % ranks, SIZE) for k in steps]
        rounds = [(r, s) for r, s in zip(receives, sends, strict=True)]
        if algorithm == "linear":
            rounds = [(*receives, *sends)]
        operations: list[tuple[Any, ...]] = []
        for once in rounds:
            first = len(operations)
            operations += [*once, *(("wait", first + k) for k in range(len(once)))]
        lists.append(operations)
    return program_of(algorithm, lists)


def measured(program: Program, spec: str, engine: str) -> tuple[float, float]:
    """Least processor seconds of an engine, and the makespan."""
    topology = topology_from_spec(spec)
    node_of = np.random.default_rng(0).permutation(topology.nodes)[: program.ranks]
    plan = plan_run(program, topology, node_of, Parameters(compute_scale=0))
    seconds: list[float] = []
    while len(seconds) < 5 and sum(seconds) < 2:
        begin = time.process_time()
        outcome = ENGINES[engine].run(plan, NOTHING, None)
        seconds.append(time.process_time() - begin)
    return min(seconds), float(outcome.finish.max())


def table(cases: Sequence[tuple[str, str, Program]]) -> None:
    print(
        f"{'traffic':<16}{'ranks':>6}  {'network':<20}{'messages':>9}{'flow s':>9}"
        f"{'compiled s':>12}{'ratio':>7}{'flow ms':>10}{'compiled ms':>13}"
    )
    for name, spec, program in cases:
        (flow, span), (compiled, other) = (
            measured(program, spec, engine) for engine in ("flow", "compiled")
        )
        messages = int(program.iterations()[program.sends()].sum())
        print(
            f"{name:<16}{program.ranks:>6}  {spec:<20}{messages:>9}{flow:>9.3f}{compiled:>12.3f}"
            f"{flow / compiled:>7.2f}{span * 1e3:>10.4f}{other * 1e3:>13.4f}",
            flush=True,
        )


if __name__ == "__main__":
    for engine in ("flow", "compiled"):
        measured(alltoall("pairwise", 4), "torus:2x2", engine)  # compiles
    table([(algorithm, spec, alltoall(algorithm, p)) for algorithm, p, spec in DENSE])
    table([(name, "torus:4x4x4", lower(nas_folded(name, steps=steps))) for name, steps in SPARSE])

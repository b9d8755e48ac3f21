"""What many mappings of one program cost, against the bare loop of the engine; on two cores, too.

    python benchmarks/replay/batches.py

Bare is the compiled loop alone, of plans and tables that are ready. The others are whole calls of
`simulate`, one after the other and in two threads. Each row is the median of five turns.
"""

from __future__ import annotations

import time
from statistics import median
from typing import Any

import numpy as np

import hopmap as hm
from hopmap.simulator import Parameters, Program, in_threads, simulate
from hopmap.simulator.packets import compiled_engine as engine
from hopmap.simulator.run_plan import plan_run
from hopmap.topologies import Topology, topology_from_spec

CASES: tuple[tuple[str, str, dict[str, Any], int], ...] = (
    ("tests/data/mg.S.16", "torus:4x2x2", {}, 100),
    ("lu.C.64", "torus:4x4x4", {"steps": 20}, 20),
)


def bare(program: Program, network: Topology, mappings: list[np.ndarray]) -> float:
    """Seconds of the loop alone."""
    spent = 0.0
    for node_of in mappings:
        plan = plan_run(program, network, node_of, Parameters())
        state = engine._state(plan, engine.NOTHING)
        begin = time.perf_counter()
        engine._finish(plan, state, None)
        spent += time.perf_counter() - begin
    return spent


def whole(program: Program, network: Topology, mappings: list[np.ndarray], cores: int) -> float:
    """Seconds of whole calls on so many cores."""
    in_threads.cores = lambda: cores
    begin = time.perf_counter()
    for _ in in_threads.in_threads(
        lambda node_of, check: simulate(program, network, node_of, progress=check), mappings
    ):
        pass
    return time.perf_counter() - begin


def main() -> None:
    """Print a row for each case."""
    rng = np.random.default_rng(0)
    for trace, spec, options, count in CASES:
        program, network = hm.Workload(trace, **options).program(), topology_from_spec(spec)
        mappings = [rng.permutation(program.ranks) for _ in range(count)]
        simulate(program, network, mappings[0])  # compiles
        turns = [
            (
                bare(program, network, mappings),
                *(whole(program, network, mappings, c) for c in (1, 2)),
            )
            for _ in range(5)
        ]
        loop, one, two = (median(column) for column in zip(*turns, strict=True))
        print(
            f"{trace:20} {count} mappings: bare {1000 * loop / count:.1f} ms each, "
            f"one core {one / loop:.2f}, two cores {two / loop:.2f} of that"
        )


if __name__ == "__main__":
    main()

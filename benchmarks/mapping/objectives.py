"""What mappings for one objective are worth by the others.

``python benchmarks/mapping/objectives.py [S]``

`auto` places the same ranks for hop-bytes, for the least load on the busiest link and for the
simulated time, S processor seconds each (20 by default), from nodes in order. Every mapping is
measured by all three. Replays are of the compiled engine with its default parameters, without
computing. LU of 64 ranks and CG are recorded (``shared/nas``; left out where it is not there); LU
of 512 is generated, one time step; rgg is a random geometric graph with some 8 neighbours a rank,
heavy and light, all of whose messages are sent at once.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from hopmap.mappers import map_ranks, objective_value
from hopmap.simulator import Parameters, Program, lower, program_of_traffic, simulate
from hopmap.topologies import topology_from_spec
from hopmap.traces import Traffic, nas_traffic
from hopmap.traces.nas.benchmarks import nas_folded
from hopmap.traces.otf2.read import read_trace
from hopmap.traces.otf2.totals import read_traffic

NAS = Path(__file__).parents[3] / "shared/nas"
PARAMETERS = Parameters(compute_scale=0.0)


def geometric(ranks: int, seed: int = 0) -> Traffic:
    """Random points of a square, those near each other talk; 2 to 198 kB both ways."""
    rng = np.random.default_rng(seed)
    points = rng.random((ranks, 2))
    away = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    src, dst = np.nonzero((away < 8 / (np.pi * ranks)) & ~np.eye(ranks, dtype=bool))
    weight = rng.integers(1, 100, (ranks, ranks))
    volume = 1000 * (weight + weight.T)[src, dst]
    return Traffic.from_pairs(ranks, src, dst, np.ones(len(src)), volume)


def cases() -> Iterator[tuple[str, str, Traffic, Program]]:
    """Name, network, traffic and program of each."""
    for name, spec in (("lu.W-it20.64", "torus:4x4x4"), ("cg.S.16", "torus:4x2x2")):
        if (NAS / name).is_dir():
            yield name, spec, read_traffic(NAS / name), lower(read_trace(NAS / name))
    for ranks, spec in ((64, "torus:4x4x4"), (512, "torus:8x8x8")):
        traffic = geometric(ranks)
        yield f"rgg.{ranks}", spec, traffic, program_of_traffic(traffic)
    program = lower(nas_folded("lu.B.512", steps=1))
    yield "lu.B.512", "torus:8x8x8", nas_traffic("lu.B.512"), program


def main(seconds: float = 20.0) -> None:
    """Print a table a case."""
    for name, spec, traffic, program in cases():
        topology = topology_from_spec(spec)

        def makespan(node_of: np.ndarray, program=program, topology=topology) -> float:
            result = simulate(program, topology, node_of, parameters=PARAMETERS, engine="compiled")
            return result.makespan

        order = map_ranks(traffic, topology, "sweep")
        makespan(order)
        begin = time.process_time()
        makespan(order)
        print(f"\n{name} on {spec}, a replay takes {time.process_time() - begin:.3f} s")
        print(f"{'mapped for':<16}{'hop-bytes':>16}{'busiest link, B':>18}{'makespan, ms':>14}")
        goals = {"nodes in order": None, "hop_bytes": "hop_bytes"}
        for label, goal in (
            goals | {"max_link_load": "max_link_load", "makespan": makespan}
        ).items():
            node_of = order
            if goal is not None:
                stage = f"auto(seconds={seconds}, clock=cpu)"
                node_of = map_ranks(traffic, topology, stage, objective=goal)
            sums, load = (
                objective_value(traffic, topology, node_of, o)
                for o in ("hop_bytes", "max_link_load")
            )
            print(f"{label:<16}{sums:>16,}{load:>18,}{1000 * makespan(node_of):>14.4g}", flush=True)


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))

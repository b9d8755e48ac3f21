"""What `auto` makes of the same processor seconds with a function as objective.

``python benchmarks/objectives/searches.py [S]``

Six programs, S processor seconds for each search (10 by default), from nodes in order: `auto` for
hop-bytes, for the makespan without any estimate, for the makespan with its bound as an estimate,
and for the bound itself; every mapping is then replayed. Compiled engine, default parameters, no
computing. Recorded traces are in ``shared/nas``; those that are not there are left out.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from hopmap.mappers import map_ranks
from hopmap.simulator import (
    MakespanBound,
    Parameters,
    Program,
    lower,
    program_of_traffic,
    simulate,
)
from hopmap.topologies import topology_from_spec
from hopmap.traces import Traffic
from hopmap.traces.otf2.read import read_trace

NAS = Path(__file__).parents[3] / "shared/nas"
RECORDED = (
    ("cg.S.16", "torus:4x2x2"),
    ("bt.S.16", "mesh:4x4"),
    ("ft.S.16", "mesh:4x2x2"),
    ("lu.W-it20.64", "fattree:4x4x4:1x2x2"),
)
PARAMETERS = Parameters(compute_scale=0.0)


def random_geometric(ranks: int, times: int, seed: int = 0) -> Traffic:
    """Random points of a square, those near each other send `times` messages, 2 to 198 kB."""
    rng = np.random.default_rng(seed)
    points = rng.random((ranks, 2))
    away = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    src, dst = np.nonzero((away < 8 / (np.pi * ranks)) & ~np.eye(ranks, dtype=bool))
    volume = 1000 * rng.integers(2, 199, len(src))
    return Traffic.from_pairs(ranks, src, dst, np.full(len(src), times), volume)


def cases() -> Iterator[tuple[str, str, Program]]:
    """Name, network and program of each."""
    for name, spec in RECORDED:
        if (NAS / name).is_dir():
            yield name, spec, lower(read_trace(NAS / name))
    for rounds in (1, 4):
        program = program_of_traffic(random_geometric(64, rounds))
        yield f"rgg.64, {rounds} rounds", "torus:4x4x4", program


def main(seconds: float = 10.0) -> None:
    """Print a row a program."""
    print(f"{'makespan, ms':<16}{'replay':>8}{'bound':>8}", end="")
    goals = ("in order", "hop_bytes", "makespan", "with estimate", "makespan_bound")
    print("".join(f"{goal:>16}" for goal in goals))
    for name, spec, program in cases():
        topology, traffic = topology_from_spec(spec), program.traffic()
        bound = MakespanBound(program, topology, PARAMETERS)

        def makespan(node_of: np.ndarray, program=program, topology=topology) -> float:
            return simulate(program, topology, node_of, parameters=PARAMETERS).makespan

        def estimated(node_of: np.ndarray, makespan=makespan) -> float:
            return makespan(node_of)

        estimated.estimate = bound  # type: ignore[attr-defined]
        order = map_ranks(traffic, topology, "sweep")
        spent = [1000 * _seconds(function, order) for function in (makespan, bound)]
        found = [order]
        for goal in ("hop_bytes", makespan, estimated, bound):
            stage = f"auto(seconds={seconds}, clock=cpu)"
            found.append(map_ranks(traffic, topology, stage, objective=goal))
        times = "".join(f"{1000 * makespan(node_of):>16.4f}" for node_of in found)
        print(f"{name:<16}{spent[0]:>8.1f}{spent[1]:>8.2f}{times}", flush=True)


def _seconds(function, node_of: np.ndarray) -> float:
    function(node_of)
    begin = time.process_time()
    for _ in range(3):
        function(node_of)
    return (time.process_time() - begin) / 3


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))

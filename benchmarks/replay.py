"""How fast traces are lowered and replayed: ``python benchmarks/replay.py [ARCHIVE ...]``.

Without arguments: the traces in tests/data, and those beside the project where they are. Each is
replayed on a 4x4 torus (larger if it has more ranks) with a random placement and without the
recorded computation. Rates are per second of processor time, which other load disturbs less.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

from hopmap.simulator import ENGINES, Parameters, lower, simulate
from hopmap.topologies import torus
from hopmap.traces import read_trace

ROOT = Path(__file__).parents[1]
DEFAULT = [ROOT / "tests" / "data" / name for name in ("lu.S.4", "mg.S.16", "is.S.16", "edge.X.8")]
DEFAULT += [
    ROOT.parent / "shared" / "nas" / name
    for name in ("lu.S.16", "cg.S.16", "sp.S.9", "bt.S.9", "ft.S.16")
]


def main(archives: list[Path]) -> None:
    print(
        f"{'trace':<14}{'engine':<10}{'events':>9}{'lower s':>9}{'messages':>10}"
        f"{'packet-hops':>13}{'cpu s':>8}{'hops/s':>10}{'makespan':>12}"
    )
    for archive in archives:
        trace = read_trace(archive)
        begin = time.process_time()
        program = lower(trace)
        lowering = time.process_time() - begin
        side = max(4, int(np.ceil(np.sqrt(program.ranks))))
        topology = torus((side, side))
        node_of = np.random.default_rng(0).permutation(topology.nodes)[: program.ranks]
        for engine in ENGINES:
            begin = time.process_time()
            result = simulate(
                program, topology, node_of, parameters=Parameters(compute_scale=0), engine=engine
            )
            seconds = time.process_time() - begin
            print(
                f"{archive.name:<14}{engine:<10}{trace.events:>9}{lowering:>9.3f}"
                f"{result.messages:>10}{result.events:>13}{seconds:>8.2f}"
                f"{result.events / seconds:>10.0f}{result.makespan:>12.6f}"
            )


if __name__ == "__main__":
    main([Path(name) for name in sys.argv[1:]] or [path for path in DEFAULT if path.is_dir()])

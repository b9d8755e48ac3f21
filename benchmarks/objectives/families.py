"""Which objective orders mappings as the replay does, by family of networks.

``python benchmarks/objectives/families.py [S]``

Mappings of 256 ranks: nodes in order, three at random, recursive bisection, annealing cut short
twice, and `auto` for hop-bytes and for the busiest link, S processor seconds each (2 by default).
Kendall's tau is between each objective and the makespan of a replay (all messages of a rank sent at
once, compiled engine, default parameters), over the mappings of a case. The last columns have the
makespan of both `auto` over the least of all.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
from scipy.stats import kendalltau

from hopmap.mappers import map_ranks, objective_value
from hopmap.simulator import Parameters, program_of_traffic, simulate
from hopmap.simulator.explain.makespan_bound import MakespanBound
from hopmap.topologies import topology_from_spec
from hopmap.traces import Traffic
from hopmap.traces.patterns.stencils import stencil_traffic

sys.path.append(str(Path(__file__).parents[1] / "anytime"))
from generated import KINDS

RANKS = 256
NETWORKS = {
    "torus": ("torus:8x8x4",),
    "mesh": ("mesh:8x8x4",),
    "hypercube": ("hypercube:8",),
    "hierarchy": ("tree:4:8:8@1:10:100",),
    "fat tree": ("fattree:16x16:1x16", "fattree:16x16:1x8"),
    "dragonfly": ("dragonfly:4x8x4", "dragonfly:2x8x4"),
    "dragonfly *4": ("dragonfly:2x4x2*4",),
    "Dragonfly+": ("dragonfly+:4x8x8x8",),
}
SIZE = 4096  # bytes of a unit of weight
OBJECTIVES = ("hop_bytes", "max_link_load", "makespan_bound")


def traffics() -> dict[str, Traffic]:
    """Traffic of several kinds, shuffled."""
    made = {}
    for kind in ("stencil27", "rgg2d", "knn3d", "ba", "rmat"):
        rng = np.random.default_rng(7)
        src, dst, weight = KINDS[kind](RANKS, rng)
        made[kind] = (src, dst, weight)
    sweep = stencil_traffic((16, 16), "5pt", periodic=(False, False))
    made["sweep2d"] = (sweep.src, sweep.dst, np.full(sweep.pairs, 8))
    found = {}
    for kind, (src, dst, weight) in made.items():
        new = np.random.default_rng(3).permutation(RANKS)
        apart = src != dst
        ones = np.ones(int(apart.sum()), dtype=np.int64)
        size = SIZE * np.asarray(weight)[apart]
        found[kind] = Traffic.from_pairs(RANKS, new[src[apart]], new[dst[apart]], ones, size)
    return found


def main(seconds: float = 2.0) -> None:
    """Print a row a case, and the means of each family."""
    sums = defaultdict(list)
    for family, specs in NETWORKS.items():
        for spec in specs:
            topology = topology_from_spec(spec)
            for kind, traffic in traffics().items():
                program = program_of_traffic(traffic)
                bound = MakespanBound(program, topology, Parameters())
                budget = f"seconds={seconds},clock=cpu"
                mappers = {f"random {seed}": ("random", seed) for seed in range(3)}
                mappers |= {"sweep": ("sweep", 0), "bisection": ("recursive_bisection", 0)}
                mappers |= {f"short {m}": (f"annealing(moves={m})", 0) for m in (3000, 20000)}
                mappers |= {"hop_bytes": (f"auto({budget},objective=hop_bytes)", 0)}
                mappers |= {"max_link_load": (f"auto({budget},objective=max_link_load)", 0)}
                rows = []
                for mapper, seed in mappers.values():
                    node_of = map_ranks(traffic, topology, mapper, seed=seed)
                    result = simulate(program, topology, node_of, parameters=Parameters())
                    values = [
                        objective_value(traffic, topology, node_of, o) for o in OBJECTIVES[:2]
                    ]
                    rows.append([*values, bound(node_of), result.makespan])
                table = np.array(rows, dtype=np.float64)
                taus = [kendalltau(table[:, k], table[:, 3])[0] for k in range(3)]
                worth = table[-2:, 3] / table[:, 3].min()
                sums[family].append([*taus, *worth, worth[1] / worth[0]])
                print(
                    f"{spec:<22}{kind:<11}" + "".join(f"{tau:>7.2f}" for tau in taus)
                    + "".join(f"{w:>7.3f}" for w in worth), flush=True,
                )  # fmt: skip
    print(
        f"\n{'family':<14}" + "".join(f"{o:>16}" for o in (*OBJECTIVES, "sums", "loads", "ratio"))
    )
    for family, rows in sums.items():
        means = np.array(rows)
        taus, worth = np.nanmean(means[:, :3], axis=0), np.exp(np.log(means[:, 3:]).mean(axis=0))
        print(f"{family:<14}" + "".join(f"{x:>16.3f}" for x in (*taus, *worth)))


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))

"""What the mappers of the HAEC thesis reach on LU.

``python benchmarks/mapping/mappers.py [RANKS ...]``

RANKS are of 64, 512 and 4096, all by default, on 4x4x4, 8x8x8 and 16x16x16 nodes. Pair-hops are the
hops summed over unordered pairs that talk, the best of five seeds (one on 4,096); seconds are
processor seconds of one seed, compilers apart. "thesis" is Table 4.1 of the HAEC thesis, in seconds
on its machine; * did not finish in three hours. Searches get at most 60 s a seed.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from hopmap.mappers import map_ranks, parse_pipeline
from hopmap.topologies import topology_from_spec
from hopmap.traces import nas_traffic

CASES = {64: ("C", "4x4x4"), 512: ("D", "8x8x8"), 4096: ("D", "16x16x16")}
FAMILIES = ("mesh", "torus", "haec")
SECONDS = 60.0
OURS = ("bokhari(patience=0)", "bokhari(objective=hop_bytes)", "minmd(rule=connected)")

# Seconds on mesh, torus, HAEC; None: not finished.
THESIS: dict[int, dict[str, tuple[float | None, ...]]] = {
    64: {
        "scan": (0.000, 0.000, 0.000),
        "sweep": (0.000, 0.000, 0.000),
        "peano": (0.014, 0.012, 0.012),
        "gray": (0.012, 0.010, 0.010),
        "hilbert": (0.013, 0.012, 0.012),
        "bokhari": (22.625, 16.810, 47.462),
        "minmd": (0.003, 0.005, 0.007),
        "genetic": (166.493, 153.431, 171.072),
        "random_sampling": (9.008, 9.893, 19.716),
    },
    512: {
        "scan": (0.002, 0.002, 0.002),
        "sweep": (0.002, 0.002, 0.002),
        "peano": (0.099, 0.098, 0.098),
        "gray": (0.079, 0.081, 0.079),
        "hilbert": (0.121, 0.094, 0.096),
        "bokhari": (273.349, 678.054, 3206.106),
        "minmd": (0.143, 0.071, 0.040),
        "genetic": (881.562, 1029.892, 1737.342),
        "random_sampling": (76.412, 82.441, 457.194),
    },
    4096: {
        "scan": (0.004, 0.004, 0.004),
        "sweep": (0.004, 0.004, 0.004),
        "peano": (0.214, 0.211, 0.214),
        "gray": (0.178, 0.176, 0.178),
        "hilbert": (0.214, 0.210, 0.208),
        "bokhari": (None, None, None),
        "minmd": (1.116, 0.221, 0.845),
        "genetic": (None, None, None),
        "random_sampling": (664.814, 708.230, None),
    },
}


def measured(ranks: int, spec: str, pipeline: str, seeds: int) -> tuple[int, float]:
    """Best pair-hops of the seeds, and processor seconds a seed."""
    traffic, topology = nas_traffic(f"lu.{CASES[ranks][0]}.{ranks}"), topology_from_spec(spec)
    pairs = traffic.undirected()
    hops = []
    begin = time.process_time()
    for seed in range(seeds):
        node_of = map_ranks(traffic, topology, pipeline, seed=seed, seconds=SECONDS)
        hops.append(int(topology.distance(node_of[pairs.src], node_of[pairs.dst]).sum()))
    return min(hops), (time.process_time() - begin) / seeds


def main(sizes: list[int]) -> None:
    pipelines = sorted({*THESIS[64], *OURS})
    small, ring = topology_from_spec("torus:2x2x2"), np.arange(8)
    for pipeline in pipelines:  # compile
        if not parse_pipeline(pipeline)[0].info.needs_initial:
            map_ranks(nas_traffic("lu.C.8"), small, pipeline, initial=ring)
    for ranks in sizes:
        grid = CASES[ranks][1]
        print(f"\nLU.{CASES[ranks][0]}.{ranks} on {grid}: pair-hops, seconds (thesis)")
        print(f"{'':<30}" + "".join(f"{family:>26}" for family in FAMILIES))
        for pipeline in pipelines:
            stage = parse_pipeline(pipeline)[0]
            if stage.info.needs_initial:
                continue
            cells = []
            for column, family in enumerate(FAMILIES):
                seeds = 5 if stage.info.has("seconds") and ranks < 4096 else 1
                hops, seconds = measured(ranks, f"{family}:{grid}", pipeline, seeds)
                published = THESIS[ranks].get(pipeline)
                text = ""
                if published is not None:
                    text = "(*)" if published[column] is None else f"({published[column]:.3f})"
                cells.append(f"{hops:>7}{seconds:>9.3f} {text:>9}")
            print(f"{pipeline:<30}" + "".join(cells), flush=True)


if __name__ == "__main__":
    main([int(size) for size in sys.argv[1:]] or list(CASES))

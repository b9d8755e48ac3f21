"""The busiest link: `auto` and single mappers in the same time, on fat trees and dragonflies.

``python benchmarks/objectives/loads.py [S]``

Prints a row a case: bytes on the busiest link after S processor seconds (2 by default), the mean of
three seeds.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from hopmap.mappers import map_ranks, objective_value
from hopmap.topologies import topology_from_spec

sys.path.append(str(Path(__file__).parents[1] / "anytime"))
from generated import traffic_of

CASES = (
    ("stencil27", 256, "fattree:16x16:1x8"),
    ("knn3d", 256, "fattree:16x16:1x4"),
    ("delaunay3d", 256, "fattree:8x8:1x4*4"),
    ("small_world", 256, "dragonfly:2x4x2*4"),
    ("refined3d", 256, "dragonfly:4x8x1"),
    ("rmat", 256, "dragonfly:2x4x2*4"),
    ("stencil27", 1024, "dragonfly:4x8x4"),
    ("knn3d", 1024, "dragonfly:2x8x2*4"),
    ("rgg2d", 1024, "dragonfly:2x8x2*4"),
    ("small_world", 1024, "dragonfly:4x8x4"),
    ("delaunay3d", 1024, "fattree:32x32:1x8"),
    ("communities", 1024, "fattree:16x16:1x4*4"),
    ("refined3d", 1024, "fattree:16x16:1x4*4"),
)
SEEDS = range(3)


def main(seconds: float = 2.0) -> None:
    """Print the mean loads of each case."""
    budget = f"seconds={seconds:g}, clock=cpu"
    mappers = (
        f"auto({budget}, objective=max_link_load)",
        f"congestion({budget})",
        f"recursive_bisection | congestion({budget})",
    )
    for kind, ranks, spec in CASES:
        traffic, topology = traffic_of(kind, ranks), topology_from_spec(spec)
        means = []
        for mapper in mappers:
            mapped = (map_ranks(traffic, topology, mapper, seed=seed) for seed in SEEDS)
            loads = [objective_value(traffic, topology, m, "max_link_load") for m in mapped]
            means.append(float(np.mean(loads)))
        print(f"| {kind}, {ranks} | {spec} | " + " | ".join(f"{m:.1f}" for m in means) + " |")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))

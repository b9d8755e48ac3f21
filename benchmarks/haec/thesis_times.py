"""Table 4.1 of the HAEC thesis and ours: seconds to place LU by every mapper, on three networks.

    python benchmarks/haec/thesis_times.py [64] [512] [4096]

The thesis ran Python under its profiler on a 2.3 GHz Core i5-5300U; * is what it stopped after
three hours. Ours are processor seconds of `preset=thesis`, compiled before, the least of three
where they are below a second; the last column is theirs by ours, and why it is not one number for
all: curves and MinMD hardly compute, so that what is measured there is how a mapping is made and
checked; the searches are compiled loops. Ours have no limit of three hours.
"""

from __future__ import annotations

import sys
import time

from hopmap.mappers import map_ranks
from hopmap.topologies import topology_from_spec
from hopmap.traces import nas_traffic

NETWORKS = ("mesh", "torus", "haec")
SIZES = {"64": ("C", "4x4x4"), "512": ("D", "8x8x8"), "4096": ("D", "16x16x16")}
# Seconds on mesh, torus and HAEC Box for 64, 512 and 4,096 ranks, None where stopped.
PUBLISHED: dict[str, dict[str, tuple[float | None, ...]]] = {
    "scan": {"64": (0, 0, 0), "512": (0.002, 0.002, 0.002), "4096": (0.004, 0.004, 0.004)},
    "sweep": {"64": (0, 0, 0), "512": (0.002, 0.002, 0.002), "4096": (0.004, 0.004, 0.004)},
    "peano": {
        "64": (0.014, 0.012, 0.012), "512": (0.099, 0.098, 0.098), "4096": (0.214, 0.211, 0.214),
    },
    "gray": {
        "64": (0.012, 0.010, 0.010), "512": (0.079, 0.081, 0.079), "4096": (0.178, 0.176, 0.178),
    },
    "hilbert": {
        "64": (0.013, 0.012, 0.012), "512": (0.121, 0.094, 0.096), "4096": (0.214, 0.210, 0.208),
    },
    "bokhari": {
        "64": (22.625, 16.810, 47.462), "512": (273.349, 678.054, 3206.106),
        "4096": (None, None, None),
    },
    "minmd": {
        "64": (0.003, 0.005, 0.007), "512": (0.143, 0.071, 0.040), "4096": (1.116, 0.221, 0.845),
    },
    "genetic": {
        "64": (166.493, 153.431, 171.072), "512": (881.562, 1029.892, 1737.342),
        "4096": (None, None, None),
    },
    "random_sampling": {
        "64": (9.008, 9.893, 19.716), "512": (76.412, 82.441, 457.194),
        "4096": (664.814, 708.230, None),
    },
}  # fmt: skip


def seconds_of(ranks: str, network: str, mapper: str) -> float:
    """Return the processor seconds of a mapper, compiled before."""
    bench, dims = SIZES[ranks]
    traffic, topology = nas_traffic(f"lu.{bench}.{ranks}"), topology_from_spec(f"{network}:{dims}")
    least = float("inf")
    for _ in range(3):
        begin = time.process_time()
        map_ranks(traffic, topology, f"{mapper}(preset=thesis)")
        least = min(least, time.process_time() - begin)
        if least > 1:
            break
    return least


def line(ranks: str, network: str, mapper: str, published: float | None) -> str:
    """Return a row: published seconds, ours, theirs by ours."""
    ours = seconds_of(ranks, network, mapper)
    theirs = "*" if published is None else f"{published:.3f}"
    times = f"{published / ours:,.0f}" if published else ""
    return f"{mapper:<18}{network:<8}{theirs:>12}{ours:>12.4f}{times:>14}"


def main(words: list[str]) -> None:
    """Print the table for the numbers of ranks that are named, or all."""
    if unknown := [word for word in words if word not in SIZES]:
        raise SystemExit(f"{unknown[0]}: expected some of {', '.join(SIZES)}")
    for mapper in PUBLISHED:
        for network in NETWORKS:  # compile
            seconds_of("64", network, mapper)
    for ranks in words or SIZES:
        print(f"\nLU.{SIZES[ranks][0]}.{ranks} on {SIZES[ranks][1]}")
        print(f"{'':<26}{'published, s':>12}{'ours, s':>12}{'theirs/ours':>14}")
        for mapper, published in PUBLISHED.items():
            for network, value in zip(NETWORKS, published[ranks], strict=True):
                print(line(ranks, network, mapper, value), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

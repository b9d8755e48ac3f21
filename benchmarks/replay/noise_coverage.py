"""How often the 95 % interval of an ensemble of 20 replays with noise holds the true median.

    python benchmarks/replay/noise_coverage.py

Of each of 40 traces, 50 ensembles have the seeds 0 to 999, in their order, and 250 begin at seeds
that numpy's SeedSequence spreads over 32 bits. The true median is that of these 5,000 replays.
Twenty draws enclose it with 95.9 %. It prints a row for every trace, and the share over all.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

import hopmap as hm
from hopmap.simulator import Parameters, simulate
from hopmap.simulator.noise import USUAL
from hopmap.simulator.uncertainty import median_interval
from hopmap.topologies import topology_from_spec

REPEATS = 20
SMALL = range(0, 1000, REPEATS)
SPREAD = (np.random.SeedSequence(7).generate_state(250) - REPEATS).tolist()
NAS = (
    *("lu.S.4", "lu.S.16", "cg.S.4", "cg.S.8", "cg.S.16", "mg.S.4", "mg.S.8", "mg.S.16", "ft.S.4"),
    *("ft.S.8", "is.S.4", "is.S.8", "is.S.16", "bt.S.4", "sp.S.4", "sp.S.9", "ep.S.16"),
)
GRIDS = ("4x4,5pt", "8x2,5pt", "8x8,5pt", "4x4,9pt", "2x2x4,7pt", "4x4x4,7pt", "4x4x2,27pt")
CALLS = (
    *("allreduce=ring,16,16KiB", "allreduce=recursive_doubling,16,64KiB", "bcast=chain,8,64KiB"),
    *("allreduce=ring,8,1MiB", "bcast=binomial,16,8KiB", "alltoall=pairwise,16,16KiB"),
    *("allgather=ring,16,16KiB", "reduce=binomial,16,8KiB", "alltoall=linear,8,64KiB"),
)
TRACES = (
    *NAS,
    *(f"stencil:{grid},bytes={size}" for grid in GRIDS for size in ("1kB", "100kB")),
    *(f"collective:{call}" for call in CALLS),
)


def makespans(trace: str, seeds: Iterable[int]) -> np.ndarray:
    """Replay one time step of a trace on a ring, an ensemble from each of these seeds on."""
    steps = 1 if trace in NAS and not trace.startswith("ep") else None
    program = hm.Workload(trace, steps=steps).program()
    ring = topology_from_spec(f"torus:{program.ranks}")
    place = np.arange(program.ranks)
    found = []
    for seed in seeds:
        noise = Parameters(**USUAL, noise_seed=seed)
        result = simulate(program, ring, place, parameters=noise, repeat=REPEATS)
        assert result.ensemble is not None
        found.append(result.ensemble.makespans)
    return np.array(found)


def held(times: np.ndarray, median: float) -> float:
    """Share of the ensembles whose interval holds the median."""
    found = [median_interval(some) for some in times]
    return float(np.mean([each.low <= median <= each.high for each in found]))


def main() -> None:
    """Print the shares of every trace, and of all together."""
    shares = []
    for trace in TRACES:
        spread = makespans(trace, SPREAD)
        median = float(np.median(spread))
        shares.append((held(makespans(trace, SMALL), median), held(spread, median)))
        print(f"{trace:44} {shares[-1][0]:6.1%} {shares[-1][1]:6.1%}", flush=True)
    small, others = np.mean(shares, axis=0)
    print(f"{len(TRACES)} traces: seeds 0 to 999 {small:.1%}, spread seeds {others:.1%}")


if __name__ == "__main__":
    main()

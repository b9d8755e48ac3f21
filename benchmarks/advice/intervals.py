"""How often the interval of `advise` holds the gain on a machine that differs from the stated one.

Each true machine is one draw from the ranges of `advise`, with a seed of its own. The true gain is
that of the recommended mapping over the default order in a replay on the true machine. It prints
the table of the README. Run: python benchmarks/advice/intervals.py
"""

from __future__ import annotations

import numpy as np

import hopmap as hm
from hopmap.api.robust.ranges import draw_models, read_ranges

MACHINES = 200
RECORDED = "tests/data/mg.S.16"
SLOW = {"link.bandwidth": "25 Gbit/s"}
CASES = (
    (RECORDED, "torus:4x2x2", {"compute.scale": 0, **SLOW}),
    (RECORDED, "fattree:4x4", {"compute.scale": 0, **SLOW}),
    (RECORDED, "dragonfly:2x4x2", {"compute.scale": 0, **SLOW}),
    ("tests/data/is.S.16", "torus:4x2x2", {"compute.scale": 0, **SLOW}),
    ("cg.A.16", "torus:4x2x2", {}),
    ("cg.A.16", "fattree:4x4", {}),
    ("lu.A.64", "torus:4x4x4", {}),
    ("lu.A.64", "fattree:8x8", {}),
    ("stencil:8x8,5pt,bytes=100000", "dragonfly:4x4x4", {}),
    ("stencil:8x8,5pt,bytes=100000", "torus:4x4x4", {}),
)


def main() -> None:
    """Print verdict and coverage of every case."""
    print("| case | verdict | true gain inside | largest and smallest true gain |")
    print("|---|---|---|---|")
    for trace, spec, settings in CASES:
        workload = hm.Workload(trace, steps=4) if trace.startswith("lu") else hm.Workload(trace)
        machine = hm.Machine(spec, settings)
        found = hm.advise(workload, machine, seconds=2)
        gains = [gain(workload, machine, found, seed) for seed in range(1000, 1000 + MACHINES)]
        true = np.array([each for each in gains if each is not None])
        low, high = found.gain.low, found.gain.high
        inside = ((low - 1e-9 <= true) & (true <= high + 1e-9)).mean()
        ends = f"{100 * true.min():.1f} to {100 * true.max():.1f} %"
        name = f"{trace.removeprefix('tests/data/')} on {spec}"
        print(
            f"| {name} | {found.verdict} | {100 * inside:.1f} % of {len(true)} | {ends} |",
            flush=True,
        )


def gain(workload: hm.Workload, machine: hm.Machine, found: hm.Advice, seed: int) -> float | None:
    """Return the gain on one true machine; None where it cannot be replayed."""
    ranges = read_ranges(None)
    (model,) = draw_models(ranges, machine.network, machine.settings, 1, seed)
    here = hm.Machine(machine.topology, {**machine.settings, **model, "noise.seed": seed})
    try:
        default, best = (
            hm.simulate(workload, here, each.placement.node_of).makespan
            for each in (found.baseline, found.best)
        )
    except hm.HopmapError:
        return None
    return 1 - best / default


if __name__ == "__main__":
    main()

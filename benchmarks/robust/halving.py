"""Does sequential halving find the mapping of least worst regret with a tenth of the replays?

``python benchmarks/robust/halving.py [MODELS]``

Five benchmarks, one network each, twelve mappings, models (400 by default) from the ranges that
come with hopmap, without computation: all mappings are replayed under all models, then `halving`
gets a tenth of these replays. A row a case: what the least worst regret is, what the worst regret
of the chosen mapping is over all models, how much more that is; and of 200 random orders of the
models in how many it is less than 1 % more.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from hopmap import Machine, Sampling, Workload
from hopmap.api.robust.robust import halving, robust
from hopmap.simulator.uncertainty import least_regret, regrets, standings

CASES = (
    ("cg.W.16", "torus:4x2x2", 1),
    ("mg.W.16", "mesh:4x4", 1),
    ("lu.W.16", "dragonfly:1x4x2", 3),
    ("bt.W.16", "fattree:4x4:1x2", 2),
    ("ft.W.16", "torus:4x4", 1),
)
MAPPERS = (
    *("identity", "random", "rcm", "greedy", "minmd", "udfs", "mueller_merbach", "topo_aware"),
    *("recursive_bisection", "random | relieve"),
    *(f"auto(moves=20000, objective={each})" for each in ("hop_bytes", "max_link_load")),
)
ORDERS = 200


def chosen(times: np.ndarray, replays: int) -> int:
    """Return which row halving chooses."""
    found = halving(*times.shape, lambda candidate, model, _: times[candidate, model], replays)
    return least_regret(standings(found))


def main(models: int = 400) -> None:
    """Print a row a case."""
    print(f"{'':<28}{'mappings':>9}{'replays':>9}{'least':>8}{'chosen':>8}{'more':>8}{'orders':>8}")
    for name, spec, steps in CASES:
        begin = time.process_time()
        found = robust(
            Workload(name, steps=steps),
            Machine(spec, {"compute.scale": 0}),
            MAPPERS,
            sampling=Sampling(models, len(MAPPERS) * models),
        )
        spent = time.process_time() - begin
        worst, tenth = regrets(found.times).max(axis=1), found.times.size // 10
        taken = chosen(found.times, tenth)
        rng = np.random.default_rng(0)
        orders = [chosen(found.times[:, rng.permutation(models)], tenth) for _ in range(ORDERS)]
        near = np.mean(worst[orders] <= worst.min() + 0.01)
        print(
            f"{f'{name} on {spec}':<28}{len(worst):>9}{tenth:>9}{worst.min():>8.2%}"
            f"{worst[taken]:>8.2%}{worst[taken] - worst.min():>8.2%}{near:>8.0%}"
            f"   {spent:.0f} s; {found.verdict}",
            flush=True,
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))

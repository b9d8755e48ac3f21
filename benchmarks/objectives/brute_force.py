"""No false `optimal` and no bound above: ``python benchmarks/objectives/brute_force.py [CASES]``.

Random traffic of 4 to 8 ranks on small networks of all families, as many slots or one more, with
each objective that has a bound. Every mapping is tried. A case fails if `auto` says `optimal` of a
mapping that another undercuts, or if the bound of any search lies above the least cost.
"""

from __future__ import annotations

import sys
from itertools import permutations

import numpy as np

from hopmap.mappers.auto import portfolio
from hopmap.mappers.cartesian.grid import find_grid
from hopmap.mappers.cost_kernels import total_costs
from hopmap.mappers.loads.congestion import load_bound
from hopmap.mappers.objectives import cost_model, lower_bound, objective_value
from hopmap.mappers.stop import Budget
from hopmap.topologies import topology_from_spec
from hopmap.traces import Traffic

SPECS = (
    *("mesh:2x3", "torus:6", "torus:3x2", "mesh:2x2x2", "torus:8", "mesh:8", "hypercube:3"),
    *("tree:2:3", "tree:3:2@0:5", "tree:2:2:2@1:10:100", "fattree:2x3", "fattree:2x2x2"),
    *("dragonfly:1x2x1", "haec:2x1x3", "mesh:3*2", "cluster:3+2+2", "torus:2x2*2", "mesh:7"),
)
OBJECTIVES = ("hop_bytes", "hop_messages", "cardinality", "max_link_load")


def traffic_of(ranks: int, rng: np.random.Generator) -> Traffic:
    """Random pairs, a ring, a grid of two rows, or a star; equal weights or not."""
    kind, number = rng.integers(4), rng.permutation(ranks)
    src, dst = np.nonzero(rng.random((ranks, ranks)) < rng.choice([0.2, 0.5, 0.9]))
    if kind == 1:
        src, dst = number, np.roll(number, 1)
    elif kind == 2:
        half = ranks // 2
        src = np.concatenate((number[: half - 1], number[half : 2 * half - 1], number[:half]))
        dst = np.concatenate((number[1:half], number[half + 1 : 2 * half], number[half : 2 * half]))
    elif kind == 3:
        src, dst = np.repeat(number[:1], ranks - 1), number[1:]
    most = rng.choice([2, 9, 1000])
    amounts = rng.integers(1, most, (2, len(src)))
    return Traffic.from_pairs(ranks, src, dst, *amounts)


def main(cases: int = 500) -> None:
    """Print what failed, and how many cases were said to be optimal."""
    wrong, optimal, reached = 0, 0, 0
    for seed in range(cases):
        rng = np.random.default_rng(seed)
        topology = topology_from_spec(SPECS[seed % len(SPECS)])
        slots = np.repeat(np.arange(topology.nodes), topology.slots)
        traffic = traffic_of(int(rng.integers(max(len(slots) - 1, 4), len(slots) + 1)), rng)
        objective = OBJECTIVES[seed // len(SPECS) % len(OBJECTIVES)]
        mappings = slots[np.array(list(permutations(range(len(slots)), traffic.ranks)))]
        mappings = np.unique(mappings, axis=0)
        found = portfolio(
            traffic, topology, rng=rng, objective=objective, stop=Budget(moves=20_000)
        )
        value = objective_value(traffic, topology, found.mapping, objective)
        if objective == "max_link_load":
            best = min(objective_value(traffic, topology, m, objective) for m in mappings)
            bound, cost = load_bound(traffic, topology), value
        else:
            model, grid = cost_model(traffic, topology, objective), find_grid(traffic)
            costs = total_costs(model, mappings)
            best = int(costs.min())
            bound = lower_bound(model, topology, grid and grid.coords)
            cost = int(total_costs(model, found.mapping[None])[0])
        optimal += found.stop_reason == "optimal"
        reached += cost == best
        if bound > best or (found.stop_reason == "optimal" and cost > best):
            wrong += 1
            print(
                f"seed {seed}: {objective} on {topology.spec}: {cost}, bound {bound}, best {best}"
            )
    print(f"{cases} cases: {optimal} said to be optimal, {reached} optimal, {wrong} wrong")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

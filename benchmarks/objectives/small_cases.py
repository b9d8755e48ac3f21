"""How often `auto` reaches the optimum where all placements can be enumerated.

``python benchmarks/objectives/small_cases.py [N [NETWORK ...]]``

N random traffics (5 by default) a network and kind: about half of the pairs talk, 1 to 99 kB each
way, all at once, or three messages a pair in rounds. `auto` gets 0.5 processor seconds for
``max_link_load`` and 200 evaluations for the makespan. The compiled engine simulates the makespan
with default parameters.
"""

from __future__ import annotations

import sys
from itertools import permutations

import numpy as np

from hopmap.mappers import map_ranks, objective_value
from hopmap.simulator import MakespanBound, program_of_traffic, simulate
from hopmap.topologies import topology_from_spec
from hopmap.traces import Traffic

NETWORKS = ("torus:6", "mesh:3x2", "mesh:7")
KINDS = {"at once": 1, "3 rounds": 3}
LOADS, REPLAYS = "auto(seconds=0.5, clock=cpu)", "auto(evaluations=200)"


def random_traffic(ranks: int, times: int, seed: int) -> Traffic:
    """About half of the pairs, with as many messages both ways."""
    rng = np.random.default_rng(seed)
    src, dst = np.nonzero(np.triu(rng.random((ranks, ranks)) < 0.5, 1))
    ends = np.concatenate((src, dst)), np.concatenate((dst, src))
    volume = 1000 * rng.integers(1, 100, 2 * len(src))
    return Traffic.from_pairs(ranks, *ends, np.full(2 * len(src), times), volume)


def main(seeds: int = 5, *networks: str) -> None:
    """Print a row a network and kind."""
    print(f"{'':<28}{'max_link_load':>24}{'makespan':>24}{'with estimate':>24}")
    for spec in networks or NETWORKS:
        topology = topology_from_spec(spec)
        placements = np.array(list(permutations(range(topology.nodes))))
        for kind, times in KINDS.items():
            ratios = [_ratios(topology, placements, times, seed) for seed in range(seeds)]
            shown = ""
            for of in np.transpose(ratios):
                reached = int((of < 1 + 1e-9).sum())
                shown += f"{f'{reached} of {seeds}, at most {of.max() - 1:.1%}':>24}"
            print(f"{f'{spec}, {kind}':<28}{shown}", flush=True)


def _ratios(topology, placements: np.ndarray, times: int, seed: int) -> tuple[float, ...]:
    """Return load and makespans that `auto` reaches, over the least there are."""
    traffic = random_traffic(topology.nodes, times, seed)
    program = program_of_traffic(traffic)
    bound = MakespanBound(program, topology)

    def load(node_of: np.ndarray) -> int:
        return objective_value(traffic, topology, node_of, "max_link_load")

    def makespan(node_of: np.ndarray) -> float:
        return simulate(program, topology, node_of).makespan

    def estimated(node_of: np.ndarray) -> float:
        return makespan(node_of)

    estimated.estimate = bound  # type: ignore[attr-defined]
    least_load = min(map(load, placements))
    # A placement whose bound is above some makespan is not the shortest: branch and bound.
    bounds = np.array([bound(node_of) for node_of in placements])
    least = np.inf
    for k in np.argsort(bounds):
        if bounds[k] >= least:
            break
        least = min(least, makespan(placements[k]))
    found = [
        map_ranks(traffic, topology, stage, objective=goal, seed=seed)
        for stage, goal in ((LOADS, "max_link_load"), (REPLAYS, makespan), (REPLAYS, estimated))
    ]
    return load(found[0]) / least_load, *(makespan(each) / least for each in found[1:])


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]), *sys.argv[2:])

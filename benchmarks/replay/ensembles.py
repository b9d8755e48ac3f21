"""Do two disjoint ensembles agree on which mappings differ? And what does one replay say?

    python benchmarks/replay/ensembles.py [--repeat 20] [--compute 1]

Each case replays every mapping without noise, and with the noise of two sets of seeds that have
none in common. A row says how many pairs of mappings the first set calls different; what share of
the pairs that one set calls different the other calls different in the same direction (it has to
be 90 %), the mean of both ways; how many pairs the two sets put in opposite orders; how many of
the pairs that both call different one replay without noise puts the other way round, and how far
apart they are there at most; and how far the slowest mapping is behind the fastest.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hopmap.mappers import map_ranks
from hopmap.simulator import Parameters, Program, lower, simulate
from hopmap.simulator.uncertainty import faster
from hopmap.topologies import Topology, topology_from_spec
from hopmap.traces import nas_folded

TRACES = {"cg.B.64": 1, "mg.B.64": 1}  # time steps
TOPOLOGIES = ("torus:8x8", "haec:4x4x4", "dragonfly:2x4x2")
MAPPINGS = [
    *(("sweep", 0), ("greedy", 0), ("minmd", 0), ("minmd | bokhari", 0), ("minmd | bokhari", 1)),
    *(("recursive_bisection", 0), ("rcm", 0), ("random", 0), ("random", 1), ("random", 2)),
]


@dataclass(frozen=True)
class Case:
    """Makespans of a case's mappings: without noise, and of two ensembles."""

    plain: NDArray[np.float64]
    sets: tuple[NDArray[np.float64], NDArray[np.float64]]

    @property
    def agreement(self) -> tuple[int, int, int]:
        """Pairs that the first set calls different, that the second does, and that both do."""
        one, other = (faster(times) for times in self.sets)
        return int(one.sum()), int(other.sum()), int((one & other).sum())


def case(program: Program, topology: Topology, repeat: int, mappings: list = MAPPINGS) -> Case:
    """Replay every distinct mapping once without noise, and with both sets of seeds."""
    traffic = program.p2p_traffic()
    found = {}
    for mapper, seed in mappings:
        node_of = map_ranks(traffic, topology, mapper, seed=seed)
        found[node_of.tobytes()] = node_of
    plain, sets = [], ([], [])
    for node_of in found.values():
        for place in (0, 1):
            result = simulate(
                *(program, topology, node_of),
                parameters=Parameters(noise_seed=place * repeat),
                repeat=repeat,
            )
            sets[place].append(result.ensemble.makespans)
        plain.append(result.makespan)
    return Case(np.array(plain), tuple(map(np.array, sets)))


def row_of(name: str, found: Case) -> str:
    """Write a row of the table."""
    one, other = (faster(times) for times in found.sets)
    first, second, both = found.agreement
    pairs = len(found.plain) * (len(found.plain) - 1) // 2
    ratios = found.plain[:, None] / found.plain[None, :] - 1
    wrong = ratios[one & other & (ratios > 0)]
    medians = np.median(found.sets[0], axis=1)
    cells = [
        *(f"{len(found.plain)}", f"{pairs}", f"{first}"),
        f"{100 * 2 * both / max(first + second, 1):.0f} %",
        *(f"{int((one & other.T).sum())}", f"{len(wrong)}"),
        f"{100 * wrong.max(initial=0.0):.2f} %",
        f"{100 * (medians.max() / medians.min() - 1):.2f} %",
    ]
    return f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--compute", type=float, default=1.0, help="compute.scale")
    options = parser.parse_args()
    print(
        "| case | mappings | pairs | differ | agree | opposite | one replay wrong | by up to "
        "| slowest behind fastest |"
    )
    print("|---" * 9 + "|")
    for trace, steps in TRACES.items():
        program = lower(nas_folded(trace, steps=steps))
        program = replace(program, compute=program.compute * options.compute)
        for spec in TOPOLOGIES:
            found = case(program, topology_from_spec(spec), options.repeat)
            print(row_of(f"{trace} on {spec}", found), flush=True)


if __name__ == "__main__":
    main()

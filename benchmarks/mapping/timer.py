"""What TiMEr takes off hop-bytes: ``python benchmarks/mapping/timer.py [PART ...] [OPTION ...]``.

PART is of partitions, hierarchies, dose; all by default. OPTION is of

- ``--networks FOLDER``: METIS graphs of many vertices in place of the generated ones of partitions.
- ``--instances FOLDER``: METIS graphs of 256 and 512 vertices (communication graphs, a rank a node)
  in place of the parts.
- ``--even``: blocks of one size; by default KaHIP's may exceed the mean by 3 %, as in the paper.
- ``--starts NAME,NAME``: of scotch, bisection, recursive_bisection (of vertices) and other mappers
  (of blocks); c1 to c4 by default. Scotch takes minutes on half a million edges with hubs.
- ``--seeds N``: 1 by default; the paper has 5.
- ``--specs SPEC,SPEC``: of partitions; five by default.

Starts and graphs are in timer_starts.py, other readings of the paper in timer_readings.py.
Figures are quotients after/before of minima, means and maxima over seeds, and geometric means of
these over graphs. qT divides TiMEr's processor seconds by KaHIP's, for c1 by Scotch's. Compilation
is not included.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from functools import cache
from itertools import pairwise
from math import exp, fsum, log
from typing import NamedTuple

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from timer_starts import C1, VERTICES, Starts, graph, graphs, graphs_in

from hopmap.errors import HopmapWarning
from hopmap.mappers import map_ranks, objective_value
from hopmap.topologies import topology_from_spec
from hopmap.traces import Traffic

SPECS = ("mesh:16x16", "mesh:8x8x8", "torus:16x16", "torus:8x8x8", "hypercube:8")
PARTS = ("partitions", "hierarchies", "dose")
STARTS = (C1, "identity", "greedy_all_c", "greedy_min")
# Table 2: qT of minima, means and maxima, geometric means over the paper's graphs.
TABLE_2 = {
    "mesh:16x16": {
        "scotch": (30.28, 29.84, 31.84), "identity": (0.953, 1.005, 1.053),
        "greedy_all_c": (0.979, 1.018, 1.051), "greedy_min": (0.954, 1.007, 1.055),
    },
    "mesh:8x8x8": {
        "scotch": (18.02, 18.05, 19.57), "identity": (0.475, 0.494, 0.513),
        "greedy_all_c": (0.475, 0.494, 0.516), "greedy_min": (0.487, 0.507, 0.527),
    },
    "torus:16x16": {
        "scotch": (21.14, 21.25, 22.53), "identity": (0.616, 0.641, 0.663),
        "greedy_all_c": (0.617, 0.638, 0.660), "greedy_min": (0.648, 0.665, 0.683),
    },
    "torus:8x8x8": {
        "scotch": (13.81, 14.09, 14.39), "identity": (0.333, 0.342, 0.350),
        "greedy_all_c": (0.330, 0.339, 0.349), "greedy_min": (0.334, 0.345, 0.357),
    },
    "hypercube:8": {
        "scotch": (11.29, 11.42, 11.58), "identity": (0.368, 0.380, 0.389),
        "greedy_all_c": (0.366, 0.372, 0.380), "greedy_min": (0.373, 0.381, 0.392),
    },
}  # fmt: skip


def cut(traffic: Traffic, node_of: NDArray[np.int64]) -> int:
    """Weight between nodes."""
    pairs = traffic.without_self()
    return int(pairs.bytes[node_of[pairs.src] != node_of[pairs.dst]].sum())


def mean(values: list[float]) -> float:
    """Geometric mean."""
    return exp(fsum(map(log, values)) / len(values))


class Measured(NamedTuple):
    """Of one graph, network and start, an entry for each seed: after and before TiMEr.

    The seconds are TiMEr's and, to compare with, KaHIP's; for c1 Scotch's.
    """

    coco: NDArray[np.float64]
    cut: NDArray[np.float64]
    seconds: NDArray[np.float64]

    def quotients(self) -> NDArray[np.float64]:
        """qCo, qCut and qT, each of minima, means and maxima over the seeds (section 7.1)."""
        return np.array(
            [
                [over(after) / over(before) for over in (np.min, np.mean, np.max)]
                for after, before in (self.coco.T, self.cut.T, self.seconds.T)
            ]
        )


def enhanced(
    traffic: Traffic, spec: str, starts: list[tuple[NDArray[np.int64], float]]
) -> Measured:
    """Run TiMEr from mappings, each with the seconds it took; a seed each."""
    rows = []
    for seed, (first, took) in enumerate(starts):
        fullest = np.bincount(first).max()
        topology = topology_from_spec(spec + f"*{fullest}" * bool(fullest > 1))
        begin = time.process_time()
        last = map_ranks(traffic, topology, "timer", initial=first, seed=seed)
        seconds = time.process_time() - begin
        coco = [objective_value(traffic, topology, m, "hop_bytes") for m in (last, first)]
        rows.append((coco, [cut(traffic, m) for m in (last, first)], (seconds, took)))
    return Measured(*np.array(rows, dtype=np.float64).swapaxes(0, 1))


def table(
    instances: dict[str, Traffic],
    names: tuple[str, ...],
    seeds: int,
    even: bool,
    specs: tuple[str, ...] = SPECS,
) -> None:
    """Quotients by network and start: minima, means and maxima; over graphs with their deviation.

    Means over graphs are geometric, and so is the standard deviation, a factor.
    """
    rows: dict[tuple[str, str], list[NDArray[np.float64]]] = {}
    cached = cache(Starts)
    print(f"{'':<44}{'qCo min  mean   max':>21}{'qCut mean':>11}{'qT min  mean   max':>22}")
    for spec in specs:
        nodes = topology_from_spec(spec).nodes
        for label, traffic in instances.items():
            if traffic.ranks < VERTICES and traffic.ranks != nodes:
                continue
            for name in names:
                began = []
                for seed in range(seeds):
                    starts = cached(traffic, nodes, seed, even)
                    begin = sum(os.times()[:4])  # with other processes: Scotch is one
                    first = starts.on(topology_from_spec(f"{spec}*{starts.slots}"), name)
                    took = sum(os.times()[:4]) - begin
                    began.append((first, took if name == C1 else starts.seconds))
                found = enhanced(traffic, spec, began).quotients()
                rows.setdefault((spec, name), []).append(found)
                print(f"{spec:<12}{label:<14}{name:<20}{_cells(found)}", flush=True)
    print("geometric means over graphs, the deviation of qCo, and Table 2's qT of other graphs")
    for (spec, name), found in rows.items():
        logs = np.log(np.array(found))
        deviation = np.exp(logs[:, 0, 1].std())
        theirs = "".join(f"{q:>7.2f}" for q in TABLE_2.get(spec, {}).get(name, ()))
        print(f"{spec:<26}{name:<20}{_cells(np.exp(logs.mean(axis=0)))}{deviation:>8.3f} {theirs}")
    for name in names:
        logs = np.log([q for (_, n), found in rows.items() if n == name for q in found])
        print(f"{'all networks':<26}{name:<20}{_cells(np.exp(logs.mean(axis=0)))}", flush=True)
    print("published: Coco 6 to 34 % less, 18 % on grids and 13 % on tori; cut 2 to 11 % more")


def _cells(quotients: NDArray[np.float64]) -> str:
    coco, cuts, seconds = quotients
    numbers = "".join(f"{q:>7.3f}" for q in coco) + f"{cuts[1]:>11.3f} "
    return numbers + "".join(f"{q:>7.2f}" for q in seconds)


def dose() -> dict[float, float]:
    """Print the gains after shuffling a share of the vertices; return the means in percent.

    The other vertices stay in KaHIP's blocks, block i on node i. Block sizes do not change.
    """
    shares = (0.0, 0.1, 0.3, 1.0)
    print("\nCoco taken off [%] (and cut) by the share of vertices shuffled over KaHIP's blocks")
    print(f"{'':<12}{'':<14}" + "".join(f"{share:>16.0%}" for share in shares))
    gained: dict[float, list[float]] = {share: [] for share in shares}
    for spec in ("mesh:16x16", "torus:16x16"):
        for label, traffic in graphs().items():
            starts = Starts(traffic, topology_from_spec(spec).nodes, 0, even=False)
            cells = ""
            for share in shares:
                first, rng = starts.block.copy(), np.random.default_rng(1)
                moved = rng.choice(len(first), round(share * len(first)), replace=False)
                first[moved] = first[rng.permutation(moved)]
                coco, cuts, _ = enhanced(traffic, spec, [(first, 1.0)]).quotients()[:, 1]
                gained[share].append(coco)
                cells += f"{100 * (1 - coco):>9.1f} ({100 * (1 - cuts):>4.1f})"
            print(f"{spec:<12}{label:<14}{cells}", flush=True)
    means = {share: 100 * (1 - mean(values)) for share, values in gained.items()}
    print(f"{'all':<26}" + "".join(f"{value:>9.1f}{'':>7}" for value in means.values()))
    return means


def hierarchies() -> None:
    """Coco and seconds by N_H, and of local search, from random and GreedyMin's mappings.

    A rank a node. The paper says that ten hierarchies are enough, and has no figures of it.
    """
    print("\nCoco after/before and seconds: means over graphs, networks and seeds, a rank a node")
    print(f"{'N_H':<38}{'random':>9}{'greedy_min':>12}{'s':>9}")
    numbers = (1, 2, 5, 10, 25, 50, 100, 200)
    stages = {str(number): f"timer(hierarchies={number})" for number in numbers}
    stages["local search in N_10 in place of it"] = "local_search(neighbourhood=10)"
    for label, stage in stages.items():
        quotients: dict[str, list[float]] = {"random": [], "greedy_min": []}
        seconds = []
        for topology in map(topology_from_spec, SPECS):
            for traffic in graphs(topology.nodes).values():
                for seed in range(3):
                    for name, values in quotients.items():
                        first = map_ranks(traffic, topology, name, seed=seed)
                        begin = time.process_time()
                        last = map_ranks(traffic, topology, stage, initial=first, seed=seed)
                        seconds.append(time.process_time() - begin)
                        coco = [
                            objective_value(traffic, topology, m, "hop_bytes")
                            for m in (last, first)
                        ]
                        values.append(coco[0] / coco[1])
        low, high = (mean(values) for values in quotients.values())
        print(
            f"{label:<38}{low:>9.4f}{high:>12.4f}{fsum(seconds) / len(seconds):>9.4f}", flush=True
        )


def main(words: list[str]) -> None:
    """Run the parts."""
    warnings.simplefilter("ignore", HopmapWarning)  # cuts are printed
    # The first call compiles.
    small = graph(np.array(nx.cycle_graph(20).edges), 20)
    map_ranks(small, topology_from_spec("mesh:4x4*2"), "greedy_all_c | timer | local_search")
    options = dict(pairwise(words))
    names = tuple(options["--starts"].split(",")) if "--starts" in options else STARTS
    specs = tuple(options["--specs"].split(",")) if "--specs" in options else SPECS
    seeds, even = int(options.get("--seeds", 1)), "--even" in words
    chosen = [word for word in words if word in PARTS]
    if "--instances" in options:
        print("\nCommunication graphs, a rank a node")
        table(graphs_in(options["--instances"]), names, seeds, even, specs)
    elif not chosen:
        chosen = list(PARTS)
    if "partitions" in chosen:
        print(f"\nGraphs of many vertices on KaHIP's blocks, {'even' if even else '3 % of slack'}")
        named = graphs_in(options["--networks"]) if "--networks" in options else graphs()
        table(named, names, seeds, even, specs)
    if "hierarchies" in chosen:
        hierarchies()
    if "dose" in chosen:
        dose()


if __name__ == "__main__":
    main(sys.argv[1:])

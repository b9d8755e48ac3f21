"""What TiMEr takes off hop-bytes: ``python benchmarks/mapping/timer.py [PART ...] [OPTION ...]``.

PART is of partitions, hierarchies, dose; all by default. OPTION is of

- ``--networks FOLDER``: METIS graphs of many vertices in place of the generated ones of partitions.
- ``--instances FOLDER``: METIS graphs of 256 and 512 vertices (communication graphs, a rank a node)
  in place of the parts.
- ``--even``: blocks of one size; else KaHIP is told 3 %, as in the paper.
- ``--starts NAME,NAME``: of scotch, bisection, recursive_bisection (of vertices) and other mappers
  (of blocks); c1 to c4 by default. Scotch takes minutes on half a million edges with hubs.
- ``--seeds N``: 1 by default; the paper has 5.
- ``--specs SPEC,SPEC``: of partitions; five by default.

Starts as in the paper's section 7.1: c1 Scotch, where `scotch_gmap` is installed, and else
bisections of ranks and boxes with KaHIP, c2 identity, c3 GreedyAllC and c4 GreedyMin on KaHIP's
blocks. The paper's 15 complex networks are not among our files; generated are ones of 4,096
vertices, with hubs (preferential attachment, without and with triangles), small worlds and random
geometric graphs.
Figures are quotients after/before of minima, means and maxima over seeds, qT being TiMEr's
processor seconds over KaHIP's (over those of the start for c1), and geometric means of these over
graphs. Compilers are apart.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from functools import cache
from itertools import pairwise
from math import exp, fsum, log
from pathlib import Path
from typing import NamedTuple

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from hopmap.errors import HopmapWarning
from hopmap.mappers import map_ranks, objective_value
from hopmap.mappers.objectives import cost_model
from hopmap.mappers.partitions.model_creation import bisection_model, multisection_model
from hopmap.mappers.partitions.partition import kaffpa
from hopmap.mappers.partitions.partition_kernels import Graph, fit, induced
from hopmap.topologies import Topology, topology_from_spec
from hopmap.traces import Traffic, load_traffic

VERTICES = 4096
SPECS = ("mesh:16x16", "mesh:8x8x8", "torus:16x16", "torus:8x8x8", "hypercube:8")
C1 = "scotch" if shutil.which("scotch_gmap") else "bisection"
PARTS = ("partitions", "hierarchies", "dose")
STARTS = (C1, "identity", "greedy_all_c", "greedy_min")


def graph(edges: NDArray[np.int64], vertices: int = VERTICES) -> Traffic:
    """Edges of weight 1."""
    edges = np.unique(np.sort(edges[edges[:, 0] != edges[:, 1]], axis=1), axis=0)
    ones = np.ones(len(edges), dtype=np.int64)
    return Traffic.from_pairs(vertices, edges[:, 0], edges[:, 1], ones, ones)


def graphs(vertices: int = VERTICES) -> dict[str, Traffic]:
    """Application graphs."""
    points = np.random.default_rng(0).random((vertices, 2))
    near = cKDTree(points).query_pairs(np.sqrt(8 / vertices / np.pi), output_type="ndarray")
    edges = {
        "attachment": nx.barabasi_albert_graph(vertices, 4, seed=0).edges,
        "triangles": nx.powerlaw_cluster_graph(vertices, 4, 0.8, seed=0).edges,
        "small world": nx.watts_strogatz_graph(vertices, 8, 0.1, seed=0).edges,
        "geometric": near,
    }
    return {name: graph(np.array(ends, dtype=np.int64), vertices) for name, ends in edges.items()}


def bisection(traffic: Traffic, topology: Topology, seed: int) -> NDArray[np.int64]:
    """Dual recursive bisection (Pellegrini 1994): boxes across their longest side, and ranks."""
    rng = np.random.default_rng(seed)
    model = cost_model(traffic, topology, "hop_bytes")
    whole = Graph(model.indptr[: traffic.ranks + 1], model.peer, model.weight)
    number = np.full(traffic.ranks, -1, dtype=np.int64)
    share = np.diff(np.arange(topology.nodes + 1) * traffic.ranks // topology.nodes)
    node_of = np.empty(traffic.ranks, dtype=np.int64)
    parts = [(np.arange(traffic.ranks), np.arange(topology.nodes))]
    while parts:
        ranks, nodes = parts.pop()
        if len(nodes) == 1 or not len(ranks):
            node_of[ranks] = nodes[0]
            continue
        coords = topology.coords[nodes]
        axis = int(np.argmax(np.ptp(coords, axis=0)))
        high = coords[:, axis] > (coords[:, axis].min() + coords[:, axis].max()) // 2
        sides = [nodes[~high], nodes[high]]
        room = np.array([share[side].sum() for side in sides])
        inside = induced(whole, ranks, number)
        block = kaffpa(inside, 2, 0.01, rng, "fast")
        if (2 * block.sum() > len(block)) == (room[0] > room[1]):
            block = 1 - block  # the larger block to the larger side
        fit(inside, block, room)
        parts += [(ranks[block == b], side) for b, side in enumerate(sides)]
    return node_of


def scotch(traffic: Traffic, topology: Topology) -> NDArray[np.int64]:
    """Scotch's mapping with its default strategy, which knows no seed."""
    kind, _, sizes = topology.spec.partition("*")[0].partition(":")
    dims = sizes.split("x")
    name = "hcub" if kind == "hypercube" else f"{kind}{len(dims)}D"
    model = cost_model(traffic, topology, "hop_bytes")
    indptr = model.indptr[: traffic.ranks + 1]
    rows = []
    for start, end in pairwise(indptr.tolist()):
        row = np.stack((model.weight[start:end], model.peer[start:end]), axis=1).ravel()
        rows.append(" ".join(map(str, (end - start, *row))))
    with tempfile.TemporaryDirectory() as folder:
        graph_file, target, mapping = (Path(folder) / file for file in ("g.grf", "t.tgt", "m.map"))
        head = f"0\n{traffic.ranks} {indptr[-1]}\n0 010\n"
        graph_file.write_text(head + "\n".join(rows) + "\n")
        target.write_text(f"{name} {' '.join(dims)}\n")
        subprocess.run(["scotch_gmap", graph_file, target, mapping], check=True)
        pairs = np.loadtxt(mapping, skiprows=1, dtype=np.int64)
    node_of = np.empty(traffic.ranks, dtype=np.int64)
    node_of[pairs[:, 0]] = pairs[:, 1]
    return node_of


def cut(traffic: Traffic, node_of: NDArray[np.int64]) -> int:
    """Weight between nodes."""
    pairs = traffic.without_self()
    return int(pairs.bytes[node_of[pairs.src] != node_of[pairs.dst]].sum())


class Starts:
    """Starting mappings by name, KaHIP's seconds, and the slots that a node needs."""

    def __init__(self, traffic: Traffic, nodes: int, seed: int, even: bool) -> None:
        self.traffic, self.seed = traffic, seed
        self.ranks, self.block = traffic, np.arange(nodes)
        begin = time.process_time()
        if traffic.ranks != nodes:
            rng = np.random.default_rng(seed)
            if even:
                halves = [2] * (nodes - 1).bit_length()
                self.block, self.ranks = multisection_model(traffic, halves, rng)
            else:
                self.block, self.ranks = bisection_model(traffic, nodes, rng)
        self.seconds = time.process_time() - begin
        self.slots = int(max(np.bincount(self.block).max(), -(-traffic.ranks // nodes)))

    def on(self, topology: Topology, name: str) -> NDArray[np.int64]:
        """Node of each vertex; the blocks go to one node each."""
        if name == "scotch":
            return scotch(self.traffic, topology)
        if name == "bisection":
            return bisection(self.traffic, topology, self.seed)
        if name == "recursive_bisection":
            return map_ranks(self.traffic, topology, name, seed=self.seed)
        single = topology_from_spec(topology.spec.partition("*")[0])
        return map_ranks(self.ranks, single, name)[self.block]


def mean(values: list[float]) -> float:
    """Geometric mean."""
    return exp(fsum(map(log, values)) / len(values))


class Measured(NamedTuple):
    """Of one graph, network and start, an entry for each seed: after and before TiMEr.

    The seconds are TiMEr's, and those of what it is compared with: KaHIP's, or Scotch's for c1.
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
    print("geometric means over graphs, and the deviation of qCo")
    for (spec, name), found in rows.items():
        logs = np.log(np.array(found))
        deviation = np.exp(logs[:, 0, 1].std())
        print(f"{spec:<26}{name:<20}{_cells(np.exp(logs.mean(axis=0)))}{deviation:>8.3f}")
    for name in names:
        logs = np.log([q for (_, n), found in rows.items() if n == name for q in found])
        print(f"{'all networks':<26}{name:<20}{_cells(np.exp(logs.mean(axis=0)))}", flush=True)


def _cells(quotients: NDArray[np.float64]) -> str:
    coco, cuts, seconds = quotients
    numbers = "".join(f"{q:>7.3f}" for q in coco) + f"{cuts[1]:>11.3f} "
    return numbers + "".join(f"{q:>7.2f}" for q in seconds)


def dose() -> dict[float, float]:
    """Print what is gained where a share of the vertices has been dealt anew; return means, %.

    The others are in KaHIP's blocks, block i on node i; sizes of blocks stay as they are.
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
    """Coco and seconds by N_H from random and GreedyMin's mappings, a rank a node."""
    print(
        "\nN_H, Coco after/before and seconds: means over graphs, networks and seeds, a rank a node"
    )
    print("  N_H   random  greedy_min        s")
    for count in (1, 2, 5, 10, 25, 50, 100, 200):
        quotients: dict[str, list[float]] = {"random": [], "greedy_min": []}
        seconds = []
        for topology in map(topology_from_spec, SPECS):
            for traffic in graphs(topology.nodes).values():
                for seed in range(3):
                    for name, values in quotients.items():
                        first = map_ranks(traffic, topology, name, seed=seed)
                        begin = time.process_time()
                        stage = f"timer(hierarchies={count})"
                        last = map_ranks(traffic, topology, stage, initial=first, seed=seed)
                        seconds.append(time.process_time() - begin)
                        coco = [
                            objective_value(traffic, topology, m, "hop_bytes")
                            for m in (last, first)
                        ]
                        values.append(coco[0] / coco[1])
        cells = "".join(f"{mean(values):>9.4f}" for values in quotients.values())
        print(f"{count:>5}{cells}{fsum(seconds) / len(seconds):>9.4f}", flush=True)


def main(words: list[str]) -> None:
    """Run the parts."""
    warnings.simplefilter("ignore", HopmapWarning)  # cuts are printed
    small = graph(np.array(nx.cycle_graph(20).edges), 20)
    map_ranks(small, topology_from_spec("mesh:4x4*2"), "greedy_all_c | timer")  # compile
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


def graphs_in(folder: str) -> dict[str, Traffic]:
    """METIS graphs by name."""
    return {path.stem: load_traffic(path) for path in sorted(Path(folder).glob("*.graph"))}


if __name__ == "__main__":
    main(sys.argv[1:])

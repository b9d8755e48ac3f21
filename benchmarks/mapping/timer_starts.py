"""Graphs and starting mappings of timer.py: the paper's kinds of networks, its cases c1 to c4.

Starts as in the paper's section 7.1: c1 Scotch, where `scotch_gmap` is installed, and else
bisections of ranks and boxes with KaHIP, c2 identity, c3 GreedyAllC and c4 GreedyMin on KaHIP's
blocks. The paper's complex networks are not among our files; generated are ones with hubs
(preferential attachment, without and with triangles), small worlds and random geometric graphs.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from hopmap.mappers import map_ranks
from hopmap.mappers.basic_kernels import Graph, subgraph
from hopmap.mappers.objectives import cost_model
from hopmap.mappers.partitions.partition import bisection_model, kaffpa, multisection_model
from hopmap.mappers.partitions.partition_kernels import fit
from hopmap.topologies import Topology, topology_from_spec
from hopmap.traces import Traffic, load_traffic

VERTICES = 4096
C1 = "scotch" if shutil.which("scotch_gmap") else "bisection"


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
        inside = subgraph(whole, ranks, number)
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


def graphs_in(folder: str) -> dict[str, Traffic]:
    """METIS graphs by name."""
    return {path.stem: load_traffic(path) for path in sorted(Path(folder).glob("*.graph"))}
